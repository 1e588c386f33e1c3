"""The three constraints of a step, kept apart: does it fit, how fast do its bytes arrive, what waits for what."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.breakdown import require_step
from tracescope.analysis.step_workload import machine_of, ranks_of, workload_of_step
from tracescope.analysis.steps import step_series
from tracescope.core.category import Op
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import Trace
from tracescope.core.units import ALL_ACCEPTED
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.capacity import Capacity, capacity
from tracescope.floor.verdict import Crossovers, Verdict, crossovers, verdict


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bandwidth of one step: bytes and ns, -1 where not known; rates and MBU None where not known.

    ``streamed_bytes`` is weights, KV reads and appends, which is what MBU (T_mem over the time it took) counts.
    ``floor_kv_ns`` is ``floor_memory_ns`` less ``floor_weight_ns``.
    """

    weight_read_bytes: int
    kv_read_bytes: int
    kv_append_bytes: int
    streamed_bytes: int
    duration_ns: int
    bandwidth_bytes_per_s: int | None
    bandwidth_source: str
    floor_weight_ns: int
    floor_kv_ns: int
    floor_memory_ns: int
    floor_ops_ns: int
    ops_without_floor: int
    mbu: float | None

    @property
    def achieved_bytes_per_s(self) -> float | None:
        """Bytes over the measured time."""
        known = self.streamed_bytes >= 0 and self.duration_ns > 0
        return self.streamed_bytes * 1e9 / self.duration_ns if known else None


@dataclass(frozen=True, slots=True)
class Dependence:
    """What one token waits for: operations in series, and the rates that follow; -1 or None where not known.

    ``ops_in_series`` counts runs of events of one op and layer (an op's kernels count once); ``events`` counts all.
    ``period_ns`` is from this step's start to the next one's. Rates are of generated tokens over the step's own time.
    """

    ops_in_series: int
    events: int
    duration_ns: int
    period_ns: int
    batch: int
    generated_tokens: int
    acceptance: str | None

    @property
    def tokens_per_s(self) -> float | None:
        """Generated tokens/s of the whole batch."""
        known = self.generated_tokens >= 0 and self.duration_ns > 0
        return self.generated_tokens * 1e9 / self.duration_ns if known else None

    @property
    def tokens_per_s_per_request(self) -> float | None:
        """Generated tokens/s of one request."""
        rate = self.tokens_per_s
        return rate / self.batch if rate is not None and self.batch > 0 else None

    def requests_per_s(self, tokens_each: int) -> float | None:
        """Finished requests/s if every request generates ``tokens_each`` tokens and a new one takes its place."""
        rate = self.tokens_per_s
        return rate / tokens_each if rate is not None else None


@dataclass(frozen=True, slots=True)
class ThreeConstraints:
    """Capacity, bandwidth and dependence of one step, and which of them binds.

    ``capacity``, ``verdict`` and ``crossovers`` are by formula and None without what ``missing`` names.
    ``workload.context`` is the mean per request, rounded up; ``context_tokens`` the exact sum, -1 where not known.
    """

    step: int
    model: ModelSpec | None
    hardware: HardwareSpec | None
    workload: Workload | None
    context_tokens: int
    capacity: Capacity | None
    memory: MemoryUse
    dependence: Dependence
    verdict: Verdict | None
    crossovers: Crossovers | None
    missing: tuple[str, ...]


def three_constraints(trace: Trace, basis: Basis, step: int) -> ThreeConstraints:
    """Work out the three constraints of ``step`` through the same functions as everything else."""
    require_step(trace, step)
    steps, ids = trace.steps, trace.step_events(step)
    series = step_series(trace, basis, np.array([step]))
    duration = int(series.duration[0])
    bandwidth = basis.bandwidth_bytes_per_s
    floor_weight, floor_memory = int(series.floor_weight_ns[0]), int(series.floor_memory_ns[0])
    memory = MemoryUse(
        weight_read_bytes=int(series.weight_read[0]),
        kv_read_bytes=int(series.kv_read[0]),
        kv_append_bytes=int(series.kv_append[0]),
        streamed_bytes=int(series.streamed_bytes[0]),
        duration_ns=duration,
        bandwidth_bytes_per_s=bandwidth,
        bandwidth_source=basis.bandwidth_source,
        floor_weight_ns=floor_weight,
        floor_kv_ns=floor_memory - floor_weight if min(floor_memory, floor_weight) >= 0 else UNKNOWN,
        floor_memory_ns=floor_memory,
        floor_ops_ns=int(series.floor_ops_ns[0]),
        ops_without_floor=int(series.ops_without_floor[0]),
        mbu=None if np.isnan(series.mbu[0]) else float(series.mbu[0]),
    )
    dependence = Dependence(
        ops_in_series=_ops_in_series(trace, ids),
        events=len(ids),
        duration_ns=duration,
        period_ns=int(series.period[0]),
        batch=int(steps.batch[step]),
        generated_tokens=int(steps.generated_tokens[step]),
        acceptance=ALL_ACCEPTED if steps.all_accepted[step] else None,
    )
    model = trace.meta.model
    machine = machine_of(trace, basis)
    workload = workload_of_step(trace, step, ranks_of(trace))
    fitting = capacity(model, machine, workload) if model and machine and workload else None
    needed = {"model": model, "machine": machine, "batch and context": workload, "bandwidth": bandwidth}
    return ThreeConstraints(
        step=step,
        model=model,
        hardware=machine,
        workload=workload,
        context_tokens=int(steps.context_tokens[step]),
        capacity=fitting,
        memory=memory,
        dependence=dependence,
        verdict=verdict(model, workload, basis, fitting) if model and workload else None,
        crossovers=crossovers(model, workload, basis, fitting) if model and workload else None,
        missing=tuple(name for name, known in needed.items() if not known),
    )


def _ops_in_series(trace: Trace, ids: I64) -> int:
    """Runs of one op and layer in order of start; an event without an op counts by itself."""
    if not len(ids):
        return 0
    op, layer = trace.events.op[ids], trace.events.layer[ids]
    same = (op[1:] == op[:-1]) & (layer[1:] == layer[:-1]) & (op[1:] != Op.NONE) & (op[1:] != Op.OTHER)
    return len(ids) - int(same.sum())
