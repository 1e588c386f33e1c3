"""Reads the op events of every step: layers, ops, categories. Steps that look alike are read once."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tracescope.core.columns import I16, I32, I64, U8, U16, Bool
from tracescope.core.report import Inference
from tracescope.core.units import plural
from tracescope.recognise.names.kernel_rules import CATEGORY_OF_FAMILY, OP_OF_FAMILY, PARTS, Family
from tracescope.recognise.ops.op_events import OpEvents
from tracescope.recognise.ops.ops import Pattern, read_pattern


@dataclass(frozen=True, eq=False)
class Reading:
    """Place and op of each op event, as in ops.Pattern; ``layers`` int64[steps]: how many layers each step has."""

    layer: I16
    op: U16
    category: U8
    section: U8
    ordinal: U8
    main: Bool
    layers: I64
    inferred: tuple[Inference, ...]


def read_op_events(
    op_events: OpEvents, step: I32, steps: int, hint: I16 | None, *, generates: Bool | None = None, hinted_by: str = ""
) -> Reading:
    """The reading of all op events. ``hint`` gives the layer of each where ``hinted_by`` (module calls) tells it.

    ``generates``: the steps known to run a whole model, bool[steps]; in them layers may be found by repetition alone.
    """
    n = len(op_events.row)
    op_of = np.array([OP_OF_FAMILY[f] for f in Family], np.uint16)
    category_of = np.array([CATEGORY_OF_FAMILY[f] for f in Family], np.uint8)
    layer = np.full(n, -1, np.int16)
    op, category = op_of[op_events.family], category_of[op_events.family]
    section, ordinal = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    main = ~np.isin(op_events.family, list(PARTS))
    layers = np.zeros(steps, np.int64)
    order = np.argsort(step, kind="stable")
    bounds = np.searchsorted(step[order], np.arange(steps + 1))
    known: dict[tuple[bytes, bytes, bool], Pattern] = {}
    by_period = 0
    for k in range(steps):
        mine = order[bounds[k] : bounds[k + 1]]
        family = op_events.family[mine]
        own_hint = hint[mine] if hint is not None and (hint[mine] >= 0).any() else None
        repeats = generates is not None and bool(generates[k])
        key = (family.tobytes(), own_hint.tobytes() if own_hint is not None else b"", repeats)
        if key not in known:
            known[key] = read_pattern(family, own_hint, repeats=repeats)
        pattern = known[key]
        by_period += pattern.by_period
        layer[mine], op[mine], category[mine] = pattern.layer, pattern.op, pattern.category
        section[mine], ordinal[mine], main[mine] = pattern.section, pattern.ordinal, pattern.main
        layers[k] = pattern.layers
    notes = _notes(layers, op_events, (hinted_by or "module calls") if hint is not None else "", by_period)
    return Reading(layer, op, category, section, ordinal, main, layers, notes)


def _notes(layers: I64, op_events: OpEvents, hinted_by: str, by_period: int) -> tuple[Inference, ...]:
    counts = Counter(layers[layers > 0].tolist())
    if not counts:
        return ()
    text = ", ".join(f"{count} layers in {plural(times, 'step')}" for count, times in counts.most_common(3))
    if hinted_by:
        rule, confidence = f"layers by {hinted_by}", 0.99
    elif by_period == sum(counts.values()):
        return (Inference(text, "layers by period", 0.5),)
    elif (op_events.family == Family.APPEND).any():
        rule, confidence = "layers by KV append", 0.95
    else:
        rule, confidence = "layers by attention", 0.85
    names = "qkv, o, gate_up, down and lm_head by their place between norms, attention and activation"
    return (Inference(text, rule, confidence), Inference(names, "ops by position", 0.9))
