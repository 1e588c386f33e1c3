"""One row a step: what it did, what it took, and its floors."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tracescope.analysis.breakdown import step_gaps
from tracescope.analysis.event_floors import floor_sums, streaming_ns
from tracescope.analysis.exposed_time import idle_ns, step_rows
from tracescope.analysis.step_workload import ranks_of
from tracescope.analysis.table import Column, Table, known_column
from tracescope.analysis.work_energy import energy_columns
from tracescope.analysis.work_sums import work_sums
from tracescope.core.category import StepKind
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.core.units import ALL_ACCEPTED
from tracescope.core.work_table import UNKNOWN


@dataclass(frozen=True, eq=False, slots=True)
class StepSeries:
    """Numbers of every step, one int64 a step; -1 where not known.

    Bytes, FLOPs and ns. ``streamed_bytes`` is weights, KV reads and appends, which T_mem, MBU and energy count;
    ``memory_bytes`` the embedding rows too. ``period`` is the start of its rank's next step less its own.
    ``floor_weight_ns`` is the weights alone through the bandwidth, ``floor_kv_read_ns`` the KV reads alone,
    ``floor_memory_ns`` all that is streamed; ``floor_ops_ns`` sums the op floors that are known (0 for those
    ``ops_without_floor``) and is unknown where none is: without a bandwidth, or where no op is priced.
    """

    start: I64
    duration: I64
    period: I64
    events: I64
    weight_read: I64
    embedding_gather: I64
    kv_read: I64
    kv_append: I64
    streamed_bytes: I64
    memory_bytes: I64
    link: I64
    link_reduced: I64
    flops: I64
    floor_weight_ns: I64
    floor_kv_read_ns: I64
    floor_memory_ns: I64
    floor_ops_ns: I64
    ops_without_floor: I64
    idle_ns: I64

    def __len__(self) -> int:
        return len(self.start)

    @property
    def mbu(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """T_mem / T_measured, float64, NaN where not known."""
        known = (self.floor_memory_ns >= 0) & (self.duration > 0)
        return np.where(known, self.floor_memory_ns / np.maximum(self.duration, 1), np.nan)


def step_series(trace: Trace, basis: Basis, chosen: I64 | None = None) -> StepSeries:
    """Sums over the device events of every step at once; 10 M events take well under a second.

    With ``chosen`` (ordinals, int64[k]) only of those steps, in that order.
    """
    steps, following = trace.steps, trace.next_step
    if chosen is None:
        chosen = np.arange(len(steps))
    rows = step_rows(trace, chosen, in_order=False)
    work = work_sums(trace, rows.ids, rows.sums)
    floor, without = floor_sums(trace, basis, rows)
    series = StepSeries(
        start=steps.start[chosen],
        duration=steps.duration[chosen],
        period=np.where(following >= 0, steps.start[following] - steps.start, UNKNOWN)[chosen],
        events=rows.rows_per_step(),
        weight_read=work.weight_read,
        embedding_gather=work.embedding_gather,
        kv_read=work.kv_read,
        kv_append=work.kv_append,
        streamed_bytes=work.streamed_bytes,
        memory_bytes=work.memory_bytes,
        link=work.link,
        link_reduced=work.link_reduced,
        flops=work.flops,
        floor_weight_ns=streaming_ns(work.weight_read, basis),
        floor_kv_read_ns=streaming_ns(work.kv_read, basis),
        floor_memory_ns=streaming_ns(work.streamed_bytes, basis),
        floor_ops_ns=floor,
        ops_without_floor=without,
        idle_ns=idle_ns(rows),
    )
    for field in fields(series):
        getattr(series, field.name).flags.writeable = False
    return series


def steps_table(trace: Trace, basis: Basis, deadline_ns: int | None = None) -> Table:
    """The ``steps`` listing. With a deadline, ``late`` says which steps took longer from start to next start."""
    steps = trace.steps
    series = step_series(trace, basis)
    gap, gap_known, unknown = step_gaps(trace, basis, series.floor_ops_ns, series.ops_without_floor)
    columns = [
        Column("step", np.arange(len(steps)), "step"),
        known_column("rank", trace.step_rank, "rank" if len(np.unique(trace.step_rank)) > 1 else ""),
        Column("label", [trace.names[n] for n in steps.label.tolist()]),
        Column("kind", [StepKind(k).label for k in steps.kind.tolist()], "kind"),
        Column("start_ns", steps.start + trace.meta.base_ns),
        Column("duration_ns", steps.duration, "took", "ns"),
        known_column("period_ns", series.period, "period", "ns"),
        known_column("host_wait_ns", steps.host_wait, "host wait", "ns"),
        known_column("batch", steps.batch, "batch"),
        known_column("padded_batch", steps.padded_batch),
        known_column("context_tokens", steps.context_tokens, "context", "tokens"),
        known_column("generated_tokens", steps.generated_tokens, "generated"),
        Column("acceptance", [ALL_ACCEPTED if a else None for a in steps.all_accepted.tolist()]),
        known_column("weight_read_bytes", series.weight_read, "weights", "B"),
        known_column("kv_read_bytes", series.kv_read, "KV read", "B"),
        known_column("kv_append_bytes", series.kv_append, "KV append", "B"),
        known_column("flops", series.flops, "FLOPs", "FLOP"),
        known_column("floor_weight_ns", series.floor_weight_ns, "floor W", "ns"),
        known_column("floor_memory_ns", series.floor_memory_ns, "floor W+KV", "ns"),
        known_column("floor_ops_ns", series.floor_ops_ns, "floor", "ns"),
        Column("gap_ns", gap, "gap", "ns", known=gap_known),
        Column("unknown_ns", unknown, "unknown" if unknown.any() else "", "ns"),
        Column("ops_without_floor", series.ops_without_floor, "no floor", "ops"),
        Column("mbu", series.mbu, "MBU", known=~np.isnan(series.mbu)),
        Column("idle_ns", series.idle_ns, "idle", "ns"),
        Column("warm_up", steps.warm_up, "warm-up"),
        *energy_columns(series, series.duration, basis, ranks_of(trace)),
    ]
    if (steps.queue_depth != UNKNOWN).any():
        columns.insert(-3, known_column("queue_depth", steps.queue_depth, "queue"))
    summary: dict[str, Any] = {"ranks": ranks_of(trace)}
    if deadline_ns is not None:
        late = np.where(series.period >= 0, series.period, steps.duration) > deadline_ns
        columns.append(Column("late", late, "late"))
        summary |= {"deadline_ns": deadline_ns, "late_steps": int(late.sum())}
    return Table(tuple(columns), summary)
