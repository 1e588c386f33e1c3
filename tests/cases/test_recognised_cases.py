"""The handed cases whose right answer is what the whole import says: floors, steps, bytes. One test a case."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tracescope.cli.app import run
from tracescope.floor.pricing import work_floor_ns
from tracescope.io import native
from tracescope.models import load_hardware, make_basis

Shared = Callable[[str], Path]


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
