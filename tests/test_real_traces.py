"""Real recordings: the numbers that were measured on them by hand, and that every other file opens."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import shared_path
from tracescope.analysis.breakdown import break_down
from tracescope.analysis.layers import layers_table
from tracescope.analysis.steps import steps_table
from tracescope.core.category import BytesFrom, Category, EdgeKind, EventFlag, Op, StepKind, TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.trace import Trace
from tracescope.floor.step_ops import weight_read_bytes
from tracescope.load import ImportOptions, Opened, open_trace
from tracescope.models import load_hardware, load_model

Shared = Callable[[str], Path]
GEMMS = ("qkv", "q", "k", "v", "o", "gate_up", "gate", "up", "down", "lm_head")
SGLANG = "traces/kineto_inference/sglang_Qwen3-8B_decode.json.gz"
VLLM = "traces/kineto_inference/vllm_decode_full_graph_execution.json.gz"
HF = (
    "traces/own/hf_llama4_decode16_modules_stack.pt.trace.json.gz",
    "traces/own/hf_llama4_decode16_nostack.pt.trace.json.gz",
)
STATIC = "traces/own/static_kv_decode16_eager.pt.trace.json.gz"


@pytest.fixture(scope="module")
def sglang() -> Opened:
    options = ImportOptions(model=load_model("qwen3-8b"), hardware=load_hardware("mi300x"))
    return open_trace(shared_path(SGLANG), options)


def on_device(trace: Trace) -> Any:
    kinds = np.array([t.kind for t in trace.tracks])
    return kinds[trace.lanes.track[trace.event_lane]] == TrackKind.DEVICE_STREAM


def count(trace: Trace, *ops: Op) -> int:
    ids = np.flatnonzero(trace.events.step >= 0)
    return int(np.isin(trace.events.op[ids], ops).sum())


def test_sglang_is_one_decode_step_with_every_number(sglang: Opened) -> None:
    trace = sglang.trace
    assert int(on_device(trace).sum()) == 558
    assert trace.meta.report.dropped == {}
    assert len(trace.steps) == 1
    row = steps_table(trace, sglang.basis).row(0)
    assert (row["kind"], row["batch"], row["context_tokens"]) == ("decode", 32, 32785)
    assert row["duration_ns"] == 10_450_292
    assert row["kv_read_bytes"] == 4_834_344_960
    assert row["weight_read_bytes"] == weight_read_bytes(load_model("qwen3-8b")) == 15_136_811_008
    assert row["floor_weight_ns"] == pytest.approx(2.856e6, rel=1e-4)
    kv_floor = 4_834_344_960 / 5.3e12 * 1e9
    assert kv_floor == pytest.approx(0.912e6, rel=1e-3)
    assert row["floor_memory_ns"] == pytest.approx(
        row["floor_weight_ns"] + kv_floor + row["kv_append_bytes"] / 5.3e12 * 1e9, abs=2
    )
    assert row["host_wait_ns"] > 460_000_000


def test_sglang_has_36_layers_of_everything(sglang: Opened) -> None:
    trace = sglang.trace
    assert sorted(set(trace.events.layer.tolist())) == list(range(-1, 36))
    assert count(trace, Op.KV_APPEND) == 36
    assert count(trace, Op.QKV, Op.O, Op.GATE_UP, Op.DOWN, Op.LM_HEAD) == 145
    assert trace.meta.report.unclassified_ns == 0
    assert any("544 kernels, 9,930,636 ns" in i.what for i in trace.meta.report.inferred)


def test_sglang_ops_take_what_they_were_measured_to_take(sglang: Opened) -> None:
    e = sglang.trace.events
    for op, micros in ((Op.QKV, 21.2), (Op.O, 17.0), (Op.GATE_UP, 66.6), (Op.DOWN, 40.9), (Op.LM_HEAD, 396.8)):
        assert np.median(e.duration[e.op == op]) / 1e3 == pytest.approx(micros, rel=0.02), op
    attention = e.op == Op.ATTENTION
    per_layer = np.bincount(e.layer[attention], weights=e.duration[attention])
    assert np.median(per_layer) / 1e3 == pytest.approx(58.9, rel=0.02)


def test_sglang_graph_span_can_be_read_off_its_shared_launch(sglang: Opened) -> None:
    trace = sglang.trace
    d, e = trace.dependencies, trace.events
    launches = d.kind == EdgeKind.LAUNCH
    calls, members = np.unique(d.source[launches], return_counts=True)
    graph = d.target[launches & (d.source == calls[members.argmax()])]
    assert len(graph) == 544
    assert int(e.end[graph].max() - e.start[graph].min()) == 9_930_636


def test_vllm_is_one_decode_step_whose_expert_bytes_are_unknown(shared: Shared) -> None:
    opened = open_trace(shared(VLLM), ImportOptions(bandwidth="5.3TB/s"))
    trace = opened.trace
    assert int(on_device(trace).sum()) == 434
    assert trace.meta.report.dropped == {}
    row = steps_table(trace, opened.basis).row(0)
    assert (len(trace.steps), row["kind"], row["duration_ns"]) == (1, "decode", 10_743_181)
    assert (row["batch"], row["context_tokens"]) == (32, 55086)
    assert row["weight_read_bytes"] is None
    assert row["kv_read_bytes"] is None
    assert int(trace.events.layer.max()) + 1 == 24
    assert count(trace, Op.KV_APPEND) == 24
    experts = trace.events.work[trace.events.op == Op.EXPERTS]
    assert len(experts) == 48
    assert set(trace.work.weight_read[experts].tolist()) == {-1}
    assert trace.meta.report.unclassified_ns == 0


@pytest.mark.parametrize("file", HF)
def test_hugging_face_decode_has_prefill_and_16_steps_with_exact_bytes(shared: Shared, file: str) -> None:
    opened = open_trace(shared(file), ImportOptions(bandwidth="50GB/s"))
    trace = opened.trace
    assert trace.steps.kind.tolist() == [StepKind.PREFILL] + [StepKind.DECODE] * 16
    rows = list(steps_table(trace, opened.basis).rows())
    for i in range(16):
        row = rows[i + 1]
        context = 12 + i
        assert row["label"] == f"decode_step#{i} bs=2 ctx={context}"
        assert (row["batch"], row["context_tokens"]) == (2, 2 * context)
        assert row["kv_read_bytes"] == 2 * (context + 1) * 1024
        assert row["kv_append_bytes"] == 2 * 1024
        layers = list(layers_table(trace, opened.basis, i + 1).rows())
        assert sum(r["weight_read_bytes"] for r in layers if r["op"] in GEMMS) == 6_684_672
        assert {r["layer"] for r in layers if r["op"] == "attention"} == {0, 1, 2, 3}
        # Nine norms of 256 weights: four layers of two, and the last one.
        assert row["weight_read_bytes"] == 6_684_672 + 9 * 256 * 2
    assert count(trace, Op.Q) == count(trace, Op.DOWN) == count(trace, Op.GATE)
    assert not (trace.events.flags & EventFlag.ALLOCATED_KV).any()


def test_python_frames_are_no_device_events(shared: Shared) -> None:
    trace = open_trace(shared(HF[0])).trace
    frames = np.array([n.startswith(("nn.Module", "<built-in")) for n in trace.names])[trace.events.name]
    assert frames.any()
    assert (trace.events.step[frames] == -1).all()
    assert (trace.events.category[frames] == Category.HOST).all()


def test_both_recordings_of_one_program_read_alike(shared: Shared) -> None:
    """With Python stacks the layers come from module calls, without from the KV appends: they must agree."""
    ops = []
    for file in HF:
        trace = open_trace(shared(file)).trace
        ids = trace.step_events(5)
        main = ids[trace.work.weight_read[trace.events.work[ids]] > 0]
        ops.append([(int(trace.events.layer[i]), Op(trace.events.op[i]).name) for i in main.tolist()])
    assert ops[0] == ops[1]
    assert len(ops[0]) == 29 + 9


def test_a_static_cache_is_flagged_and_the_used_part_counted(shared: Shared) -> None:
    opened = open_trace(shared(STATIC), ImportOptions(bandwidth="50GB/s"))
    trace = opened.trace
    rows = list(steps_table(trace, opened.basis).rows())
    assert [r["kind"] for r in rows] == ["decode"] * 16
    for i, row in enumerate(rows):
        layers = layers_table(trace, opened.basis, i).rows()
        assert sum(r["weight_read_bytes"] for r in layers if r["op"] in GEMMS) == 13_369_344
        assert row["kv_read_bytes"] == 2 * (4 + i + 1) * 2048
    flagged = np.flatnonzero(trace.events.flags & EventFlag.ALLOCATED_KV)
    assert len(flagged) == 16 * 4
    assert set(trace.work.bytes_from[trace.events.work[flagged]].tolist()) == {BytesFrom.MARKER}
    assert any("128 tokens" in i.what and i.rule == "static KV cache" for i in trace.meta.report.inferred)


def test_a_static_cache_without_markers_has_unknown_reads_until_a_context_is_given(shared: Shared) -> None:
    path = shared("traces/own/static_kv_decode_schedule_stack.pt.trace.json.gz")
    opened = open_trace(path)
    assert [r["kv_read_bytes"] for r in steps_table(opened.trace, opened.basis).rows()] == [None] * 12
    given = open_trace(path, ImportOptions(context=6))
    reads = [r["kv_read_bytes"] for r in steps_table(given.trace, given.basis).rows()]
    assert reads == [2 * (6 + i + 1) * 2048 for i in range(12)]


def test_steps_are_found_by_module_calls_where_there_are_no_annotations(shared: Shared) -> None:
    opened = open_trace(shared("traces/own/hf_llama4_decode4_noannot_mem.pt.trace.json.gz"))
    rows = list(steps_table(opened.trace, opened.basis).rows())
    assert [r["kind"] for r in rows] == ["prefill"] + ["decode"] * 4
    assert [r["context_tokens"] for r in rows[1:]] == [2 * (12 + i) for i in range(4)]
    assert [r["kv_read_bytes"] for r in rows[1:]] == [2 * (13 + i) * 1024 for i in range(4)]


@pytest.mark.parametrize("file", [SGLANG, VLLM, *HF, STATIC])
def test_gaps_and_idle_time_add_up_to_the_nanosecond(shared: Shared, file: str) -> None:
    opened = open_trace(shared(file), ImportOptions(model=load_model("qwen3-8b"), bandwidth="1TB/s"))
    for step in range(len(opened.trace.steps)):
        b = break_down(opened.trace, opened.basis, step)
        assert int(b.gap_ns.sum()) + b.unknown_ns + b.idle_ns == b.duration_ns - b.floor_ops_ns
        assert b.ops_without_floor < len(b.events)


def _trace_files() -> list[str]:
    folder = Path(__file__).resolve().parents[2] / "shared" / "traces"
    files = [p for p in folder.rglob("*") if p.is_file() and p.parent != folder]
    return sorted(str(p.relative_to(folder.parent)) for p in files if p.suffix != ".csv")


@pytest.mark.parametrize("file", _trace_files())
def test_every_file_opens_with_all_its_events_or_is_refused_in_words(shared: Shared, file: str) -> None:
    path = shared(file)
    opened = _opened_or_refused(path)
    if isinstance(opened, TraceError):
        assert 1 <= len(opened.lines()) <= 3
        return
    trace = opened.trace
    report = trace.meta.report
    assert report.seen == report.imported + sum(report.dropped.values())
    assert len(trace.events) > 0
    elements = _elements(path)
    if elements is not None:
        assert report.seen == len(elements)
        if not any(e.get("ph") in ("B", "E", "b", "e") for e in elements):
            assert len(trace.events) - trace.events.flagged(EventFlag.INSTANT) == sum(
                e.get("ph") == "X" for e in elements
            )
    if not trace.steps.decode.any():
        assert "no decode step was recognised" in trace.meta.notes[0]


def _opened_or_refused(path: Path) -> Opened | TraceError:
    try:
        return open_trace(path)
    except TraceError as error:
        return error


def _elements(path: Path) -> list[Any] | None:
    """The elements of a Chrome trace by the standard library alone; None where it cannot read them."""
    data = path.read_bytes()
    try:
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except ValueError:
        return None
    events = document.get("traceEvents") if isinstance(document, dict) else document
    return events if isinstance(events, list) else None


ATTEND = {
    "kineto_h100/h100_gaunernst_bert-small-uncased__1016001.json.gz",  # an encoder: each pass reads its own K and V
    "kineto_inference/sglang_Qwen3-8B_decode.json.gz",
    "kineto_inference/vllm_decode_full_graph_execution.json.gz",
    "own/hf_llama4_decode16_modules_stack.pt.trace.json.gz",
    "own/hf_llama4_decode16_nostack.pt.trace.json.gz",
    "own/hf_llama4_decode4_noannot_mem.pt.trace.json.gz",
    "own/static_kv_decode16_compile.pftrace",
    "own/static_kv_decode16_compile.pt.trace.json.gz",
    "own/static_kv_decode16_eager.pt.trace.json.gz",
    "own/static_kv_decode_schedule_stack.pt.trace.json.gz",
}
"""The recordings in which something attends; in all others nothing reads or appends K and V."""
WITHOUT_SHAPES = {
    "kineto_inference/sglang_Qwen3-8B_decode.json.gz",
    "kineto_inference/vllm_decode_full_graph_execution.json.gz",
    "own/static_kv_decode16_compile.pftrace",
    "own/static_kv_decode_schedule_stack.pt.trace.json.gz",
}
"""Those of them in which nothing says how much is read: a graph's replay, a static cache without a context."""
WITHOUT_APPENDS = {"kineto_h100", "own/static_kv_decode16_compile"}
"""No cache at all, and one that is written inside a compiled region."""


@pytest.mark.parametrize("file", [f.removeprefix("traces/") for f in _trace_files()])
def test_kv_is_read_and_appended_where_something_attends_and_nowhere_else(shared: Shared, file: str) -> None:
    opened = _opened_or_refused(shared(f"traces/{file}"))
    if isinstance(opened, TraceError):
        assert file not in ATTEND
        return
    trace = opened.trace
    work, category = trace.events.work, trace.events.category
    read = np.maximum(trace.work.kv_read[work], 0).sum() > 0
    appended = np.maximum(trace.work.kv_append[work], 0).sum() > 0
    assert bool((category == Category.KV_READ).any()) == (file in ATTEND)
    assert bool(read) == (file in ATTEND - WITHOUT_SHAPES)
    appends = file in ATTEND and not file.startswith(tuple(WITHOUT_APPENDS))
    assert bool((category == Category.KV_APPEND).any()) == appends
    assert bool(appended) == (appends and file.startswith("own/"))
