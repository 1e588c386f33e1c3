"""Floors of events in whole nanoseconds, rounded so that the sum over a step is the step's floor to the nanosecond."""

import numpy as np

from tracescope.analysis.exposed_time import StepRows
from tracescope.core.columns import I64, Bool
from tracescope.core.errors import TraceError
from tracescope.core.floors import work_floor_ns
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace

_SHIFT = 16
"""Floors are summed in units of 2^-16 ns: integer sums do not depend on their order, float sums do."""
_LONGEST_FLOOR_NS = float(2**36)
"""69 s for one op: a longer floor is a mistyped bandwidth, and thousands of them would not fit 63 bits."""


def work_floors(trace: Trace, basis: Basis) -> tuple[I64, Bool]:
    """Floor of each work row in units of 2^-16 ns (0 where unknown) and whether it is known.

    Raises TraceError where a floor is so long that the bandwidth must be a mistake.
    """
    floor, known = work_floor_ns(trace.work, basis)
    if known.any() and floor[known].max() > _LONGEST_FLOOR_NS:
        longest = floor[known].max() / 1e9
        raise TraceError(
            f"an operation would need {longest:,.0f} s at {basis.bandwidth_bytes_per_s:,} bytes/s",
            action="check --bandwidth: it takes a unit, such as 3.0TB/s",
        )
    fixed = np.zeros(len(floor), np.int64)
    fixed[known] = np.rint(floor[known] * 2**_SHIFT).astype(np.int64)
    return fixed, known


def floor_sums(trace: Trace, basis: Basis, rows: StepRows) -> tuple[I64, I64]:
    """The op floor of each step in ns (int64[k], unknown floors count 0) and how many events have none (int64[k])."""
    fixed, known = work_floors(trace, basis)
    work = trace.events.work[rows.ids]
    return _rounded(rows.sums(fixed[work])), rows.sums((~known)[work].astype(np.int64))


def event_floors(trace: Trace, basis: Basis, rows: StepRows) -> tuple[I64, Bool]:
    """Floor of each event in ns, rounded cumulatively within its step, 0 where unknown; and whether it is known."""
    fixed, known = work_floors(trace, basis)
    work = trace.events.work[rows.ids]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(fixed[work])])
    since_step = before[1:] - rows.per_row(before[rows.offset[:-1]])
    total = _rounded(since_step)
    floor = np.diff(total, prepend=0)
    first = rows.offset[:-1][rows.rows_per_step() > 0]
    floor[first] = total[first]
    return floor, known[work]


def _rounded(fixed: I64) -> I64:
    return (fixed + (1 << (_SHIFT - 1))) >> _SHIFT
