"""What a model_type fixes that its config.json does not say: norms, gating, biases, positions and class defaults."""

from dataclasses import replace
from typing import Final

from tracescope.models.layered_families import LAYERED
from tracescope.models.model_family import ATTENTION_BIAS, DEEPSEEK, GEMMA2, GEMMA3, LLAMA, ModelFamily

_QWEN2 = ModelFamily(qkv_bias=True, window_from_layer=True)
_QWEN3 = ModelFamily(qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, qk_norm=True, head_dim=128, window_from_layer=True)
_MISTRAL = ModelFamily(windowed=True)
_GPT2 = ModelFamily(
    norm="layer",
    gated=False,
    qkv_bias=True,
    o_bias=True,
    mlp_bias=True,
    tied=True,
    mha=True,
    ffn_ratio=4,
    positions="n_positions",
)

FAMILIES: Final[dict[str, ModelFamily]] = {
    **LAYERED,
    "llama": LLAMA,
    "granite": LLAMA,
    "mistral": _MISTRAL,
    "ministral": _MISTRAL,
    "mistral3": _MISTRAL,
    "mixtral": _MISTRAL,
    "phi3": _MISTRAL,
    "gemma2": GEMMA2,
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
    "qwen2_moe": replace(_QWEN2, shared_gate=True),
    "qwen3_moe": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": replace(DEEPSEEK, router_bias=True),
    "kimi_k2": replace(DEEPSEEK, router_bias=True),
    "gpt_oss": ModelFamily(
        qkv_bias=("attention_bias", True),
        o_bias=("attention_bias", True),
        head_dim=64,
        window_pattern=2,
        sinks=True,
        router_bias=True,
        expert_bias=True,
    ),
    "glm4_moe": ModelFamily(qkv_bias=ATTENTION_BIAS, qk_norm=False, router_bias=True),
    "granitemoe": LLAMA,
    "phimoe": ModelFamily(
        norm="layer", qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, lm_head_bias=True, windowed=True
    ),
    "olmoe": replace(LLAMA, qk_norm_wide=True),
    "olmo2": replace(LLAMA, qk_norm_wide=True),
    "olmo3": replace(LLAMA, qk_norm_wide=True, window_pattern=4),
    "glm4": ModelFamily(qkv_bias=ATTENTION_BIAS, norms_per_layer=4),
    "cohere2": ModelFamily(
        norm="layer-no-bias",
        norms_per_layer=1,
        parallel=True,
        qkv_bias=ATTENTION_BIAS,
        o_bias=ATTENTION_BIAS,
        tied=True,
        window_pattern=4,
    ),
    "minicpm": ModelFamily(),
    "exaone": ModelFamily(),
    "baichuan": ModelFamily(),
    "internlm2": ModelFamily(qkv_bias=("bias", False), o_bias=("bias", False)),
    "internlm": ModelFamily(qkv_bias=("bias", True), o_bias=("bias", True)),
    "qwen2": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "smollm3": LLAMA,
    "gemma": ModelFamily(qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, tied=True, head_dim=256),
    "stablelm": ModelFamily(norm="layer", parallel=("use_parallel_residual", False), qkv_bias=("use_qkv_bias", False)),
    "cohere": ModelFamily(
        norm="layer-no-bias",
        norms_per_layer=1,
        parallel=True,
        qkv_bias=ATTENTION_BIAS,
        o_bias=ATTENTION_BIAS,
        tied=True,
    ),
    "starcoder2": ModelFamily(
        norm="layer",
        gated=False,
        qkv_bias=("use_bias", True),
        o_bias=("use_bias", True),
        mlp_bias=("use_bias", True),
        tied=True,
        windowed=True,
    ),
    "nemotron": ModelFamily(
        norm="layer", gated=False, qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, mlp_bias=("mlp_bias", False)
    ),
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2,
    "opt": ModelFamily(
        norm="layer",
        gated=False,
        qkv_bias=("enable_bias", True),
        o_bias=("enable_bias", True),
        mlp_bias=("enable_bias", True),
        tied=True,
        mha=True,
        positions="max_position_embeddings",
        position_offset=2,
    ),
    "falcon": ModelFamily(
        norm="layer",
        parallel=("parallel_attn", True),
        gated=False,
        qkv_bias=("bias", False),
        o_bias=("bias", False),
        mlp_bias=("bias", False),
        tied=True,
        mha=True,
        ffn_ratio=4,
    ),
    "mpt": ModelFamily(norm="layer-no-bias", gated=False, tied=True, mha=True, ffn_ratio=4),
    "bloom": ModelFamily(
        norm="layer",
        gated=False,
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        tied=True,
        mha=True,
        ffn_ratio=4,
        embedding_norm=True,
    ),
    "gpt_neox": ModelFamily(
        norm="layer",
        parallel=("use_parallel_residual", True),
        gated=False,
        qkv_bias=("attention_bias", True),
        o_bias=("attention_bias", True),
        mlp_bias=True,
        mha=True,
    ),
    "gptj": ModelFamily(
        norm="layer",
        norms_per_layer=1,
        parallel=True,
        gated=False,
        mlp_bias=True,
        mha=True,
        ffn_ratio=4,
        lm_head_bias=True,
    ),
    "phi": ModelFamily(
        norm="layer",
        norms_per_layer=1,
        parallel=True,
        gated=False,
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        lm_head_bias=True,
    ),
}
FAMILIES["RefinedWebModel"] = FAMILIES["RefinedWeb"] = FAMILIES["falcon"]

UNKNOWN_FAMILY: Final = LLAMA
"""What an unknown model_type is taken for, said as an assumption."""

ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "n_embed"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "kv_n_heads"),
    "head_dim": ("head_dim", "attention_head_dim"),
    "intermediate_size": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "ffn_hidden_dim"),
    "vocab_size": ("vocab_size", "n_vocab"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"),
    "dtype": ("dtype", "torch_dtype"),
}
"""Every spelling of a value, the usual one first; two spellings with different values are a contradiction."""

DIFFERENT: Final[dict[str, str]] = {
    "rwkv5": "recurrent layers",
    "rwkv6": "recurrent layers",
    "rwkv7": "recurrent layers",
    "bailing_moe_linear": "linear attention",
    "bailing_moe_v2_5": "linear attention",
    "kimi_linear": "linear attention",
    "deepseek_v4": "a compressed cache",
    "minimax_m3": "attention to some blocks of the cache",
    "step3p5": "heads of two numbers",
    "mamba": "state-space layers",
    "mamba2": "state-space layers",
    "rwkv": "recurrent layers",
    "falcon_mamba": "state-space layers",
    "zamba2": "state-space layers",
    "recurrent_gemma": "recurrent layers",
    "t5": "an encoder",
    "bart": "an encoder",
    "whisper": "an encoder",
    "bert": "no autoregressive decoder",
    "roberta": "no autoregressive decoder",
    "gpt_neo": "local attention windows",
    "olmo": "norms without weights",
    "qwen": "a layout of its own",
}
"""Model types whose layers are built from something else; refused by name rather than computed wrongly."""
