"""One row a step: what it did, what it took, and its floors."""

from dataclasses import dataclass, fields

import numpy as np

from tracescope.analysis.exposed_time import idle_ns, step_rows
from tracescope.analysis.floors import floor_sums
from tracescope.analysis.work_sums import work_sums
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis
from tracescope.core.trace import UNKNOWN, Trace

ALL_ACCEPTED = "all generated tokens accepted"
"""The acceptance criterion that stands beside every throughput."""


@dataclass(frozen=True, eq=False, slots=True)
class StepSeries:
    """Numbers of every step, one int64 a step; -1 where not known.

    Bytes, FLOPs and ns. ``period`` is the next step's start less this one's. ``floor_weight_ns`` is the weights alone
    through the bandwidth, ``floor_memory_ns`` weights, KV reads and appends; ``floor_ops_ns`` sums the op floors that
    are known (0 for those ``ops_without_floor``) and is unknown where no bandwidth is.
    """

    start: I64
    duration: I64
    period: I64
    events: I64
    weight_read: I64
    embedding_gather: I64
    kv_read: I64
    kv_append: I64
    memory: I64
    link: I64
    flops: I64
    floor_weight_ns: I64
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


def step_series(trace: Trace, basis: Basis) -> StepSeries:
    """Sums over the device events of every step at once; 10 M events take well under a second."""
    steps = trace.steps
    rows = step_rows(trace, np.arange(len(steps)), in_order=False)
    work = work_sums(trace, rows.ids, rows.sums)
    floor, without = floor_sums(trace, basis, rows)
    memory = np.where(work.memory_known, work.weight_read + work.kv_read + work.kv_append, UNKNOWN)
    bandwidth = basis.bandwidth_bytes_per_s
    series = StepSeries(
        start=steps.start,
        duration=steps.duration,
        period=np.append(np.diff(steps.start), UNKNOWN)[: len(steps)],
        events=rows.rows_per_step(),
        weight_read=work.weight_read,
        embedding_gather=work.embedding_gather,
        kv_read=work.kv_read,
        kv_append=work.kv_append,
        memory=work.memory,
        link=work.link,
        flops=work.flops,
        floor_weight_ns=_streaming_ns(work.weight_read, bandwidth),
        floor_memory_ns=_streaming_ns(memory, bandwidth),
        floor_ops_ns=np.where(bandwidth is None, UNKNOWN, floor),
        ops_without_floor=without,
        idle_ns=idle_ns(rows),
    )
    for field in fields(series):
        getattr(series, field.name).flags.writeable = False
    return series


def _streaming_ns(count: I64, bandwidth: int | None) -> I64:
    """Bytes through a bandwidth, whole ns, -1 where either is not known."""
    if not bandwidth:
        return np.full(len(count), UNKNOWN)
    return np.where(count >= 0, np.rint(count * (1e9 / bandwidth)).astype(np.int64), UNKNOWN)
