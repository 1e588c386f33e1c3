"""The three constraints of a step, kept apart: does it fit, how fast do its bytes arrive, what waits for what."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.breakdown import require_step
from tracescope.analysis.exposed_time import step_rows
from tracescope.analysis.floors import floor_sums
from tracescope.analysis.steps import ALL_ACCEPTED
from tracescope.analysis.work_sums import work_sums
from tracescope.analysis.workload import ranks_that_fit, workload_of_step
from tracescope.core.capacity import Capacity, capacity
from tracescope.core.category import Op
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import UNKNOWN, Trace
from tracescope.core.verdict import Crossovers, Verdict, crossovers, verdict


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bandwidth of one step: bytes and ns, -1 where not known; rates and MBU None where not known.

    ``memory_bytes`` is weights, KV reads and appends, which is what MBU counts. ``floor_kv_ns`` is ``floor_memory_ns``
    less ``floor_weight_ns``.
    """

    weight_read_bytes: int
    kv_read_bytes: int
    kv_append_bytes: int
    memory_bytes: int
    duration_ns: int
    bandwidth_bytes_per_s: int | None
    bandwidth_source: str
    floor_weight_ns: int
    floor_kv_ns: int
    floor_memory_ns: int
    floor_ops_ns: int
    ops_without_floor: int

    @property
    def achieved_bytes_per_s(self) -> float | None:
        """Bytes over the measured time."""
        known = self.memory_bytes >= 0 and self.duration_ns > 0
        return self.memory_bytes * 1e9 / self.duration_ns if known else None

    @property
    def mbu(self) -> float | None:
        """T_mem over the measured time."""
        achieved = self.achieved_bytes_per_s
        return achieved / self.bandwidth_bytes_per_s if achieved is not None and self.bandwidth_bytes_per_s else None


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

    def least_request_ns(self, tokens_each: int) -> int:
        """N tokens of one request take at least N steps: batching shares the weights, not the dependence."""
        return tokens_each * self.duration_ns


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
    rows = step_rows(trace, np.array([step]))
    work = work_sums(trace, rows.ids, rows.sums)
    floor, without = floor_sums(trace, basis, rows)
    steps = trace.steps
    duration = int(steps.duration[step])
    bandwidth = basis.bandwidth_bytes_per_s
    floor_weight, floor_memory = (
        _streaming_ns(int(count[0]), bandwidth) for count in (work.weight_read, work.streamed)
    )
    memory = MemoryUse(
        weight_read_bytes=int(work.weight_read[0]),
        kv_read_bytes=int(work.kv_read[0]),
        kv_append_bytes=int(work.kv_append[0]),
        memory_bytes=int(work.streamed[0]),
        duration_ns=duration,
        bandwidth_bytes_per_s=bandwidth,
        bandwidth_source=basis.bandwidth_source,
        floor_weight_ns=floor_weight,
        floor_kv_ns=floor_memory - floor_weight if min(floor_memory, floor_weight) >= 0 else UNKNOWN,
        floor_memory_ns=floor_memory,
        floor_ops_ns=int(floor[0]) if bandwidth else UNKNOWN,
        ops_without_floor=int(without[0]),
    )
    dependence = Dependence(
        ops_in_series=_ops_in_series(trace, rows.ids),
        events=len(rows),
        duration_ns=duration,
        period_ns=int(steps.start[step + 1] - steps.start[step]) if step + 1 < len(steps) else UNKNOWN,
        batch=int(steps.batch[step]),
        generated_tokens=int(steps.generated_tokens[step]),
        acceptance=ALL_ACCEPTED if steps.all_accepted[step] else None,
    )
    model = trace.meta.model
    machine = basis.hardware or trace.meta.hardware
    ranks = (
        1 if model is None else ranks_that_fit(model, memory.weight_read_bytes, bool(work.link[0]), dependence.batch)
    )
    workload = workload_of_step(trace, step, ranks)
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


def _streaming_ns(count: int, bandwidth: int | None) -> int:
    return round(count * 1e9 / bandwidth) if bandwidth and count >= 0 else UNKNOWN
