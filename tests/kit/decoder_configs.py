"""Public configs of decoders whose layers are not all attention with one MLP: the keys that matter, as published.

``total`` is what the public says about the size of the language model, with its source.
"""

from dataclasses import dataclass
from typing import Any

BF16: dict[str, Any] = {"torch_dtype": "bfloat16"}
Config = dict[str, Any]


@dataclass(frozen=True)
class Published:
    """A config with the total that its makers, or a tool that counts its tensors, give."""

    config: Config
    total: float
    source: str


def spread(letters: str, words: dict[str, str]) -> list[str]:
    """One word for each letter."""
    return [words[letter] for letter in letters]


QWEN3_5_35B = {
    "model_type": "qwen3_5_moe_text", "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
    "attn_output_gate": True, "mamba_ssm_dtype": "float32", "num_experts": 256, "num_experts_per_tok": 8,
    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "vocab_size": 248320,
    "mtp_num_hidden_layers": 1, "tie_word_embeddings": False, **BF16,
}  # fmt: skip

NEMOTRON_H_8B = {
    "model_type": "nemotron_h", "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    "hidden_size": 4096, "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 8,
    "attention_head_dim": 128, "intermediate_size": 21504, "ssm_state_size": 128, "mamba_num_heads": 128,
    "mamba_head_dim": 64, "n_groups": 8, "conv_kernel": 4, "chunk_size": 128, "expand": 2, "use_conv_bias": True,
    "use_bias": False, "mlp_hidden_act": "relu2", "mamba_hidden_act": "silu", "vocab_size": 131072,
    "tie_word_embeddings": False, **BF16,
}  # fmt: skip

NEMOTRON_3_NANO = {
    **NEMOTRON_H_8B, "hidden_size": 2688, "num_key_value_heads": 2, "intermediate_size": 1856, "head_dim": 128,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "mamba_num_heads": 64,
    "n_routed_experts": 128, "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "n_shared_experts": 1,
    "moe_shared_expert_intermediate_size": 3712,
}  # fmt: skip
del NEMOTRON_3_NANO["attention_head_dim"]

GRANITE_4_H_TINY = {
    "model_type": "granitemoehybrid", "hidden_size": 1536, "num_hidden_layers": 40, "num_attention_heads": 12,
    "num_key_value_heads": 4, "intermediate_size": 512, "shared_intermediate_size": 1024, "num_local_experts": 64,
    "num_experts_per_tok": 6, "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1,
    "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": True, "mamba_proj_bias": False, "mamba_chunk_size": 256,
    "layer_types": spread("MMMMMAMMMMMMMMMAMMMMMMMMMAMMMMMMMMMAMMMM", {"M": "mamba", "A": "attention"}),
    "vocab_size": 100352, "attention_bias": False, "tie_word_embeddings": True, **BF16,
}  # fmt: skip

FALCON_H1_7B = {
    "model_type": "falcon_h1", "hidden_size": 3072, "num_hidden_layers": 44, "num_attention_heads": 12,
    "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 12288, "mamba_d_state": 256, "mamba_n_groups": 1,
    "mamba_n_heads": 24, "mamba_d_head": 128, "mamba_d_ssm": 3072, "mamba_expand": 2, "mamba_d_conv": 4,
    "mamba_chunk_size": 128, "mamba_rms_norm": False, "mamba_conv_bias": True, "mamba_proj_bias": False,
    "attn_layer_indices": None, "vocab_size": 130048, "tie_word_embeddings": False, **BF16,
}  # fmt: skip

JAMBA = {
    "model_type": "jamba", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "num_experts": 16, "num_experts_per_tok": 2,
    "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8, "attn_layer_offset": 4,
    "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256, "mamba_conv_bias": True,
    "mamba_proj_bias": False, "vocab_size": 65536, "sliding_window": None, "tie_word_embeddings": False, **BF16,
}  # fmt: skip

LFM2_1_2B = {
    "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "block_ff_dim": 12288, "block_auto_adjust_ff_dim": True, "block_multiple_of": 256,
    "block_ffn_dim_multiplier": 1.0, "conv_L_cache": 3, "conv_bias": False, "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    "vocab_size": 65536, "tie_embedding": True, **BF16,
}  # fmt: skip

MINIMAX_M1 = {
    "model_type": "minimax_m1", "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1] * 10, "hidden_size": 6144, "head_dim": 128,
    "intermediate_size": 9216, "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 80,
    "num_local_experts": 32, "num_experts_per_tok": 2, "shared_intermediate_size": 0, "vocab_size": 200064,
    "tie_word_embeddings": False, **BF16,
}  # fmt: skip

GEMMA_3N_E4B = {
    "model_type": "gemma3n_text", "hidden_size": 2048, "num_hidden_layers": 35, "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": [16384] * 35, "sliding_window": 512,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7, "num_kv_shared_layers": 15, "laurel_rank": 64,
    "altup_num_inputs": 4, "altup_active_idx": 0, "altup_correct_scale": True, "hidden_size_per_layer_input": 256,
    "vocab_size": 262400, "vocab_size_per_layer_input": 262144, "tie_word_embeddings": True, **BF16,
}  # fmt: skip

OPENELM_270M = {
    "model_type": "openelm", "model_dim": 1280, "num_transformer_layers": 16, "head_dim": 64,
    "num_query_heads": [12] * 5 + [16] * 7 + [20] * 4, "num_kv_heads": [3] * 5 + [4] * 7 + [5] * 4,
    "ffn_multipliers": [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07, 3.3, 3.53, 3.77, 4.0],
    "ffn_dim_divisor": 256, "ffn_with_glu": True, "normalize_qk_projections": True, "vocab_size": 32000,
    "share_input_output_layers": True, **BF16,
}  # fmt: skip

DBRX = {
    "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
    "attn_config": {"kv_n_heads": 8, "clip_qkv": 8}, "tie_word_embeddings": False,
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}, **BF16,
}  # fmt: skip

GLM_4_9B = {
    "model_type": "chatglm", "hidden_size": 4096, "num_layers": 40, "num_attention_heads": 32, "kv_channels": 128,
    "ffn_hidden_size": 13696, "multi_query_attention": True, "multi_query_group_num": 2, "padded_vocab_size": 151552,
    "add_qkv_bias": True, "add_bias_linear": False, "rmsnorm": True, "seq_length": 131072, "vocab_size": 151552,
    "tie_word_embeddings": False, **BF16,
}  # fmt: skip

HUNYUAN_A13B = {
    "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "moe_intermediate_size": [3072] * 32,
    "moe_topk": [8] * 32, "num_experts": 64, "num_shared_expert": [1] * 32, "use_mixed_mlp_moe": True,
    "use_cla": False, "cla_share_factor": 2, "use_qk_norm": True, "attention_bias": False, "vocab_size": 128167,
    "tie_word_embeddings": True, **BF16,
}  # fmt: skip

GEMMA_4_31B = {
    "model_type": "gemma4_text", "attention_k_eq_v": True, "global_head_dim": 512, "head_dim": 256,
    "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32, "num_global_key_value_heads": 4,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10, "num_hidden_layers": 60,
    "num_key_value_heads": 16, "num_kv_shared_layers": 0, "sliding_window": 1024, "tie_word_embeddings": True,
    "hidden_size_per_layer_input": 0, "vocab_size": 262144, **BF16,
}  # fmt: skip

HUB = "tensors counted by Hugging Face"
LLAMA_CPP = "llama.cpp, which loads the language model alone"
CARD = "the model's card"
DECODERS: dict[str, Published] = {
    "qwen3.5-35b-a3b": Published(QWEN3_5_35B, 34.66e9, LLAMA_CPP),
    "nemotron-h-8b": Published(NEMOTRON_H_8B, 8.1e9, CARD),
    "nemotron-3-nano-30b": Published(NEMOTRON_3_NANO, 31.6e9, CARD),
    "granite-4.0-h-tiny": Published(GRANITE_4_H_TINY, 6.94e9, HUB),
    "falcon-h1-7b": Published(FALCON_H1_7B, 7.59e9, HUB),
    "jamba-v0.1": Published(JAMBA, 51.57e9, HUB),
    "lfm2-1.2b": Published(LFM2_1_2B, 1.17e9, CARD),
    "minimax-m1": Published(MINIMAX_M1, 456.1e9, HUB),
    "gemma-3n-e4b": Published(GEMMA_3N_E4B, 6.87e9, LLAMA_CPP),
    "openelm-270m": Published(OPENELM_270M, 271.5e6, HUB),
    "dbrx": Published(DBRX, 131.6e9, HUB),
    "glm-4-9b": Published(GLM_4_9B, 9.40e9, HUB),
    "hunyuan-a13b": Published(HUNYUAN_A13B, 80.39e9, HUB),
    "gemma-4-31b": Published(GEMMA_4_31B, 30.7e9, CARD),
}
