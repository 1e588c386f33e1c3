"""Edges between events: launches as recorded, and the token that one step hands to the next, inferred."""

import numpy as np

from tracescope.core.category import EdgeKind, Op, StepKind
from tracescope.core.columns import I64
from tracescope.core.trace import Dependencies, EventTable, StepTable


def find_dependencies(call: I64, events: EventTable, steps: StepTable) -> Dependencies:
    """``call`` is the event id that launched each event (-1 none), int64[events]; ids are those of ``events``."""
    launched = np.flatnonzero(call >= 0)
    sources, targets = _next_tokens(events, steps)
    source = np.concatenate([call[launched], sources], dtype=np.uint32, casting="unsafe")
    target = np.concatenate([launched, targets], dtype=np.uint32, casting="unsafe")
    kind = np.repeat(np.array([EdgeKind.LAUNCH, EdgeKind.PREVIOUS_TOKEN], np.uint8), [len(launched), len(sources)])
    order = np.lexsort((source, kind, target))
    kind = kind[order]
    return Dependencies(source=source[order], target=target[order], kind=kind, recorded=kind == EdgeKind.LAUNCH)


def _next_tokens(events: EventTable, steps: StepTable) -> tuple[I64, I64]:
    """From the last token selection of a step to what the next step starts with: its embedding, else its first event.

    No edge where the next step began before the selection ended: something else than this token started it.
    """
    empty = np.empty(0, np.int64)
    inside = np.flatnonzero(events.step >= 0)
    if not len(inside) or len(steps) < 2:
        return empty, empty
    inside = inside[np.lexsort((events.end[inside], events.step[inside]))]
    selects = inside[events.op[inside] == Op.SAMPLE]
    last = np.full(len(steps), -1, np.int64)
    last[events.step[selects]] = selects  # rows come by step and end: the latest is written last
    opening = inside[np.lexsort((events.start[inside], events.op[inside] != Op.EMBED, events.step[inside]))]
    within = opening[events.start[opening] >= steps.start[events.step[opening]]]
    which, at = np.unique(events.step[within], return_index=True)
    first = np.full(len(steps), -1, np.int64)
    first[which] = within[at]
    follows = np.isin(steps.kind[1:], (StepKind.DECODE, StepKind.MIXED, StepKind.VERIFY))
    source, target = last[:-1], first[1:]
    keep = follows & (source >= 0) & (target >= 0)
    keep[keep] &= events.end[source[keep]] <= events.start[target[keep]]
    return source[keep], target[keep]
