"""What a model_type fixes that its config.json does not say: norms, gating, biases, positions and class defaults."""

from dataclasses import dataclass
from typing import Final

Flag = bool | tuple[str, bool]
"""A fact of the architecture, or the config key that decides it with the value of an absent key."""


@dataclass(frozen=True, slots=True)
class Family:
    """The structure behind one or several ``model_type`` values.

    ``mha``: there is no KV head count, every query head has its own; ``kv_default`` is the class default where the
    key is absent. ``ffn_ratio``: what an absent or null ffn size means, times the hidden size. ``positions`` is the key
    that counts learned positions and ``position_offset`` the extra rows stored.
    """

    norm: str = "rms"
    norms_per_layer: int = 2
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


_ATTENTION_BIAS: Final = ("attention_bias", False)

_LLAMA = Family(qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, mlp_bias=("mlp_bias", False))
_QWEN3 = Family(qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, qk_norm=True, head_dim=128)
_GPT2 = Family(
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
_BIASED_PLAIN = Family(norm="layer", gated=False, qkv_bias=True, o_bias=True, mlp_bias=True)

FAMILIES: Final[dict[str, Family]] = {
    "llama": _LLAMA,
    "granite": _LLAMA,
    "mistral": Family(),
    "ministral": Family(),
    "phi3": Family(),
    "minicpm": Family(),
    "exaone": Family(),
    "baichuan": Family(),
    "internlm2": Family(qkv_bias=("bias", False), o_bias=("bias", False)),
    "internlm": Family(qkv_bias=("bias", True), o_bias=("bias", True)),
    "qwen2": Family(qkv_bias=True),
    "qwen2_5_vl_text": Family(qkv_bias=True),
    "qwen2_vl_text": Family(qkv_bias=True),
    "qwen3": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "smollm3": _LLAMA,
    "gemma": Family(qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, tied=True, head_dim=256),
    "stablelm": Family(norm="layer", qkv_bias=("use_qkv_bias", False)),
    "cohere": Family(
        norm="layer-no-bias", norms_per_layer=1, qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, tied=True
    ),
    "starcoder2": Family(
        norm="layer",
        gated=False,
        qkv_bias=("use_bias", True),
        o_bias=("use_bias", True),
        mlp_bias=("use_bias", True),
        tied=True,
    ),
    "nemotron": Family(
        norm="layer", gated=False, qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS, mlp_bias=("mlp_bias", False)
    ),
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2,
    "opt": Family(
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
    "falcon": Family(
        norm="layer",
        gated=False,
        qkv_bias=("bias", False),
        o_bias=("bias", False),
        mlp_bias=("bias", False),
        tied=True,
        mha=True,
        ffn_ratio=4,
    ),
    "mpt": Family(norm="layer-no-bias", gated=False, tied=True, mha=True, ffn_ratio=4),
    "bloom": Family(
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
    "gpt_neox": Family(
        norm="layer",
        gated=False,
        qkv_bias=("attention_bias", True),
        o_bias=("attention_bias", True),
        mlp_bias=True,
        mha=True,
    ),
    "gptj": Family(
        norm="layer", norms_per_layer=1, gated=False, mlp_bias=True, mha=True, ffn_ratio=4, lm_head_bias=True
    ),
    "phi": Family(
        norm="layer", norms_per_layer=1, gated=False, qkv_bias=True, o_bias=True, mlp_bias=True, lm_head_bias=True
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
    "gemma2": "sliding windows and sandwich norms",
    "gemma3": "sliding windows and sandwich norms",
    "gemma3_text": "sliding windows and sandwich norms",
    "gemma3n_text": "layers that share their KV cache",
    "gpt_neo": "local attention windows",
    "olmo": "norms without weights",
    "olmo2": "norms after each block",
    "olmo3": "norms after each block",
    "glm4": "sandwich norms",
    "cohere2": "sliding windows",
    "chatglm": "a layout of its own",
    "qwen": "a layout of its own",
    "openelm": "layers of different sizes",
    "nemotron-nas": "layers of different sizes",
    "deci": "layers of different sizes",
}
"""Model types whose layers are built from something else; refused by name rather than computed wrongly."""
