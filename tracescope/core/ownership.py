"""Who owns each instant: every nanosecond in which anything runs belongs to exactly one event."""

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I64


def owned_pieces(start: I64, end: I64, depth: NDArray[np.integer], track: NDArray[np.integer]) -> tuple[I64, I64, I64]:
    """The pieces of time that events own, (start, end, row) int64 each in time order; the events are in order of start.

    ``depth`` all 0: an instant belongs to the earliest-started event then running, and each event owns one piece at
    most; an event without length keeps a piece without length. Otherwise an instant belongs to the innermost event of
    each ``track``, then to the earliest-started among the tracks. Events of one track and depth do not overlap.
    """
    if not len(start):
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    if not depth.any():
        running = np.maximum.accumulate(end)
        begin = start.copy()
        begin[1:] = np.maximum(start[1:], running[:-1])
        rows = np.flatnonzero((end > begin) | (end == start))
        return np.minimum(begin, end)[rows], end[rows], rows
    return _innermost(start, end, depth, track)


def _innermost(start: I64, end: I64, depth: NDArray[np.integer], track: NDArray[np.integer]) -> tuple[I64, I64, I64]:
    cuts = np.unique(np.concatenate([start, end]))
    nobody = len(start)
    owner = np.full(len(cuts), nobody)
    for t in np.unique(track).tolist():
        innermost = np.full(len(cuts), nobody)
        of_track = track == t
        for level in np.unique(depth[of_track]).tolist():
            row = np.flatnonzero(of_track & (depth == level))
            at = np.searchsorted(start[row], cuts, side="right") - 1
            covering = (at >= 0) & (end[row][at] > cuts)
            innermost[covering] = row[at[covering]]
        owner = np.minimum(owner, innermost)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    stop = np.append(first[1:], len(cuts) - 1)
    owned = owner[first] < nobody
    return cuts[first[owned]], cuts[stop[owned]], owner[first[owned]]


def union_of(start: I64, end: I64) -> int:
    """The length in ns of the union of intervals, in any order."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    covered_until = np.append(start[0], end[:-1])
    return int(np.maximum(0, end - np.maximum(start, covered_until)).sum())
