"""``tracescope sweep``: its rows are ``floor`` documents, its CSV and frontiers say the same."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracescope.cli.app import run
from tracescope.core.model import Workload
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.batching import kv_room, serve
from tracescope.synth.distributions import draw_requests, parse_arrivals, parse_lengths
from tracescope.synth.step_times import StepTimes

Document = Callable[..., dict[str, Any]]
COMMON = ("--model", "llama-3-8b", "--hardware", "h100-sxm")


@pytest.fixture
def document(capsys: pytest.CaptureFixture[str]) -> Document:
    """``document("sweep", …)``: the JSON document of one call."""

    def call(*arguments: str) -> dict[str, Any]:
        assert run([*arguments, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert isinstance(found, dict)
        return found

    return call


def assert_close(found: Any, expected: Any) -> None:
    """Equal but for the last digits of seconds and joules, also inside objects."""
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for key in expected:
            assert_close(found[key], expected[key])
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12)
    else:
        assert found == expected


def test_every_row_is_a_floor_document(document: Document) -> None:
    found = document("sweep", *COMMON, "--batch", "1,16,128", "--context", "512,4096", "--deadline", "8ms")
    assert [(row["batch"], row["context"]) for row in found["rows"]] == [
        (batch, context) for batch in (1, 16, 128) for context in (512, 4096)
    ]
    for row in found["rows"]:
        batch, context = str(row["batch"]), str(row["context"])
        expected = document("floor", *COMMON, "--batch", batch, "--context", context)
        del expected["verdict"]["moves"]
        own = {key: row[key] for key in row if key not in {"binds", "fits", "meets_deadline"}}
        assert_close(own, expected)
        assert row["binds"] == expected["verdict"]["binds"]
        assert row["fits"] == expected["capacity"]["fits"]
        assert row["meets_deadline"] == (expected["floor_ops_s"] <= 0.008)
    assert [row["binds"] for row in found["rows"]] == ["weights"] * 5 + ["capacity"]


def test_frontiers(document: Document) -> None:
    found = document("sweep", *COMMON, "--batch", "1", "--context", "4096,32768", "--deadline", "8ms")
    first, second = found["frontiers"]
    assert (first["capacity_batch"], second["capacity_batch"]) == (114, 14)
    expected = document("floor", *COMMON, "--context", "4096", "--deadline", "8ms")["deadline"]
    assert first["deadline_batch"] == expected["largest_batch"]
    assert first["kv_passes_weights_batch"] == 28
    assert first["compute_binds_batch"] is None
    assert found["deadline_s"] == 0.008
    assert "deadline_batch" not in document("sweep", *COMMON, "--batch", "1", "--context", "1")["frontiers"][0]


def test_csv_has_a_row_a_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old")
    options = [*COMMON, "--batch", "1,16", "--context", "512,4096"]
    assert run(["sweep", *options, "-o", str(out)]) == 0
    page = capsys.readouterr().out
    assert "4 cells" in page
    assert "15.01 GB" in page
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert {row["weight_read_bytes"] for row in rows} == {"15009849344"}
    assert [row["kv_read_bytes"] for row in rows] == ["67108864", "536870912", "1073741824", "8589934592"]
    assert {row["fits"] for row in rows} == {"true"}
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_what_is_not_known_is_empty(tmp_path: Path, document: Document) -> None:
    out = tmp_path / "out.csv"
    found = document("sweep", "--model", "llama-3-8b", "--batch", "4", "--context", "512", "-o", str(out))
    row = found["rows"][0]
    assert (row["binds"], row["fits"], row["floor_ops_s"]) == (None, None, None)
    with out.open(newline="") as file:
        written = next(csv.DictReader(file))
    assert (written["floor_ops_s"], written["binds"], written["fits"]) == ("", "", "")
    assert written["kv_read_bytes"] == str(4 * 512 * 131_072)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch", "1,x"], "--batch"),
        (["--batch", ""], "--batch"),
        (["--context", "5,-1"], "--context"),
        (["--batch", "0"], "batch"),
        (["--deadline", "soon"], "soon"),
        (["--context", "10,20", "--prefix", "15:2"], "prefix"),
        (["--arrivals", "poisson:5"], "--output"),
        (["--arrivals", "often", "--output", "5"], "often"),
        (["--arrivals", "poisson:5", "--output", "none"], "none"),
        (["--batch", ",".join(map(str, range(1, 300))), "--arrivals", "poisson:5", "--output", "9"], "cells"),
        (["-o", "/no/such/folder/out.csv"], "out.csv"),
    ],
)
def test_refusals(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", *COMMON, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert len(captured.err.splitlines()) <= 3


def test_queue_waits_are_those_of_a_run_of_synth(document: Document) -> None:
    options = ["--arrivals", "poisson:3", "--output", "128", "--profile", "realistic"]
    found = document("sweep", *COMMON, "--batch", "4", "--context", "512,2048,16384", *options)
    model, basis = load_model("llama-3-8b"), make_basis(load_hardware("h100-sxm"))
    times = StepTimes(model, basis, Workload(), "realistic")
    for row in found["rows"]:
        stream = draw_requests(
            parse_arrivals("poisson:3"), parse_lengths(str(row["context"])), parse_lengths("128"), count=1000, seed=0
        )
        room = kv_room(model, basis.hardware, Workload(), stream)
        done = serve(stream, room, times, max_batch=4, profile="realistic")
        own = float((done.start - stream.arrival).mean()) / 1e9
        assert row["queue_wait_low_s"] <= own <= row["queue_wait_high_s"]
        assert row["queue_wait_low_s"] <= row["queue_wait_s"] <= row["queue_wait_high_s"]
    assert all(0 < row["utilisation"] < 1 for row in found["rows"])


def test_more_than_can_be_served_waits_without_end(document: Document) -> None:
    options = ["--arrivals", "poisson:500", "--output", "64"]
    row = document("sweep", *COMMON, "--batch", "1", "--context", "512", *options)["rows"][0]
    assert row["utilisation"] > 1
    assert (row["queue_wait_s"], row["queue_wait_low_s"], row["queue_wait_high_s"]) == (None, None, None)


def test_the_joules_of_a_token_do_not_fall_as_ranks_are_added(capsys: pytest.CaptureFixture[str]) -> None:
    energy = {}
    for ranks in (1, 2, 4, 8):
        options = ["--batch", "1,16,64", "--context", "512,8192", "--tp", str(ranks), "--json"]
        assert run(["sweep", "--model", "llama-3-70b", "--hardware", "h100-sxm", *options]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert {row["ranks"] for row in rows} == {ranks}
        assert all(row["energy_j"]["mid"] == pytest.approx(ranks * row["energy_rank_j"]["mid"]) for row in rows)
        energy[ranks] = [row["energy_j"]["mid"] / row["batch"] for row in rows]
    for fewer, more in ((1, 2), (2, 4), (4, 8)):
        assert all(b >= a * (1 - 1e-9) for a, b in zip(energy[fewer], energy[more], strict=True))
