"""``tracescope synth`` with requests and ``tracescope requests``: what they write, say and refuse."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracescope.cli.app import run
from tracescope.io.native import read

LESSON = ["--model", "lesson-20gb", "--hardware", "lesson-1tbs"]
DRAWN = ["--arrivals", "poisson:4", "--prompt", "uniform:10:900", "--output", "exponential:20", "--count", "40"]

CSV = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,100,3\n0.01,5000000,3\n0.02,50,0\n0.05,200,4\n"


def synth(path: Path, *options: str) -> int:
    return run(["synth", *LESSON, "-o", str(path), *options])


def listed(capsys: pytest.CaptureFixture[str], command: str, path: Path, *options: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run([command, str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_requests_of_a_file_are_served_and_the_rest_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, path = tmp_path / "r.csv", tmp_path / "a.tscope.h5"
    source.write_text(CSV)
    assert synth(path, "--requests", str(source)) == 3
    said = capsys.readouterr()
    assert "prompt processing is not simulated" in said.err
    assert "1 of 4 elements left out: 1 no_output_tokens" in said.err
    assert "1 request refused: more KV cache" in said.err
    assert "2 finished, 0 unfinished, 1 never started; 7 generated tokens" in said.out
    assert "not simulated" in said.out
    trace = read(path).trace
    assert trace.meta.source.name == "r.csv"
    assert trace.meta.report.dropped == {"no_output_tokens": 1}
    document = listed(capsys, "requests", path)
    rows = document["rows"]
    assert [r["generated_tokens"] for r in rows] == [3, 0, 4]
    assert rows[1]["start_ns"] is rows[1]["wait_ns"] is rows[1]["time_per_output_token_ns"] is None
    assert rows[2]["arrival_ns"] == 50_000_000
    assert document["not_started"] == 1
    assert document["not_simulated"]["prefill"]["label"] == "not simulated"
    assert document["not_simulated"]["static_batching"]["label"] == "not simulated"


def test_drawn_requests_obey_littles_law(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.tscope.h5"
    assert synth(path, *DRAWN, "--max-batch", "2", "--seed", "3") == 0
    requests, steps = listed(capsys, "requests", path), listed(capsys, "steps", path)["rows"]
    rows = requests["rows"]
    assert len(rows) == 40
    assert max(s["batch"] for s in steps) == 2
    assert sum(s["generated_tokens"] for s in steps) == sum(r["generated_tokens"] for r in rows)
    waited = sum(r["wait_ns"] for r in rows)
    assert sum(s["queue_depth"] * s["duration_ns"] for s in steps) == pytest.approx(waited, rel=0.01)
    inside = sum(r["finish_ns"] - r["arrival_ns"] for r in rows)
    assert sum((s["batch"] + s["queue_depth"]) * s["duration_ns"] for s in steps) == pytest.approx(inside, rel=0.01)
    over = requests["over_time"]
    assert over["queue_by_steps"] == pytest.approx(over["queue_by_requests"], rel=0.01)
    assert over["system_by_steps"] == pytest.approx(over["system_by_requests"], rel=0.01)
    assert requests["wait_ns"]["p50"] in [r["wait_ns"] for r in rows]
    assert requests["latency_ns"]["p99"] == max(r["latency_ns"] for r in rows)
    assert all(r["latency_ns"] >= r["wait_ns"] + r["generated_tokens"] * 20_000_000 for r in rows)


def test_the_table_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.tscope.h5"
    assert synth(path, *DRAWN, "--steps", "30") == 0
    capsys.readouterr()
    assert run(["requests", str(path), "--limit", "2"]) == 0
    said = capsys.readouterr().out
    assert "(38 more rows" in said
    assert "per output token" in said
    assert "unfinished" in said
    assert run(["check", str(path)]) == 0


def test_a_window_of_steps_in_operations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.tscope.h5"
    assert synth(path, *DRAWN, "--window", "5:8") == 0
    trace = read(path).trace
    events = [int((trace.events.step == s).sum()) for s in range(10)]
    assert events == [1] * 5 + [406] * 3 + [1] * 2
    fixed = tmp_path / "b.tscope.h5"
    assert synth(fixed, "--batch", "3", "--steps", "6", "--detail", "steps") == 0
    assert len(read(fixed).trace.events) == 6 + 3
    rows = listed(capsys, "steps", fixed)["rows"]
    assert [r["batch"] for r in rows] == [3] * 6
    assert rows[0]["queue_depth"] == 0


def test_one_seed_one_file(tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert synth(tmp_path / name, *DRAWN, "--profile", "realistic", "--seed", seed) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


def test_a_mixture_names_its_experts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.tscope.h5"
    options = ["--model", "gpt-oss-20b", "--hardware", "h100-sxm", "--max-batch", "8", "-o", str(path)]
    assert run(["synth", *options, *DRAWN]) in (0, 3)
    experts = listed(capsys, "requests", path)["not_simulated"]["experts"]
    assert experts["label"] == "not simulated"
    assert 4 <= experts["expected_distinct"] <= 32


def test_the_prefill_floor_is_that_of_the_floor_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.tscope.h5"
    drawn = ["--arrivals", "constant:2", "--prompt", "1000", "--output", "4", "--count", "3", "-o", str(path)]
    assert run(["synth", "--model", "llama-3-8b", "--hardware", "h100-sxm", *drawn]) == 0
    prefill = listed(capsys, "requests", path)["not_simulated"]["prefill"]
    linear = 2 * 1000 * 6_979_321_856 + 2 * 525_336_576
    attention = 4 * 1000 * 1001 // 2 * 32 * 128 * 32  # causal: token i sees i tokens
    assert prefill["flops"] == linear + attention
    assert run(["floor", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--context", "1000", "--json"]) == 0
    by_formula = json.loads(capsys.readouterr().out)["not_simulated"]["prefill"]
    assert {key: by_formula[key] for key in ("flops", "compute_s", "memory_s", "floor_s")} == {
        key: prefill[key] for key in ("flops", "compute_s", "memory_s", "floor_s")
    }
    assert prefill["floor_s"] == pytest.approx((linear + attention) / 989e12)
    assert prefill["share_of_time"] == pytest.approx(2 * prefill["floor_s"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--requests", "absent.csv"], "cannot be read"),
        (["--requests", "r.csv", "--arrivals", "poisson:1"], "leave out"),
        (["--arrivals", "poisson:1"], "--prompt DIST"),
        (["--arrivals", "often", "--prompt", "1", "--output", "1"], "not a process"),
        (["--arrivals", "poisson:1", "--prompt", "x", "--output", "1"], "not a distribution"),
        ([*DRAWN, "--batch", "4"], "--max-batch"),
        ([*DRAWN, "--context", "4"], "its own prompt"),
        ([*DRAWN, "--max-batch", "0"], "serves nothing"),
        ([*DRAWN, "--count", "0"], "out of range"),
        ([*DRAWN, "--steps", "0"], "0 steps"),
        ([*DRAWN, "--seed", "-1"], "seed"),
        ([*DRAWN, "--window", "5"], "A:B"),
        ([*DRAWN, "--window", "9:5"], "empty"),
        ([*DRAWN, "--detail", "steps", "--window", "1:2"], "--detail ops"),
        ([*DRAWN, "--window", "100000:100001"], "no step"),
        (["--arrivals", "poisson:1", "--prompt", "10000000", "--output", "1"], "none of these requests"),
        (["--max-batch", "4"], "needs --requests"),
        (["--prompt", "4"], "needs --requests"),
        ([*DRAWN, "--prefix", "1:2"], "prefix"),
    ],
)
def test_refusals_are_one_clear_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert synth(tmp_path / "x", *options) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert 1 <= len(said.err.splitlines()) <= 3
    assert not (tmp_path / "x").exists()


def test_a_trace_without_requests_says_so(capsys: pytest.CaptureFixture[str], shared: Callable[[str], Path]) -> None:
    path = shared("traces/own/static_kv_decode16_eager.pt.trace.json.gz")
    assert listed(capsys, "requests", path)["rows"] == []
    assert run(["requests", str(path)]) == 0
    assert "does not say which requests" in capsys.readouterr().out


def test_the_public_day_of_code_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shared: Callable[[str], Path]
) -> None:
    source = shared("traces/requests_azure/AzureLLMInferenceTrace_code.csv")
    path = tmp_path / "azure.tscope.h5"
    options = ["--model", "llama-3-8b", "--hardware", "h100-sxm", "--detail", "steps", "-o", str(path)]
    assert run(["synth", *options, "--requests", str(source)]) == 0
    trace = read(path).trace
    assert len(trace.requests) == 8_819
    assert trace.requests.generated_tokens.sum() == trace.steps.generated_tokens.sum() == 245_896
    over = listed(capsys, "requests", path)["over_time"]
    assert over["queue_by_steps"] == pytest.approx(over["queue_by_requests"], rel=0.01)
    assert over["system_by_steps"] == pytest.approx(over["system_by_requests"], rel=0.01)
    assert run(["check", str(path)]) == 0
