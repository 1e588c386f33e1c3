"""Steps of a recorded trace: which events they own, from when to when they ran, and what the host made them wait."""

from dataclasses import dataclass

import numpy as np

from tracescope.core.category import StepKind
from tracescope.core.columns import I32, I64, Bool


@dataclass(frozen=True, eq=False)
class Extents:
    """First and last device event of each step, int64[steps] ns as the file counts; ``wait`` -1 where not known.

    ``wait`` is how long the device was idle before the step: behind a leading cluster that was left out, else since
    the step before.
    """

    start: I64
    end: I64
    wait: I64


def step_extents(step: I32, start: I64, end: I64, works: Bool, steps: int) -> Extents:
    """Extents of ``steps`` steps from their events' ``step``, ``start`` and ``end``; ``works``: part of the model.

    A leading cluster is left out when the idle gap behind it is longer than half of what remains: the device waited
    for the host there. A cluster leads only while no part of the model has run and most of the work is still to come;
    a host that stalls in the middle of a step is inside it. Steps without events get start = end = -1.
    """
    keep = np.flatnonzero(step >= 0)
    order = keep[np.lexsort((end[keep], start[keep], step[keep]))]
    s, begin, stop = step[order], start[order], end[order]
    first = np.full(steps, -1, np.int64)
    last = np.full(steps, -1, np.int64)
    wait = np.full(steps, -1, np.int64)
    if not len(order):
        return Extents(first, last, wait)
    low = np.searchsorted(s, np.arange(steps))
    high = np.searchsorted(s, np.arange(steps), side="right")
    used = np.flatnonzero(high > low)
    last[used] = np.maximum.reduceat(stop, low[used])
    first[used] = begin[low[used]]
    # Running end within each step: shift every step above the one before, accumulate once, shift back.
    floor = int(begin.min())
    span = int(stop.max()) - floor + 1
    small = span * steps < 1 << 62
    reach = _running_end(s, stop - floor, span) + floor if small else _running_end_by_step(low, high, used, stop)
    gap = np.zeros(len(order), np.int64)
    gap[1:] = begin[1:] - reach[:-1]
    gap[low[used]] = 0
    done = np.concatenate([[0], np.cumsum(stop - begin)])
    before = done[:-1] - done[low[s]]
    after = done[high[s]] - done[:-1]
    worked = np.concatenate([[0], np.cumsum(works[order])])
    begins = (gap * 2 > last[s] - begin) & (before < after) & (gap > 0) & (worked[:-1] == worked[low[s]])
    for i in np.flatnonzero(begins).tolist():
        first[s[i]] = begin[i]
        wait[s[i]] = gap[i]
    by_time = used[np.argsort(first[used], kind="stable")]
    for earlier, later in zip(by_time[:-1].tolist(), by_time[1:].tolist(), strict=True):
        if wait[later] < 0:
            wait[later] = max(int(first[later] - last[earlier]), 0)
    return Extents(first, last, wait)


def _running_end(step: I32, stop: I64, span: int) -> I64:
    base = step.astype(np.int64) * span
    reach: I64 = np.maximum.accumulate(stop + base) - base
    return reach


def _running_end_by_step(low: I64, high: I64, used: I64, stop: I64) -> I64:
    reach = stop.copy()
    for i in used.tolist():
        reach[low[i] : high[i]] = np.maximum.accumulate(stop[low[i] : high[i]])
    return reach


def find_warm_up(kind: np.ndarray, duration: I64) -> int:
    """The warm-up step, -1 for none: the first decode step of at least four if it took over twice the median."""
    decode = np.flatnonzero(np.isin(kind, (StepKind.DECODE, StepKind.MIXED)) & (duration > 0))
    if len(decode) < 4:
        return -1
    first = int(decode[0])
    return first if duration[first] > 2 * float(np.median(duration[decode])) else -1
