"""The structure behind a model_type: what its config.json does not say, and which further keys it reads."""

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
    keys: frozenset[str] = frozenset()
    """Keys that name a structure and that this family reads besides the usual ones."""
    defaults: tuple[tuple[str, int], ...] = ()
    """Sizes that published configs leave out, as the family's class has them."""


ATTENTION_BIAS: Final = ("attention_bias", False)

LLAMA: Final = ModelFamily(qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, mlp_bias=("mlp_bias", False))
DEEPSEEK: Final = ModelFamily(qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS)
GEMMA2: Final = ModelFamily(
    qkv_bias=ATTENTION_BIAS, o_bias=ATTENTION_BIAS, tied=True, head_dim=256, norms_per_layer=4, window_pattern=2
)
GEMMA3: Final = replace(
    GEMMA2,
    qk_norm=True,
    window_pattern=6,
    defaults=(("vocab_size", 262_208), ("num_attention_heads", 8), ("num_key_value_heads", 4)),
)
