"""Impossible numbers and broken invariants: what in a trace cannot be true, and what should not be believed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracescope.analysis.breakdown import RowTimes, row_times
from tracescope.analysis.check_bytes import model_differences
from tracescope.analysis.check_model import model_mismatch
from tracescope.analysis.exposed_time import idle_ns
from tracescope.analysis.findings import ERROR, INFO, WARNING, Finding
from tracescope.analysis.info import UNCLASSIFIED_SHARE, device_events
from tracescope.analysis.step_workload import machine_of
from tracescope.analysis.steps import StepSeries, step_series
from tracescope.core.category import EdgeKind, EventFlag
from tracescope.core.columns import Bool
from tracescope.core.hardware import Basis
from tracescope.core.ownership import union_of
from tracescope.core.trace import Trace
from tracescope.floor.pricing import work_floor_ns


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """What every rule looks at, computed once."""

    trace: Trace
    basis: Basis
    series: StepSeries
    times: RowTimes

    @property
    def tolerance_ns(self) -> int:
        """How much faster than its floor something may be: 1 ns of rounding, or what the source's clock can tell."""
        return max(1, self.trace.meta.resolution_ns)

    @property
    def cache_bytes(self) -> int | None:
        """The machine's last-level cache; None where it is not known."""
        machine = machine_of(self.trace, self.basis)
        return machine.llc_bytes if machine else None

    @property
    def cache_note(self) -> str:
        """What to add where a step may have come from a cache of unknown size."""
        return ", or it came from a cache whose size is not known" if self.cache_bytes is None else ""

    @property
    def fits_cache(self) -> Bool:
        """Which steps move no more bytes than the machine's last-level cache holds, bool, one a step."""
        return (self.series.memory_bytes >= 0) & (self.series.memory_bytes <= (self.cache_bytes or 0))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """``ok`` is False where any finding is an error."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is impossible."""
        return not any(f.severity == ERROR for f in self.findings)

    def document(self) -> dict[str, Any]:
        """The ``check`` document."""
        return {
            "ok": self.ok,
            "findings": [
                {"rule": f.rule, "severity": f.severity, "count": f.count, "example_event": f.example_event,
                 "text": f.text}
                for f in self.findings
            ],
        }  # fmt: skip


def check(trace: Trace, basis: Basis) -> CheckResult:
    """Run every rule; errors first, then warnings, then information."""
    evidence = Evidence(trace, basis, step_series(trace, basis), row_times(trace, basis, np.arange(len(trace.steps))))
    found = [finding for rule in RULES for finding in rule(evidence)]
    rank = {ERROR: 0, WARNING: 1, INFO: 2}
    return CheckResult(tuple(sorted(found, key=lambda f: rank[f.severity])))


def _events_below_floor(e: Evidence) -> Iterator[Finding]:
    """Device events inside steps, with their cumulatively rounded floors, and those outside, with their own."""
    rows, events = e.times.rows, e.trace.events
    outside = device_events(e.trace)
    outside = outside[events.step[outside] < 0]
    floor_ns, priced = work_floor_ns(e.trace.work, e.basis)
    ids = np.concatenate([rows.ids, outside])
    floor = np.concatenate([e.times.floor, np.rint(floor_ns[events.work[outside]]).astype(np.int64)])
    known = np.concatenate([e.times.known, priced[events.work[outside]]])
    cached = np.zeros(len(ids), bool)
    cached[: len(rows.ids)] = rows.per_row(e.fits_cache.astype(np.int64))
    short = floor - events.duration[ids]
    below = known & (short > e.tolerance_ns)
    for severity, which, meaning in (
        (ERROR, below & ~cached, f"the trace, the bandwidth or the byte count is wrong{e.cache_note}"),
        (INFO, below & cached, "the step's bytes fit the last-level cache, so they may be cache-resident"),
    ):
        if which.any():
            worst = int(np.where(which, short, -1).argmax())
            event = int(ids[worst])
            yield Finding(
                "event_below_floor", severity, int(which.sum()), event,
                f"faster than the floor: event {event} took {events.duration[event]:,} ns, "
                f"its bytes need {floor[worst]:,} ns; {meaning}",
            )  # fmt: skip


def _steps_below_floor(e: Evidence) -> Iterator[Finding]:
    s = e.series
    below_memory = (s.floor_memory_ns >= 0) & (s.floor_memory_ns - s.duration > e.tolerance_ns)
    below_ops = (s.floor_ops_ns >= 0) & (s.floor_ops_ns - s.duration > e.tolerance_ns) & ~below_memory
    cached = e.fits_cache
    for rule, severity, which, floor, meaning in (
        ("step_below_floor", ERROR, below_memory & ~cached, s.floor_memory_ns, "the time or the byte count is wrong"),
        ("step_below_floor", INFO, below_memory & cached, s.floor_memory_ns, "its bytes may be cache-resident"),
        ("step_below_op_floor", WARNING, below_ops, s.floor_ops_ns, "its operations overlap, or a floor is wrong"),
    ):
        if which.any():
            step = int(which.argmax())
            text = f"step {step} took {s.duration[step]:,} ns, below its floor of {floor[step]:,} ns: {meaning}"
            yield Finding(rule, severity, int(which.sum()), _first_event(e, step), text)


def _sums(e: Evidence) -> Iterator[Finding]:
    rows = e.times.rows
    gap = rows.sums(np.where(e.times.known, e.times.exposed - e.times.floor, 0))
    unknown = rows.sums(np.where(e.times.known, 0, e.times.exposed))
    idle = idle_ns(rows)
    floor = rows.sums(e.times.floor)
    broken = (gap + unknown + idle != rows.duration - floor) | (idle != e.series.idle_ns)
    if broken.any():
        step = int(broken.argmax())
        text = (
            f"step {step}: gaps {gap[step]:,} + unknown {unknown[step]:,} + idle {idle[step]:,} ns is not "
            f"{rows.duration[step]:,} - {floor[step]:,} ns"
        )
        yield Finding("sums", ERROR, int(broken.sum()), _first_event(e, step), text)


def _idle(e: Evidence) -> Iterator[Finding]:
    duration, idle = e.series.duration, e.series.idle_ns
    negative = (idle < 0) | (duration < 0)
    if negative.any():
        step = int(negative.argmax())
        text = f"step {step} lasts {duration[step]:,} ns and is idle for {idle[step]:,} ns"
        yield Finding("negative_idle", ERROR, int(negative.sum()), _first_event(e, step), text)
    mostly = (idle > 0) & (idle * 2 > duration) & ~negative
    if mostly.any():
        step = int(mostly.argmax())
        text = f"step {step} is idle for {idle[step]:,} of its {duration[step]:,} ns"
        yield Finding("mostly_idle", WARNING, int(mostly.sum()), _first_event(e, step), text)


def _windows(e: Evidence) -> Iterator[Finding]:
    rows, events = e.times.rows, e.trace.events
    low = rows.per_row(e.trace.steps.start)
    high = rows.per_row(e.trace.steps.start + e.trace.steps.duration)
    outside = (events.start[rows.ids] < low) | (events.end[rows.ids] > high)
    if outside.any():
        event = int(rows.ids[outside.argmax()])
        text = f"event {event} reaches outside its step's time; only the part inside counts"
        yield Finding("outside_step", INFO, int(outside.sum()), event, text)
    steps = e.trace.steps
    following = e.trace.next_step
    early = (following >= 0) & (steps.start[following] < steps.start + steps.duration)
    if early.any():
        before = int(early.argmax())
        step = int(following[before])
        text = f"step {step} starts before step {before} ends"
        yield Finding("steps_overlap", WARNING, int(early.sum()), _first_event(e, step), text)
    empty = np.diff(rows.offset) == 0
    if empty.any():
        step = int(empty.argmax())
        yield Finding("empty_step", WARNING, int(empty.sum()), None, f"step {step} has no device event")


def _report(e: Evidence) -> Iterator[Finding]:
    report = e.trace.meta.report
    dropped = sum(report.dropped.values())
    if report.seen != report.imported + dropped:
        text = f"seen {report.seen:,} is not imported {report.imported:,} + dropped {dropped:,}"
        yield Finding("import_count", ERROR, 1, None, text)
    if dropped:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(report.dropped.items()))
        yield Finding("dropped", WARNING, dropped, None, f"left out at import: {reasons}")
    if report.truncated_at_byte is not None:
        text = f"the source ends in the middle, at byte {report.truncated_at_byte:,}"
        yield Finding("truncated", WARNING, 1, None, text)
    ids = device_events(e.trace)
    events = e.trace.events
    # Operators nest: their time counts once.
    total = union_of(events.start[ids], events.end[ids]) if e.trace.nested else int(events.duration[ids].sum())
    if total and report.unclassified_ns > UNCLASSIFIED_SHARE * total:
        text = f"{report.unclassified_ns:,} ns of {total:,} ns of device time matched no kernel rule"
        yield Finding("unclassified", WARNING, 1, None, text)


def _flags(e: Evidence) -> Iterator[Finding]:
    for flag, rule, text in (
        (EventFlag.UNFINISHED, "unfinished", "the end was never recorded; drawn to the end of the track"),
        (EventFlag.ALLOCATED_KV, "allocated_kv", "shapes show the allocated cache, not the part in use"),
    ):
        flagged = np.flatnonzero(e.trace.events.flags & flag)
        if len(flagged):
            yield Finding(rule, WARNING, len(flagged), int(flagged[0]), text)


def _dependencies(e: Evidence) -> Iterator[Finding]:
    edges, events = e.trace.dependencies, e.trace.events
    must_wait = np.isin(edges.kind, (EdgeKind.DATA, EdgeKind.PREVIOUS_TOKEN))
    early = must_wait & (events.end[edges.source] > events.start[edges.target])
    for recorded in (True, False):
        which = np.flatnonzero(early & (edges.recorded == recorded))
        if len(which):
            source, target = int(edges.source[which[0]]), int(edges.target[which[0]])
            text = f"event {target} starts before event {source}, on which it depends, has ended"
            text += "" if recorded else " (an inferred dependency)"
            yield Finding("starts_too_early", WARNING, len(which), target, text)


def _model(e: Evidence) -> Iterator[Finding]:
    return model_mismatch(e.trace)


def _bytes(e: Evidence) -> Iterator[Finding]:
    return model_differences(e.trace, e.series, lambda step: _first_event(e, step))


def _first_event(e: Evidence, step: int) -> int | None:
    low, high = e.times.rows.offset[step], e.times.rows.offset[step + 1]
    return int(e.times.rows.ids[low]) if high > low else None


RULES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    _events_below_floor, _steps_below_floor, _sums, _idle, _windows, _report, _flags, _dependencies, _model,
    _bytes,
)  # fmt: skip
"""Every rule; a new one is one function and one entry here."""
