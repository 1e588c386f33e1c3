"""What the floor of a step is made of: bytes by kind, what is computed beyond them, what is sent."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.analysis.event_floors import work_floors
from tracescope.analysis.exposed_time import StepRows, step_rows
from tracescope.analysis.steps import StepSeries
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.floor.pricing import compute_beyond_s, link_s, memory_s, sent_bytes

F64 = NDArray[np.float64]

NAMES: Final = ("weight_read", "kv_read", "embedding_gather", "kv_append", "compute", "link")
"""The parts in the order in which they are rounded."""
_BYTES: Final = ("weight_read", "kv_read", "embedding_gather", "kv_append")


@dataclass(frozen=True, eq=False, slots=True)
class FloorParts:
    """Parts of the op floor of every step, int64 ns each; together ``floor_ops_ns``, 0 where that is not known.

    Bytes are those of ops that have a floor. ``compute`` is what ops bound by FLOPs take beyond their bytes, ``link``
    what ranks send.
    """

    weight_read: I64
    kv_read: I64
    embedding_gather: I64
    kv_append: I64
    compute: I64
    link: I64


def floor_parts(trace: Trace, basis: Basis, series: StepSeries) -> FloorParts:
    """The parts of the floors in ``series``, which is that of all steps of ``trace`` on ``basis``."""
    exact = _exact(trace, basis, series)
    total = np.maximum(series.floor_ops_ns, 0)
    exact[:, series.floor_ops_ns < 0] = 0.0
    ends = np.minimum(np.rint(np.cumsum(exact, axis=0)).astype(np.int64), total)
    # What is left by rounding belongs to the last part that there is, so that no other appears out of nothing.
    last = len(NAMES) - 1 - np.argmax(exact[::-1] > 0, axis=0)
    ends = np.where(np.arange(len(NAMES))[:, None] >= last, total, ends)
    parts = np.diff(ends, axis=0, prepend=0)
    parts.flags.writeable = False
    return FloorParts(*parts)


def _exact(trace: Trace, basis: Basis, series: StepSeries) -> F64:
    """Unrounded ns, float64[parts, steps]."""
    sent = sent_bytes(series.link, series.link_reduced, basis)
    moved = [memory_s(getattr(series, name), basis) for name in _BYTES]
    exact: F64 = np.nan_to_num(np.stack([*moved, np.zeros(len(series)), link_s(sent, basis)])) * 1e9
    work = trace.work
    beyond = compute_beyond_s(work.memory_bytes, work.flops, basis)
    if beyond.any():
        rows = step_rows(trace, np.arange(len(series)), in_order=False)
        exact[NAMES.index("compute")] = _summed(trace, basis, rows, beyond)
    partly = np.flatnonzero(series.ops_without_floor > 0)
    if len(partly):  # the sums of these steps hold ops without a floor, or are not known at all
        rows = step_rows(trace, partly, in_order=False)
        sent = sent_bytes(work.link, work.link_reduced, basis)
        seconds = [memory_s(getattr(work, name), basis) for name in _BYTES]
        seconds += [beyond, np.where(sent == 0, 0.0, link_s(sent, basis))]
        exact[:, partly] = [_summed(trace, basis, rows, one) for one in seconds]
    return exact


def _summed(trace: Trace, basis: Basis, rows: StepRows, seconds: F64) -> F64:
    """Sums per step of ``seconds`` a work row, ns, over the events that have a floor; the same in any order."""
    floors = work_floors(trace, basis)
    scale = 2.0**floors.shift
    fixed = np.rint(np.where(floors.known, np.nan_to_num(seconds), 0.0) * 1e9 * scale).astype(np.int64)
    if not fixed.any():
        return np.zeros(len(rows.steps))
    summed: F64 = rows.sums(fixed[trace.events.work[rows.ids]]) / scale
    return summed
