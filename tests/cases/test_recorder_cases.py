"""Files of other recorders, and of recorders at fault: each with the right answer beside it."""

import json
import os
import shutil
import subprocess
import sys
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
from tracescope.io.chrome_export import write_chrome
from tracescope.io.requests.reader import read_requests
from tracescope.load import ImportOptions, import_files, open_trace
from tracescope.models import load_hardware, load_model

Shared = Callable[[str], Path]


def expected_of(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text())["expected"]


def info_of(trace: Trace) -> dict[str, Any]:
    return info_document(trace, Basis())


def listed(trace: Trace, **wanted: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = events_table(trace, Basis(), EventFilter(**wanted)).document()["rows"]
    return rows


def test_73_rows_of_a_tpu_count_once(shared: Shared) -> None:
    folder = shared("cases/73-tpu-rows-count-once")
    want = expected_of(folder)
    trace = open_trace(folder / "trace.json").trace
    info = info_of(trace)
    assert sum(found["events"] for found in info["categories"].values()) == want["device_events"]
    [device] = info["devices"]
    assert want["device_name_contains"] in device["name"]
    assert device["busy_ns"] == want["busy_ns"]
    assert info["steps"] == want["steps"]
    assert info["report"]["unclassified_ns"] <= device["busy_ns"]
    counts = {name: info["categories"][name]["events"] for name in want["categories_events"]}
    assert counts == want["categories_events"]
    recorded = {r["name"]: r["recorded_bytes"] for r in listed(trace)}
    assert {name: recorded[name] for name in want["recorded_bytes_of"]} == want["recorded_bytes_of"]
    assert recorded["jit_step_fun(123)"] is None
    assert (trace.work.weight_read <= 0).all()  # the compiler's count is of no kind
    assert not any("host" in d["name"] for d in info["devices"])


def test_75_streams_of_an_npu(shared: Shared) -> None:
    folder = shared("cases/75-npu-hardware-process")
    want = expected_of(folder)
    trace = open_trace(folder / "trace_view.json").trace
    info = info_of(trace)
    assert sum(found["events"] for found in info["categories"].values()) == want["device_events"]
    counts = {name: found["events"] for name, found in info["categories"].items() if found["events"]}
    assert counts == want["categories_events"]
    assert info["start_ns"] == want["first_start_ns"]
    assert [d["busy_ns"] for d in info["devices"]] == [want["busy_ns"]]
    assert info["resolution_ns"] == want["resolution_ns"]


def test_77_an_end_before_its_begin_at_one_instant(shared: Shared) -> None:
    folder = shared("cases/77-end-before-begin-at-one-instant")
    want = expected_of(folder)
    trace = open_trace(folder / "trace.json").trace
    assert trace.meta.report.imported == want["imported"]
    assert trace.meta.report.dropped == {}
    slices = [{"name": r["name"], "start_ns": r["start_ns"], "dur_ns": r["duration_ns"]} for r in listed(trace)]
    assert slices == want["slices"]


def test_79_kernels_without_a_time(shared: Shared) -> None:
    folder = shared("cases/79-kernels-clamped-to-zero")
    want = expected_of(folder)
    trace = open_trace(folder / "trace.json").trace
    report, info = trace.meta.report, info_of(trace)
    assert (report.imported, report.dropped, report.flagged) == (want["imported"], {}, want["flagged"])
    assert [trace.meta.base_ns + t for t in trace.span] == want["first_view_ns"]
    [device] = info["devices"]
    assert device["busy_ns"] == want["busy_ns"]
    assert device["idle_ns"] <= want["idle_ns_at_most"]
    assert [r["start_ns"] for r in listed(trace) if "suspect_time" in r["flags"]] == [0, 0, 0]


def test_85_a_foreign_h5(shared: Shared, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared("cases/85-foreign-h5-given-to-import")
    want = expected_of(folder)
    assert run(["import", str(folder / "weights.h5"), "-o", str(tmp_path / "o.tscope.h5")]) == want["exit"]
    said = capsys.readouterr().err
    assert all(text in said for text in want["message_mentions"])
    assert not any(text in said for text in want["must_not"])


def test_89_ranks_keep_the_clocks_that_their_files_carry(shared: Shared) -> None:
    folder = shared("cases/89-rank-clocks-kept-when-given")
    want = expected_of(folder)["absolute_start_ns"]
    trace = import_files([folder / f"rank{rank}.json" for rank in range(3)])
    start = {row["rank"]: row["start_ns"] for row in listed(trace)}
    assert {f"rank{rank}": start[rank] for rank in (0, 1)} == want
    assert start[2] >= max(row["start_ns"] + row["duration_ns"] for row in listed(trace) if row["rank"] != 2)
    assert any(i.what.startswith("no clock in rank 2") for i in trace.meta.report.inferred)


def test_91_two_devices_and_one_number_of_a_stream(shared: Shared) -> None:
    folder = shared("cases/91-csv-two-devices-one-stream-number")
    want = expected_of(folder)
    info = info_of(open_trace(folder / "events.csv").trace)
    assert [d["busy_ns"] for d in info["devices"]] == [want["busy_ns_each"]] * want["devices"]


def test_95_counters_and_instants(shared: Shared, tmp_path: Path) -> None:
    folder = shared("cases/95-counters-and-instants-kept")
    for name in ("counters.json", "instants.json"):
        trace = open_trace(folder / name).trace
        again = tmp_path / "out.trace.json"
        write_chrome(again, trace, Basis())
        for kept in (trace, open_trace(again).trace):
            info = info_of(kept)
            assert {key: info[key] for key in expected_of(folder)[name]} == expected_of(folder)[name]
    assert [(r["name"], r["start_ns"], r["flags"]) for r in listed(trace, instants=True)] == [
        ("OOM", 12_000, ["instant"])
    ]
    assert [t.name for t in trace.tracks if t.name.startswith("mem")] == ["mem · free"]
    assert trace.samples.value.tolist() == [7.0]


def test_214_sessions_keep_their_unit(shared: Shared, tmp_path: Path) -> None:
    folder = shared("cases/214-sessions-in-milliseconds")
    want = expected_of(folder)
    for name in ("plain_ms.jsonl", "sessions_ms.jsonl"):
        assert read_requests(folder / name).arrival.tolist() == want[name]["arrival_ns"]
    delayed = read_requests(folder / "sessions_delay.jsonl")
    assert delayed.arrival.tolist() == want["sessions_delay.jsonl"]["arrival_ns of the lines with timestamp"]
    assert delayed.report.dropped == {"delay_after_turn": 2}
    seconds = tmp_path / "rag.jsonl"
    seconds.write_text('{"session_id": 1, "timestamp": "1.5", "input_length": 3, "output_length": 2}\n' * 2)
    assert (np.diff(read_requests(seconds).arrival) == 0).all()


def test_215_launches_without_kernels(shared: Shared) -> None:
    folder = shared("cases/215-launches-without-kernels")
    options = ImportOptions(model=load_model("llama-3-8b"), hardware=load_hardware("h100-sxm"), context=4096)
    trace = open_trace(folder / "trace.json", options).trace
    info = info_of(trace)
    assert sum(found["events"] for found in info["categories"].values()) == 0
    assert "64 launches without a device event: the device was not recorded" in [
        i.what for i in trace.meta.report.inferred
    ]
    assert (trace.work.weight_read <= 0).all()
    assert (trace.events.step == -1).all()
    on_cpu = open_trace(folder / "cpu_only.json", options).trace
    assert on_cpu.steps.decode.sum() == 4
    assert not any("not recorded" in i.what for i in on_cpu.meta.report.inferred)


@pytest.mark.parametrize("name", ["context_generation.json", "new_cached.json"])
def test_218_markers_of_an_older_server(shared: Shared, name: str) -> None:
    folder = shared("cases/218-markers-of-an-older-server")
    want = expected_of(folder)[name]
    steps = open_trace(folder / name).trace.steps
    assert [StepKind(kind).label for kind in steps.kind.tolist()] == want["kinds"]
    assert steps.batch.tolist() == [want["batch"]] * want["steps"]


@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="needs gcc")
@pytest.mark.parametrize("errno", ["30", "37", "95", "524"])
def test_219_a_lock_that_fails(shared: Shared, tmp_path: Path, errno: str) -> None:
    folder = shared("cases/219-lock-refused-by-a-read-only-file-system")
    shim, sound = tmp_path / "flock.so", tmp_path / "sound.tscope.h5"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", shim, folder / "flock.c"], check=True)
    made = "synth --model llama-3-8b --hardware h100-sxm --steps 2 -o"
    assert run([*made.split(), str(sound)]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "tracescope", "info", sound],
        env={**os.environ, "FLOCK_ERRNO": errno, "LD_PRELOAD": str(shim)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "without one" in done.stdout + done.stderr
    assert "damaged" not in done.stdout + done.stderr


def test_225_quotes_in_names(shared: Shared) -> None:
    folder = shared("cases/225-quotes-in-thread-and-argument-names")
    want = expected_of(folder)["quotes.json"]
    trace = open_trace(folder / "quotes.json").trace
    info = info_of(trace)
    assert info["decode_steps"] == want["decode_steps"]
    assert sum(found["events"] for found in info["categories"].values()) == want["device_events"]
    assert [d["busy_ns"] for d in info["devices"]] == [want["busy_ns_of_the_device"]]
    assert sum(trace.meta.report.flagged.values()) >= want["quotes_repaired"]
    assert any(want["thread_name"] in track.name for track in trace.tracks)
