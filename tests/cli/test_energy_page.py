"""What the pages and tables say of energy: its range, what that stands on, and never that a middle is the least."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tracescope.cli.app import run

WORDS = {"h100-sxm": "in 9 of 10 public runs", "mi300x": "extrapolated", "lesson-1tbs": "invented"}


def page(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found = json.loads(page(capsys, *arguments, "--json"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("machine", WORDS)
def test_pages_and_json_say_what_the_range_stands_on(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    word, common = WORDS[machine], ("--model", "llama-3-8b", "--hardware", machine)
    for name in ("floor", "sweep"):
        (line, *_) = [line for line in page(capsys, name, *common).splitlines() if "board level" in line]
        assert word in line
        assert "at least" not in line
    energy = document(capsys, "floor", *common)["energy_j"]
    assert set(energy) == {"low", "mid", "high", "level", "extrapolated"}
    assert energy["extrapolated"] is (machine != "h100-sxm")
    share = 0.23 if machine == "h100-sxm" else 0.46
    assert (energy["low"], energy["high"]) == (
        pytest.approx((1 - share) * energy["mid"]), pytest.approx((1 + share) * energy["mid"])
    )  # fmt: skip
    assert document(capsys, "sweep", *common)["rows"][0]["energy_j"] == energy | {
        key: pytest.approx(document(capsys, "floor", *common, "--context", "512")["energy_j"][key])
        for key in ("low", "mid", "high")
    }


def test_no_column_of_a_sweep_calls_the_energy_the_least(capsys: pytest.CaptureFixture[str]) -> None:
    text = page(capsys, "sweep", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--batch", "1")
    assert "energy a token" in text
    assert "at least" not in text
    assert "cut to that" not in text
    hot = page(capsys, "sweep", "--model", "llama-3-8b", "--hardware", "b200-sxm", "--batch", "1")
    assert "says more than the board's 1,000 W, which is its fault, it is cut to that" in hot


def test_tables_carry_the_range_and_the_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, common = tmp_path / "cells.csv", ("--model", "llama-3-8b", "--hardware", "mi300x")
    page(capsys, "sweep", *common, "--batch", "4", "--context", "512", "-o", str(out))
    with out.open(newline="") as file:
        (row,) = csv.DictReader(file)
    mid = float(row["energy_j_per_token"])
    assert float(row["energy_low_j_per_token"]) == pytest.approx(0.54 * mid)
    assert float(row["energy_high_j_per_token"]) == pytest.approx(1.46 * mid)
    assert row["energy_extrapolated"] == "true"
    trace, steps = tmp_path / "made.tscope.h5", tmp_path / "steps.csv"
    page(capsys, "synth", *common, "--batch", "4", "--context", "512", "--steps", "1", "-o", str(trace))
    page(capsys, "export", str(trace), "--table", "steps", "-o", str(steps))
    with steps.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["energy_extrapolated"] == "true"
    for table in ("steps", "layers"):
        assert document(capsys, table, str(trace))["rows"][0]["energy_j"]["extrapolated"] is True
    (machine,) = [m for m in document(capsys, "presets", "hardware")["hardware"] if m["name"] == "mi300x"]
    assert (machine["energy"]["error"], machine["energy"]["extrapolated"]) == (0.46, True)
