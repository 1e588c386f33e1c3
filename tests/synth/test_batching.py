"""Continuous batching: tokens are conserved, memory is never exceeded, nobody overtakes, and Little's law holds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.request_stream import RequestStream
from tracescope.floor.capacity import capacity, kv_stored_after
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.batching import KvRoom, Schedule, kv_room, queue_depth, serve
from tracescope.synth.decode import synthesize
from tracescope.synth.step_times import StepTimes

LLAMA = load_model("llama-3-8b")
H100 = make_basis(load_hardware("h100-sxm"))
ONE = Workload()
IDEAL = StepTimes(LLAMA, H100, ONE, "ideal")


def stream_of(arrival: list[int], prompt: list[int], output: list[int]) -> RequestStream:
    columns = (np.array(values, np.int64) for values in (arrival, prompt, output))
    return RequestStream(*columns)


requests = st.lists(
    st.tuples(st.integers(0, 60_000_000), st.integers(0, 3_000), st.integers(1, 40)), min_size=1, max_size=40
)


def run(made: list[tuple[int, int, int]], blocks: int, max_batch: int) -> tuple[RequestStream, KvRoom, Schedule]:
    arrival, prompt, output = (list(column) for column in zip(*sorted(made, key=lambda r: r[0]), strict=True))
    arrival = [a - arrival[0] for a in arrival]
    stream = stream_of(arrival, prompt, output)
    room = replace(kv_room(LLAMA, None, ONE, stream), budget=blocks * 16 * 131_072)
    return stream, room, serve(stream, room, IDEAL, max_batch=max_batch)


@settings(max_examples=150, deadline=None)
@given(requests, st.integers(1, 400), st.integers(1, 12))
def test_what_must_hold_whatever_arrives(made: list[tuple[int, int, int]], blocks: int, max_batch: int) -> None:
    stream, room, done = run(made, blocks, max_batch)
    served = ~done.refused
    assert (done.refused == (room.need > (room.budget or 0))).all()
    assert (done.start[done.refused] == -1).all()
    assert (done.generated == np.where(served, stream.output, 0)).all()
    assert done.batch.sum() == stream.output[served].sum()
    assert (done.start[served] >= stream.arrival[served]).all()
    assert (np.diff(done.start[served]) >= 0).all(), "nobody overtakes"
    if not done.steps:
        return
    assert done.batch.max() <= max_batch
    end = done.step_start + done.step_duration
    assert (done.step_start[1:] >= end[:-1]).all()
    running = (done.start[served, None] <= done.step_start) & (done.step_start < done.finish[served, None])
    assert (running.sum(axis=0) == done.batch).all()
    assert (running * room.need[served, None]).sum(axis=0).max() <= (room.budget or 0)
    age = np.cumsum(running, axis=1) - 1
    assert ((running * (stream.prompt[served, None] + age)).sum(axis=0) == done.context_tokens).all()
    ideal = [
        round(IDEAL.step_ns(b, [c])) for b, c in zip(done.batch.tolist(), done.context_tokens.tolist(), strict=True)
    ]
    assert done.step_duration.tolist() == ideal


@settings(max_examples=150, deadline=None)
@given(requests, st.integers(200, 400), st.integers(1, 4))
def test_nobody_waits_without_a_reason(made: list[tuple[int, int, int]], blocks: int, max_batch: int) -> None:
    stream, room, done = run(made, blocks, max_batch)
    served = np.flatnonzero(~done.refused)
    for step, now in enumerate(done.step_start.tolist()):
        waiting = served[(stream.arrival[served] <= now) & (done.start[served] > now)]
        if len(waiting):
            running = served[(done.start[served] <= now) & (done.finish[served] > now)]
            free = (room.budget or 0) - room.need[running].sum()
            assert done.batch[step] == max_batch or room.need[waiting[0]] > free


@settings(max_examples=150, deadline=None)
@given(requests, st.integers(1, 400), st.integers(1, 4))
def test_depth_times_time_is_the_time_spent_waiting(
    made: list[tuple[int, int, int]], blocks: int, max_batch: int
) -> None:
    stream, _, done = run(made, blocks, max_batch)
    served = ~done.refused
    waited = int((done.start - stream.arrival)[served].sum())
    counted = int((done.queue_depth * done.step_duration).sum())
    # What is carried over at the end is less than one request through the longest step.
    assert abs(waited - counted) <= (done.step_duration.max() if done.steps else 0)
    inside = int(((done.queue_depth + done.batch) * done.step_duration).sum())
    assert inside - counted == int((done.finish - done.start)[served].sum())


def test_depth_is_a_number_that_really_waited() -> None:
    # One arrives in the middle of a step of 100 ns, two at the start of the next.
    arrival = np.array([0, 50, 100, 100], np.int64)
    start, duration = np.array([0, 100, 200], np.int64), np.full(3, 100, np.int64)
    assert queue_depth(arrival, np.array([1, 1, 1]), start, duration).tolist() == [1, 3, 3]
    assert queue_depth(arrival, np.array([1, 4, 4]), start, duration).tolist() == [1, 0, 0]
    assert queue_depth(arrival[:1], np.array([1, 1, 1]), start, duration).tolist() == [0, 0, 0]


def test_equal_requests_take_the_steps_of_the_fixed_workload() -> None:
    trace = synthesize(LLAMA, H100, Workload(batch=16, context=4096), steps=50)
    stream = stream_of([0] * 16, [4096] * 16, [50] * 16)
    done = serve(stream, kv_room(LLAMA, H100.hardware, ONE, stream), IDEAL, max_batch=16)
    assert np.abs(done.step_duration - trace.steps.duration).max() <= 1
    assert done.context_tokens.tolist() == trace.steps.context_tokens.tolist()
    assert set(done.start) == {0}


@pytest.mark.parametrize(("batch", "context"), [(1, 10), (16, 4096), (256, 300)])
def test_the_mean_realistic_step_is_the_one_that_operations_draw(batch: int, context: int) -> None:
    steps = synthesize(LLAMA, H100, Workload(batch=batch, context=context), steps=80, profile="realistic").steps
    mean = StepTimes(LLAMA, H100, ONE, "realistic").step_ns(batch, [batch * (context + 40)])
    assert np.median(steps.duration) == pytest.approx(mean, rel=0.005)


def test_realistic_hosts_stall_now_and_then_and_the_seed_decides_when() -> None:
    stream = stream_of([0] * 4, [100] * 4, [2_000] * 4)
    times = StepTimes(LLAMA, H100, ONE, "realistic")
    room = kv_room(LLAMA, H100.hardware, ONE, stream)
    a, b, c = (serve(stream, room, times, max_batch=4, profile="realistic", seed=s) for s in (1, 1, 2))
    assert (a.step_duration == b.step_duration).all()
    assert (a.step_duration != c.step_duration).any()
    assert 5 < (a.delay > 0).sum() < 60
    assert a.delay[0] > 5_000_000, "the first step loads the kernels"


def test_the_largest_batch_is_that_of_the_capacity_arithmetic() -> None:
    assert H100.hardware is not None
    n = 200
    stream = stream_of([0] * n, [4080] * n, [16] * n)
    room = kv_room(LLAMA, H100.hardware, ONE, stream)
    done = serve(stream, room, IDEAL, max_batch=n)
    most = capacity(LLAMA, H100.hardware, Workload(context=4096)).max_batch
    assert done.batch.max() == most == 114
    assert kv_stored_after(LLAMA, Workload(batch=most, context=4095)) <= (room.budget or 0)


def test_too_large_is_refused_and_the_rest_is_served() -> None:
    stream = stream_of([0, 1, 2], [100, 10_000_000, 100], [4, 4, 4])
    done = serve(stream, kv_room(LLAMA, H100.hardware, ONE, stream), IDEAL, max_batch=8)
    assert done.refused.tolist() == [False, True, False]
    assert done.generated.tolist() == [4, 0, 4]
    assert done.queue_depth.max() <= 1


def test_a_cut_leaves_requests_unfinished_and_tokens_conserved() -> None:
    stream = stream_of([0, 0, 0], [10, 10, 10], [4, 50, 50])
    done = serve(stream, kv_room(LLAMA, H100.hardware, ONE, stream), IDEAL, max_batch=2, steps=20)
    assert done.steps == 20
    assert (done.finish >= 0).tolist() == [True, False, False]
    assert done.generated.tolist() == [4, 20, 16]
    assert done.generated.sum() == done.batch.sum()
    short = serve(stream, kv_room(LLAMA, H100.hardware, ONE, stream), IDEAL, max_batch=2, steps=4)
    assert short.generated.tolist() == [4, 4, 0]
    assert short.start[2] == -1
    assert short.finish.tolist()[0] > 0


@pytest.mark.parametrize(
    ("model", "basis", "words"),
    [(load_model("llama-3-70b"), H100, "does not fit"), (LLAMA, Basis(), "memory bandwidth")],
)
def test_refusals(model: ModelSpec, basis: Basis, words: str) -> None:
    stream = stream_of([0], [10], [4])
    with pytest.raises(TraceError, match=words):
        serve(stream, kv_room(model, basis.hardware, ONE, stream), StepTimes(model, basis, ONE, "ideal"), max_batch=1)


def test_no_requests_no_steps() -> None:
    stream = stream_of([], [], [])
    assert serve(stream, kv_room(LLAMA, H100.hardware, ONE, stream), IDEAL, max_batch=1).steps == 0
