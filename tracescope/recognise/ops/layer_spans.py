"""Layers of a step, read off the order of its op events: one KV append or one attention a layer."""

import ast
import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tracescope.core.columns import I16, I64
from tracescope.core.raw import RawTrace
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.tracks.launches import enclosing, outermost
from tracescope.recognise.tracks.track_plan import TrackPlan, TrackRole

NORMS = (Family.NORM, Family.NORM_PART)
_COMPLETING = (Family.GEMM_PART, Family.COMMUNICATION)
"""What follows the last GEMM of a layer and is of that layer: its reduction over blocks, and over ranks."""


@dataclass(frozen=True, slots=True)
class Span:
    """Op events ``low`` up to ``high`` are layer ``layer``.

    Its KV append and attention lie in ``mix_low`` to ``mix_high``, both included.
    """

    layer: int
    low: int
    high: int
    mix_low: int
    mix_high: int


def find_layers(family: list[int]) -> list[Span]:
    """The layers of one step from the families of its op events in order; empty where there are fewer than two anchors.

    Layer k runs from the norm that follows the last GEMM of layer k - 1 to the next such norm.
    """
    anchors = _anchors(family)
    if len(anchors) < 2:
        return []
    gemms = [i for i, f in enumerate(family) if f == Family.GEMM]
    # How many GEMMs stand before the attention of the first layer: where no norm tells, the last as many before the
    # next attention are that layer's.
    heads = sum(g < anchors[0][0] for g in gemms)
    starts = [_first_start(family, gemms, anchors[0][0])]
    starts += [_start_between(family, before[1], after[0], heads) for before, after in pairwise(anchors)]
    tails = sum(anchors[0][1] < g < anchors[1][0] for g in gemms) - heads
    end = _last_end(family, gemms, anchors[-1][1], tails)
    bounds = [*starts, end]
    return [Span(layer, bounds[layer], bounds[layer + 1], low, high) for layer, (low, high) in enumerate(anchors)]


def _anchors(family: list[int]) -> list[tuple[int, int]]:
    """One (first, last) range of op events a layer: its KV append and attention.

    Appends of K and V apart, and several attention kernels of one layer, are one anchor: between two layers there is
    always a GEMM, and where both appends and attention are there, attention lies between the appends of two layers.
    """
    appends = [i for i, f in enumerate(family) if f == Family.APPEND]
    attentions = [i for i, f in enumerate(family) if f in (Family.ATTENTION, Family.ATTENTION_PART)]
    gemms = [i for i, f in enumerate(family) if f in (Family.GEMM, Family.EXPERTS)]
    seeds = appends or [i for i in attentions if family[i] == Family.ATTENTION]
    separators = attentions if appends and attentions else gemms
    groups: list[tuple[int, int]] = []
    for i in seeds:
        if groups and not _any_between(separators, groups[-1][1], i):
            groups[-1] = (groups[-1][0], i)
        else:
            groups.append((i, i))
    if appends and _attends_before(groups[0], attentions, gemms):
        return [(_first_attended(low, attentions, gemms), high) for low, high in groups]
    # Take the attention that follows an append into its anchor: up to the next GEMM or the next append.
    widened = []
    for k, (low, high) in enumerate(groups):
        limit = groups[k + 1][0] if k + 1 < len(groups) else len(family)
        mixers = [i for i in attentions if high < i < limit]
        first_gemm = next((g for g in gemms if g > (mixers[0] if mixers else high)), limit)
        inside = [i for i in mixers if i < first_gemm]
        widened.append((low, inside[-1] if inside else high))
    return widened


def _attends_before(first: tuple[int, int], attentions: list[int], gemms: list[int]) -> bool:
    """Whether attention comes before the append of its layer, as compilers may order them: nothing read depends on it.

    No GEMM stands between the two then, and one between the append and the attention of the next layer.
    """
    low, high = first
    before = _first_attended(low, attentions, gemms) < low
    after = next((i for i in attentions if i > high), None)
    return before and (after is None or _any_between(gemms, high, after))


def _first_attended(append: int, attentions: list[int], gemms: list[int]) -> int:
    """The first attention kernel before ``append`` without a GEMM between; ``append`` where there is none."""
    return next((i for i in attentions if i < append and not _any_between(gemms, i, append)), append)


def _any_between(sorted_positions: list[int], low: int, high: int) -> bool:
    at = bisect_left(sorted_positions, low + 1)
    return at < len(sorted_positions) and sorted_positions[at] < high


def _first_start(family: list[int], gemms: list[int], anchor: int) -> int:
    """Where the first layer begins: the norm before its first GEMM, else that GEMM."""
    first = next((g for g in gemms if g < anchor), anchor)
    return next((i for i in range(first - 1, -1, -1) if family[i] == Family.NORM), first)


def _start_between(family: list[int], before: int, anchor: int, heads: int) -> int:
    """Where the layer of ``anchor`` begins, after the layer whose attention ended at ``before``."""
    last = _last_of_mlp(family, before, anchor)
    start = next((i for i in range(last + 1, anchor) if family[i] == Family.NORM), -1)
    gemm = next((i for i in range(last + 1, anchor) if family[i] == Family.GEMM), anchor)
    if 0 <= start < gemm:
        # Sandwich norms: a norm after the MLP still belongs to its layer; the next layer's own is the last before QKV.
        norms = [i for i in range(start, gemm) if family[i] == Family.NORM]
        return norms[-1]
    gemms = [i for i in range(before + 1, anchor) if family[i] == Family.GEMM]
    if len(gemms) <= heads:
        return gemm
    after = gemms[-heads - 1] + 1 if heads else gemms[-1] + 1
    return next((i for i in range(after, anchor) if family[i] not in _COMPLETING), anchor)


def _last_of_mlp(family: list[int], before: int, anchor: int) -> int:
    """The last op event of the feed-forward part between two anchors: down, or the last kernel of the experts."""
    between = range(before + 1, anchor)
    marks = [i for i in between if family[i] in (Family.EXPERTS, Family.ROUTING)]
    if marks:
        return marks[-1]
    acts = [i for i in between if family[i] == Family.ACT]
    if acts:
        # Where the activation comes between gate and up, up and down both follow it: the last GEMM before a norm.
        last = acts[-1]
        for i in range(acts[-1] + 1, anchor):
            if family[i] in NORMS:
                break
            if family[i] in (Family.GEMM, Family.GEMM_PART):
                last = i
        return last
    # No activation kernel (fused into a GEMM): the last GEMM before the last norm.
    norms = [i for i in between if family[i] == Family.NORM]
    inside = [i for i in between if family[i] == Family.GEMM and norms and i < norms[-1]]
    return inside[-1] if inside else before


def _last_end(family: list[int], gemms: list[int], anchor: int, tails: int) -> int:
    """Where the last layer ends: before the final norm, else after as many GEMMs as follow attention in a layer."""
    last = _last_of_mlp(family, anchor, len(family))
    norm = next((i for i in range(last + 1, len(family)) if family[i] == Family.NORM), -1)
    after = [g for g in gemms if g > anchor]
    if norm >= 0 and (not after or last < after[-1]):
        return norm
    if 0 < tails <= len(after):
        last = after[tails - 1]
    return next((i for i in range(last + 1, len(family)) if family[i] not in _COMPLETING), len(family))


MODULE_LAYER = re.compile(r"^nn\.Module: (\w*(?:DecoderLayer|TransformerLayer|Block|Layer))_(\d+)$")
"""A layer's call in a trace with Python stacks; the number counts instances of its class in order of first call."""


def module_layers(raw: RawTrace, plan: TrackPlan, rows: I64) -> I16 | None:
    """The layer of each host row by the module call around it, -1 outside; None where the trace has no such calls."""
    parsed = [MODULE_LAYER.match(name) for name in raw.names]
    number = np.array([int(m[2]) if m else -1 for m in parsed] or [-1], np.int64)
    names = [m[1] if m else "" for m in parsed]
    calls = np.flatnonzero(plan.at(TrackRole.PYTHON) & (number[raw.events.name] >= 0))
    if not len(calls):
        return None
    classes = np.array([names.index(n) if n else -1 for n in names])[raw.events.name[calls]]
    spent = np.bincount(classes, weights=raw.events.duration[calls].astype(float))
    calls = calls[classes == int(spent.argmax())]
    if len(np.unique(number[raw.events.name[calls]])) < 2:
        return None
    call = enclosing(raw, rows, calls)
    layer = np.where(call >= 0, number[raw.events.name[call]], -1)
    return np.minimum(layer, np.iinfo(np.int16).max).astype(np.int16)


_LONGEST_TEXT = 20_000


def nvtx_layers(raw: RawTrace, plan: TrackPlan, rows: I64) -> I16 | None:
    """The layer of each host row by the layer-wise marker around it, -1 outside; None where there are no such markers.

    Inference engines can mark every module with a range whose text is a Python dict with the module's name in it.
    """
    number = np.array([_layer_in(name) for name in raw.names] or [-1], np.int64)
    marks = np.flatnonzero(plan.at(TrackRole.ANNOTATION, TrackRole.HOST) & (number[raw.events.name] >= 0))
    if not len(marks):
        return None
    # A layer's modules nest in it, or stand side by side where only those are marked: the outermost ones are enough.
    e = raw.events
    marks = marks[np.lexsort((-e.duration[marks], e.start[marks], e.track[marks]))]
    outer = marks[outermost(raw, marks)]
    mark = enclosing(raw, rows, outer)
    return np.where(mark >= 0, number[e.name[mark]], -1).astype(np.int16)


def _layer_in(text: str) -> int:
    if not text.startswith("{") or "Module" not in text[:200]:
        return -1
    return module_layer(module_of(text[:_LONGEST_TEXT]))


def module_of(text: str) -> str:
    """The module that a layer-wise marker names, "" where its text is no such dict.

    The text is data: it is parsed as a literal, and only its beginning is searched where it was cut short.
    """
    try:
        marked = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        found = re.search(r"^\{[\"']Module[\"']\s*:\s*[\"']([\w.]{1,300})[\"']", text)
        return found[1] if found else ""
    module = marked.get("Module") if isinstance(marked, dict) else None
    return module if isinstance(module, str) else ""


def module_layer(module: str) -> int:
    """The layer in a module's name (``model.layers.3.self_attn``), -1 where it is in none."""
    found = re.search(r"(?:^|\.)(?:layers|h|blocks?)\.(\d{1,4})(?:\.|$)", module)
    return int(found[1]) if found else -1
