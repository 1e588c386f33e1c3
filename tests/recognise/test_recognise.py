"""Whole recordings made by hand: steps by every kind of evidence, attribution by launch, bytes and edges."""

import numpy as np
import pytest

from tests.kit.recordings import (
    ACT,
    ADD,
    APPEND,
    ARGMAX,
    ATTENTION,
    COPY,
    DENSE_LAYER,
    GEMM,
    NORM,
    OTHER_STREAM,
    Recording,
    decode_kernels,
)
from tracescope.core.category import BytesFrom, Category, EdgeKind, EventFlag, Op, StepKind, TrackKind
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import Trace
from tracescope.floor.step_ops import step_totals, weight_read_bytes
from tracescope.recognise.recognise import recognise

MODEL = ModelSpec("small", "made", 64, 30, 4, 2, 16, 128, 1000, False)


def total(trace: Trace, step: int, column: str) -> int:
    ids = trace.step_events(step)
    values = getattr(trace.work, column)[trace.events.work[ids]]
    assert (values[np.isin(trace.events.op[ids], (Op.OTHER, Op.NONE), invert=True)] >= 0).all()
    return int(values[values > 0].sum())


def vllm_steps(steps: int = 3, layers: int = 30) -> Recording:
    """Graph-replayed steps under vLLM markers; the device runs long after the host has left the marker."""
    r = Recording()
    for i in range(steps):
        at = 10_000 * i
        text = f"execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk{100 + 4 * i}sqsq4sqsk9)"
        r.add(text, "user_annotation", at, 1_000)
        r.launch(at + 100, decode_kernels(layers))
        r.launch(at + 2_000, [ARGMAX])
        r.launch(at + 2_100, [COPY])
        r.launch(at + 3_000, [ADD])
    return r


def test_kernels_belong_to_the_step_that_launched_them_and_so_does_the_selection_after_the_marker() -> None:
    trace = recognise(vllm_steps().raw())
    assert trace.steps.kind.tolist() == [StepKind.DECODE] * 3
    per_step = len(decode_kernels(30)) + 2
    assert [len(trace.step_events(i)) for i in range(3)] == [per_step] * 3
    loose = trace.events.name[(trace.events.step < 0) & (trace.events.category != Category.HOST)]
    assert {trace.names[n] for n in loose.tolist()} == {ADD}
    assert trace.steps.batch.tolist() == [4] * 3
    assert trace.steps.context_tokens.tolist() == [100, 104, 108]
    assert trace.steps.generated_tokens.tolist() == [4] * 3


def test_a_model_gives_every_byte_and_the_sums_are_the_arithmetics() -> None:
    trace = recognise(vllm_steps().raw(), model=MODEL)
    for step, context in enumerate((100, 104, 108)):
        assert total(trace, step, "weight_read") == weight_read_bytes(MODEL)
        assert total(trace, step, "kv_read") == context * 30 * 2 * 2 * 16 * 2
        assert total(trace, step, "kv_append") == step_totals(MODEL, Workload(batch=4)).kv_append
        assert total(trace, step, "flops") == step_totals(MODEL, Workload(4, context // 4)).flops
    attention = trace.events.work[trace.events.op == Op.ATTENTION]
    assert set(trace.work.bytes_from[attention].tolist()) == {BytesFrom.MARKER, BytesFrom.NONE}


def test_without_a_model_the_bytes_are_unknown_and_never_zero() -> None:
    trace = recognise(vllm_steps(1).raw())
    ids = trace.step_events(0)
    e, w = trace.events, trace.work
    for category, column in ((Category.WEIGHT_READ, "weight_read"), (Category.KV_APPEND, "kv_append")):
        of = ids[(e.category[ids] == category) & (e.op[ids] != Op.EMBED)]
        assert set(getattr(w, column)[e.work[of]].tolist()) == {-1}
    attention = ids[e.op[ids] == Op.ATTENTION]
    assert sorted(set(w.kv_read[e.work[attention]].tolist())) == [-1, 0], "the combine kernel carries none"


def test_launches_are_recorded_edges_and_the_next_token_is_an_inferred_one() -> None:
    trace = recognise(vllm_steps(3).raw())
    d, e = trace.dependencies, trace.events
    launch = d.kind == EdgeKind.LAUNCH
    assert d.recorded[launch].all()
    device = e.category != Category.HOST
    assert int(launch.sum()) == int(device.sum())
    token = np.flatnonzero(d.kind == EdgeKind.PREVIOUS_TOKEN)
    assert [trace.names[e.name[s]] for s in d.source[token].tolist()] == [ARGMAX] * 2
    assert [Op(e.op[t]) for t in d.target[token].tolist()] == [Op.EMBED] * 2
    assert e.step[d.target[token]].tolist() == [1, 2]
    assert not d.recorded[token].any()


def test_graph_launches_are_steps_where_nothing_else_tells() -> None:
    r = Recording()
    for i in range(4):
        r.launch(10_000 * i, [ADD])
        r.launch(10_000 * i + 100, decode_kernels(6))
        r.launch(10_000 * i + 200, [ARGMAX, COPY])
    trace = recognise(r.raw())
    assert len(trace.steps) == 4
    assert [len(trace.step_events(i)) for i in range(4)] == [len(decode_kernels(6)) + 3] * 4
    assert trace.meta.report.inferred[0].rule == "steps by graph launch"


def test_token_selection_delimits_eager_steps() -> None:
    r = Recording()
    at = 0
    for _ in range(3):
        for kernel in [*decode_kernels(3), ARGMAX]:
            r.launch(at, [kernel])
            at += 50
    trace = recognise(r.raw())
    assert [len(trace.step_events(i)) for i in range(len(trace.steps))] == [len(decode_kernels(3)) + 1] * 3
    assert trace.meta.report.inferred[0].rule == "steps by token selection"


def test_training_without_a_cache_has_no_decode_step() -> None:
    r = Recording()
    for i in range(3):
        r.launch(1_000 * i, [GEMM, ADD, ATTENTION, GEMM, ARGMAX])
    trace = recognise(r.raw())
    assert len(trace.steps) == 0
    assert "no decode step was recognised" in trace.meta.notes[0]


def test_the_host_wait_of_a_leading_cluster_is_kept_apart_and_its_event_is_not_lost() -> None:
    r = Recording()
    r.add("step[DECODE bs=8]", "user_annotation", 0, 600_000)
    r.launch(10, ["void elementwise_kernel_with_index<int, arange>"], track=OTHER_STREAM)
    r.clock += 500_000
    begin = r.clock
    end = r.launch(500_000, decode_kernels(10))
    trace = recognise(r.raw())
    base = 0
    assert int(trace.steps.start[0]) == begin - base
    assert int(trace.steps.duration[0]) == end - begin
    assert int(trace.steps.host_wait[0]) == 500_000 + 1
    assert len(trace.step_events(0)) == len(decode_kernels(10)) + 1


def test_overlapping_kernels_of_one_stream_are_kept_whole_and_counted() -> None:
    r = Recording()
    r.add("step[DECODE bs=1]", "user_annotation", 0, 1_000)
    r.launch(10, decode_kernels(3), durations=10, gap=-2)
    trace = recognise(r.raw())
    kernels = trace.events.category != Category.HOST
    assert trace.events.duration[kernels].tolist() == [10] * len(decode_kernels(3))
    assert trace.meta.report.flagged["overlapping"] > 0
    assert ((trace.events.flags & EventFlag.OVERLAPPING) > 0).sum() == trace.meta.report.flagged["overlapping"]


def test_shapes_of_the_launching_operator_come_before_the_model() -> None:
    r = Recording()
    r.add("step[DECODE bs=2]", "user_annotation", 0, 100_000)
    at = 10
    for kernel in [*decode_kernels(2, DENSE_LAYER), ARGMAX]:
        if kernel == GEMM:
            r.operator("aten::linear", at, 60, [[2, 1, 64], [96, 64], []], ["c10::BFloat16", "c10::BFloat16", ""])
            r.operator("aten::mm", at + 5, 50, [[2, 64], [64, 96]], ["c10::BFloat16", "c10::BFloat16"])
        r.launch(at + 10, [kernel])
        at += 100
    trace = recognise(r.raw(), model=MODEL)
    gemms = trace.events.work[np.array([n == GEMM for n in trace.names])[trace.events.name]]
    assert set(trace.work.weight_read[gemms].tolist()) == {64 * 96 * 2}
    assert set(trace.work.bytes_from[gemms].tolist()) == {BytesFrom.SHAPE}


def test_prefill_decode_and_mixed_steps_are_told_apart() -> None:
    r = Recording()
    marks = ["step[EXTEND bs=2 toks=64]", "step[DECODE bs=2]", "step[MIXED bs=3 toks=40]"]
    for i, text in enumerate(marks):
        r.add(text, "user_annotation", 10_000 * i, 5_000)
        r.launch(10_000 * i + 5, decode_kernels(3))
    trace = recognise(r.raw(), model=MODEL)
    assert trace.steps.kind.tolist() == [StepKind.PREFILL, StepKind.DECODE, StepKind.MIXED]
    assert trace.steps.generated_tokens.tolist() == [0, 2, -1]


def test_a_context_given_by_the_user_is_used_where_no_marker_says_it() -> None:
    r = Recording()
    for i in range(3):
        r.add("step[DECODE bs=2]", "user_annotation", 10_000 * i, 5_000)
        r.launch(10_000 * i + 5, decode_kernels(30))
    trace = recognise(r.raw(), model=MODEL, context=500)
    assert trace.steps.context_tokens.tolist() == [1000, 1002, 1004]
    attention = trace.events.work[(trace.events.op == Op.ATTENTION) & (trace.events.step == 1)]
    read = trace.work.kv_read[attention]
    assert set(read.tolist()) == {0, 1002 * 2 * 2 * 16 * 2}
    assert BytesFrom.USER in trace.work.bytes_from[attention].tolist()


def test_a_model_of_another_depth_is_said_not_hidden() -> None:
    trace = recognise(vllm_steps(1, layers=5).raw(), model=MODEL)
    assert any(i.rule == "model against trace" and "5" in i.what and "30" in i.what for i in trace.meta.report.inferred)


def test_a_model_that_may_be_split_over_ranks_is_said() -> None:
    r = Recording()
    r.add("step[DECODE bs=1]", "user_annotation", 0, 1_000)
    r.launch(10, decode_kernels(3, [*DENSE_LAYER, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"]))
    rules = [i.rule for i in recognise(r.raw(), model=MODEL).meta.report.inferred]
    assert "one rank holds the model" in rules


def test_kernels_without_a_launch_are_shown_outside_the_steps() -> None:
    r = Recording()
    r.add("earlier kernel", "kernel", 500, 10, 1)
    r.add("step[DECODE bs=1]", "user_annotation", 1_000, 1_000)
    r.launch(1_010, decode_kernels(3))
    trace = recognise(r.raw())
    assert len(trace.step_events(0)) == len(decode_kernels(3))
    assert trace.meta.report.unclassified_ns == 10


def test_times_are_relative_to_the_first_event_and_the_base_is_kept() -> None:
    r = Recording()
    r.add("a", "", 5_000, 10)
    r.add("b", "", 5_020, 10)
    trace = recognise(r.raw())
    assert trace.events.start.tolist() == [0, 20]
    assert trace.meta.base_ns == 5_000


def test_rows_of_one_thread_are_kept_on_tracks_by_what_they_are() -> None:
    r = vllm_steps(1)
    r.add("engine.py(3): step", "python_function", 0, 900)
    trace = recognise(r.raw())
    kinds = [t.kind for t in trace.tracks]
    assert kinds == [TrackKind.DEVICE_STREAM, TrackKind.ANNOTATION, TrackKind.HOST_THREAD, TrackKind.HOST_THREAD]
    assert trace.tracks[0].name == "stream 7"


def test_an_empty_recording_is_a_trace_without_events() -> None:
    trace = recognise(Recording().raw())
    assert len(trace.events) == 0
    assert len(trace.steps) == 0


@pytest.mark.parametrize("missing", [APPEND, ACT, NORM])
def test_steps_stay_whole_when_a_family_is_missing(missing: str) -> None:
    r = Recording()
    r.add("step[DECODE bs=1]", "user_annotation", 0, 1_000)
    layer = [k for k in DENSE_LAYER if k != missing]
    r.launch(10, decode_kernels(4, layer))
    trace = recognise(r.raw())
    assert int(trace.events.layer.max()) == 3
    gemms = [k for k in layer if k == GEMM]
    in_layer = trace.events.layer[np.array([n == GEMM for n in trace.names])[trace.events.name]]
    assert np.bincount(in_layer[in_layer >= 0]).tolist() == [len(gemms)] * 4
