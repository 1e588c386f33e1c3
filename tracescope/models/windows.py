"""Which layers see only a window of the context, from the several ways in which configs say so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.layer_parts import Layer, unsized_recurrence
from tracescope.core.model import ModelSpec
from tracescope.models.limits import shown
from tracescope.models.model_family import ModelFamily

_FULL: Final = frozenset({"full_attention", "attention", "global", "global_attention"})
_WINDOWED: Final = frozenset({"sliding_attention", "local_attention"})
_STATELESS: Final = frozenset({"linear_attention"})
"""Kept no cache by definition, but of what size its state is takes keys that only some families have."""
_LARGEST: Final = 1 << 30

Windows = tuple[int | None, ...]


def read_windows(
    config: Mapping[str, Any], layers: int, family: ModelFamily, where: str
) -> tuple[Windows, tuple[str, ...]]:
    """The window of each layer (empty: all see everything; 0: no cache) and what was assumed.

    ``layer_types`` decides where it is there; else a pattern, the family's habit or one window for all. Raises
    TraceError naming the key of anything contradictory, and a type of layer that is not known.
    """
    types = config.get("layer_types")
    if types is not None:
        return _by_type(config, types, layers, where)
    if config.get("use_sliding_window") is False or (
        family.window_from_layer and config.get("use_sliding_window") is not True
    ):
        return (), ()
    window = _window(config, where)
    if window is None:
        return (), ()
    full = _full_layers(config, layers, family, where)
    notes: tuple[str, ...] = ()
    if not any(full) and not family.windowed:
        notes = ("sliding_window is given but not which layers use it; every layer is taken to",)
    return _tidy(tuple(None if whole else window for whole in full)), notes


def _tidy(windows: Windows) -> Windows:
    return windows if any(window is not None for window in windows) else ()


def _window(config: Mapping[str, Any], where: str) -> int | None:
    value = config.get("sliding_window")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TraceError(f"{where}: sliding_window must be a whole number, got {shown(value)}")
    if not 0 < value <= _LARGEST:
        raise TraceError(f"{where}: sliding_window is {shown(value)}; a window holds at least 1 token")
    return value


def _by_type(config: Mapping[str, Any], types: Any, layers: int, where: str) -> tuple[Windows, tuple[str, ...]]:
    if not isinstance(types, list):
        raise TraceError(f"{where}: layer_types must be a list of one type a layer, got {shown(types)}")
    if len(types) != layers:
        raise TraceError(f"{where}: layer_types lists {len(types)} layers but num_hidden_layers is {layers}")
    window = _window(config, where)
    windows: list[int | None] = []
    unsized = 0
    for kind in types:
        if not isinstance(kind, str):
            raise TraceError(f"{where}: layer_types has {shown(kind)}, which is no name of a type")
        if kind in _FULL:
            windows.append(None)
        elif kind in _WINDOWED:
            if window is None:
                raise TraceError(f"{where}: layer_types has {shown(kind)} but sliding_window is missing")
            windows.append(window)
        elif kind in _STATELESS:
            unsized += 1
            windows.append(0)
        else:
            raise TraceError(
                f"{where}: layer_types has {shown(kind)}, which is not modelled",
                action="A layer whose reads are not known is not taken for one without any; see docs/MODELS.md.",
            )
    notes = (
        f"linear_attention is not modelled in a {config.get('model_type')}: its {unsized} layers keep no KV cache, the "
        "size of their state is not known, and their weights count as those of attention",
    )
    return _tidy(tuple(windows)), notes if unsized else ()


def _full_layers(config: Mapping[str, Any], layers: int, family: ModelFamily, where: str) -> list[bool]:
    """For each layer whether it sees everything although a window is set."""
    pattern = config.get("sliding_window_pattern", family.window_pattern)
    if isinstance(pattern, str) and pattern and set(pattern) <= {"L", "G"}:  # one letter a layer: local, global
        return [pattern[i % len(pattern)] == "G" for i in range(layers)]
    if pattern is not None:
        if isinstance(pattern, bool) or not isinstance(pattern, int) or not 0 < pattern <= _LARGEST:
            raise TraceError(
                f"{where}: sliding_window_pattern must be a positive whole number, got {shown(pattern)}",
                action="Every so manieth layer then sees the whole context.",
            )
        return [(i + 1) % pattern == 0 for i in range(layers)]
    if family.window_from_layer:
        first = config.get("max_window_layers", layers)
        if isinstance(first, bool) or not isinstance(first, int) or first < 0:
            raise TraceError(f"{where}: max_window_layers must be a whole number, got {shown(first)}")
        return [i < first for i in range(layers)]
    return [False] * layers


def with_reaches(layers: list[Layer], windows: Windows, spec: ModelSpec) -> list[Layer]:
    """``layers`` with these windows; one without a cache (0) has a state of which nothing more is known."""
    found = []
    for layer, window in zip(layers, windows or (None,) * len(layers), strict=True):
        attention = layer.attention
        if attention is None or window is None:
            found.append(layer)
        elif window:
            found.append(replace(layer, attention=replace(attention, window=window)))
        else:
            recurrent = unsized_recurrence("linear attention", spec.hidden, attention, bias=spec.qkv_bias)
            found.append(replace(layer, attention=None, recurrent=recurrent))
    return found
