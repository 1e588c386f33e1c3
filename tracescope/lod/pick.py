"""Which event is under the pointer: the one running at a time on a row, else the nearest within a tolerance."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.lod.fold import ids_in_sight, lanes_of, visible_rows
from tracescope.lod.planes import Plane, PlaneMembers

NOTHING = -1
_MOST_LOOKED_AT = 20_000
"""A pointer that covers more events than this is over a folded row: the event at the exact instant is taken."""


def event_at(trace: Trace, members: PlaneMembers, row: Plane | int, time: int, tolerance: int = 0) -> int:
    """The event of a plane, or of a lane by index, at ``time`` ns; else the nearest in ``tolerance`` ns; else -1."""
    if isinstance(row, Plane):
        ids = _near(trace, np.flatnonzero(trace.on_device), time, tolerance)
        events = trace.events
        if row is not Plane.PATH and len(ids):
            ids = ids[members.contains(row, events.work[ids], events.roles[ids], events.category[ids])]
    else:
        ids = _near(trace, np.array([row]), time, tolerance)
    return _nearest(trace, ids, time, tolerance, innermost=row is Plane.PATH)


def _near(trace: Trace, lanes: NDArray[np.integer], time: int, tolerance: int) -> NDArray[np.int64]:
    around = TimeRange(time - tolerance, time + tolerance + 1)
    ids = ids_in_sight(trace, lanes, around, _MOST_LOOKED_AT)
    if ids is None:
        ids = ids_in_sight(trace, lanes, TimeRange(time, time + 1), np.inf)
        assert ids is not None
    return ids


def _nearest(trace: Trace, ids: NDArray[np.int64], time: int, tolerance: int, innermost: bool) -> int:
    if not len(ids):
        return NOTHING
    start = trace.events.start[ids]
    end = start + trace.events.duration[ids]
    away = np.maximum(np.maximum(start - time, time - np.maximum(end - 1, start)), 0)
    best = away.min()
    if best > tolerance:
        return NOTHING
    nearest = ids[away == best]
    depth = trace.lanes.depth[lanes_of(trace, nearest)]
    # The path shows the innermost of nested operators; elsewhere the later-drawn event lies on top.
    chosen = nearest[depth == depth.max()][0] if innermost else nearest[-1]
    return int(chosen)


def nearest_in_plane(
    trace: Trace, members: PlaneMembers, plane: Plane, time: int, *, forward: bool, within: TimeRange
) -> int:
    """The first event of a plane from ``time`` on (or the last that ends by it) inside ``within``, else -1."""
    events = trace.events
    offset = trace.lanes.offset
    lanes = np.flatnonzero(trace.on_device)
    span = TimeRange(max(time, within.start), within.end) if forward else TimeRange(within.start, min(time, within.end))
    if span.end <= span.start:
        return NOTHING
    first, last = visible_rows(events.start, offset[lanes], offset[lanes + 1], span)
    best = NOTHING

    def eligible(rows: slice) -> NDArray[np.bool_]:
        inside = members.contains(plane, events.work[rows], events.roles[rows], events.category[rows])
        start = events.start[rows]
        return inside & ((start >= time) if forward else (start + events.duration[rows] <= time))

    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        found = _scan(low, high, forward, eligible)
        if found >= 0 and (best < 0 or (events.start[found] < events.start[best]) == forward):
            best = found
    return best


def _scan(low: int, high: int, forward: bool, eligible: Callable[[slice], NDArray[np.bool_]]) -> int:
    """The first (or last) eligible row of ``low:high``, looked for in growing pieces."""
    piece = 256
    while low < high:
        rows = slice(low, min(high, low + piece)) if forward else slice(max(low, high - piece), high)
        found = np.flatnonzero(eligible(rows))
        if len(found):
            return int(rows.start + found[0 if forward else -1])
        low, high = (rows.stop, high) if forward else (low, rows.start)
        piece *= 4
    return NOTHING
