"""What the inspector says about an event or a step, as numbers and sentences. No Qt here."""

from dataclasses import dataclass

import msgspec
import numpy as np

from tracescope.analysis.same_op import SameOp, same_op_in_layers
from tracescope.analysis.work_energy import energy_of_group
from tracescope.core.arguments import recorded_arguments
from tracescope.core.category import KIND_OF_CATEGORY, BytesFrom, Category, EdgeKind, EventFlag, Op
from tracescope.core.model import ModelSpec
from tracescope.core.units import MISSING, duration, flops, millis, percent, plural, rate, signed_duration, size
from tracescope.core.units import peak as peak_rate
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.energy import Energy, EnergySplit
from tracescope.floor.matrices import shard
from tracescope.floor.pricing import compute_s, memory_s, sent_bytes
from tracescope.floor.step_ops import kv_bytes_per_token_per_layer, layer_matrices
from tracescope.synth.latency import NOT_IN_FLOOR
from tracescope.view.document import Document
from tracescope.view.floor_words import NO_FLOOR, event_floor, share_of_floor, why_no_floor
from tracescope.view.step_facts import StepFacts, step_facts
from tracescope.view.step_latency import latency_of_step

Row = tuple[str, str, str]
"""Label, expression with its operands and units, result."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One edge of the selected event: the other event's kind and name, and why."""

    heading: str
    event: int
    category: Category
    title: str
    reason: str


@dataclass(frozen=True, eq=False, slots=True)
class Inspection:
    """Everything the inspector draws. A time or an energy that is not known is None."""

    title: str
    subtitle: str
    category: Category | None
    took_ns: int
    floor_ns: int | None
    rows: tuple[Row, ...]
    unknown_ns: int = 0
    """Time of operations without a floor, which is neither floor nor above it."""
    partly_known: bool = False
    """So much of the time is of operations without a floor that there is no share to tell."""
    energy: Energy | None = None
    energy_parts: tuple[tuple[str, float], ...] = ()
    """Joules by kind letter, and ``static``."""
    ranks: int = 1
    """How many ranks the energy is of; all else is one rank's."""
    waits: tuple[Wait, ...] = ()
    twins: SameOp | None = None
    details: str = ""
    facts: StepFacts | None = None
    """Of a whole step: the parts of its floor and of its gap, as the step bar draws them."""

    counted_ns: int | None = None
    """Of an event in a step: the part of its time that counts there; None where all of it does."""

    @property
    def gap_ns(self) -> int | None:
        """The time that counts above the floor, signed: the same gap as in every table."""
        counted = self.took_ns if self.counted_ns is None else self.counted_ns
        return None if self.floor_ns is None else counted - self.floor_ns - self.unknown_ns

    @property
    def share(self) -> float | None:
        """Floor over time: the speed as a share of the floor's; None where there is none to tell."""
        return None if self.partly_known else share_of_floor(self.floor_ns, self.took_ns)


def inspect_event(document: Document, event: int) -> Inspection:
    """One event: its bytes, floor, gap, rate, intensity and energy, each with the operands it is made of."""
    trace, events = document.trace, document.trace.events
    category = Category(int(events.category[event]))
    took = int(events.duration[event])
    step, layer = int(events.step[event]), int(events.layer[event])
    taken = document.breakdown(step) if step >= 0 else None
    row = -1 if taken is None else taken.row_of(event)
    floor = event_floor(document, event)
    title, kind = document.title_of(event), KIND_OF_CATEGORY[category].title
    place = [f"layer {layer}"] if layer >= 0 else []
    place += [f"step {step}"] if step >= 0 else []
    if taken is not None and row >= 0 and taken.exposed_ns[row] > 0:
        place.append("in device time")
    flags = EventFlag(int(events.flags[event])).labels()
    place += [flag.replace("_", " ") for flag in flags]
    plain = bool(document.plain_events[event])
    work = int(trace.events.work[event])
    joules = energy_of_group(trace.work, work, took, document.basis, document.ranks)
    return Inspection(
        title if plain or title == kind else f"{title} · {kind}",
        " · ".join(place) or trace.tracks[int(trace.lanes.track[trace.lanes.of_event(event)])].name,
        None if plain else category,
        took,
        floor,
        tuple(_event_rows(document, event, took, floor)),
        energy=None if joules is None else joules[0],
        energy_parts=() if joules is None else _energy_parts(joules[1]),
        ranks=document.ranks,
        counted_ns=_exposed(document, event),
        waits=_waits(document, event),
        twins=same_op_in_layers(trace, taken, event) if taken is not None and row >= 0 and layer >= 0 else None,
        details=_details(document, event),
    )


def _energy_parts(split: EnergySplit) -> tuple[tuple[str, float], ...]:
    parts = [("W", split.weights), ("K", split.kv), ("C", split.compute), ("X", split.link or 0.0)]
    return (*parts, ("static", split.static))


def _event_rows(document: Document, event: int, took: int, floor: int | None) -> list[Row]:
    trace, basis = document.trace, document.basis
    work = int(trace.events.work[event])
    memory, done = document.bytes_of(event), int(trace.work.flops[work])
    link = sent_bytes(int(trace.work.link[work]), int(trace.work.link_reduced[work]), basis)
    bandwidth, peak = basis.bandwidth_bytes_per_s, basis.peak_flops_per_s
    rows = _bytes_rows(document, event)
    moving = None if memory is None else memory_s(memory, basis)
    computing = compute_s(done, basis)
    terms = []
    if computing is not None and computing > (moving or 0.0):
        terms.append(f"{flops(done)} ÷ {peak_rate(peak)}")
    elif memory:
        terms.append(f"{size(memory)} ÷ {rate(bandwidth)}")
    if link > 0:
        terms.append(f"{size(link)} ÷ {rate(basis.link_bytes_per_s)}")
    if floor is None:
        rows.append(("floor", why_no_floor(document, event), NO_FLOOR))
    else:
        exposed = _exposed(document, event)
        counted = took if exposed is None else exposed
        rows.append(("floor", " + ".join(terms) or "moves no bytes", duration(floor)))
        rows.append(("gap", f"{duration(counted)} − {duration(floor)}", signed_duration(counted - floor)))
    if memory and took:
        rows.append(("rate", f"{size(memory)} ÷ {duration(took)}", rate(memory * 1e9 / took)))
    if done > 0 and memory:
        rows.append(("intensity", f"{flops(done)} ÷ {size(memory)}", f"{done / memory:,.1f} FLOP/B"))
    exposed = _exposed(document, event)
    if exposed is not None and exposed != took:
        rows.append(("exposed", "its own share of the step", duration(exposed)))
    return rows


def _exposed(document: Document, event: int) -> int | None:
    step = int(document.trace.events.step[event])
    if step < 0:
        return None
    taken = document.breakdown(step)
    row = taken.row_of(event)
    return int(taken.exposed_ns[row]) if row >= 0 else None


def _bytes_rows(document: Document, event: int) -> list[Row]:
    """One row a kind of byte that the event moves, written out where the model and the step explain it."""
    trace = document.trace
    work = int(trace.events.work[event])
    source = BytesFrom(int(trace.work.bytes_from[work]))
    known_from = "" if source is BytesFrom.NONE else f"from the {source.label}"
    rows = []
    for label, column, spelled in (
        ("weights", trace.work.weight_read, _weights_text),
        ("gather", trace.work.embedding_gather, None),
        ("KV read", trace.work.kv_read, _kv_text),
        ("KV append", trace.work.kv_append, _append_text),
    ):
        amount = int(column[work])
        if amount > 0:
            expression = spelled(document, event, amount) if spelled is not None else ""
            rows.append((label, expression or known_from, size(amount)))
        elif amount < 0 and work:
            rows.append((label, "not recorded", MISSING))
    return rows


def _weights_text(document: Document, event: int, amount: int) -> str:
    """``4,096 × 28,672 × 2 B`` where one matrix of the model explains all bytes."""
    model = document.trace.meta.model
    op = Op(int(document.trace.events.op[event]))
    if model is None:
        return ""
    matrices = [m for m in layer_matrices(model, document.ranks) if m.op is op]
    inputs, outputs = {m.n_in for m in matrices}, sum(m.n_out for m in matrices)
    if op is Op.LM_HEAD:
        inputs, outputs = {model.hidden}, shard(model, document.ranks).vocab
    if len(inputs) != 1:
        return ""
    wide = next(iter(inputs))
    for width in (1, 2, 4):
        if wide * outputs * width == amount:
            return f"{wide:,} × {outputs:,} × {width} B"
    return ""


def _kv_text(document: Document, event: int, amount: int) -> str:
    """``16 req × 4,096 tok × 4,096 B`` where the step's requests and context explain all bytes."""
    steps, step = document.trace.steps, int(document.trace.events.step[event])
    model = document.trace.meta.model
    if model is None or step < 0:
        return ""
    per_token = _token_bytes(document, model, event)
    context, batch = int(steps.context_tokens[step]), int(steps.batch[step])
    if context <= 0 or context * per_token != amount:
        return ""
    if batch > 1 and context % batch == 0:
        return f"{batch:,} req × {context // batch:,} tok × {per_token:,} B"
    return f"{context:,} tok × {per_token:,} B"


def _token_bytes(document: Document, model: ModelSpec, event: int) -> int:
    """Bytes that one token takes in the cache of the event's layer."""
    layer = int(document.trace.events.layer[event])
    return kv_bytes_per_token_per_layer(model, document.ranks, layer=min(max(layer, 0), model.layers - 1))


def _append_text(document: Document, event: int, amount: int) -> str:
    steps, step = document.trace.steps, int(document.trace.events.step[event])
    model = document.trace.meta.model
    if model is None or step < 0:
        return ""
    per_token, batch = _token_bytes(document, model, event), int(steps.batch[step])
    return f"{batch:,} req × {per_token:,} B" if batch * per_token == amount else ""


def _waits(document: Document, event: int) -> tuple[Wait, ...]:
    """What the event waits for and what waits for it, at most three of each."""
    trace = document.trace
    edges = trace.dependencies
    result = []
    for heading, others, rows in (
        ("waits for", edges.source, np.arange(len(edges))[edges.into(event)]),
        ("feeds", edges.target, np.flatnonzero(edges.source == event)),
    ):
        for row in rows[:3].tolist():
            other = int(others[row])
            how = EdgeKind(int(edges.kind[row])).label.replace("_", " ")
            result.append(
                Wait(
                    heading,
                    other,
                    Category(int(trace.events.category[other])),
                    document.title_of(other),
                    how if edges.recorded[row] else f"{how}, inferred",
                )
            )
    return tuple(result)


def _details(document: Document, event: int) -> str:
    """What was recorded, where it says more than the title does."""
    text = recorded(document, event)
    return "" if text == document.title_of(event) else text


def recorded(document: Document, event: int) -> str:
    """The event's own name and recorded arguments (grid, block, shapes …), one a line, as plain text."""
    trace = document.trace
    lines = [trace.names[int(trace.events.name[event])]]
    blob = trace.details[int(trace.events.detail[event])]
    if blob:
        fields = recorded_arguments(blob)
        lines += [blob] if fields is None else [f"{key}: {_value(value)}" for key, value in fields.items()]
    return "\n".join(lines)


def _value(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _latency_rows(document: Document, step: int) -> list[Row]:
    """What all-reduces take however little they send, marked as no part of the floor above it."""
    latency = latency_of_step(document, step)
    if latency is None:
        return []
    return [("latency", latency.product, latency.added), ("", f"{NOT_IN_FLOOR}; {latency.source}", "")]


def inspect_step(document: Document, step: int) -> Inspection:
    """A whole step: what it moved, its floors, its gap."""
    taken, series = document.breakdown(step), document.series
    basis, steps = document.basis, document.trace.steps
    bandwidth = basis.bandwidth_bytes_per_s
    rows: list[Row] = []
    for label, column, floors in (
        ("weights", series.weight_read, series.floor_weight_ns),
        ("KV read", series.kv_read, series.floor_kv_read_ns),
    ):
        amount = int(column[step])
        if amount < 0:
            rows.append((label, "some bytes unknown", MISSING))
        elif bandwidth is not None:
            rows.append((label, f"{size(amount)} ÷ {rate(bandwidth)}", f"{millis(int(floors[step]))} ms"))
        else:
            rows.append((label, "", size(amount)))
    floor = taken.floor_ops_ns if taken.floor_ops_ns != UNKNOWN else None
    ops = len(taken.events) - taken.ops_without_floor
    if floor is None:
        rows.append(("floor", "no bytes known" if document.has_floor else "bandwidth unknown", NO_FLOOR))
    else:
        counted = plural(len(taken.events), "op")
        counted = f"{ops:,} of {counted}" if taken.ops_without_floor else counted
        rows.append(("floor", f"sum over {counted}", f"{millis(floor)} ms"))
        terms = [taken.duration_ns, floor] + ([taken.unknown_ns] if taken.unknown_ns else [])
        operands = f"{' − '.join(millis(term) for term in terms)} ms"
        rows.append(("gap", operands, f"{millis(taken.step_gap_ns)} ms"))
    if taken.ops_without_floor:
        unknown = f"bytes unknown, {plural(taken.ops_without_floor, 'op')}"
        rows.append(("no floor", unknown, f"{millis(taken.unknown_ns)} ms"))
    rows += _latency_rows(document, step)
    rows.append(("idle", "nothing ran on the device", duration(taken.idle_ns)))
    mbu = float(series.mbu[step])
    if not np.isnan(mbu):
        memory_floor = millis(int(series.floor_memory_ns[step]))
        rows.append(("MBU", f"{memory_floor} ÷ {millis(taken.duration_ns)} ms", percent(mbu, 1)))
    host = int(steps.host_wait[step])
    if host > 0:
        rows.append(("host wait", "before the step, not in it", duration(host)))
    subtitle = document.trace.names[int(steps.label[step])]
    joules = energy_of_group(series, step, taken.duration_ns, basis, document.ranks)
    return Inspection(
        document.step_title(step),
        subtitle,
        None,
        taken.duration_ns,
        floor,
        tuple(rows),
        unknown_ns=0 if floor is None else taken.unknown_ns,
        partly_known=taken.partly_known,
        energy=None if joules is None else joules[0],
        energy_parts=() if joules is None else _energy_parts(joules[1]),
        ranks=document.ranks,
        facts=step_facts(document, step),
    )
