"""Families of which layers are not all attention with an MLP of one size, and the keys that they read besides."""

from dataclasses import replace
from typing import Final

from tracescope.models.model_family import ATTENTION_BIAS, DEEPSEEK, GEMMA3, LLAMA, ModelFamily

_GATED_DELTA = frozenset(
    {"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
     "linear_conv_kernel_dim", "full_attention_interval", "attn_output_gate", "mamba_ssm_dtype"}
)  # fmt: skip
_MAMBA = frozenset(
    {"mamba_d_state", "mamba_n_heads", "mamba_d_head", "mamba_d_conv", "mamba_expand", "mamba_n_groups", "mamba_d_ssm",
     "mamba_chunk_size", "mamba_conv_bias", "mamba_proj_bias", "mamba_rms_norm", "mamba_norm_before_gate",
     "mamba_use_mlp", "mamba_dt_rank", "mamba_inner_layernorms", "use_mamba_kernels", "layers_block_type",
     "attn_layer_indices", "attn_layer_period", "attn_layer_offset", "expert_layer_period", "expert_layer_offset",
     "mamba_ssm_dtype", "mamba_ssm_cache_dtype"}
)  # fmt: skip
_NEMOTRON_H = frozenset(
    {"hybrid_override_pattern", "layers_block_type", "mamba_num_heads", "mamba_head_dim", "mamba_num_groups",
     "ssm_state_size", "conv_kernel", "chunk_size", "mamba_hidden_act", "mamba_proj_bias", "use_conv_bias",
     "mamba_ssm_cache_dtype", "use_mamba_kernels", "mtp_layers_block_type", "mamba_ssm_dtype",
     "mtp_hybrid_override_pattern"}
)  # fmt: skip
_LFM2 = frozenset({"conv_L_cache", "conv_bias", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "full_attn_idxs"})
_LLAMA4 = frozenset(
    {"attention_chunk_size", "no_rope_layers", "no_rope_layer_interval", "moe_layers", "interleave_moe_layer_step",
     "intermediate_size_mlp"}
)  # fmt: skip
_GEMMA3N = frozenset(
    {"num_kv_shared_layers", "laurel_rank", "altup_num_inputs", "altup_active_idx", "altup_coef_clip",
     "altup_correct_scale", "altup_lr_multiplier", "hidden_size_per_layer_input", "vocab_size_per_layer_input",
     "activation_sparsity_pattern", "rope_local_base_freq"}
)  # fmt: skip
_GEMMA4 = frozenset(
    {"global_head_dim", "num_global_key_value_heads", "attention_k_eq_v", "vocab_size_per_layer_input",
     "num_kv_shared_layers", "enable_moe_block", "use_double_wide_mlp", "hidden_size_per_layer_input",
     "per_layer_config"}
)  # fmt: skip
_LIGHTNING = frozenset(
    {"attn_type_list", "block_size", "linear_attn_alpha_factor", "full_attn_alpha_factor",
     "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta", "layernorm_full_attention_alpha",
     "layernorm_full_attention_beta"}
)  # fmt: skip

_MINIMAX = ModelFamily(keys=_LIGHTNING)
_HUNYUAN = ModelFamily(
    qkv_bias=ATTENTION_BIAS,
    o_bias=ATTENTION_BIAS,
    mlp_bias=("mlp_bias", False),
    tied=True,
    keys=frozenset({"use_cla", "cla_share_factor"}),
)
_QWEN3_NEXT = ModelFamily(
    qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, qk_norm=True, head_dim=256, shared_gate=True, keys=_GATED_DELTA
)
_GRANITE_H = ModelFamily(qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, keys=_MAMBA)

LAYERED: Final[dict[str, ModelFamily]] = {
    "apertus": ModelFamily(
        gated=False, qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, mlp_bias=("mlp_bias", False), qk_norm=True
    ),
    "arcee": ModelFamily(gated=False, qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, mlp_bias=("mlp_bias", False)),
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_5_moe_text": _QWEN3_NEXT,
    "qwen3_5_text": replace(_QWEN3_NEXT, shared_gate=False),
    "granitemoehybrid": _GRANITE_H,
    "granitemoeshared": LLAMA,
    "bamba": replace(_GRANITE_H, mlp_bias=("mlp_bias", False)),
    "falcon_h1": ModelFamily(qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, mlp_bias=("mlp_bias", False), keys=_MAMBA),
    "jamba": ModelFamily(keys=_MAMBA),
    "nemotron_h": ModelFamily(
        gated=False,
        qkv_bias=ATTENTION_BIAS,
        o_bias=ATTENTION_BIAS,
        mlp_bias=("mlp_bias", False),
        router_bias=True,
        keys=_NEMOTRON_H,
    ),
    "lfm2": ModelFamily(qk_norm=True, tied=True, keys=_LFM2),
    "lfm2_moe": ModelFamily(qk_norm=True, tied=True, router_bias=True, keys=_LFM2),
    "llama4_text": ModelFamily(qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, keys=_LLAMA4),
    "gemma3n_text": replace(GEMMA3, window_pattern=5, defaults=(), keys=_GEMMA3N),
    "gemma4_text": replace(GEMMA3, defaults=(), keys=_GEMMA4),
    "minimax": _MINIMAX,
    "minimax_m1": _MINIMAX,
    "minimax_text_01": _MINIMAX,
    "minimax_m2": ModelFamily(qk_norm_wide=True, router_bias=True),
    "hunyuan": _HUNYUAN,
    "hunyuan_v1_dense": _HUNYUAN,
    "hunyuan_v1_moe": _HUNYUAN,
    "deepseek_v32": replace(DEEPSEEK, router_bias=True),
    "glm_moe_dsa": replace(DEEPSEEK, router_bias=True, keys=frozenset({"indexer_rope_interleave"})),
    "ernie4_5": ModelFamily(qkv_bias=("use_bias", False), o_bias=("use_bias", False), mlp_bias=("use_bias", False)),
    "ernie4_5_moe": ModelFamily(
        qkv_bias=("use_bias", False), o_bias=("use_bias", False), mlp_bias=("use_bias", False), router_bias=True
    ),
    "exaone4": ModelFamily(qk_norm=True, window_pattern=4),
    "exaone_moe": ModelFamily(qk_norm=True, router_bias=True, window_pattern=4),
    "afmoe": ModelFamily(
        qk_norm=True, norms_per_layer=4, router_bias=True, keys=frozenset({"global_attn_every_n_layers"})
    ),
    "dbrx": ModelFamily(norm="layer-no-bias", keys=frozenset({"ffn_config", "attn_config"})),
    "chatglm": ModelFamily(
        qkv_bias=("qkv_bias", False),
        o_bias=("linear_bias", False),
        mlp_bias=("linear_bias", False),
        keys=frozenset({"kv_channels"}),
    ),
    "openelm": ModelFamily(qk_norm=True, tied=True, keys=frozenset({"qk_multipliers", "ffn_multipliers"})),
    "deci": ModelFamily(keys=frozenset({"num_key_value_heads_per_layer", "block_configs"})),
    "nemotron-nas": ModelFamily(keys=frozenset({"block_configs"})),
}
