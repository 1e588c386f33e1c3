"""The page that ``tracescope floor`` prints: every ratio with its operands and units."""

from collections.abc import Iterator

from tracescope.cli.beside_floor import Beside
from tracescope.core import units
from tracescope.core.hardware import Basis
from tracescope.floor.capacity import Capacity
from tracescope.floor.deadline import Deadline
from tracescope.floor.dtypes import weight_dtype
from tracescope.floor.energy import energy_words
from tracescope.floor.kv_cache import prefix_groups
from tracescope.floor.layer_words import kv_read_words
from tracescope.floor.prefill import SCHEDULING
from tracescope.floor.step_floor import StepFloor

_WIDTH = 17


def floor_lines(
    floor: StepFloor,
    beside: Beside,
    deadline: Deadline | None = None,
    *,
    activations: bool = False,
    assumed: str | None = None,
) -> Iterator[str]:
    """The lines of the page, in order; unfused activations only where asked for. ``assumed``: what nobody gave."""
    yield from _head(floor)
    yield from _section("Bytes of one step", _bytes(floor))
    yield from _section("Floors, from loosest to tightest", _floors(floor))
    if beside.predicted is not None or beside.latency is not None:
        yield from _section("Beside the floor, and in none", beside.lines())
    if activations:
        yield from _section("Not physics, and in no floor", _activations(floor))
    yield from _section("At the floor", _rates(floor))
    yield from _section("Capacity", _capacity(floor))
    yield from _section("What binds", _verdict(floor, deadline))
    yield from _section("For comparison", _comparison(floor))
    expectation = (floor.expectation,) if floor.expectation else ()
    said = (assumed,) if assumed else ()
    notes = [("", note) for note in (*said, *floor.notes, *expectation, *floor.model.assumptions)]
    if notes:
        yield from _section("Notes and assumptions", iter(notes))


def _section(title: str, rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield ""
    yield title
    for name, text in rows:
        yield f"  {name:<{_WIDTH}}{text}" if name else f"  - {text}"


def _head(floor: StepFloor) -> Iterator[str]:
    model, workload, basis = floor.model, floor.workload, floor.basis
    machine = basis.hardware.title if basis.hardware else "no machine"
    ranks = f" · {units.one_of_ranks(workload.tensor_parallel)}" if workload.tensor_parallel > 1 else ""
    yield f"{model.title or model.name} on {machine} · batch {workload.batch:,} · context {workload.context:,}{ranks}"
    yield f"weights {model.weights} · lm_head {model.lm_head} · KV {model.kv} · source: {model.source}"
    yield _bandwidth(basis)


def _bandwidth(basis: Basis) -> str:
    if basis.bandwidth_bytes_per_s is None:
        return "bandwidth not known: give --hardware or --bandwidth for times"
    source = units.bandwidth_source(basis.bandwidth_source)
    invented = ", an invented machine" if basis.hardware and basis.hardware.invented else ""
    return f"bandwidth {units.rate(basis.bandwidth_bytes_per_s)} ({source}{invented})"


def _bytes(floor: StepFloor) -> Iterator[tuple[str, str]]:
    total, workload = floor.totals, floor.workload
    batch = f"{workload.batch:,}"
    token = f"{floor.kv_bytes_per_token:,} B"
    reuse = "once" if workload.batch == 1 else f"once · reuse ×{batch}"
    scales = f", {units.size(floor.scale_bytes)} of it scales" if floor.scale_bytes else ""
    yield "weights read", f"{units.size(total.weight_read)}  ({total.weight_read:,} B, {reuse}{scales})"
    yield "KV read", f"{_kv_read(floor, batch)} = {units.size(total.kv_read)}"
    if total.index_read:
        yield "", f"{units.size(total.index_read)} of it index keys"
    if total.state_read:
        yield "", f"{units.size(total.state_read)} of it state, the same at any context"
    written = f" + {units.size(total.state_write)} of state" if total.state_write else ""
    yield "KV append", f"{batch} × {token}{written} = {units.size(total.kv_append)}"
    yield "embedding gather", f"{units.size(total.embedding_gather)}  ({batch} rows, not the table)"
    if floor.sent_bytes:
        yield "link", f"{units.size(floor.sent_bytes)} sent by this rank ({floor.link_by})"
    yield "FLOPs", units.flops(total.flops)
    yield "stored weights", units.size(floor.stored_bytes)


def _kv_read(floor: StepFloor, batch: str) -> str:
    """The product behind the KV reads, layers of one kind together."""
    model, workload = floor.model, floor.workload
    if workload.prefix_aware:
        groups = prefix_groups(workload)
        requests, tokens = units.plural(workload.batch, "request"), units.plural(workload.prefix, "token")
        return f"{requests}, {tokens} read once in each of {units.plural(groups, 'group')},"
    return kv_read_words(model, batch, workload.context, workload.tensor_parallel)


def _comparison(floor: StepFloor) -> Iterator[tuple[str, str]]:
    sentence = floor.prefill.sentence if floor.prefill else None
    if sentence is not None:
        yield "", sentence
    yield "", SCHEDULING


def _activations(floor: StepFloor) -> Iterator[tuple[str, str]]:
    total, bandwidth = floor.totals.activation, floor.basis.bandwidth_bytes_per_s
    yield (
        "activations",
        units.over(total, bandwidth, floor.activation_s) + "  (every activation written and read again, nothing fused)",
    )


def _floors(floor: StepFloor) -> Iterator[tuple[str, str]]:
    total, basis = floor.totals, floor.basis
    bandwidth = basis.bandwidth_bytes_per_s
    if bandwidth is None:
        yield "", "no bandwidth, no floor"
        return
    yield "weights", units.over(total.weight_read, bandwidth, floor.floor_weight_s)
    parts = " + ".join(units.size(part) for part in (total.weight_read, total.kv_read, total.kv_append))
    yield "memory", f"({parts}) ÷ {units.rate(bandwidth)} = {units.seconds(floor.floor_memory_s)}"
    memory, compute = units.seconds(floor.floor_memory_s), units.seconds(floor.floor_compute_s)
    if basis.peak_flops_per_s is None:
        yield "compute", "not known: no machine is given"
    else:
        rate = f"{units.flop_rate(basis.peak_flops_per_s)} {basis.compute_dtype}"
        yield "compute", f"{units.flops(total.flops)} ÷ {rate} = {compute}"
        yield "roofline", f"max({memory}, {compute}) = {units.seconds(floor.floor_roofline_s)}"
    if floor.floor_ops_s is None:
        yield "ops", "not known: the link rate between ranks is missing"
    else:
        yield (
            "ops",
            f"Σ over {floor.ops:,} ops of max(bytes ÷ bandwidth, FLOPs ÷ peak) + link = "
            + units.seconds(floor.floor_ops_s),
        )
        if floor.sent_bytes:
            rate = units.rate(basis.link_bytes_per_s)
            yield "of it link", f"{units.size(floor.sent_bytes)} ÷ {rate} = {units.seconds(floor.floor_link_s)}"


def _rates(floor: StepFloor) -> Iterator[tuple[str, str]]:
    if floor.floor_weight_s:
        rate = units.significant(floor.steps_per_s_max)
        yield "steps", f"1 ÷ {units.seconds(floor.floor_weight_s)} = {rate} steps/s at most (weights alone)"
    tokens = floor.generated_tokens_per_s_max
    if tokens is not None:
        yield (
            "generated tokens",
            f"{floor.workload.batch:,} ÷ {units.seconds(floor.floor_ops_s)} = {tokens:,.1f} generated tokens/s at most "
            f"(op floor; {units.ALL_ACCEPTED})",
        )
    spent, split, ranks = floor.group_energy, floor.energy_split, floor.workload.tensor_parallel
    if spent is not None and split is not None:
        whose = f" of {ranks:,} ranks" if ranks > 1 else ""
        yield "energy", f"{energy_words(spent)}{whose}; {spent.level} level, of a step that takes its floor's time"
        whole = split.times(ranks)
        parts = (
            ("weights", whole.weights),
            ("KV", whole.kv),
            ("compute", whole.compute),
            ("static", whole.static),
            ("link", whole.link),
        )
        named = " + ".join(f"{name} {units.energy(part)}" for name, part in parts if part is not None)
        token = units.energy(spent.mid / floor.workload.batch)
        yield "", f"{named} = {units.energy(spent.mid)}; ÷ {floor.workload.batch:,} = {token} a token"
        if ranks > 1:
            yield "", f"one rank alone: {units.energy(spent.mid / ranks)}"


def _capacity(floor: StepFloor) -> Iterator[tuple[str, str]]:
    memory, workload = floor.capacity, floor.workload
    if memory is None:
        yield "", "not known: no machine is given"
        return
    layers = "" if memory.block_layers == floor.model.layers else f" in {memory.block_layers} layer"
    share = units.significant(workload.utilization, 6)
    yield "usable", f"{share} × {units.size(memory.capacity_bytes)} = {units.size(memory.usable_bytes)}"
    yield (
        "needed",
        (
            f"weights {units.size(memory.stored_bytes)} + other {units.size(memory.other_bytes)} + KV "
            f"{units.size(memory.kv_stored_bytes)} ({memory.blocks_used:,} blocks of {workload.block} tokens{layers})"
        ),
    )
    room = units.size(abs(memory.headroom_bytes))
    too_much = f"no, {room} too much" if memory.headroom_bytes < 0 else "no, a block for every request is missing"
    yield "fits", f"yes, {room} to spare" if memory.fits else too_much
    if memory.state_bytes:
        yield "", f"{units.size(memory.state_bytes)} of that KV is recurrent state"
    if memory.waste_bytes:
        yield "waste", f"{units.size(memory.waste_bytes)} of those blocks hold no token"
    shared = f", {workload.prefix:,} tokens shared by {workload.prefix_group:,}," if workload.prefix else ""
    yield (
        "largest batch",
        _largest_batch(memory, shared),
    )


def _largest_batch(memory: Capacity, shared: str) -> str:
    """The division behind the largest batch; in bytes where requests keep a state besides their blocks."""
    if not memory.request_state_bytes:
        return f"{memory.blocks_total:,} blocks ÷ {memory.request_blocks:,} a request{shared} = {memory.max_batch:,}"
    room = units.size(max(0, memory.usable_bytes - memory.stored_bytes - memory.other_bytes))
    state = units.size(memory.request_state_bytes)
    each = f"{memory.request_blocks:,} blocks of {units.size(memory.block_bytes)} + {state}"
    return f"{room} ÷ ({each} of state) a request{shared} = {memory.max_batch:,}"


def _verdict(floor: StepFloor, deadline: Deadline | None) -> Iterator[tuple[str, str]]:
    found, cross = floor.verdict, floor.crossovers
    missing = "a bandwidth" if floor.floor_memory_s is None else "the link rate between ranks"
    yield (found.binds, found.why) if found else ("", f"not known without {missing}")
    for sentence in floor.moves:
        yield "", sentence
    if cross.ridge_batch is not None:
        a_weight = units.significant(weight_dtype(floor.model.weights).effective_bits() / 8)
        yield (
            "",
            (
                f"ridge of a linear layer: {units.flop_rate(floor.basis.peak_flops_per_s)} × {a_weight} B ÷ "
                f"(2 × {units.rate(floor.basis.bandwidth_bytes_per_s)}) = batch {cross.ridge_batch:.1f}"
            ),
        )
    if deadline is not None:
        kept = "kept at the floor" if deadline.met else "missed by the floor itself"
        batch = f"{deadline.largest_batch:,}" if deadline.largest_batch else "none"
        bounds = [f"deadline {deadline.largest_batch_by_deadline:,}"]
        if deadline.largest_batch_by_capacity is not None:
            bounds.append(f"capacity {deadline.largest_batch_by_capacity:,}")
        limit = units.seconds(deadline.seconds)
        yield "deadline", f"{limit} a token: {kept}; the largest batch is {batch} ({', '.join(bounds)})"
