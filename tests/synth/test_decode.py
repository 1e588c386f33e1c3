"""The synthesised decode: exact floors, growing caches, the lesson's own questions, and sizes beyond reason."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tracescope.core.category import Category, EdgeKind, EventFlag, Op, TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import Trace
from tracescope.floor.pricing import work_floor_ns
from tracescope.io.save import write
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth import plan as plan_module
from tracescope.synth.decode import MAX_EVENTS, synthesize
from tracescope.synth.plan import plan_steps
from tracescope.synth.timing import KERNELS, PROFILES

REFERENCE = Workload(batch=16, context=4096)
LLAMA_KV_BYTES_PER_TOKEN = 131_072


@pytest.fixture(scope="module")
def llama() -> ModelSpec:
    return load_model("llama-3-8b")


@pytest.fixture(scope="module")
def h100() -> Basis:
    return make_basis(load_hardware("h100-sxm"))


@pytest.fixture(scope="module")
def lesson() -> tuple[ModelSpec, Basis]:
    return load_model("lesson-20gb"), make_basis(load_hardware("lesson-1tbs"))


@pytest.fixture(scope="module")
def ideal(llama: ModelSpec, h100: Basis) -> Trace:
    return synthesize(llama, h100, REFERENCE, steps=12)


@pytest.fixture(scope="module")
def realistic(llama: ModelSpec, h100: Basis) -> Trace:
    return synthesize(llama, h100, REFERENCE, steps=128, profile="realistic", seed=7)


def step_sum(trace: Trace, column: np.ndarray) -> np.ndarray:
    """Sum of one work column over the events of each step."""
    return np.bincount(trace.events.step, weights=column[trace.events.work].astype(float), minlength=len(trace.steps))


def op_floors(trace: Trace, basis: Basis) -> np.ndarray:
    """Sum of the unrounded floors of each step, ns."""
    floor, known = work_floor_ns(trace.work, basis)
    assert known[1:].all()
    return np.bincount(trace.events.step, weights=floor[trace.events.work], minlength=len(trace.steps))


def test_an_ideal_step_lasts_exactly_its_op_floor(ideal: Trace, h100: Basis) -> None:
    assert np.abs(ideal.steps.duration - op_floors(ideal, h100)).max() <= 1
    busy = np.bincount(ideal.events.step, weights=ideal.events.duration.astype(float))
    assert (busy == ideal.steps.duration).all(), "an ideal chain has no gaps"
    assert (ideal.steps.start[1:] == (ideal.steps.start + ideal.steps.duration)[:-1]).all()


def test_the_reference_step_moves_the_bytes_of_the_arithmetic(ideal: Trace) -> None:
    work = ideal.work
    assert step_sum(ideal, work.weight_read)[0] == 15_009_849_344
    assert step_sum(ideal, work.kv_append)[0] == 2_097_152
    kv_read = step_sum(ideal, work.kv_read)
    assert kv_read[0] == 8_589_934_592
    assert (np.diff(kv_read) == 16 * LLAMA_KV_BYTES_PER_TOKEN).all()
    assert (np.diff(ideal.steps.context_tokens) == 16).all()


def test_every_step_has_the_ops_of_the_chain(ideal: Trace) -> None:
    assert len(ideal.events) == 326 * 12
    first = ideal.step_events(0)
    assert len(first) == 326
    ops = [Op(int(o)) for o in ideal.events.op[first]]
    assert ops[:3] == [Op.LAUNCH, Op.EMBED, Op.BLOCK_TABLE]
    assert ops[-3:] == [Op.NORM, Op.LM_HEAD, Op.SAMPLE]
    assert ops.count(Op.ATTENTION) == 32
    names = {ideal.names[n] for n in ideal.events.name[first]}
    assert {"attention", "gate_up", "lm_head", "sample"} <= names


def test_events_lie_on_the_engine_that_bounds_them(ideal: Trace) -> None:
    assert [t.name for t in ideal.tracks] == ["memory", "compute", "host"]
    assert {t.kind for t in ideal.tracks} == {TrackKind.ENGINE}
    track = ideal.lanes.track[ideal.event_lane]
    ops = ideal.events.op
    assert set(track[ops == Op.ATTENTION]) == {0}
    assert set(track[ops == Op.ROPE]) == {1}
    assert set(track[ops == Op.LAUNCH]) == {2}


def test_enough_arithmetic_moves_an_op_to_the_compute_engine(llama: ModelSpec, h100: Basis) -> None:
    trace = synthesize(llama, h100, Workload(batch=1024, context=16), steps=1)
    track = trace.lanes.track[trace.event_lane]
    assert {trace.tracks[t].name for t in track[trace.events.op == Op.GATE_UP]} == {"compute"}


def test_the_chain_is_the_dependencies(ideal: Trace) -> None:
    d, e = ideal.dependencies, ideal.events
    assert len(d) == len(e) - 1
    assert (e.end[d.source] <= e.start[d.target]).all()
    assert d.recorded.all()
    previous = d.kind == EdgeKind.PREVIOUS_TOKEN
    assert previous.sum() == 11
    assert set(e.op[d.source[previous]]) == {Op.SAMPLE}
    assert set(e.op[d.target[previous]]) == {Op.LAUNCH}
    assert (e.step[d.target[previous]] == e.step[d.source[previous]] + 1).all()
    launched = d.kind == EdgeKind.LAUNCH
    assert set(e.op[d.source[launched]]) == {Op.LAUNCH}
    assert launched.sum() == 12
    assert (d.kind == EdgeKind.DATA).sum() == 12 * 324


def test_requests_and_tokens(ideal: Trace) -> None:
    r = ideal.requests
    assert len(r) == 16
    assert set(r.prompt_tokens) == {4096}
    assert r.generated_tokens.sum() == ideal.steps.generated_tokens.sum() == 16 * 12
    assert set(r.finish) == {int((ideal.steps.start + ideal.steps.duration)[-1])}
    # 4,108 tokens after the last step lie in 257 blocks of 16.
    assert set(r.kv_peak_bytes) == {257 * 16 * LLAMA_KV_BYTES_PER_TOKEN}
    assert ideal.steps.all_accepted.all()


def test_the_lesson_four_requests_share_one_pass(lesson: tuple[ModelSpec, Basis]) -> None:
    model, basis = lesson
    one, four = (synthesize(model, basis, Workload(batch=b), steps=2) for b in (1, 4))
    for trace, batch in ((one, 1), (four, 4)):
        assert step_sum(trace, trace.work.weight_read)[0] == 20_000_000_000
        assert trace.steps.generated_tokens[0] == batch
        # 20 ms for the weights; the gather and the append of the new token add less than 2 µs.
        assert 20_000_000 <= trace.steps.duration[0] < 20_002_000
    kv_one, kv_four = (step_sum(t, t.work.kv_append)[0] for t in (one, four))
    assert kv_four == 4 * kv_one > 0


def test_ten_times_the_compute_moves_nothing(ideal: Trace, llama: ModelSpec, h100: Basis) -> None:
    assert h100.peak_flops_per_s is not None
    faster = replace(h100, peak_flops_per_s=10 * h100.peak_flops_per_s)
    trace = synthesize(llama, faster, REFERENCE, steps=12)
    assert np.abs(trace.steps.duration - ideal.steps.duration).max() <= 1


def test_the_same_seed_gives_the_same_trace_and_another_does_not(llama: ModelSpec, h100: Basis) -> None:
    a, b, c = (synthesize(llama, h100, REFERENCE, steps=5, profile="realistic", seed=seed).events for seed in (3, 3, 4))
    assert (a.start == b.start).all()
    assert (a.duration == b.duration).all()
    assert (a.start != c.start).any()


@pytest.mark.parametrize("profile", PROFILES)
def test_the_same_seed_writes_the_same_bytes(llama: ModelSpec, h100: Basis, tmp_path: Path, profile: str) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, synthesize(llama, h100, REFERENCE, steps=5, profile=profile, seed=3))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_longer_run_begins_like_a_shorter_one(llama: ModelSpec, h100: Basis, realistic: Trace) -> None:
    short = synthesize(llama, h100, REFERENCE, steps=40, profile="realistic", seed=7)
    head = realistic.events.step < 40
    assert (realistic.events.duration[head] == short.events.duration).all()


def test_realistic_is_never_below_the_floor(realistic: Trace, h100: Basis) -> None:
    floor, _ = work_floor_ns(realistic.work, h100)
    assert (realistic.events.duration >= np.floor(floor[realistic.events.work])).all()
    assert (realistic.steps.duration > op_floors(realistic, h100)).all()


def test_realistic_lands_on_the_reference_step(realistic: Trace) -> None:
    steps = realistic.steps
    assert 8.0e6 < np.median(steps.duration) < 9.4e6
    assert steps.warm_up.tolist() == [True] + [False] * 127
    assert steps.duration[0] > 2 * np.median(steps.duration)
    e = realistic.events
    assert ((e.flags & EventFlag.WARM_UP) != 0)[e.step == 0].all()
    assert not ((e.flags & EventFlag.WARM_UP) != 0)[e.step > 0].any()


def test_realistic_reaches_what_its_table_says(realistic: Trace, h100: Basis) -> None:
    floor, _ = work_floor_ns(realistic.work, h100)
    e = realistic.events
    for category, share in ((Category.KV_READ, 0.81), (Category.WEIGHT_READ, 0.90)):
        rows = (e.category == category) & (e.op != Op.EMBED)
        assert floor[e.work[rows]].sum() / e.duration[rows].sum() == pytest.approx(share, abs=0.02)
    gaps = realistic.steps.duration[1:] - np.bincount(e.step, weights=e.duration.astype(float))[1:]
    assert 100_000 < np.median(gaps) < 150_000


def test_large_batches_make_small_kernels_longer(llama: ModelSpec, h100: Basis) -> None:
    one, many = (
        synthesize(llama, h100, Workload(batch=b, context=64), steps=1, profile="realistic").events for b in (1, 512)
    )
    act = one.op == Op.ACT
    assert 1_500 < np.median(one.duration[act]) < 2_500
    assert np.median(many.duration[many.op == Op.ACT]) > 10_000


def test_a_sustained_rate_is_not_discounted_twice(llama: ModelSpec) -> None:
    hardware = load_hardware("h100-sxm")
    datasheet, sustained = (
        np.median(
            synthesize(llama, make_basis(hardware, source), REFERENCE, steps=9, profile="realistic").steps.duration
        )
        for source in ("datasheet", "sustained")
    )
    assert sustained == pytest.approx(datasheet, rel=0.02)


@pytest.mark.parametrize("profile", PROFILES)
def test_events_grow_with_the_steps(lesson: tuple[ModelSpec, Basis], profile: str) -> None:
    model, basis = lesson
    for steps in (1, 2, 5):
        trace = synthesize(model, basis, Workload(batch=2, context=100), steps=steps, profile=profile)
        assert len(trace.events) == steps * (10 * model.layers + 6)
        assert len(trace.work) <= 12 + steps, "one row a step, beside those that never change"


def test_a_cache_that_stops_growing_is_asked_for_step_by_step(
    llama: ModelSpec, h100: Basis, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = plan_module.step_ops
    monkeypatch.setattr(
        plan_module, "step_ops", lambda m, w: real(m, replace(w, context=min(w.context, 4100)))
    )  # what a window does
    plan = plan_steps(llama, h100, REFERENCE, 10)
    kv_read = plan.table.kv_read[plan.work].sum(axis=1)
    assert np.diff(kv_read).tolist() == [16 * LLAMA_KV_BYTES_PER_TOKEN] * 4 + [0] * 5


def test_straight_lines_equal_asking_for_every_step(llama: ModelSpec, h100: Basis) -> None:
    plan = plan_steps(llama, h100, REFERENCE, 7)
    for step in range(7):
        ops = plan_module.step_ops(llama, replace(REFERENCE, context=4096 + step))
        for column in plan_module.QUANTITIES:
            got = getattr(plan.table, column)[plan.work[step]]
            assert got.tolist() == [getattr(o, column) for o in ops], column


def test_the_table_of_kernels_covers_every_op_and_says_why(llama: ModelSpec) -> None:
    for op in {o.op for o in plan_module.step_ops(llama, replace(REFERENCE, tensor_parallel=2))}:
        assert len(KERNELS[op].why) > 40
    assert all(0 < k.reach <= 1 for k in KERNELS.values())


def test_communication_has_its_engine(llama: ModelSpec, h100: Basis) -> None:
    trace = synthesize(llama, h100, Workload(batch=16, context=64, tensor_parallel=2), steps=1, profile="realistic")
    assert "link" in [t.name for t in trace.tracks]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": MAX_EVENTS}, "events"),
        ({"workload": Workload(batch=0)}, "batch"),
        ({"workload": Workload(batch=1 << 40)}, "batch"),
        ({"workload": Workload(context=1 << 62)}, "2^62"),
        ({"workload": Workload(context=-1)}, "context"),
        ({"profile": "fast"}, "profile"),
        ({"seed": -1}, "seed"),
        ({"basis": Basis()}, "bandwidth"),
        ({"basis": Basis(bandwidth_bytes_per_s=1)}, "years"),
    ],
)
def test_sizes_beyond_reason_are_refused(llama: ModelSpec, h100: Basis, change: dict[str, object], words: str) -> None:
    given: dict[str, object] = {"workload": REFERENCE, "basis": h100, "steps": 2, **change}
    with pytest.raises(TraceError, match=words.replace("^", "\\^")) as refusal:
        synthesize(llama, given.pop("basis"), given.pop("workload"), **given)
    assert refusal.value.action
