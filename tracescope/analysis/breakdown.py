"""One step taken apart: what each event took, what it had to take, and what was idle. It adds up to the nanosecond."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.analysis.event_floors import event_floors, known_sums
from tracescope.analysis.exposed_time import StepRows, exposed_ns, idle_ns, idle_spans, step_rows
from tracescope.core.columns import I64, Bool
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace

MOST_UNKNOWN: Final = 0.1
"""A share of floor speed is told where operations without a floor take at most this part of the time."""


@dataclass(frozen=True, eq=False, slots=True)
class StepBreakdown:
    """The device events of one step in (start, end, id) order, and where its time went.

    ``events`` int64[n] ids; ``floor_ns``, ``exposed_ns`` int64[n]; ``floor_known`` bool[n] (an unknown floor counts 0);
    ``floor_ops_ns``: their sum, -1 where no floor is known: a sum over nothing is no floor.
    ``idle_spans``: start (trace time) and duration of every gap longer than the source's resolution, int64[m] each.
    Always ``sum(gap_ns) + unknown_ns + idle_ns == duration_ns - floor_ops_ns`` (a floor that is unknown counts 0).
    """

    step: int
    events: I64
    floor_ns: I64
    floor_known: Bool
    exposed_ns: I64
    duration_ns: int
    idle_ns: int
    floor_ops_ns: int
    ops_without_floor: int
    idle_spans: tuple[I64, I64]

    @property
    def gap_ns(self) -> I64:
        """Exposed time above (or, negative, below) the floor of each event, int64[n]; 0 where its floor is unknown."""
        return np.where(self.floor_known, self.exposed_ns - self.floor_ns, 0)

    @property
    def unknown_ns(self) -> int:
        """Exposed time of the events whose floor is not known: how much of it is above a floor is not known either."""
        return int(self.exposed_ns[~self.floor_known].sum())

    @property
    def step_gap_ns(self) -> int:
        """The gap of the step: those of its events together with the idle time, signed.

        With ``unknown_ns`` and the op floor it is the duration.
        """
        return self.duration_ns - max(0, self.floor_ops_ns) - self.unknown_ns

    @property
    def partly_known(self) -> bool:
        """Whether events without a floor take so much of the step that its floor says little about it."""
        return not mostly_known(self.unknown_ns, int(self.exposed_ns.sum()))

    def row_of(self, event: int) -> int:
        """The row of event id ``event``, -1 where it is not a device event of this step."""
        found = np.flatnonzero(self.events == event)
        return int(found[0]) if len(found) else -1


def mostly_known(unknown_ns: int, time_ns: int) -> bool:
    """Whether so little of a time is spent without a floor that the floor of the rest may stand for all of it."""
    return unknown_ns <= MOST_UNKNOWN * time_ns


@dataclass(frozen=True, eq=False, slots=True)
class RowTimes:
    """Exposed time and floor of every event of some steps: ``rows`` and int64[n] ns, bool[n] beside it."""

    rows: StepRows
    exposed: I64
    floor: I64
    known: Bool


def row_times(trace: Trace, basis: Basis, steps: I64) -> RowTimes:
    """Exposed time and floors of the device events of several steps at once."""
    rows = step_rows(trace, steps)
    floor, known = event_floors(trace, basis, rows)
    return RowTimes(rows, exposed_ns(trace, rows), floor, known)


def require_step(trace: Trace, step: int) -> None:
    """Raise TraceError where the trace has no step with this ordinal."""
    if not 0 <= step < len(trace.steps):
        have = f"steps 0 to {len(trace.steps) - 1}" if len(trace.steps) else "no step at all"
        raise TraceError(f"there is no step {step}: the trace has {have}", action="list them with: tracescope steps")


def step_gaps(trace: Trace, basis: Basis, floor_ops_ns: I64, without: I64) -> tuple[I64, Bool, I64]:
    """The gap of every step, whether it is known, and its time without a floor: int64[steps], bool, int64 ns.

    ``floor_ops_ns`` and ``without`` are those of the step series: steps all of whose ops have a floor need no sums.
    """
    unknown = np.zeros(len(trace.steps), np.int64)
    partly = np.flatnonzero(without > 0)
    if len(partly):
        times = row_times(trace, basis, partly)
        unknown[partly] = times.rows.sums(np.where(times.known, 0, times.exposed))
    gap = trace.steps.duration - np.maximum(floor_ops_ns, 0) - unknown
    return gap, floor_ops_ns >= 0, unknown


def break_down(trace: Trace, basis: Basis, step: int) -> StepBreakdown:
    """Take one step (0-based ordinal over all rows of the step table) apart. TraceError where there is none."""
    require_step(trace, step)
    times = row_times(trace, basis, np.array([step]))
    without = times.rows.sums((~times.known).astype(np.int64))
    return StepBreakdown(
        step=step,
        events=times.rows.ids,
        floor_ns=times.floor,
        floor_known=times.known,
        exposed_ns=times.exposed,
        duration_ns=int(times.rows.duration[0]),
        idle_ns=int(idle_ns(times.rows)[0]),
        floor_ops_ns=int(known_sums(times.rows.sums(times.floor), without, basis)[0]),
        ops_without_floor=int(without[0]),
        idle_spans=idle_spans(times.rows, trace.meta.resolution_ns),
    )
