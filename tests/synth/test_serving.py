"""Traces of served requests: the same steps whatever the detail, floors that hold, phases that add up."""

from pathlib import Path

import numpy as np
import pytest

from tracescope.analysis.check import check
from tracescope.analysis.steps import step_series
from tracescope.core.category import EdgeKind, EventFlag, Op, TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.request_stream import RequestStream
from tracescope.core.trace import Trace
from tracescope.io.native import read
from tracescope.io.save import write
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.synth.serving import serve_requests
from tracescope.synth.spans import places
from tracescope.synth.timing import PROFILES


@pytest.fixture(scope="module")
def llama() -> ModelSpec:
    return load_model("llama-3-8b")


@pytest.fixture(scope="module")
def h100() -> Basis:
    return make_basis(load_hardware("h100-sxm"))


def some_requests(n: int = 60, gap_ns: float = 12e6, seed: int = 3) -> RequestStream:
    random = np.random.Generator(np.random.PCG64(seed))
    arrival = np.cumsum(random.exponential(gap_ns, n)).astype(np.int64)
    return RequestStream(arrival - arrival[0], random.integers(1, 6000, n), random.integers(1, 40, n))


def serve(model: ModelSpec, basis: Basis, stream: RequestStream, **options: object) -> Trace:
    asked = {"max_batch": 4, **options}
    return serve_requests(model, basis, Workload(), stream, **asked).trace  # keywords by name


@pytest.mark.parametrize("profile", PROFILES)
def test_every_detail_has_the_same_steps(llama: ModelSpec, h100: Basis, profile: str) -> None:
    stream = some_requests()
    brief = serve(llama, h100, stream, profile=profile, seed=5)
    full = serve(llama, h100, stream, profile=profile, seed=5, detail="ops")
    part = serve(llama, h100, stream, profile=profile, seed=5, detail="ops", window=(10, 20))
    a, b, c = (step_series(trace, h100) for trace in (brief, full, part))
    for other in (b, c):
        for column in ("start", "duration", "weight_read", "embedding_gather", "kv_read", "kv_append", "flops"):
            assert (getattr(a, column) == getattr(other, column)).all(), column
    assert (np.diff(np.bincount(full.events.step[full.events.step >= 0])) == 0).all()
    assert c.events.tolist() == [326 if 10 <= s < 20 else 1 for s in range(len(part.steps))]
    assert (brief.requests.finish == part.requests.finish).all()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["llama-3-8b", "gemma-2-9b", "gpt-oss-20b"])
def test_operations_keep_to_their_floors_and_to_the_formula(name: str, profile: str) -> None:
    machine = make_basis(load_hardware("h200-sxm"))
    model = load_model(name)
    trace = serve(model, machine, some_requests(25), profile=profile, detail="ops", max_batch=16)
    result = check(trace, machine)
    assert not result.findings, "the bytes are those that the requests' own lengths give, windows and experts included"
    series = step_series(trace, machine)
    if profile == "ideal":
        assert np.abs(series.duration - series.floor_ops_ns).max() <= 1
    else:
        assert (series.duration > series.floor_ops_ns).all()


def test_equal_requests_give_the_trace_of_the_fixed_workload(llama: ModelSpec, h100: Basis) -> None:
    n = np.full(8, 0)
    stream = RequestStream(n, n + 900, n + 12)
    served = serve(llama, h100, stream, max_batch=8, detail="ops")
    fixed = synthesize(llama, h100, Workload(batch=8, context=900), steps=12)
    ids = np.flatnonzero(served.events.step >= 0)
    assert (served.events.op[ids] == fixed.events.op).all()
    assert np.abs(served.events.start[ids] - fixed.events.start).max() <= 12
    assert (served.work.kv_read[served.events.work[ids]] == fixed.work.kv_read[fixed.events.work]).all()
    assert (served.dependencies.kind == fixed.dependencies.kind).all()
    for column in ("prompt_tokens", "generated_tokens", "kv_peak_bytes"):
        assert (getattr(served.requests, column) == getattr(fixed.requests, column)).all()


def test_phases_of_requests_are_their_times(llama: ModelSpec, h100: Basis) -> None:
    stream = some_requests(gap_ns=3e6)
    trace = serve(llama, h100, stream)
    kinds = [t.kind for t in trace.tracks]
    assert [t.name for t in trace.tracks][-2:] == ["requests decoding", "requests waiting"]
    assert kinds.count(TrackKind.ANNOTATION) == 2
    track = trace.lanes.track[trace.event_lane]
    e, r = trace.events, trace.requests
    decoding, waiting = (np.flatnonzero(track == len(trace.tracks) - 2 + i) for i in range(2))
    assert len(decoding) == len(stream)
    assert e.duration[decoding].sum() == (r.finish - r.start).sum()
    assert e.duration[waiting].sum() == (r.start - r.arrival).sum() > 0
    assert (trace.lanes.track == len(trace.tracks) - 2).sum() <= 4, "no more lanes than the batch has places"
    assert trace.names[e.name[decoding[0]]].startswith("request ")
    assert '"prompt_tokens":' in trace.details[e.detail[decoding[0]]]


def test_steps_depend_on_the_last_token_where_a_request_goes_on(llama: ModelSpec, h100: Basis) -> None:
    far = RequestStream(np.array([0, 0, 10**12]), np.array([5, 5, 5]), np.array([2, 4, 3]))
    trace = serve(llama, h100, far, max_batch=1)
    kinds = trace.dependencies.kind.tolist()
    # 2 steps, then the second request takes the place, then a pause that ends with an arrival.
    assert kinds == [
        EdgeKind.PREVIOUS_TOKEN, EdgeKind.RESOURCE, *[EdgeKind.PREVIOUS_TOKEN] * 3, *[EdgeKind.PREVIOUS_TOKEN] * 2,
    ]  # fmt: skip
    assert trace.steps.batch.tolist() == [1] * 9


def test_a_cut_marks_what_goes_on(llama: ModelSpec, h100: Basis) -> None:
    stream = RequestStream(np.zeros(3, np.int64), np.full(3, 10), np.array([3, 50, 50]))
    trace = serve(llama, h100, stream, max_batch=2, steps=10)
    assert trace.requests.generated_tokens.tolist() == [3, 10, 7]
    assert trace.requests.finish.tolist()[1:] == [-1, -1]
    assert trace.requests.kv_peak_bytes.tolist()[1] == 2 * 16 * 131_072
    assert ((trace.events.flags & EventFlag.UNFINISHED) != 0).sum() == 2
    assert any("2 of 3 requests had not finished" in note for note in trace.meta.notes)


def test_a_refused_request_is_a_row_without_times(llama: ModelSpec, h100: Basis) -> None:
    stream = RequestStream(np.zeros(2, np.int64), np.array([10, 10**7]), np.array([3, 3]))
    trace = serve(llama, h100, stream)
    assert trace.requests.start.tolist() == [0, -1]
    assert trace.requests.generated_tokens.tolist() == [3, 0]
    assert any("1 of 2 requests need more KV cache" in note for note in trace.meta.notes)
    with pytest.raises(TraceError, match="none of these"):
        serve(llama, h100, RequestStream(np.zeros(1, np.int64), np.array([10**7]), np.array([3])))


def test_prompts_are_said_not_to_be_simulated(llama: ModelSpec, h100: Basis) -> None:
    notes = serve(llama, h100, some_requests(5)).meta.notes
    assert any("prompt processing is not simulated" in note for note in notes)
    assert any("first come first served" in note for note in notes)


def test_the_same_seed_writes_the_same_file(llama: ModelSpec, h100: Basis, tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name, serve(llama, h100, some_requests(), profile="realistic", detail="ops", window=(3, 9)))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    back = read(tmp_path / "a").trace
    assert back.steps.queue_depth.max() > 0
    assert len(back.requests) == 60


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"detail": "everything"}, "no detail"),
        ({"detail": "ops", "window": (5, 5)}, "empty"),
        ({"detail": "ops", "window": (10**6, 10**6 + 1)}, "there is no step"),
        ({"max_batch": 0}, "serves nothing"),
    ],
)
def test_refusals(llama: ModelSpec, h100: Basis, options: dict[str, object], words: str) -> None:
    with pytest.raises(TraceError, match=words):
        serve(llama, h100, some_requests(5), **options)


def test_places_are_the_lowest_that_are_free() -> None:
    start, end = np.array([0, 1, 2, 5, 6]), np.array([5, 3, 9, 6, 7])
    assert places(start, end).tolist() == [0, 1, 2, 0, 0]


def test_one_event_a_step_says_what_the_step_did(llama: ModelSpec, h100: Basis) -> None:
    trace = serve(llama, h100, some_requests(10))
    e = trace.events
    steps = np.flatnonzero(e.step >= 0)
    assert (e.step[steps] == np.arange(len(trace.steps))).all()
    assert set(e.op[steps]) == {Op.NONE}
    assert (trace.work.weight_read[e.work[steps]] == 15_009_849_344).all()
    assert (trace.work.kv_read[e.work[steps]] == trace.steps.context_tokens * 131_072).all()
