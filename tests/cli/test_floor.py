"""``tracescope floor``: the contract's keys, the published numbers, the page and the exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracescope.cli.app import run

KEYS = {
    "model",
    "hardware",
    "batch",
    "context",
    "weights",
    "kv",
    "tp",
    "bandwidth_bytes_per_s",
    "bandwidth_source",
    "weight_read_bytes",
    "embedding_gather_bytes",
    "kv_read_bytes",
    "kv_append_bytes",
    "index_key_read_bytes",
    "state_read_bytes",
    "state_write_bytes",
    "parameters",
    "kv_bytes_per_token",
    "activation_bytes",
    "stored_bytes",
    "flops",
    "link_bytes",
    "link_by",
    "ranks",
    "floor_link_s",
    "floor_weight_s",
    "floor_memory_s",
    "floor_compute_s",
    "floor_roofline_s",
    "floor_ops_s",
    "generated_tokens_per_s_max",
    "steps_per_s_max",
    "acceptance",
    "scale_bytes",
    "energy_j",
    "energy_rank_j",
    "predicted",
    "latency_s",
    "latency_source",
    "capacity",
    "verdict",
    "crossovers",
    "model_spec",
    "assumptions",
    "dependence",
    "pinned_bytes",
    "not_simulated",
    "expected_distinct_experts",
    "notes",
}

Floor = Callable[..., dict[str, Any]]


@pytest.fixture
def floor(capsys: pytest.CaptureFixture[str]) -> Floor:
    """``floor("--model", …)``: the JSON document of one call that ends with ``code``."""

    def call(*arguments: str, code: int = 0) -> dict[str, Any]:
        assert run(["floor", *arguments, "--json"]) == code
        document = json.loads(capsys.readouterr().out)
        assert isinstance(document, dict)
        return document

    return call


def test_the_golden_row(floor: Floor) -> None:
    found = floor("--model", "llama-3-8b", "--hardware", "h100-sxm", "--batch", "16", "--context", "4096")
    assert set(found) == KEYS
    assert found["weight_read_bytes"] == 15_009_849_344
    assert found["kv_read_bytes"] == 8_589_934_592
    assert found["kv_append_bytes"] == 2_097_152
    assert found["floor_weight_s"] == pytest.approx(0.0044806, abs=5e-8)
    assert found["floor_memory_s"] == pytest.approx(0.0070453, abs=5e-8)
    assert found["bandwidth_source"] == "datasheet"
    assert found["assumptions"] == []
    assert set(found["energy_j"]) == {"low", "mid", "high", "level", "extrapolated"}
    assert found["capacity"]["max_batch"] == 114
    assert found["verdict"]["binds"] == "weights"
    assert found["crossovers"] == {
        "kv_passes_weights_batch": 28,
        "compute_passes_memory_batch": None,
        "compute_binds_batch": None,
        "memory_full_batch": 115,
    }


@pytest.mark.parametrize("batch", [1, 4])
def test_the_lesson(floor: Floor, batch: int) -> None:
    found = floor("--model", "lesson-20gb", "--hardware", "lesson-1tbs", "--batch", str(batch))
    assert found["weight_read_bytes"] == 20_000_000_000
    assert found["floor_weight_s"] == 0.02
    assert found["steps_per_s_max"] == 50
    assert found["generated_tokens_per_s_max"] == pytest.approx(50 * batch, rel=1e-4)
    assert "it fits, and still waits for its weights" in found["verdict"]["why"]


def test_a_bandwidth_alone_is_enough(floor: Floor) -> None:
    found = floor("--model", "llama-3-8b", "--bandwidth", "3.0TB/s")
    assert found["floor_weight_s"] == 15_009_849_344 / 3.0e12
    assert (found["bandwidth_source"], found["hardware"]) == ("user", None)
    assert found["floor_compute_s"] is None
    assert found["capacity"] is None
    assert found["energy_j"] is None


def test_without_a_bandwidth_times_are_null_and_bytes_are_not(floor: Floor) -> None:
    found = floor("--model", "llama-3-8b")
    assert found["weight_read_bytes"] == 15_009_849_344
    for key in ("floor_weight_s", "floor_memory_s", "floor_ops_s", "steps_per_s_max", "verdict", "energy_j"):
        assert found[key] is None, key


def test_layers_sum_to_the_document(floor: Floor) -> None:
    found = floor("--model", "llama-3-8b", "--hardware", "h100-sxm", "--batch", "2", "--context", "9", "--per-layer")
    rows = found["layers"]
    assert isinstance(rows, list)
    assert len(rows) == 326
    keys = {"layer", "op", "category", "weight_read_bytes", "kv_read_bytes", "kv_append_bytes", "flops", "floor_s"}
    assert all(set(row) == keys for row in rows)
    for key in ("weight_read_bytes", "kv_read_bytes", "kv_append_bytes", "flops"):
        assert sum(row[key] for row in rows) == found[key]
    assert sum(row["floor_s"] for row in rows) == pytest.approx(found["floor_ops_s"], rel=1e-12)
    assert rows[0]["layer"] is None
    assert rows[3] == {**rows[3], "layer": 0, "op": "norm", "category": "compute"}


def test_ranks(floor: Floor) -> None:
    found = floor("--model", "llama-3-70b", "--hardware", "h100-sxm", "--tp", "8")
    assert found["weight_read_bytes"] == 17_112_760_320 + 262_668_288 + 2_637_824
    assert found["floor_weight_s"] == pytest.approx(0.0052, rel=0.01)
    assert found["link_bytes"] == 160 * 8192 * 2  # two all-reduces a layer, each message once: the switch adds up
    assert found["floor_link_s"] == found["link_bytes"] / 450e9
    assert found["floor_ops_s"] - found["floor_memory_s"] == pytest.approx(found["floor_link_s"], rel=0.03)
    assert found["ranks"] == 8


def test_the_link_term_is_its_bytes_over_the_link_rate_exactly(floor: Floor) -> None:
    run = ("--model", "llama-3-70b", "--hardware", "h100-sxm", "--tp", "8", "--batch", "16", "--context", "512")
    found = floor(*run)
    assert found["link_bytes"] == 160 * 16 * 8192 * 2
    assert found["floor_link_s"] == found["link_bytes"] / 450_000_000_000
    ring = floor("--model", "llama-3-70b", "--hardware", "a100-80gb-sxm", *run[4:])
    assert ring["link_bytes"] == 160 * 16 * 8192 * 2 * 14 // 8
    assert (found["link_by"][:10], ring["link_by"][:4]) == ("the switch", "ring")


def test_missing_values_end_with_three_and_are_named(
    floor: Floor, shared: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(shared("cases/53-gpt2-style-names/gpt2.json"))
    assert any("torch_dtype" in text for text in floor("--model", path, code=3)["assumptions"])
    assert run(["floor", "--model", path]) == 3
    assert "torch_dtype" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "no-such-model"], "no-such-model"),
        (["--model", "llama-3-8b", "--hardware", "no-such-machine"], "no-such-machine"),
        (["--model", "llama-3-8b", "--hardware", "h200-sxm", "--bandwidth", "sustained"], "sustained"),
        (["--model", "llama-3-8b", "--bandwidth", "fast"], "fast"),
        (["--model", "llama-3-8b", "--weights", "int5"], "int5"),
        (["--model", "llama-3-8b", "--kv", "int5"], "int5"),
        (["--model", "llama-3-8b", "--batch", "0"], "batch"),
        (["--model", "llama-3-8b", "--reserve", "-3"], "-3"),
        ([], "--model"),
    ],
)
def test_refusals(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["floor", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert len(captured.err.splitlines()) <= 3


def test_the_page_shows_its_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["floor", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--batch", "16", "--context", "4096"]) == 0
    page = capsys.readouterr().out
    for text in (
        "15.01 GB ÷ 3.35 TB/s = 4.481 ms",
        "16 × 4,096 tokens × 131,072 B = 8.59 GB",
        "(15.01 GB + 8.59 GB + 2.1 MB) ÷ 3.35 TB/s = 7.045 ms",
        "datasheet, not sustained",
        "generated tokens/s at most (op floor; all generated tokens accepted)",
        "board level",
    ):
        assert text in page


def test_every_page_that_a_preset_can_make_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    for hardware in ("a100-40gb-sxm", "m2-ultra", "lesson-1tbs"):
        for context in ("0", "100000"):
            common = ["--hardware", hardware, "--context", context, "--weights", "fp8", "--per-layer"]
            assert run(["floor", "--model", "qwen3-8b", *common]) == 0
            assert "needs a dequantising kernel" in capsys.readouterr().out


def test_presets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["presets", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["models"]) == 36
    assert len(found["hardware"]) == 23
    for row in found["models"] + found["hardware"]:
        assert row["source"]
        assert row["invented"] == row["name"].startswith("lesson-")
        assert row["invented"] == row["source"].startswith("invented")
    assert run(["presets", "hardware"]) == 0
    hub = {row["name"]: row["hugging_face"] for row in found["models"]}
    assert "deepseek-ai/DeepSeek-V3.2" in hub["deepseek-v3.2"]
    sizes = {row["name"]: row["parameters"] for row in found["models"]}
    assert sizes["llama-3-8b"] == {"stored": 8_030_261_248, "read": 7_504_924_672, "prediction": 0}
    assert "1.555 TB/s" in capsys.readouterr().out


def test_a_mixture_says_that_its_experts_are_expected(floor: Floor, capsys: pytest.CaptureFixture[str]) -> None:
    found = floor("--model", "mixtral-8x7b", "--hardware", "h200-sxm", "--batch", "4", "--context", "4096")
    assert found["weight_read_bytes"] == 64_605_396_992
    assert found["expected_distinct_experts"] == pytest.approx(5.469, abs=1e-3)
    assert any("expectation" in text and "not simulated" in text for text in found["assumptions"])
    assert found["model_spec"]["experts"]["experts"] == 8
    assert run(["floor", "--model", "mixtral-8x7b"]) == 0
    assert "experts read are an expectation" in capsys.readouterr().out
    assert floor("--model", "llama-3-8b")["expected_distinct_experts"] is None


def test_windows_are_listed_and_spelled_out(floor: Floor, capsys: pytest.CaptureFixture[str]) -> None:
    found = floor("--model", "gemma-3-12b", "--context", "4096")
    assert found["model_spec"]["windows"][:6] == [1024] * 5 + [None]
    assert found["kv_read_bytes"] == (40 * 1023 + 8 * 4096) * 8192
    assert floor("--model", "llama-3-8b")["model_spec"]["windows"] == []
    assert run(["floor", "--model", "gemma-3-12b", "--context", "4096", "--hardware", "h100-sxm"]) == 0
    assert "1 × (40 layers × 1,023 + 8 layers × 4,096) tokens × 8,192 B" in capsys.readouterr().out


def test_pinned_prefix_activations_and_deadline(floor: Floor, capsys: pytest.CaptureFixture[str]) -> None:
    common = ("--model", "lesson-20gb", "--hardware", "lesson-1tbs", "--batch", "4", "--context", "1024")
    plain = floor(*common)
    pinned = floor(*common, "--pinned", "5GB")
    assert (pinned["weight_read_bytes"], pinned["floor_weight_s"]) == (15_000_000_000, 0.015)
    assert any("pinned on chip" in text for text in pinned["notes"])
    blind = floor(*common, "--prefix", "512:4")
    assert blind["kv_read_bytes"] == plain["kv_read_bytes"]
    assert blind["capacity"]["kv_stored_bytes"] == plain["capacity"]["kv_stored_bytes"] * 5 // 8
    aware = floor(*common, "--prefix", "512:4", "--prefix-aware")
    assert aware["kv_read_bytes"] == plain["kv_read_bytes"] * 5 // 8
    assert "activation_s" not in plain
    active = floor(*common, "--activations")
    assert active["activation_s"] == active["activation_bytes"] / 1e12
    assert active["floor_ops_s"] == plain["floor_ops_s"]
    assert "deadline" not in plain
    kept = floor(*common, "--deadline", "50ms")["deadline"]
    assert (kept["seconds"], kept["met"]) == (0.05, True)
    assert floor(*common, "--deadline", "5ms")["deadline"] == {
        "seconds": 0.005, "met": False, "largest_batch": 0, "largest_batch_by_deadline": 0,
        "largest_batch_by_capacity": 303,
    }  # fmt: skip
    assert run(["floor", *common, "--prefix", "512:4", "--activations", "--deadline", "50ms"]) == 0
    page = capsys.readouterr().out
    for words in ("Not physics, and in no floor", "50.000 ms a token: kept at the floor", "shared by 4"):
        assert words in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prefix", "10"], "--prefix"),
        (["--prefix", "10:0"], "--prefix"),
        (["--prefix", "10:4"], "longer than the context"),
        (["--prefix-aware"], "--prefix-aware"),
        (["--pinned", "much"], "much"),
        (["--deadline", "soon"], "soon"),
        (["--deadline", "5ms"], "--deadline needs a bandwidth"),
        (["--kv", "fp8-ds-mla"], "latent attention"),
    ],
)
def test_refusals_of_options(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["floor", "--model", "llama-3-8b", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
