"""The handed cases whose right answer is what the whole import says: floors, steps, bytes. One test a case."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracescope.analysis.events import EventFilter, events_table
from tracescope.analysis.info import info_document
from tracescope.cli.app import run
from tracescope.core.category import StepKind
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.floor.pricing import work_floor_ns
from tracescope.io import native
from tracescope.load import ImportOptions, open_trace
from tracescope.models import load_hardware, make_basis

Shared = Callable[[str], Path]


def expected_of(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text())["expected"]


def listed(trace: Trace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = events_table(trace, Basis(), EventFilter()).document()["rows"]
    return rows


def test_83_an_all_reduce_faster_than_a_guess(
    shared: Shared, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = shared("cases/83-all-reduce-faster-than-a-guess"), tmp_path / "a.tscope.h5"
    want = json.loads((folder / "expected.json").read_text())["expected"]
    assert run(["import", str(folder / "trace.json"), "--hardware", "h100-sxm", "-o", str(out)]) == 0
    assert run(["check", str(out)]) == want["check_exit"]
    trace = native.read(out).trace
    reduces = np.flatnonzero(trace.work.link[trace.events.work] > 0)
    work = trace.events.work[reduces]
    assert len(reduces) == 12
    assert set(trace.work.link[work].tolist()) == {want["link_bytes_each"]}
    floors, known = work_floor_ns(trace.work, make_basis(load_hardware("h100-sxm")))
    assert known[work].all()
    assert (floors[work] >= 18).all()
    assert (floors[work] <= want["floor_ns_each_at_most"]).all()
    capsys.readouterr()
    assert run(["check", str(out), "--bandwidth", "3.35TB/s", "--json"]) == 0


def test_the_experts_bytes_go_to_each_kernel_by_its_own_matrices(
    shared: Shared, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = shared("traces/kineto_inference/vllm_decode_full_graph_execution.json.gz"), tmp_path / "a.tscope.h5"
    assert run(["import", str(source), "--model", "gpt-oss-20b", "--hardware", "h100-sxm", "-o", str(out)]) == 0
    capsys.readouterr()
    assert run(["events", str(out), "--step", "0", "--json"]) == 0
    rows = [r for r in json.loads(capsys.readouterr().out)["rows"] if r["op"] == "experts"]
    assert len(rows) == 2 * 24
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert first["layer"] == second["layer"]
        assert abs(first["weight_read_bytes"] - 2 * second["weight_read_bytes"]) <= 2
        assert abs(first["flops"] - 2 * second["flops"]) <= 2
        assert first["floor_ns"] > 0
        assert second["floor_ns"] > 0


def test_87_bytes_of_attention_are_not_those_of_the_fill_before_it(
    shared: Shared, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = shared("cases/87-attention-bytes-on-the-fill-kernel"), tmp_path / "a.tscope.h5"
    want = expected_of(folder)
    assert run(["import", str(folder / "trace.json"), "--hardware", "mi300x", "-o", str(out)]) == 0
    assert run(["check", str(out)]) == want["check_exit"]
    capsys.readouterr()
    rows = [r for r in listed(native.read(out).trace) if r["track_kind"] == "device_stream"]
    fills = [r for r in rows if "FillFunctor" in r["name"]]
    attention = [r for r in rows if r["name"] == "attn_fwd"]
    assert (len(fills), len(attention)) == (4, 4)
    assert {r["kv_read_bytes"] for r in fills} == {want["kv_read_bytes_of"]["FillFunctor"]}
    assert {r["category"] for r in fills} <= set(want["category_of"]["FillFunctor"].split(" or "))
    assert {r["kv_read_bytes"] for r in attention} == {16 * 512 * 16 * (64 + 64) * 2}
    assert {r["category"] for r in attention} == {want["category_of"]["attn_fwd"]}


def test_93_batched_products_of_a_recommender_attend_to_nothing(shared: Shared) -> None:
    folder = shared("cases/93-batched-products-are-not-attention")
    trace = open_trace(folder / "trace.json").trace
    info = info_document(trace, Basis())
    assert info["layers"] == expected_of(folder)["layers"]
    assert all(found["kv_read_bytes"] in (None, 0) for found in info["categories"].values())
    assert info["categories"]["kv_read"]["events"] == 0
    assert trace.steps.kind.tolist() == [StepKind.OTHER]
    assert not any("attention" in i["rule"] for i in info["report"]["inferred"])


def test_97_pieces_of_a_capture_join_their_launches(shared: Shared) -> None:
    folder = shared("cases/97-piecewise-capture-joins")
    want = expected_of(folder)["with_capture"]
    trace = open_trace(folder / "execution.json", ImportOptions(capture=folder / "capture.json")).trace
    [said] = [i.what for i in trace.meta.report.inferred if i.rule == "graph capture joined"]
    assert said.startswith(f"{want['launches_joined']} graph launches")
    assert f"{want['kernels_with_shapes']} kernels" in said
    weights = [r["weight_read_bytes"] for r in listed(trace) if r["track_kind"] == "device_stream"]
    assert weights == [512 * 16 * (k + 1) * 2 for k in range(10)] * 3
    assert not any(i.rule == "graph capture does not fit" for i in trace.meta.report.inferred)


def test_99_a_pattern_matches_a_word(shared: Shared) -> None:
    folder = shared("cases/99-gemm-inside-another-word")
    trace = open_trace(folder / "trace.json").trace
    assert trace.meta.report.unclassified_ns <= expected_of(folder)["unclassified_ns_at_most"]
    rows = listed(trace)
    assert len(rows) == 11
    assert not [r["name"] for r in rows if "fbgemm" in r["name"] and r["category"] == "weight_read"]
    categories = {r["name"]: r["category"] for r in rows}
    assert categories["sage_fwd"] == "kv_read"
    assert categories["fc-dtype_Float"] == "weight_read"
    assert categories["bwd_kernel_fuse"] == "compute"
    # By its name alone a kernel moves an unknown amount, and not none.
    assert {r["kv_read_bytes"] for r in rows if r["name"] == "sage_fwd"} == {None}
    assert {r["weight_read_bytes"] for r in rows if r["category"] == "weight_read"} == {None}


def test_223_operators_named_like_kernels_stay_operators(shared: Shared) -> None:
    folder = shared("cases/223-operators-named-like-kernels")
    want = expected_of(folder)["trace.json"]
    trace = open_trace(folder / "trace.json").trace
    info = info_document(trace, Basis())
    assert info["decode_steps"] == want["decode_steps"]
    assert sum(found["events"] for found in info["categories"].values()) == want["device_events"]
    assert [d["busy_ns"] for d in info["devices"]] == [want["busy_ns_of_the_device"]]
