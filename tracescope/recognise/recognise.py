"""From a RawTrace to a Trace: tracks, steps, layers, ops, bytes and dependencies, and what was inferred on the way."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracescope import __version__
from tracescope.core.assemble import Laid, lay_out
from tracescope.core.category import Category, EventFlag, StepKind
from tracescope.core.columns import I16, I32, I64
from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec
from tracescope.core.raw import RawTrace
from tracescope.core.report import ImportReport, Inference
from tracescope.core.trace import Dependencies, Device, EventTable, StepTable, Trace, TraceMeta
from tracescope.core.units import plural
from tracescope.recognise.capture import join_captures, read_captures, with_details
from tracescope.recognise.dependencies import find_dependencies
from tracescope.recognise.names.kernel_rules import MODEL_PARTS, Family, Rule
from tracescope.recognise.names.shapes import ShapeKind
from tracescope.recognise.names.user_rules import count_of
from tracescope.recognise.ops.alternation import attention_alternates
from tracescope.recognise.ops.graph_nodes import same_node_same_op
from tracescope.recognise.ops.layer_spans import module_layers, nvtx_layers
from tracescope.recognise.ops.op_events import OpEvents, device_op_events, operator_op_events, unclassified_ns
from tracescope.recognise.ops.reading import Reading, read_op_events
from tracescope.recognise.steps.facts import Seen, describe_steps, look_at_steps
from tracescope.recognise.steps.host_spans import (
    GRAPH_KERNELS,
    HostSpan,
    HostSpans,
    find_host_spans,
    sample_scopes,
    steps_of_op_events,
)
from tracescope.recognise.steps.step_extents import find_warm_up, step_extents
from tracescope.recognise.tracks.counter_tracks import counter_tracks
from tracescope.recognise.tracks.launches import Launches, enclosing, find_launches, launches_without_a_device
from tracescope.recognise.tracks.track_plan import TrackPlan, TrackRole, plan_tracks
from tracescope.recognise.work.claims import claims_of
from tracescope.recognise.work.fused import dominant_categories
from tracescope.recognise.work.model_work import ModelWork
from tracescope.recognise.work.recorded import with_recorded
from tracescope.recognise.work.work import Counted, StepSetting, count_work


@dataclass(frozen=True, eq=False)
class _Steps:
    """The steps that have device events, in time order: their spans, extents (ns as the file counts) and op_events."""

    spans: tuple[HostSpan, ...]
    of_op_event: I32
    start: I64
    end: I64
    wait: I64
    inferred: tuple[Inference, ...]


def recognise(
    raw: RawTrace,
    *,
    model: ModelSpec | None = None,
    hardware: HardwareSpec | None = None,
    basis: Basis | None = None,
    context: int | None = None,
    rules: tuple[Rule, ...] = (),
    capture: RawTrace | None = None,
    ranks: int = 0,
) -> Trace:
    """Recognise decode in ``raw``. Never fails for want of decode: a trace without it is a plain timeline.

    ``model`` gives bytes where the trace records no shapes, ``context`` the tokens of a request cached at the first
    decode step where no marker says so; ``hardware`` and ``basis`` are kept with the trace. ``rules`` are tried before
    the built-in ones; ``capture`` is a recording of the capture of the graphs that ``raw`` replays; ``ranks``: over how
    many the model is split, 0 where nobody said.
    """
    plan = plan_tracks(raw)
    launches = find_launches(raw, plan)
    has_device = bool((plan.place == TrackRole.DEVICE).any())
    # Operators are the work of a run on the CPU; where they launched kernels, they are the cost of launching.
    lost = launches_without_a_device(raw, plan)
    by_device = has_device or lost > 0
    op_events = device_op_events(raw, plan, launches, rules) if by_device else operator_op_events(raw, plan, rules)
    notes = [*count_of(rules, raw, op_events.row), *op_events.inferred]
    if lost:
        what = f"{lost:,} launch{'' if lost == 1 else 'es'} without a device event: the device was not recorded"
        notes.append(Inference(what, "launches without kernels", 0.95))
    hint: I16 | None = None
    if capture is not None:
        joined = join_captures(raw, op_events, launches, read_captures(capture))
        raw, op_events, hint = with_details(raw, joined), joined.op_events, joined.layer
        notes += joined.inferred
    host_row = np.where(launches.call[op_events.row] >= 0, launches.call[op_events.row], op_events.row)
    _mark_token_selection(raw, plan, op_events, host_row)
    found = find_host_spans(raw, plan, launches, op_events)
    steps = _place_steps(raw, op_events, found, steps_of_op_events(raw, launches, op_events, found))
    seen = look_at_steps(op_events, steps.of_op_event, len(steps.spans))
    facts, said = describe_steps([w.marker for w in steps.spans], seen, context)
    hinted_by = "module calls of the capture" if hint is not None else "module calls"
    if hint is None:
        hint = module_layers(raw, plan, host_row)
    if hint is None:
        hint, hinted_by = nvtx_layers(raw, plan, host_row), "markers of modules"
    generates = np.array([f.kind is not StepKind.OTHER for f in facts], bool)
    reading = read_op_events(
        op_events, steps.of_op_event, len(steps.spans), hint, generates=generates, hinted_by=hinted_by
    )
    reading = same_node_same_op(raw, op_events, reading, steps.of_op_event)
    counted = count_work(
        claims_of(op_events, reading, steps.of_op_event),
        op_events.shapes,
        facts,
        ModelWork(model, max(1, ranks)) if model else None,
    )
    counted = with_recorded(raw, np.concatenate([op_events.row, op_events.member]), counted)
    own = np.arange(len(op_events.row))
    reading = replace(
        reading,
        category=dominant_categories(reading.category, op_events.roles, counted.work[own], counted.table, basis),
    )
    base = raw.events.first_start
    table = _step_table(steps, facts, seen, base)
    inferred = [*notes, *found.inferred, *steps.inferred, *said, *reading.inferred]
    inferred += attention_alternates(raw, op_events, reading, steps.of_op_event)
    inferred += [*_graph_notes(raw, launches, op_events, steps), *_model_notes(model, reading, op_events, steps)]
    laid = lay_out(plan.track, raw.events.start, raw.events.duration, plan.tracks)
    events = _event_table(
        raw,
        op_events=op_events,
        reading=reading,
        steps=steps,
        counted=counted,
        facts=facts,
        table=table,
        laid=laid,
        base=base,
    )
    report = ImportReport(
        seen=raw.seen,
        imported=raw.imported,
        dropped=dict(raw.dropped),
        flagged=_flagged(raw, laid, counted.beyond),
        truncated_at_byte=raw.truncated_at_byte,
        inferred=tuple(inferred),
        unclassified_ns=unclassified_ns(
            raw, op_events, np.ones(len(op_events.row), bool) if by_device else steps.of_op_event >= 0
        ),
    )
    tracks, samples = counter_tracks(raw, plan.tracks, base)
    # From here on the columns of a long recording that no one needs any more make room for the edges.
    call, order, work = launches.call, laid.order, counted.table
    lanes = laid.lanes
    del plan, launches, op_events, host_row, found, steps, seen, hint, reading, counted, laid
    return Trace(
        meta=replace(
            _meta(raw, report, model=model, hardware=hardware, basis=basis, base=base, steps=table),
            tensor_parallel=ranks,
        ),
        tracks=tracks,
        samples=samples,
        lanes=lanes,
        events=events,
        names=raw.names or ("",),
        work=work,
        details=raw.details,
        steps=table,
        dependencies=_dependencies(call, order, events, table),
    )


def _mark_token_selection(raw: RawTrace, plan: TrackPlan, op_events: OpEvents, host_row: I64) -> None:
    """Whatever ran or was launched inside a ``sample`` annotation selects tokens; copies stay copies."""
    scopes = sample_scopes(raw, plan)
    if len(scopes):
        inside = enclosing(raw, host_row, scopes) >= 0
        op_events.family[inside & (op_events.family != Family.COPY)] = Family.SAMPLE


def _place_steps(raw: RawTrace, op_events: OpEvents, found: HostSpans, of_op_event: I32) -> _Steps:
    e = raw.events
    start = e.start[op_events.row]
    works = np.isin(op_events.family, list(MODEL_PARTS))
    extents = step_extents(of_op_event, start, start + e.duration[op_events.row], works, len(found.spans))
    used = np.flatnonzero(np.bincount(of_op_event[of_op_event >= 0], minlength=len(found.spans)) > 0)
    used = used[np.argsort(extents.start[used], kind="stable")]
    position = np.full(len(found.spans) + 1, -1, np.int32)
    position[used] = np.arange(len(used))
    empty = len(found.spans) - len(used)
    notes = [
        Inference(f"{plural(empty, 'step marker')} launched nothing and counts as no step", "steps by launch", 0.9)
    ]
    return _Steps(
        tuple(found.spans[i] for i in used.tolist()),
        position[of_op_event],
        extents.start[used],
        extents.end[used],
        extents.wait[used],
        tuple(notes if empty else []),
    )


def _event_table(
    raw: RawTrace,
    *,
    op_events: OpEvents,
    reading: Reading,
    steps: _Steps,
    counted: Counted,
    facts: list[StepSetting],
    table: StepTable,
    laid: Laid,
    base: int,
) -> EventTable:
    """Columns in lane order. Host events keep step -1; operators count as device events inside a step only."""
    e = raw.events
    n = len(e)
    columns: dict[str, Any] = {
        "category": np.full(n, Category.HOST, np.uint8),
        "roles": np.full(n, Category.HOST.role, np.uint16),
        "op": np.zeros(n, np.uint16),
        "layer": np.full(n, -1, np.int16),
        "step": np.full(n, -1, np.int32),
        "work": np.zeros(n, np.uint32),
    }
    of = op_events.member_of
    rows = np.concatenate([op_events.row, op_events.member])
    values = {
        "category": np.concatenate([reading.category, reading.category[of]]),
        "roles": counted.roles | np.concatenate([op_events.roles, np.zeros(len(of), np.uint16)]),
        "op": np.concatenate([reading.op, reading.op[of]]),
        "layer": np.concatenate([reading.layer, reading.layer[of]]),
        "step": np.concatenate([steps.of_op_event, steps.of_op_event[of]]),
        "work": counted.work,
    }
    shown = (values["step"] >= 0) | op_events.on_device
    for name, column in columns.items():
        column[rows[shown]] = values[name][shown]
    flags = e.flags.copy()
    in_step = values["step"]
    warm = np.append(table.warm_up, False)[in_step]
    flags[rows[warm]] |= np.uint8(EventFlag.WARM_UP)
    allocated = np.array([*(f.allocated for f in facts), False])[in_step]
    shape = np.concatenate([op_events.shape, op_events.member_shape])
    attends = np.array([*(s.kind is ShapeKind.ATTENTION for s in op_events.shapes), False])[shape]
    flags[rows[allocated & attends]] |= np.uint8(EventFlag.ALLOCATED_KV)
    flags = flags[laid.order]
    flags[laid.overlapping] |= np.uint8(EventFlag.OVERLAPPING)
    return EventTable(
        start=(e.start - base)[laid.order],
        duration=e.duration[laid.order],
        name=e.name[laid.order],
        detail=e.detail[laid.order],
        flags=flags,
        **{name: columns.pop(name)[laid.order] for name in list(columns)},
    )


def _step_table(steps: _Steps, facts: list[StepSetting], seen: Seen, base: int) -> StepTable:
    n = len(facts)
    kind = np.array([f.kind for f in facts], np.uint8)
    duration = steps.end - steps.start
    warm_up = np.zeros(n, bool)
    warm = find_warm_up(kind, duration)
    if warm >= 0:
        warm_up[warm] = True
    speculative = bool(np.isin(kind, (StepKind.VERIFY,)).any())
    return StepTable(
        label=np.array([w.label for w in steps.spans], np.uint32),
        kind=kind,
        start=steps.start - base,
        duration=duration,
        host_wait=steps.wait,
        batch=np.array([f.batch for f in facts], np.int32),
        padded_batch=np.array([w.marker.padded_batch for w in steps.spans], np.int32),
        context_tokens=np.array([f.context for f in facts], np.int64),
        generated_tokens=np.array([_generated(f, bool(s)) for f, s in zip(facts, seen.selects, strict=True)], np.int64),
        queue_depth=np.full(n, -1, np.int32),
        all_accepted=(kind == StepKind.DECODE) & (not speculative),
        warm_up=warm_up,
    )


def _generated(facts: StepSetting, selects: bool) -> int:
    """Tokens a step generated: one a request in decode; in prefill one a request where it selected tokens."""
    if facts.kind is StepKind.DECODE:
        return facts.batch
    if facts.kind is StepKind.PREFILL:
        return facts.batch if selects else 0
    return -1


def _graph_notes(raw: RawTrace, launches: Launches, op_events: OpEvents, steps: _Steps) -> list[Inference]:
    """What graph launches of whole steps look like: their kernels, and the time from the first to the last of them."""
    e = raw.events
    inside = np.flatnonzero((steps.of_op_event >= 0) & (launches.call[op_events.row] >= 0))
    calls, group, counts = np.unique(launches.call[op_events.row[inside]], return_inverse=True, return_counts=True)
    large = np.flatnonzero(counts >= GRAPH_KERNELS)
    if not len(large) or not op_events.on_device:
        return []
    first = np.full(len(calls), np.iinfo(np.int64).max)
    last = np.full(len(calls), np.iinfo(np.int64).min)
    np.minimum.at(first, group.reshape(-1), e.start[op_events.row[inside]])
    np.maximum.at(last, group.reshape(-1), (e.start + e.duration)[op_events.row[inside]])
    spans = np.sort((last - first)[large])
    kernels = int(np.median(counts[large]))
    spread = f"{int(spans[0]):,} ns" if len(spans) == 1 else f"{int(spans[0]):,} to {int(spans[-1]):,} ns"
    launched = f"{len(large):,} graph launch" + ("" if len(large) == 1 else "es")
    what = f"{launched} of {kernels:,} kernels, {spread} from first to last kernel"
    return [Inference(what, "graph by shared launch", 0.99)]


def _model_notes(model: ModelSpec | None, reading: Reading, op_events: OpEvents, steps: _Steps) -> list[Inference]:
    """Where the model and the trace may not fit together: another depth, or a model that is split over ranks."""
    if model is None:
        return []
    notes = []
    shown = sorted(set(reading.layers[reading.layers > 0].tolist()))
    if shown and shown != [model.layers]:
        what = f"the trace shows {', '.join(map(str, shown))} layers, {model.name} has {model.layers}"
        notes.append(Inference(what, "model against trace", 0.5))
    if ((op_events.family == Family.COMMUNICATION) & (steps.of_op_event >= 0)).any():
        what = "the steps hold collectives, yet the model's bytes are counted undivided: too many where ranks share it"
        notes.append(Inference(what, "one rank holds the model", 0.3))
    return notes


def _flagged(raw: RawTrace, laid: Laid, beyond: int) -> dict[str, int]:
    flagged = dict(raw.flagged)
    overlapping = int(laid.overlapping.sum())
    if overlapping:
        flagged["overlapping"] = overlapping
    if beyond:
        flagged["impossible_amount"] = beyond
    return flagged


def _meta(
    raw: RawTrace,
    report: ImportReport,
    *,
    model: ModelSpec | None,
    hardware: HardwareSpec | None,
    basis: Basis | None,
    base: int,
    steps: StepTable,
) -> TraceMeta:
    names = {d.device: d.name for d in raw.devices}
    used = dict.fromkeys((t.device, t.rank) for t in raw.tracks if t.is_device)
    # The header's ids need not be those of the rows: a header with one device names every device of the file.
    only = raw.devices[0].name if len(raw.devices) == 1 else ""
    shown = "its steps are shown as they were marked" if len(steps) else "this is a plain timeline"
    notes = raw.notes if steps.decode.any() else (*raw.notes, f"no decode step was recognised: {shown}")
    return TraceMeta(
        created_by=f"tracescope {__version__}",
        source=raw.source,
        report=report,
        model=model,
        hardware=hardware,
        bandwidth_bytes_per_s=basis.bandwidth_bytes_per_s if basis else None,
        bandwidth_source=basis.bandwidth_source if basis else "unknown",
        compute_dtype=basis.compute_dtype if basis else "bf16",
        base_ns=base + raw.base_time_ns,
        resolution_ns=raw.resolution_ns,
        devices=tuple(Device(device, rank, names.get(device, only)) for device, rank in used),
        assumptions=model.assumptions if model else (),
        notes=notes,
    )


def _dependencies(call: I64, order: I64, events: EventTable, steps: StepTable) -> Dependencies:
    """Edges between event ids: the rows of the source moved to where they are laid out."""
    place = np.empty(len(order) + 1, np.int64)
    place[order] = np.arange(len(order))
    place[-1] = -1
    return find_dependencies(place[call][order], events, steps)
