"""The handed case for events CSV: another locale's numbers, quotes, preambles and line ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracescope.io import reader_for

Shared = Callable[[str], Path]
CASE = "cases/69-csv-from-another-locale"


def read(path: Path) -> tuple[dict[str, dict[str, int]], Any]:
    raw = reader_for(path).read(path)
    assert raw.seen == raw.imported + sum(raw.dropped.values())
    e = raw.events
    times = zip(e.name.tolist(), e.start.tolist(), e.duration.tolist(), strict=True)
    return {raw.names[name]: {"start_ns": start, "dur_ns": duration} for name, start, duration in times}, raw


def want(folder: Path, name: str) -> Any:
    return json.loads((folder / "expected.json").read_text())["expected"][name]


def test_69_semicolons_and_decimal_commas(shared: Shared) -> None:
    folder = shared(CASE)
    rows, raw = read(folder / "semicolon_comma.csv")
    assert rows["k_attn"] == want(folder, "semicolon_comma.csv")["k_attn"]
    assert rows["k_mlp"] == {"start_ns": 1_020_000, "dur_ns": 3_000}
    assert not raw.dropped


def test_69_thousands_commas(shared: Shared) -> None:
    folder = shared(CASE)
    rows, _ = read(folder / "thousands.csv")
    assert rows["k"]["start_ns"] == want(folder, "thousands.csv")["start_ns"]


@pytest.mark.parametrize("name", ["quoted_newline.csv", "nsys_preamble.csv"])
def test_69_rows_that_span_lines_and_lines_before_the_header(shared: Shared, name: str) -> None:
    folder = shared(CASE)
    rows, raw = read(folder / name)
    assert len(rows) == raw.imported == want(folder, name)["rows"]


@pytest.mark.parametrize(
    ("name", "dropped"),
    [("ragged.csv", {"wrong_number_of_fields": 2}), ("nul_and_cr.csv", {}), ("header_only.csv", {})],
)
def test_69_rows_are_imported_or_counted(shared: Shared, name: str, dropped: dict[str, int]) -> None:
    folder = shared(CASE)
    _, raw = read(folder / name)
    assert raw.imported == want(folder, name)["imported"]
    assert raw.dropped == dropped
    assert sum(dropped.values()) == want(folder, name).get("dropped", 0)
