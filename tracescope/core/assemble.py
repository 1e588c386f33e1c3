"""From events in source order to lanes: sort, give each event a depth on its track, and build the Trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from tracescope.core.category import EventFlag, TrackKind
from tracescope.core.columns import I64, U8, Bool
from tracescope.core.trace import EventTable, Lanes, Track


@dataclass(frozen=True, eq=False)
class Laid:
    """Where events belong: ``order`` lists source rows in lane-major order; ``depth`` and ``overlapping`` follow it."""

    order: I64
    lanes: Lanes
    overlapping: Bool
    """Events put on a sub-lane because they partly overlap an earlier one of their track (not because they nest)."""


def lay_out(track: I64, start: I64, duration: I64, tracks: Sequence[Track]) -> Laid:
    """Give every event a lane. ``track``, ``start`` (ns), ``duration`` (ns) are int64[n] in source order.

    Host threads and annotations nest: a contained event lies one deeper than its container. On device streams and
    engines nothing nests: an event takes the first sub-lane that is free. No event is dropped or shortened.
    """
    order = np.argsort(track, kind="stable")
    depth = np.zeros(len(order), np.int32)
    overlap = np.zeros(len(order), bool)
    bounds = np.searchsorted(track, np.arange(len(tracks) + 1), sorter=order)
    for t, (low, high) in enumerate(pairwise(bounds.tolist())):
        # One track at a time, in place: what sorting needs is then as large as the largest track, not as the trace.
        rows = _by_start(order[low:high], start, duration)
        nests = tracks[t].kind in (TrackKind.HOST_THREAD, TrackKind.ANNOTATION)
        begin = start[rows]
        end = begin + duration[rows]
        own, collides = _depths(begin, end, nests)
        if own.any():
            final = np.lexsort((end, begin, own))
            rows, own, collides = rows[final], own[final], collides[final]
        order[low:high], depth[low:high], overlap[low:high] = rows, own, collides
    begins = np.diff(depth, prepend=0) != 0
    begins[bounds[:-1][np.diff(bounds) > 0]] = True
    first = np.flatnonzero(begins)
    lanes = Lanes(
        track=track[order[first]].astype(np.uint32),
        depth=np.minimum(depth[first], 65535).astype(np.uint16),
        offset=np.append(first, len(order)),
    )
    return Laid(order, lanes, overlap)


def _by_start(rows: I64, start: I64, duration: I64) -> I64:
    """``rows``, given in source order, by (start, -duration, source)."""
    begin = start[rows]
    if (begin[1:] > begin[:-1]).all():
        return rows
    return rows[np.lexsort((-duration[rows], begin))]


def _depths(start: I64, end: I64, nests: bool) -> tuple[I64, Bool]:
    """Depth of each event of one track, given sorted by (start, -duration), and which ones partly overlap."""
    n = len(start)
    earlier_end = np.maximum.accumulate(end)[:-1]
    if (start[1:] >= earlier_end).all():
        return np.zeros(n, np.int64), np.zeros(n, bool)
    if nests:
        depth = _nesting_depths(start, end)
        if not _collides(start, end, depth):
            return depth, np.zeros(n, bool)
        return _free_lane_depths(start, end)
    return _first_free_depths(start, end)


def _nesting_depths(start: I64, end: I64) -> I64:
    """Depths of properly nested intervals: the events that began before this one less those that had ended by then."""
    n = len(start)
    ended = np.searchsorted(np.sort(end), start, side="right")
    # Zero-length events at this very instant that come later in order have "ended" too, but are not before this one.
    empty = np.flatnonzero(start == end)
    later = np.searchsorted(start[empty], start, side="right") - np.searchsorted(empty, np.arange(n), side="left")
    depth: I64 = np.arange(n) - (ended - np.maximum(later, 0))
    return depth


def _collides(start: I64, end: I64, depth: I64) -> bool:
    if depth.min() < 0:
        return True
    order = np.argsort(depth, kind="stable")
    same = depth[order][1:] == depth[order][:-1]
    return bool((same & (start[order][1:] < end[order][:-1])).any())


def _first_free_depths(start: I64, end: I64) -> tuple[I64, Bool]:
    """First free sub-lane for each event, by heaps: 70,000 kernels on top of each other must not take minutes."""
    depth: list[int] = []
    busy: list[tuple[int, int]] = []  # (end, lane), earliest end first
    free: list[int] = []  # lanes given back, lowest first
    lanes = 0
    for s, e in zip(start.tolist(), end.tolist(), strict=True):
        while busy and busy[0][0] <= s:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane, lanes = lanes, lanes + 1
        heappush(busy, (e, lane))
        depth.append(lane)
    depths = np.array(depth, np.int64)
    return depths, depths > 0


def _free_lane_depths(start: I64, end: I64) -> tuple[I64, Bool]:
    """First free sub-lane for each event, not above the deepest event that contains it."""
    depth: list[int] = []
    overlap: list[bool] = []
    lane_end: list[int] = []
    open_events: list[tuple[int, int]] = []  # (end, depth) of events still running, innermost last
    for s, e in zip(start.tolist(), end.tolist(), strict=True):
        while open_events and open_events[-1][0] <= s:
            open_events.pop()
        contained = bool(open_events) and open_events[-1][0] >= e
        d = open_events[-1][1] + 1 if contained else 0
        while d < len(lane_end) and lane_end[d] > s:
            d += 1
        if d == len(lane_end):
            lane_end.append(e)
        else:
            lane_end[d] = e
        depth.append(d)
        overlap.append(not contained and d > 0)
        open_events.append((e, d))
    return np.array(depth, np.int64), np.array(overlap, bool)


def flagged_overlaps(flags: U8, laid: Laid) -> U8:
    """``flags`` (already in lane order) with OVERLAPPING set where the layout found a partial overlap."""
    return np.where(laid.overlapping, flags | EventFlag.OVERLAPPING, flags).astype(flags.dtype)


def reordered(events: EventTable, order: I64) -> EventTable:
    """``events`` with its rows taken in ``order`` (int64 row indices)."""
    return EventTable(**{name: getattr(events, name)[order] for name in EventTable.__dataclass_fields__})
