"""What a model_type fixes that its config.json does not say: norms, gating, biases, positions and class defaults."""

from dataclasses import dataclass, replace
from typing import Final

Flag = bool | tuple[str, bool]
"""A fact of the architecture, or the config key that decides it with the value of an absent key."""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """The structure behind one or several ``model_type`` values.

    ``mha``: there is no KV head count, every query head has its own; ``kv_default`` is the class default where the
    key is absent. ``ffn_ratio``: what an absent or null ffn size means, times the hidden size. ``positions`` is the key
    that counts learned positions and ``position_offset`` the extra rows stored.
    """

    norm: str = "rms"
    norms_per_layer: int = 2
    parallel: Flag = False
    """Attention and MLP of a layer read one input."""
    gated: bool = True
    qkv_bias: Flag = False
    o_bias: Flag = False
    mlp_bias: Flag = False
    qk_norm: bool = False
    tied: bool = False
    mha: bool = False
    head_dim: int | None = None
    ffn_ratio: int | None = None
    positions: str = ""
    position_offset: int = 0
    lm_head_bias: bool = False
    embedding_norm: bool = False
    windowed: bool = False
    """Every layer uses the sliding window that the config gives."""
    window_pattern: int | None = None
    """Every so manieth layer sees the whole context, the others a window."""
    window_from_layer: bool = False
    """Windows are off unless ``use_sliding_window`` is true, and begin at ``max_window_layers``."""
    sinks: bool = False
    qk_norm_wide: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False


_ATTENTION_BIAS: Final = ("attention_bias", False)

_LLAMA = ModelFamily(qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, mlp_bias=("mlp_bias", False))
_QWEN2 = ModelFamily(qkv_bias=True, window_from_layer=True)
_QWEN3 = ModelFamily(
    qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, qk_norm=True, head_dim=128, window_from_layer=True
)
_MISTRAL = ModelFamily(windowed=True)
_DEEPSEEK = ModelFamily(qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS)
_GEMMA2 = ModelFamily(
    qkv_bias=_ATTENTION_BIAS,
    o_bias=_ATTENTION_BIAS,
    tied=True,
    head_dim=256,
    norms_per_layer=4,
    window_pattern=2,
)
_GEMMA3 = replace(_GEMMA2, qk_norm=True, window_pattern=6)
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
_BIASED_PLAIN = ModelFamily(norm="layer", gated=False, qkv_bias=True, o_bias=True, mlp_bias=True)

FAMILIES: Final[dict[str, ModelFamily]] = {
    "llama": _LLAMA,
    "granite": _LLAMA,
    "mistral": _MISTRAL,
    "ministral": _MISTRAL,
    "mistral3": _MISTRAL,
    "mixtral": _MISTRAL,
    "phi3": _MISTRAL,
    "gemma2": _GEMMA2,
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "qwen2_moe": replace(_QWEN2, shared_gate=True),
    "qwen3_moe": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": replace(_DEEPSEEK, router_bias=True),
    "kimi_k2": replace(_DEEPSEEK, router_bias=True),
    "gpt_oss": ModelFamily(
        qkv_bias=("attention_bias", True),
        o_bias=("attention_bias", True),
        head_dim=64,
        window_pattern=2,
        sinks=True,
        router_bias=True,
        expert_bias=True,
    ),
    "glm4_moe": ModelFamily(qkv_bias=_ATTENTION_BIAS, qk_norm=False, router_bias=True),
    "granitemoe": _LLAMA,
    "phimoe": ModelFamily(
        norm="layer", qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, lm_head_bias=True, windowed=True
    ),
    "olmoe": replace(_LLAMA, qk_norm_wide=True),
    "olmo2": replace(_LLAMA, qk_norm_wide=True),
    "olmo3": replace(_LLAMA, qk_norm_wide=True, window_pattern=4),
    "glm4": ModelFamily(qkv_bias=_ATTENTION_BIAS, norms_per_layer=4),
    "cohere2": ModelFamily(
        norm="layer-no-bias",
        norms_per_layer=1,
        parallel=True,
        qkv_bias=_ATTENTION_BIAS,
        o_bias=_ATTENTION_BIAS,
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
    "smollm3": _LLAMA,
    "gemma": ModelFamily(qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, tied=True, head_dim=256),
    "stablelm": ModelFamily(norm="layer", parallel=("use_parallel_residual", False), qkv_bias=("use_qkv_bias", False)),
    "cohere": ModelFamily(
        norm="layer-no-bias",
        norms_per_layer=1,
        parallel=True,
        qkv_bias=_ATTENTION_BIAS,
        o_bias=_ATTENTION_BIAS,
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
        norm="layer", gated=False, qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, mlp_bias=("mlp_bias", False)
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

UNKNOWN_FAMILY: Final = _LLAMA
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
    "mamba": "state-space layers",
    "mamba2": "state-space layers",
    "rwkv": "recurrent layers",
    "jamba": "state-space layers",
    "bamba": "state-space layers",
    "falcon_mamba": "state-space layers",
    "falcon_h1": "state-space layers",
    "zamba2": "state-space layers",
    "recurrent_gemma": "recurrent layers",
    "qwen3_next": "linear attention",
    "minimax": "linear attention",
    "t5": "an encoder",
    "bart": "an encoder",
    "whisper": "an encoder",
    "bert": "no autoregressive decoder",
    "roberta": "no autoregressive decoder",
    "gemma3n_text": "layers that share their KV cache",
    "gpt_neo": "local attention windows",
    "olmo": "norms without weights",
    "chatglm": "a layout of its own",
    "qwen": "a layout of its own",
    "openelm": "layers of different sizes",
    "nemotron-nas": "layers of different sizes",
    "deci": "layers of different sizes",
}
"""Model types whose layers are built from something else; refused by name rather than computed wrongly."""
