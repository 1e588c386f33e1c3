"""A decode trace of requests that arrive, wait and leave: one event a step and request phase, or every operation."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tracescope import __version__
from tracescope.core import units
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.request_stream import RequestStream
from tracescope.core.trace import Device, RequestTable, Trace, TraceMeta
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.capacity import kv_stored_after
from tracescope.floor.step_ops import step_ops
from tracescope.floor.tensor_parallel import split_notes
from tracescope.synth.batching import ADMISSION_RULE, NOT_YET, KvRoom, Schedule, kv_room, serve
from tracescope.synth.calibrated import HostOverhead, calibration_notes, vllm_host
from tracescope.synth.decode import MAX_EVENTS
from tracescope.synth.served_events import MOST_LANES, TraceMaker
from tracescope.synth.step_times import StepTimes
from tracescope.synth.timing import CALIBRATED, IDEAL

STEPS, OPS = "steps", "ops"
DETAILS: Final = (STEPS, OPS)


@dataclass(frozen=True, eq=False)
class Served:
    """What came of serving requests: the trace, the schedule behind it, and what their caches needed."""

    trace: Trace
    schedule: Schedule
    room: KvRoom


def serve_requests(
    model: ModelSpec,
    basis: Basis,
    workload: Workload,
    stream: RequestStream,
    *,
    max_batch: int,
    steps: int | None = None,
    profile: str = IDEAL,
    seed: int = 0,
    detail: str = STEPS,
    window: tuple[int, int] | None = None,
    unlimited: bool = False,
    host: HostOverhead | None = None,
) -> Served:
    """Serve ``stream`` and make a trace of it; ``workload`` gives blocks, utilization, reserve and ranks.

    With detail ``ops`` every operation of the steps in ``window`` (first, past the last; None: all of them) is an
    event; other steps keep one event each.

    ``unlimited`` serves requests that the memory does not hold. Raises TraceError for sizes beyond reason, an unknown
    detail, or a window outside the steps.
    """
    if detail not in DETAILS:
        raise TraceError(f"there is no detail {detail!r}", action="use one of: " + ", ".join(DETAILS))
    split_notes(model, workload.tensor_parallel)  # what cannot be split is refused
    times = StepTimes(model, basis, workload, profile, host)
    room = kv_room(model, None if unlimited else basis.hardware, workload, stream)
    schedule = serve(stream, room, times, max_batch=max_batch, steps=steps, profile=profile, seed=seed)
    if not schedule.steps:
        raise TraceError("none of these requests can be served", action=_why_none(stream, schedule))
    rows = _window(detail, window, schedule.steps)
    ops = len(step_ops(model, workload))
    if (rows.stop - rows.start) * ops > MAX_EVENTS:
        raise TraceError(
            f"{rows.stop - rows.start:,} steps of {ops:,} operations are more than {MAX_EVENTS:,} events",
            action="use --detail steps, or --window A:B for the steps to see in full",
        )
    made = TraceMaker(model, basis, workload, schedule, times.caps)
    made.add_steps(rows)
    made.add_operations(rows, profile, seed, host)
    made.add_requests(stream)
    notes = serving_notes(stream, schedule, room, max_batch)
    ranks = workload.tensor_parallel
    own = calibration_notes(basis, host or vllm_host()) if profile == CALIBRATED else ()
    notes = (*split_notes(model, ranks), *notes, *own)
    meta = _meta(model, basis, stream, notes=notes, profile=profile, seed=seed)
    meta = replace(meta, tensor_parallel=ranks)
    return Served(made.trace(meta, _requests(model, workload, stream, schedule, room)), schedule, room)


def _why_none(stream: RequestStream, schedule: Schedule) -> str:
    if not len(stream):
        return "there are none"
    return f"each of the {int(schedule.refused.sum()):,} needs more KV cache than the machine has"


def _window(detail: str, window: tuple[int, int] | None, steps: int) -> slice:
    if detail == STEPS:
        return slice(0, 0)
    first, last = window or (0, steps)
    if not 0 <= first < last:
        raise TraceError(f"a window of steps {first}:{last} is empty", action="write --window A:B with A less than B")
    if first >= steps:
        raise TraceError(
            f"there is no step {first:,}: the requests took {steps:,} steps", action="choose an earlier one"
        )
    return slice(first, min(last, steps))


def _requests(
    model: ModelSpec, workload: Workload, stream: RequestStream, schedule: Schedule, room: KvRoom
) -> RequestTable:
    """One row a request, refused ones too; the peak is what its blocks hold after its last step in this trace."""
    peak = np.where(schedule.finish == NOT_YET, UNKNOWN, room.need)
    cut = np.flatnonzero((schedule.start != NOT_YET) & (schedule.finish == NOT_YET))
    for request in cut.tolist():
        context = int(stream.prompt[request] + schedule.generated[request]) - 1
        peak[request] = kv_stored_after(model, replace(workload, batch=1, context=context))
    return RequestTable(
        arrival=stream.arrival,
        start=schedule.start,
        finish=schedule.finish,
        prompt_tokens=stream.prompt,
        generated_tokens=schedule.generated,
        kv_peak_bytes=peak,
    )


def serving_notes(stream: RequestStream, schedule: Schedule, room: KvRoom, max_batch: int) -> tuple[str, ...]:
    """What the numbers of a serving simulation stand on, as sentences."""
    limit = (
        "no memory limits how many decode at once, only the largest batch"
        if room.budget is None
        else f"KV caches may take {units.size(room.budget)}"
    )
    notes = [
        "prompt processing is not simulated: a request enters decode with its prompt cached",
        ADMISSION_RULE,
        f"at most {max_batch:,} requests decode at once; {limit}",
        "queue depth of a step: a number of requests that really waited in it, chosen so that depth times duration "
        "adds up to the time spent waiting",
    ]
    refused = int(schedule.refused.sum())
    if refused:
        notes.append(f"{refused:,} of {len(stream):,} requests need more KV cache than there is and were refused")
    unserved = int(((schedule.finish == NOT_YET) & ~schedule.refused).sum())
    if unserved:
        notes.append(f"{unserved:,} of {len(stream):,} requests had not finished when the last step ended")
    if schedule.steps and int(schedule.queue_depth.max()) >= MOST_LANES:
        notes.append(f"of the requests that waited at once, {MOST_LANES:,} are drawn; the request table has all")
    return (*notes, *stream.notes)


def _meta(
    model: ModelSpec, basis: Basis, stream: RequestStream, *, notes: tuple[str, ...], profile: str, seed: int
) -> TraceMeta:
    return TraceMeta(
        created_by=f"tracescope {__version__}",
        source=stream.source,
        report=stream.report,
        model=model,
        hardware=basis.hardware,
        bandwidth_bytes_per_s=basis.bandwidth_bytes_per_s,
        bandwidth_source=basis.bandwidth_source,
        compute_dtype=basis.compute_dtype,
        base_ns=stream.base_ns,
        profile=profile,
        seed=seed,
        devices=(Device(0, 0, basis.hardware.title if basis.hardware else ""),),
        assumptions=model.assumptions,
        notes=(
            f"synthesised with the {profile} profile: these times are modelled, not measured",
            *([f"requests: {stream.description}"] if stream.description else []),
            *notes,
            *basis.notes,
        ),
    )
