"""Which parts of a quantized model stay in 16 bit, matched by the module names that configs use."""

from functools import lru_cache
from typing import Final

from tracescope.core.model import ModelSpec

LAYER_MODULES: Final = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
    "mlp.experts.gate_proj",
    "mlp.experts.up_proj",
    "mlp.experts.down_proj",
    "mlp.shared_experts.gate_proj",
    "mlp.shared_experts.up_proj",
    "mlp.shared_experts.down_proj",
    "self_attn.q_a_proj",
    "self_attn.q_b_proj",
    "self_attn.kv_a_proj_with_mqa",
    "self_attn.kv_b_proj",
)

_PREFIXES: Final = frozenset({"model", "language_model", "transformer", "thinker", "decoder", "text_model"})
_OTHER_NAMES: Final = {
    "h": ("layers",),
    "blocks": ("layers",),
    "attn": ("self_attn",),
    "attention": ("self_attn",),
    "self_attention": ("self_attn",),
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "c_attn": ("q_proj", "k_proj", "v_proj"),
    "query_key_value": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "out_proj": ("o_proj",),
    "dense": ("o_proj",),
    "block_sparse_moe": ("mlp",),
    "feed_forward": ("mlp",),
    "shared_expert": ("shared_experts",),
    "w1": ("gate_proj",),
    "w2": ("down_proj",),
    "w3": ("up_proj",),
    "fc1": ("up_proj",),
    "fc2": ("down_proj",),
}
"""Spellings of other families and fused modules, and the parts that they stand for."""


def kept_modules(model: ModelSpec, layer: int) -> frozenset[str]:
    """Names of the linear modules inside ``layer`` that ``model.unconverted`` keeps unquantized."""
    return _kept(model.unconverted, layer) if model.unconverted else frozenset()


def keeps_head(unconverted: tuple[str, ...]) -> bool:
    """Whether the names include the output head."""
    return any(_matches(pattern, ["lm_head"]) for pattern in unconverted)


@lru_cache(maxsize=4096)
def _kept(patterns: tuple[str, ...], layer: int) -> frozenset[str]:
    paths = {module: ["layers", str(layer), *module.split(".")] for module in LAYER_MODULES}
    return frozenset(module for module, path in paths.items() if any(_matches(p, path) for p in patterns))


def _matches(pattern: str, full: list[str]) -> bool:
    """Whether the dotted ``pattern`` names ``full`` or a part of its path, its leading container names left out.

    ``*`` as a part stands for any one part (``model.layers.*.self_attn``).
    """
    parts = pattern.strip(".").split(".")
    while len(parts) > 1 and parts[0] in _PREFIXES:
        parts = parts[1:]
    wanted = [_OTHER_NAMES.get(part, (part,)) for part in parts]
    room = len(full) - len(wanted)
    return any(all("*" in names or full[at + i] in names for i, names in enumerate(wanted)) for at in range(room + 1))
