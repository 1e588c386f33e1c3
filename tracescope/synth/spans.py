"""Events gathered from several makers, put into lanes and into the order of a trace."""

from dataclasses import dataclass, fields
from heapq import heappop, heappush

import numpy as np

from tracescope.core.columns import I16, I32, I64, U8, U16, U32, freeze_columns
from tracescope.core.trace import EventTable, Lanes


@dataclass(frozen=True, eq=False)
class Spans:
    """Some events, one row each as in an event table; ``track`` and ``depth`` say on which lane each lies."""

    track: U32
    depth: U16
    start: I64
    duration: I64
    category: U8
    roles: U16
    op: U16
    name: U32
    layer: I16
    step: I32
    work: U32
    detail: U32
    flags: U8

    def __post_init__(self) -> None:
        freeze_columns(self)

    def __len__(self) -> int:
        return len(self.start)


def event_table(parts: list[Spans]) -> tuple[EventTable, Lanes, I64]:
    """All ``parts`` as one event table with its lanes, and the id of each event in the order of the parts.

    On one lane, events that start together keep their order: by step, then as they were given.
    """
    columns = {f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Spans)}
    track, depth = columns.pop("track"), columns.pop("depth")
    order = np.lexsort((columns["step"], columns["start"], depth, track))
    lane = (track.astype(np.int64) << 16 | depth)[order]
    first = np.flatnonzero(np.diff(lane, prepend=-1))
    lanes = Lanes(
        track=(lane[first] >> 16).astype(np.uint32),
        depth=(lane[first] & 0xFFFF).astype(np.uint16),
        offset=np.append(first, len(lane)),
    )
    event_of = np.empty(len(order), np.int64)
    event_of[order] = np.arange(len(order))
    return EventTable(**{name: values[order] for name, values in columns.items()}), lanes, event_of


def places(start: I64, end: I64) -> I64:
    """The lowest free place for each span when spans (in order of start) may not share one, int64."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    out = np.empty(len(start), np.int64)
    used = 0
    for i, (a, b) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] <= a:
            heappush(free, heappop(busy)[1])
        if free:
            place = heappop(free)
        else:
            place, used = used, used + 1
        heappush(busy, (b, place))
        out[i] = place
    return out
