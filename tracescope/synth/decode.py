"""A deterministic decode trace of a model on a machine: B fixed requests, one token each a step, ops in series."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope import __version__
from tracescope.core.category import EdgeKind, EventFlag, Op, StepKind, TrackKind
from tracescope.core.columns import I64, U8, Bool
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import (
    Dependencies,
    Device,
    EventTable,
    Lanes,
    RequestTable,
    StepTable,
    Trace,
    TraceMeta,
    Track,
)
from tracescope.floor.capacity import kv_stored_after
from tracescope.floor.step_ops import step_ops
from tracescope.floor.tensor_parallel import split_notes
from tracescope.synth.calibrated import HostOverhead, calibration_notes, vllm_host
from tracescope.synth.plan import ENGINES, HOST, Plan, plan_steps
from tracescope.synth.timing import CALIBRATED, IDEAL, REALISTIC, Timing, time_plan

MAX_EVENTS: Final = 50_000_000
"""About 5 GB while a trace of this size is made; larger ones are a typing mistake on the machines this runs on."""
MAX_BATCH: Final = 1 << 20
LONGEST_NS: Final = 2**61


def synthesize(
    model: ModelSpec,
    basis: Basis,
    workload: Workload,
    *,
    steps: int,
    profile: str = IDEAL,
    seed: int = 0,
    host: HostOverhead | None = None,
) -> Trace:
    """A trace of ``steps`` decode steps, every op an event on the engine that bounds it, in one serial chain.

    The context of every request starts at ``workload.context`` cached tokens and grows by one a step. A step starts
    with the host's launch and ends with token selection; the next one starts there. ``host`` is what the calibrated
    profile adds to a step (None: vLLM's). The same arguments give the same trace. Raises TraceError for a bandwidth
    that is not known, an unknown profile, or sizes beyond reason.
    """
    _refuse_absurd(workload, steps, seed)
    split_notes(model, workload.tensor_parallel)
    ops = len(step_ops(model, workload))
    if steps * ops > MAX_EVENTS:
        raise TraceError(
            f"{steps:,} steps of {ops:,} operations are more than {MAX_EVENTS:,} events",
            action=f"use at most {MAX_EVENTS // ops:,} steps of this model",
        )
    plan = plan_steps(model, basis, workload, steps)
    if float(plan.floor_ns.max()) * plan.ops * steps > LONGEST_NS:
        raise TraceError("this trace would last longer than 73 years", action="check --bandwidth and --steps")
    timing = time_plan(plan, basis, profile, seed, batch=workload.batch, host=host)
    return _assemble(plan, timing, _meta(model, basis, workload, profile, seed, host or vllm_host()), model, workload)


def _refuse_absurd(workload: Workload, steps: int, seed: int) -> None:
    if steps < 1:
        raise TraceError(f"cannot synthesise {steps} steps", action="use --steps 1 or more")
    if not 1 <= workload.batch <= MAX_BATCH:
        raise TraceError(f"a batch of {workload.batch:,} is out of range", action=f"use 1 to {MAX_BATCH:,} requests")
    if workload.context < 0:
        raise TraceError(f"a context of {workload.context} tokens is out of range", action="use 0 or more tokens")
    if seed < 0:
        raise TraceError(f"a seed of {seed} is out of range", action="use 0 or a positive number")


def _meta(  # noqa: PLR0917
    model: ModelSpec, basis: Basis, workload: Workload, profile: str, seed: int, host: HostOverhead
) -> TraceMeta:
    notes = [
        f"synthesised with the {profile} profile: these times are modelled, not measured",
        "every request starts with its context cached; prompt processing is not simulated",
        "one chain of operations: nothing overlaps, and the next step waits for token selection",
    ]
    if profile == REALISTIC:
        notes.append("the profile's reach and gaps are typical public figures, not a fit to this machine")
    elif profile == CALIBRATED:
        notes += calibration_notes(basis, host)
    return TraceMeta(
        created_by=f"tracescope {__version__}",
        model=model,
        hardware=basis.hardware,
        bandwidth_bytes_per_s=basis.bandwidth_bytes_per_s,
        bandwidth_source=basis.bandwidth_source,
        compute_dtype=basis.compute_dtype,
        tensor_parallel=workload.tensor_parallel,
        profile=profile,
        seed=seed,
        devices=(Device(0, 0, basis.hardware.title if basis.hardware else ""),),
        assumptions=model.assumptions,
        notes=(*notes, *split_notes(model, workload.tensor_parallel), *basis.notes),
    )


def _assemble(plan: Plan, timing: Timing, meta: TraceMeta, model: ModelSpec, workload: Workload) -> Trace:
    """Put the chain (step by step, op by op) into lanes: one a used engine, each in chain order."""
    start, step_start, step_duration = _chain_times(timing)
    warm_up = _warm_up(step_duration)
    engine = plan.engine[plan.work]
    engine[:, plan.host] = HOST
    flat = engine.ravel()
    order = np.argsort(flat, kind="stable")
    counts = np.bincount(flat, minlength=len(ENGINES))
    used = np.flatnonzero(counts)
    step, column = np.divmod(order, plan.ops)
    names = list(dict.fromkeys([Op(o).label or "" for o in plan.op.tolist()]))
    name_of = {name: i for i, name in enumerate(names)}
    names.append(f"decode, batch {workload.batch}")
    duration = timing.duration.ravel()[order]
    events = EventTable(
        start=start[order],
        duration=duration,
        category=plan.category[column],
        roles=plan.roles[column],
        op=plan.op[column].astype(np.uint16),
        name=np.array([name_of[Op(o).label or ""] for o in plan.op.tolist()], np.uint32)[column],
        layer=plan.layer[column],
        step=step.astype(np.int32),
        work=plan.work.ravel()[order],
        detail=np.zeros(len(order), np.uint32),
        flags=_flags(duration, warm_up[step]),
    )
    device = "device 0" if meta.hardware is None else meta.hardware.title
    return Trace(
        meta=meta,
        tracks=tuple(Track(TrackKind.ENGINE, ENGINES[i], process=device, device=0, rank=0) for i in used),
        lanes=Lanes(
            track=np.arange(len(used), dtype=np.uint32),
            depth=np.zeros(len(used), np.uint16),
            offset=np.append(0, np.cumsum(counts[used])),
        ),
        events=events,
        names=tuple(names),
        work=plan.table,
        steps=_steps(step_start, step_duration, warm_up, workload, label=len(names) - 1),
        requests=_requests(model, workload, plan.steps, int(step_start[-1] + step_duration[-1])),
        dependencies=_dependencies(plan, order),
    )


def _chain_times(timing: Timing) -> tuple[I64, I64, I64]:
    """Start of every op (flat, chain order), and start and duration of every step, int64 ns."""
    end = np.cumsum(timing.wait.ravel() + timing.duration.ravel()).reshape(timing.duration.shape)
    start = end - timing.duration
    step_start = start[:, 0].copy()
    return start.ravel(), step_start, end[:, -1] - step_start


def _warm_up(duration: I64) -> Bool:
    """The first step if it is one of at least four and took more than twice the median."""
    warm_up = np.zeros(len(duration), bool)
    if len(duration) >= 4:
        warm_up[0] = duration[0] > 2 * np.median(duration)
    return warm_up


def _flags(duration: I64, warm_up: Bool) -> U8:
    empty, warm = np.uint8(EventFlag.ZERO_LENGTH), np.uint8(EventFlag.WARM_UP)
    flags: U8 = (duration == 0) * empty + warm_up * warm
    return flags


def _steps(start: I64, duration: I64, warm_up: Bool, workload: Workload, label: int) -> StepTable:
    n = len(start)
    batch = np.full(n, workload.batch, np.int32)
    return StepTable(
        label=np.full(n, label, np.uint32),
        kind=np.full(n, StepKind.DECODE, np.uint8),
        start=start,
        duration=duration,
        host_wait=np.zeros(n, np.int64),
        batch=batch,
        padded_batch=batch,
        context_tokens=workload.batch * (workload.context + np.arange(n, dtype=np.int64)),
        generated_tokens=batch.astype(np.int64),
        queue_depth=np.zeros(n, np.int32),
        all_accepted=np.ones(n, bool),
        warm_up=warm_up,
    )


def _requests(model: ModelSpec, workload: Workload, steps: int, finish: int) -> RequestTable:
    """One row a request; the peak is what its blocks hold after the last step, the last token's own K/V included."""
    peak = kv_stored_after(model, replace(workload, batch=1, context=workload.context + steps - 1))

    def column(value: int) -> NDArray[np.int64]:
        return np.full(workload.batch, value, np.int64)

    return RequestTable(column(0), column(0), column(finish), column(workload.context), column(steps), column(peak))


def _dependencies(plan: Plan, order: I64) -> Dependencies:
    """One edge into every event but the first, from the op before it in the chain; sorted by target as ids are."""
    event_of = np.empty(len(order), np.uint32)
    event_of[order] = np.arange(len(order), dtype=np.uint32)
    kind_of_op = np.full(plan.ops, EdgeKind.DATA, np.uint8)
    kind_of_op[np.flatnonzero(plan.host)[:1] + 1] = EdgeKind.LAUNCH
    kind_of_op[0] = EdgeKind.PREVIOUS_TOKEN
    target = np.flatnonzero(order > 0)
    into = order[target]
    return Dependencies(
        source=event_of[into - 1],
        target=target.astype(np.uint32),
        kind=kind_of_op[into % plan.ops],
        recorded=np.ones(len(target), bool),
    )
