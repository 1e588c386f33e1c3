"""The listings on the command line: names, exit codes, what goes to which stream, and the recorded traces."""

import csv
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tracescope.cli.app import run
from tracescope.cli.durations import parse_ns
from tracescope.core.errors import TraceError

KEYS = {
    "info": {
        "format_version", "created_by", "source", "model", "hardware", "events", "tracks", "steps", "decode_steps",
        "layers", "requests", "span_ns", "start_ns", "categories", "report", "devices", "assumptions",
    },
    "steps": {"rows"},
    "layers": {"rows", "idle_ns", "step_ns", "floor_ops_ns", "steps_counted"},
    "events": {"rows"},
    "check": {"ok", "findings"},
}  # fmt: skip
LATER = {"critical_path_ns", "slack_ns", "on_critical_path"}
"""Keys of features that do not exist yet are absent, not null."""


@pytest.fixture(scope="module")
def ideal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "ideal.tscope.h5"
    words = "--model llama-3-8b --hardware h100-sxm --batch 16 --context 4096 --steps 6 --profile ideal"
    assert run(["synth", *words.split(), "-o", str(path)]) == 0
    return path


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """``ask(command, file, *options)``: the JSON document; the exit code must be ``code``."""

    def asked(command: str, file: Path, *options: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert run([command, str(file), *options, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return asked


@pytest.mark.parametrize("command", KEYS)
def test_every_listing_has_the_keys_of_the_contract(command: str, ideal: Path, ask: Callable[..., Any]) -> None:
    document = ask(command, ideal)
    assert set(document) >= KEYS[command]
    for row in document.get("rows", []):
        assert not LATER & set(row)


def test_an_ideal_step_lasts_its_op_floor_and_kv_grows_by_a_token_a_request(
    ideal: Path, ask: Callable[..., Any]
) -> None:
    rows = ask("steps", ideal)["rows"]
    assert len(rows) == 6
    assert all(abs(r["duration_ns"] - r["floor_ops_ns"]) <= 1 for r in rows)
    growth = {b["kv_read_bytes"] - a["kv_read_bytes"] for a, b in pairwise(rows)}
    assert growth == {16 * 131_072}
    first = rows[0]
    assert (first["weight_read_bytes"], first["kv_append_bytes"]) == (15_009_849_344, 2_097_152)
    energy = first["energy_j"]
    assert energy["low"] <= energy["mid"] <= energy["high"]
    assert energy["level"] == "board"


def test_energy_and_gaps_of_the_rows_add_up_to_the_step(ideal: Path, ask: Callable[..., Any]) -> None:
    step = ask("steps", ideal)["rows"][2]
    layers = ask("layers", ideal, "--step", "2")
    assert sum(r["gap_ns"] for r in layers["rows"]) + layers["idle_ns"] == layers["step_ns"] - layers["floor_ops_ns"]
    assert sum(r["energy_j"]["mid"] for r in layers["rows"]) == pytest.approx(step["energy_j"]["mid"])
    events = ask("events", ideal, "--step", "2")["rows"]
    assert len(events) == 326
    assert sum(e["floor_ns"] for e in events) == step["floor_ops_ns"]
    assert sum(e["exposed_ns"] for e in events) + step["idle_ns"] == step["duration_ns"]


def test_another_machine_or_rate_reprices_the_same_trace(ideal: Path, ask: Callable[..., Any]) -> None:
    row = ask("steps", ideal, "--bandwidth", "1.0TB/s")["rows"][0]
    assert row["floor_weight_ns"] == 15_009_849
    assert row["duration_ns"] == ask("steps", ideal)["rows"][0]["duration_ns"]
    assert ask("steps", ideal, "--hardware", "h200-sxm")["rows"][0]["floor_weight_ns"] == 3_127_052
    assert ask("check", ideal, "--bandwidth", "1.0TB/s", code=1)["ok"] is False


def test_filters_and_tables_for_people(
    ideal: Path, ask: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ask("events", ideal, "--step", "1", "--layer", "3", "--category", "kv_read", "--limit", "5")["rows"]
    assert [(r["op"], r["layer"], r["step"]) for r in rows] == [("attention", 3, 1)]
    for words in (["info"], ["steps"], ["layers"], ["events", "--limit", "3"], ["check"]):
        assert run([words[0], str(ideal), *words[1:]]) == 0
        out = capsys.readouterr()
        assert out.out.strip()
        assert out.err == ""
    assert run(["steps", str(ideal), "--deadline", "7.046ms"]) == 0
    shown = capsys.readouterr().out
    assert "late" in shown
    head = "Llama 3 8B · NVIDIA H100 SXM · 3.35 TB/s (datasheet, not sustained)"
    assert shown.splitlines()[0] == f"{head} · deadline 7.046 ms a step"
    for words, rows in ((["events", "--limit", "3"], 3), (["layers", "--limit", "5"], 5), (["layers"], 40)):
        assert run([words[0], str(ideal), *words[1:]]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == head
        more = [n for n, line in enumerate(lines) if line.endswith("--json lists them all)")]
        assert more == ([] if words[0] == "events" else [2 + rows])
        assert len(lines) == 2 + rows + (0 if words[0] == "events" else 2)


def test_a_csv_has_one_value_a_cell(ideal: Path, ask: Callable[..., Any], tmp_path: Path) -> None:
    for table in ("steps", "events"):
        out = tmp_path / f"{table}.csv"
        assert run(["export", str(ideal), "-o", str(out), "--table", table]) == 0
        with out.open(newline="", encoding="utf-8") as file:
            written = list(csv.DictReader(file))
        listed = ask(table, ideal)["rows"]
        assert len(written) == len(listed)
        assert not any(mark in cell for row in written for cell in row.values() for mark in "{[")
        for cells, row in zip(written, listed, strict=True):
            if table == "steps":
                assert "energy_j" not in cells
                assert [float(cells[f"energy_{part}_j"]) for part in ("low", "mid", "high")] == [
                    row["energy_j"][part] for part in ("low", "mid", "high")
                ]
            else:
                assert cells["roles"] == "|".join(row["roles"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["layers", "--step", "99"], "there is no step 99"),
        (["events", "--step", "-1"], "there is no step -1"),
        (["events", "--category", "kernels"], "kernels"),
        (["steps", "--deadline", "soon"], "'soon' is not a time"),
        (["steps", "--bandwidth", "fast"], "'fast'"),
        (["steps", "--bandwidth", "250"], "Give a unit, such as 3.0TB/s."),
        (["steps", "--deadline", "5"], "Give a unit, such as 50ms."),
        (["steps", "--weights", "int8"], "need --model"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(
    words: list[str], said: str, ideal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([words[0], str(ideal), *words[1:]]) == 2
    out = capsys.readouterr()
    assert said in out.err
    assert out.out == ""
    assert len(out.err.splitlines()) <= 3


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in KEYS:
        assert run([command, str(tmp_path / "none.json")]) == 2
        assert "none.json" in capsys.readouterr().err


def chrome(path: Path, *events: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return path


def test_losses_of_a_foreign_file_are_said_and_give_exit_code_three(
    tmp_path: Path, ask: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    event = {"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    whole = chrome(tmp_path / "whole.json", event)
    assert ask("info", whole)["events"] == 1
    assert ask("steps", whole) == {"rows": [], "ranks": 1}
    assert ask("layers", whole)["steps_counted"] == 0
    for command in ("steps", "layers"):
        assert run([command, str(whole)]) == 0
        assert "was recognised in this trace" in capsys.readouterr().out
    lossy = chrome(tmp_path / "lossy.json", event, {"ph": "E", "name": "stray", "pid": 1, "tid": 9, "ts": 5})
    info = ask("info", lossy, code=3)
    assert info["report"]["dropped"] == {"misplaced_end": 1}
    assert info["report"]["seen"] == info["report"]["imported"] + 1
    assert run(["events", str(lossy)]) == 3
    assert "1 misplaced_end" in capsys.readouterr().err


def test_a_failed_check_wins_over_losses(tmp_path: Path, ask: Callable[..., Any]) -> None:
    source = chrome(
        tmp_path / "fast.json",
        {"ph": "E", "name": "stray", "pid": 1, "tid": 9, "ts": 5},
        {"ph": "X", "cat": "user_annotation", "name": "decode_step#0 bs=1 ctx=4", "pid": 1, "tid": 1, "ts": 0,
         "dur": 9},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2,
         "args": {"Input Dims": [[1, 4096], [4096, 4096]], "Input type": ["float", "float"]}},
    )  # fmt: skip
    found = ask("check", source, "--bandwidth", "1GB/s", code=1)
    assert {f["rule"] for f in found["findings"] if f["severity"] == "error"} >= {"event_below_floor"}
    assert any(f["rule"] == "dropped" for f in found["findings"])


RECORDED = {
    "kineto_inference/sglang_Qwen3-8B_decode.json.gz": ["--model", "qwen3-8b", "--hardware", "mi300x"],
    "kineto_inference/vllm_decode_full_graph_execution.json.gz": ["--bandwidth", "5.3TB/s"],
    "own/hf_llama4_decode16_modules_stack.pt.trace.json.gz": ["--bandwidth", "20GB/s"],
    "own/hf_llama4_decode16_nostack.pt.trace.json.gz": ["--bandwidth", "20GB/s"],
    "own/static_kv_decode16_eager.pt.trace.json.gz": ["--bandwidth", "20GB/s"],
}
GEMMS = {"q", "k", "v", "qkv", "o", "gate", "up", "gate_up", "down", "lm_head"}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, list[str]], Path]:
    """A recorded trace as a native file, imported once for all tests."""
    folder = tmp_path_factory.mktemp("imported")

    def get(source: Path, options: list[str]) -> Path:
        path = folder / f"{source.name}.tscope.h5"
        if not path.exists():
            assert run(["import", str(source), "-o", str(path), *options]) == 0
        return path

    return get


def covered_ns(step: dict[str, Any], events: dict[str, Any]) -> int:
    """The part of a step in which a device event runs, from the listing alone."""
    until, covered = step["start_ns"], 0
    last = step["start_ns"] + step["duration_ns"]
    for e in sorted((e for e in events["rows"] if e["exposed_ns"] is not None), key=lambda e: e["start_ns"]):
        end = min(e["start_ns"] + e["duration_ns"], last)
        covered += max(0, end - max(until, e["start_ns"]))
        until = max(until, end)
    return covered


@pytest.mark.parametrize("name", RECORDED, ids=lambda n: Path(n).name.split(".")[0])
def test_on_recorded_traces_gaps_add_up_exactly(
    name: str,
    shared: Callable[[str], Path],
    imported: Callable[[Path, list[str]], Path],
    ask: Callable[..., Any],
) -> None:
    file = imported(shared(f"traces/{name}"), RECORDED[name])
    for step in ask("steps", file)["rows"]:
        above = step["duration_ns"] - step["floor_ops_ns"]
        for by in ("layer", "op", "category"):
            listed = ask("layers", file, "--step", str(step["step"]), "--by", by)
            gaps = sum(r["gap_ns"] or 0 for r in listed["rows"])
            assert all((r["gap_ns"] is None) == (r["floor_ns"] is None) for r in listed["rows"])
            assert sum(r["unknown_ns"] for r in listed["rows"]) == listed["unknown_ns"] == step["unknown_ns"]
            assert gaps + listed["unknown_ns"] + step["idle_ns"] == above
            assert listed["gap_ns"] == gaps + step["idle_ns"] == step["gap_ns"]
            assert (listed["step_ns"], listed["idle_ns"]) == (step["duration_ns"], step["idle_ns"])
            assert sum(r["floor_ns"] or 0 for r in listed["rows"]) == listed["floor_ops_ns"] == step["floor_ops_ns"]
        assert step["idle_ns"] == step["duration_ns"] - covered_ns(
            step, ask("events", file, "--step", str(step["step"]))
        )
    together = ask("layers", file)
    gaps = sum(r["gap_ns"] or 0 for r in together["rows"])
    assert gaps + together["unknown_ns"] + together["idle_ns"] == together["step_ns"] - together["floor_ops_ns"]


def test_the_sglang_step_in_numbers(
    shared: Callable[[str], Path], imported: Callable[[Path, list[str]], Path], ask: Callable[..., Any]
) -> None:
    name = next(n for n in RECORDED if "sglang" in n)
    file = imported(shared(f"traces/{name}"), RECORDED[name])
    (step,) = ask("steps", file)["rows"]
    assert (step["duration_ns"], step["batch"], step["context_tokens"]) == (10_450_292, 32, 32_785)
    assert step["kv_read_bytes"] == 4_834_344_960
    assert round(step["weight_read_bytes"] / 1e9, 2) == 15.14
    assert round(step["floor_weight_ns"] / 1e6, 2) == 2.86
    assert round((step["floor_memory_ns"] - step["floor_weight_ns"]) / 1e6, 2) == 0.91
    info = ask("info", file)
    assert (info["layers"], info["categories"]["kv_append"]["events"], info["report"]["dropped"]) == (36, 36, {})
    assert sum(c["events"] for c in info["categories"].values()) == 558
    rows = ask("layers", file, "--step", "0")["rows"]
    assert sum(r["events"] for r in rows if r["op"] in GEMMS) == 145


def test_the_recorded_cpu_decodes_in_numbers(
    shared: Callable[[str], Path], imported: Callable[[Path, list[str]], Path], ask: Callable[..., Any]
) -> None:
    for name, gemm_bytes in [(n, 13_369_344 if "static" in n else 6_684_672) for n in RECORDED if "own/" in n]:
        file = imported(shared(f"traces/{name}"), RECORDED[name])
        info = ask("info", file)
        assert (info["decode_steps"], info["layers"]) == (16, 4)
        decode = [r for r in ask("steps", file)["rows"] if r["kind"] == "decode"]
        counted = [r for r in decode if not r["warm_up"]]
        layers = ask("layers", file)
        assert layers["steps_counted"] == len(counted)
        read = sum(r["weight_read_bytes"] for r in layers["rows"] if r["op"] in GEMMS)
        assert read == gemm_bytes * len(counted)
        if "hf_llama4" in name:
            assert all(r["kv_read_bytes"] == 2 * (r["context_tokens"] // 2 + 1) * 1_024 for r in decode)
        else:
            assert "allocated_kv" in {f["rule"] for f in ask("check", file, code=1)["findings"]}


def test_the_vllm_step_without_a_model_keeps_unknown_bytes_null(
    shared: Callable[[str], Path], imported: Callable[[Path, list[str]], Path], ask: Callable[..., Any]
) -> None:
    name = next(n for n in RECORDED if "vllm" in n)
    file = imported(shared(f"traces/{name}"), RECORDED[name])
    (step,) = ask("steps", file)["rows"]
    assert (step["duration_ns"], step["weight_read_bytes"], step["mbu"]) == (10_743_181, None, None)
    assert step["ops_without_floor"] > 0
    info = ask("info", file)
    assert (info["layers"], sum(c["events"] for c in info["categories"].values())) == (24, 434)


def test_the_format_version_is_that_of_the_file_and_null_for_a_foreign_one(
    tmp_path: Path, ideal: Path, ask: Callable[..., Any]
) -> None:
    foreign = chrome(tmp_path / "a.json", {"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 1, "dur": 2})
    assert ask("info", foreign)["format_version"] is None
    assert ask("info", ideal)["format_version"] == 2


def test_progress_of_an_import_is_json_lines_on_stderr_where_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = chrome(tmp_path / "a.json", {"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 1, "dur": 2})
    assert run(["info", str(source), "--progress", "json", "--json"]) == 0
    out = capsys.readouterr()
    lines = [json.loads(line) for line in out.err.splitlines()]
    assert lines
    assert all(line["done"] <= line["total"] == source.stat().st_size for line in lines)
    assert json.loads(out.out)["events"] == 1


@pytest.mark.parametrize(
    ("text", "ns"), [("50ms", 50_000_000), ("3.1 µs", 3_100), ("7", 7), ("2s", 2 * 10**9), ("0.5ns", 0)]
)
def test_times_are_read_with_their_unit(text: str, ns: int) -> None:
    assert parse_ns(text) == ns


@pytest.mark.parametrize("text", ["", "ms", "-5ms", "5 hours", "1e3", "9" * 18 + "s"])
def test_what_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(TraceError, match="is not a time"):
        parse_ns(text)
