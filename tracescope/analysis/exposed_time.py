"""Who owns each instant of a step: every nanosecond belongs to exactly one device event, or to nobody (idle)."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.work_sums import grouped
from tracescope.core.columns import I64
from tracescope.core.ownership import owned_pieces
from tracescope.core.trace import Trace


@dataclass(frozen=True, eq=False, slots=True)
class StepRows:
    """The device events of some steps, laid end to end on one axis so that all steps are handled at once.

    ``steps`` int64[k] ordinals; ``ids`` int64[n] event ids, by step, then (start, end, id); step j owns the rows
    ``offset[j]:offset[j + 1]``. ``start`` and ``end`` int64[n] are ns on the common axis, clipped to the step's
    window, which is ``[origin[j], origin[j] + duration[j]]`` there; ``shift`` int64[k] is what to add to come back to
    the trace's own time.
    """

    steps: I64
    ids: I64
    offset: I64
    start: I64
    end: I64
    origin: I64
    duration: I64
    shift: I64

    def __len__(self) -> int:
        return len(self.ids)

    def rows_per_step(self) -> I64:
        """How many events each step has, int64[k]."""
        count: I64 = np.diff(self.offset)
        return count

    def per_row(self, values: I64) -> I64:
        """A value of each step, once for each of its events."""
        repeated: I64 = np.repeat(values, self.rows_per_step())
        return repeated

    def sums(self, values: I64) -> I64:
        """The exact sum over each step's events of a value per event, int64[k]."""
        total = np.zeros(len(self.steps), np.int64)
        filled = self.offset[1:] > self.offset[:-1]
        if filled.any():
            total[filled] = np.add.reduceat(values, self.offset[:-1][filled], dtype=np.int64)
        return total


def step_rows(trace: Trace, steps: I64, in_order: bool = True) -> StepRows:
    """The device events of ``steps`` (ordinals, int64[k], any order, no repeats).

    With ``in_order`` False the events of a step come lane by lane, which is all that sums over steps need.
    """
    steps = np.asarray(steps, np.int64)
    low, high, run_offset = trace.step_runs
    runs = np.diff(run_offset)[steps]
    run = _ranges(run_offset[:-1][steps], runs)
    length = (high - low)[run]
    ids = _ranges(low[run], length)
    offset = np.append(0, np.cumsum(length))[np.append(0, np.cumsum(runs))]

    duration = trace.steps.duration[steps]
    origin = np.append(0, np.cumsum(duration + 1))[:-1]
    shift = trace.steps.start[steps] - origin
    count = np.diff(offset)
    window_low, window_high = np.repeat(origin, count), np.repeat(origin + duration, count)
    start = trace.events.start[ids]
    start -= np.repeat(shift, count)
    end = start + trace.events.duration[ids]
    np.clip(start, window_low, window_high, out=start)
    np.clip(end, window_low, window_high, out=end)
    if in_order:
        order = _order(trace, ids, start)
        if order is not None:
            ids, start, end = ids[order], start[order], end[order]
    return StepRows(steps, ids, offset, start, end, origin, duration, shift)


def exposed_ns(trace: Trace, rows: StepRows) -> I64:
    """The share of each event in its step's time, int64[n] ns; with the idle time it adds up to the step exactly.

    Device streams: an instant belongs to the earliest-started event then running. Host threads (a trace without a
    device): the innermost operator of each thread, then the earliest-started among the threads.
    """
    lane = trace.event_lane[rows.ids] if trace.nested else None
    none = np.zeros(len(rows), np.uint16)
    depth, track = (none, none) if lane is None else (trace.lanes.depth[lane], trace.lanes.track[lane])
    begin, stop, row = owned_pieces(rows.start, rows.end, depth, track)
    return grouped(row, len(rows))(stop - begin)


def idle_ns(rows: StepRows) -> I64:
    """The time of each step in which nothing ran, int64[k] ns; the rows may be in any order within their step.

    With starts and ends sorted apart, whatever began i-th and whatever ended i-th: nothing runs between the i-th end
    and the next start, if that is later. Sorting values costs a third of sorting events.
    """
    idle = rows.duration.copy()
    filled = np.flatnonzero(rows.rows_per_step())
    if not len(filled):
        return idle
    start, end = np.sort(rows.start, kind="stable"), np.sort(rows.end, kind="stable")
    first, last = rows.offset[filled], rows.offset[filled + 1] - 1
    gap = np.empty_like(start)
    np.subtract(start[1:], end[:-1], out=gap[1:])
    np.maximum(gap, 0, out=gap)
    gap[first] = start[first] - rows.origin[filled]
    after = rows.origin[filled] + rows.duration[filled] - end[last]
    idle[filled] = rows.sums(gap)[filled] + after
    return idle


def idle_spans(rows: StepRows, longer_than: int) -> tuple[I64, I64]:
    """Start (trace time) and duration, ns, of the gaps of the single step in ``rows`` that exceed ``longer_than``."""
    if len(rows.steps) != 1:
        raise ValueError("idle spans are listed for one step at a time")
    first, last = rows.origin, rows.origin + rows.duration
    gap_end = np.append(rows.start, last)
    gap_start = np.append(first, rows.end)
    np.maximum.accumulate(gap_start, out=gap_start)
    listed = gap_end - gap_start > longer_than
    return gap_start[listed] + rows.shift[0], (gap_end - gap_start)[listed]


def _ranges(first: I64, length: I64) -> I64:
    """``concatenate([arange(f, f + n) for f, n in zip(first, length)])`` without the loop."""
    total = int(length.sum())
    before = np.cumsum(length) - length
    rows: I64 = np.arange(total) + np.repeat(first - before, length)
    return rows


def _order(trace: Trace, ids: I64, start: I64) -> I64 | None:
    """The permutation that sorts rows by (step, start, end, id), or None where they already are in that order.

    Rows come as a few sorted runs, which a stable sort of the clipped ``start`` (already apart by step) merges in a
    tenth of the time of a full lexsort; only rows that share a start are then put right among themselves.
    """
    if len(ids) < 2:
        return None
    order: I64 | None = None
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start = start[order]
    tie = start[1:] == start[:-1]
    if tie.any():
        touched = np.append(tie, False) | np.append(False, tie)
        where = np.flatnonzero(touched)
        order = np.arange(len(ids)) if order is None else order
        tied = ids[order[where]]
        events = trace.events
        by_source = np.lexsort((tied, events.end[tied], events.start[tied], start[where]))
        order[where] = order[where[by_source]]
    return order
