"""Real recordings against others' numbers: device times, capture shapes, alternating attention, what rules know."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tracescope.analysis.info import info_document
from tracescope.core.category import BytesFrom, Op, TrackKind
from tracescope.io import reader_for
from tracescope.load import ImportOptions, open_trace
from tracescope.models import load_hardware, load_model
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.ops.op_events import device_op_events
from tracescope.recognise.tracks.launches import find_launches
from tracescope.recognise.tracks.track_plan import plan_tracks

Shared = Callable[[str], Path]
SGLANG = "traces/kineto_inference/sglang_Qwen3-8B_decode.json.gz"
VLLM = "traces/kineto_inference/vllm_decode_full_graph_execution.json.gz"
CAPTURE = "traces/kineto_inference/sglang_capture_bs_32_rank0.json.gz"


@pytest.mark.parametrize(("file", "peer"), [(SGLANG, "sglang_decode"), (VLLM, "vllm_decode_full")])
def test_busy_idle_and_total_are_those_of_a_peer(shared: Shared, file: str, peer: str) -> None:
    with shared(f"traces/tracelens_csv/{peer}_gpu_timeline.csv").open() as table:
        told = {row["type"]: float(row["time ms"]) for row in csv.DictReader(table)}
    opened = open_trace(shared(file))
    (device,) = info_document(opened.trace, opened.basis)["devices"]
    for key, name in (("busy_ns", "busy_time"), ("idle_ns", "idle_time"), ("span_ns", "total_time")):
        assert device[key] / 1e6 == pytest.approx(told[name], rel=1e-3), key


def test_a_capture_restores_the_shapes_of_all_145_products(shared: Shared) -> None:
    options = ImportOptions(hardware=load_hardware("mi300x"), capture=shared(CAPTURE))
    trace = open_trace(shared(SGLANG), options).trace
    e = trace.events
    own = np.flatnonzero(np.isin(e.op, (Op.QKV, Op.O, Op.GATE_UP, Op.DOWN, Op.LM_HEAD)))
    assert len(own) == 145
    assert set(trace.work.bytes_from[e.work[own]].tolist()) == {BytesFrom.SHAPE}
    expected = {
        Op.QKV: 4096 * 6144,
        Op.O: 4096 * 4096,
        Op.GATE_UP: 4096 * 24576,
        Op.DOWN: 12288 * 4096,
        Op.LM_HEAD: 4096 * 151936,
    }
    for op, elements in expected.items():
        assert set(trace.work.weight_read[e.work[e.op == op]].tolist()) == {elements * 2}
    assert sum('"operator":"aten::mm"' in trace.details[d] for d in e.detail[own].tolist()) == 145
    assert any("145 matrix products" in i.what for i in trace.meta.report.inferred)
    plain = open_trace(shared(SGLANG)).trace
    assert np.array_equal(plain.events.op, e.op)
    assert np.array_equal(plain.events.layer, e.layer)


def test_a_capture_of_another_model_joins_nothing(shared: Shared) -> None:
    trace = open_trace(shared(VLLM), ImportOptions(capture=shared(CAPTURE))).trace
    assert any(i.rule == "graph capture does not fit" for i in trace.meta.report.inferred)
    assert np.array_equal(trace.events.work, open_trace(shared(VLLM)).trace.events.work)


def test_windowed_and_full_layers_alternate_as_the_model_says(shared: Shared) -> None:
    model = load_model("gpt-oss-20b")
    trace = open_trace(shared(VLLM), ImportOptions(model=model, hardware=load_hardware("mi300x"))).trace
    said = [i.what for i in trace.meta.report.inferred if i.rule == "attention by period"]
    assert said[0].startswith("attention repeats after 2 layers: 12 windowed layers with kernel_unified_attention_2d")
    e = trace.events
    for layer in range(24):
        main = [int(i) for i in np.flatnonzero((e.op == Op.ATTENTION) & (e.layer == layer)) if e.work[i]]
        read = max(int(trace.work.kv_read[e.work[i]]) for i in main)
        names = " ".join(trace.names[e.name[i]] for i in main)
        window = model.windows[layer]
        assert ("_2d" in names) == (window is not None)
        assert read == (32 * 127 if window else 55086) * 2048


GPU_TRACES = [
    "kineto_amd/mi210_gpu_only_trace.json.gz",
    "kineto_amd/normalization_layer_test.json.gz",
    "kineto_h100/h100_gaunernst_bert-small-uncased__1016001.json.gz",
    "kineto_hta/mtia_inference_rank_0.json.gz",
    "kineto_hta/nccl_data.json.gz",
    "kineto_hta/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "kineto_inference/sglang_Qwen3-8B_decode.json.gz",
    "kineto_inference/vllm_decode_full_graph_execution.json.gz",
    "kineto_tb/worker0.1623143089861.pt.trace.json.gz",
    "nsys_sqlite/h100_2gpu_1s.sqlite",
]


@pytest.mark.parametrize("file", GPU_TRACES)
def test_rules_know_what_took_device_time(shared: Shared, file: str) -> None:
    path = shared(f"traces/{file}")
    raw = reader_for(path).read(path)
    plan = plan_tracks(raw)
    units = device_op_events(raw, plan, find_launches(raw, plan))
    took = raw.events.duration[units.row]
    assert took[units.family == Family.NONE].sum() <= 0.005 * took.sum()


def test_a_training_run_is_no_token_selection(shared: Shared) -> None:
    trace = open_trace(shared("traces/kineto_hta/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")).trace
    kinds = np.array([t.kind for t in trace.tracks])[trace.lanes.track[trace.event_lane]]
    assert not (trace.events.op[kinds == TrackKind.DEVICE_STREAM] == Op.SAMPLE).any()
