"""Floors of events in whole nanoseconds, rounded so that the sum over a step is the step's floor to the nanosecond."""

import math
from dataclasses import dataclass

import numpy as np

from tracescope.analysis.exposed_time import StepRows
from tracescope.core.columns import I64, Bool
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.pricing import memory_s, whole_ns, work_floor_ns

_FINEST = 32


@dataclass(frozen=True, eq=False, slots=True)
class WorkFloors:
    """Floor of each work row: ``fixed`` int64 in units of 2^-``shift`` ns (0 where unknown), ``known`` bool.

    Integer sums do not depend on their order, float sums do: so a step comes out the same to the nanosecond whether it
    is summed alone or with all others, and agrees with a float sum as far as that is exact.
    """

    fixed: I64
    known: Bool
    shift: int

    def whole_ns(self, fixed: I64) -> I64:
        """Sums of ``fixed``, rounded to whole ns."""
        if not self.shift:
            return fixed
        rounded: I64 = (fixed + (1 << (self.shift - 1))) >> self.shift
        return rounded


def work_floors(trace: Trace, basis: Basis) -> WorkFloors:
    """Floors of the work table; TraceError where they are so long that the bandwidth must be a mistake."""
    floor, known = work_floor_ns(trace.work, basis)
    if not basis.bandwidth_bytes_per_s:  # then not even what moves nothing has a floor to be compared with
        known = np.zeros(len(known), bool)
    longest = float(floor[known].max()) if known.any() else 0.0
    low, high, offset = trace.step_runs
    before = np.append(0, np.cumsum(high - low))[offset]
    most_events = max(1, int(np.diff(before).max())) if len(trace.steps) else 1
    room = 62 - math.ceil(math.log2(longest * most_events + 1))
    if room < 0:
        raise TraceError(
            f"at {basis.bandwidth_bytes_per_s:,} bytes/s an operation would need {longest / 1e9:,.0f} s",
            action="check --bandwidth: it takes a unit, such as 3.0TB/s",
        )
    shift = min(_FINEST, room)
    fixed = np.zeros(len(floor), np.int64)
    fixed[known] = np.rint(floor[known] * 2.0**shift).astype(np.int64)
    return WorkFloors(fixed, known, shift)


def known_sums(floor: I64, without: I64, basis: Basis) -> I64:
    """Sums of floors, -1 where they are sums over nothing that is known: no bandwidth, or no op that is priced.

    ``floor`` int64[k] ns, unknown floors counted as 0; ``without`` int64[k]: how many floors of each sum are unknown.
    """
    nothing = (floor == 0) & (without > 0)
    return np.where(nothing | (not basis.bandwidth_bytes_per_s), UNKNOWN, floor)


def streaming_ns(count: I64, basis: Basis) -> I64:
    """Bytes through the memory bandwidth alone, whole ns, int64[k]; -1 where either is not known."""
    return whole_ns(memory_s(count, basis))


def floor_sums(trace: Trace, basis: Basis, rows: StepRows) -> tuple[I64, I64]:
    """The op floor of each step in ns (int64[k]) and how many of its events have none (int64[k]).

    Unknown floors count 0; where nothing is known the sum is -1.
    """
    floors = work_floors(trace, basis)
    work = trace.events.work[rows.ids]
    without = rows.sums((~floors.known)[work].astype(np.int64))
    return known_sums(floors.whole_ns(rows.sums(floors.fixed[work])), without, basis), without


def event_floors(trace: Trace, basis: Basis, rows: StepRows) -> tuple[I64, Bool]:
    """Floor of each event in ns, rounded cumulatively within its step, 0 where unknown; and whether it is known."""
    floors = work_floors(trace, basis)
    work = trace.events.work[rows.ids]
    # A wrapped running sum is exact again once the sum before the step, wrapped alike, is taken off.
    before = np.append(0, np.cumsum(floors.fixed[work]))
    total = floors.whole_ns(before[1:] - rows.per_row(before[rows.offset[:-1]]))
    floor = np.diff(total, prepend=0)
    first = rows.offset[:-1][rows.rows_per_step() > 0]
    floor[first] = total[first]
    return floor, floors.known[work]
