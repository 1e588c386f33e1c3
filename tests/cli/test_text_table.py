"""Tables for people: they fit the terminal, leave nothing out without saying so, and write amounts in units."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tracescope.analysis.table import Column, Table, known_column
from tracescope.cli.app import run
from tracescope.cli.text_table import GIVES_WAY, shortened, table_lines, width_of

LONG = "void cutlass::Kernel2<" + "x" * 500 + "::tensorop_bf16>"
SAMPLE = Path(__file__).parents[2] / "sample_traces" / "llama-3-8b_h100_b16_c4096.tscope.h5"


def lines(table: Table, width: int = 200, limit: int | None = None) -> list[str]:
    return list(table_lines(table, limit, width))


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abcdef", 6, "abcdef"), ("abcdefg", 6, "abc…fg"), ("abcdefgh", 4, "ab…h"), ("ab", 1, "…"),
        ("世界世界", 5, "世…界"), ("世界", 4, "世界"), ("", 3, ""),
    ],
)  # fmt: skip
def test_a_long_name_keeps_its_beginning_and_its_end(text: str, width: int, shown: str) -> None:
    assert shortened(text, width) == shown
    assert width_of(shown) <= width


def test_amounts_carry_the_unit_that_suits_them() -> None:
    table = Table((
        known_column("floor_ns", np.array([39, 1_909, 12_768_367, -1]), "floor", "ns"),
        Column("floor_s", np.array([1.5e-5, 0.0003136, 2.5, 0.0]), "seconds", "s"),
        Column("bytes", [0, 8_192, 15_009_849_344, 1], "weights", "B"),
        Column("start_ns", [0, 12_768_367, 1_700_000_000_123_456_789, 4], "start", "ns", exact=True),
        Column("rate", [3_332.25, 11_124.0, 0.00001, 1e9], "rate", "/s"),
    ))  # fmt: skip
    head, *rows = lines(table)
    assert head.split() == ["floor", "seconds", "weights", "start", "ns", "rate", "/s"]
    assert rows[0].split()[:2] == ["39", "ns"]
    assert "15.0 µs" in rows[0]
    assert "313.6 µs" in rows[1]
    assert "12.768 ms" in rows[2]
    assert "15.01 GB" in rows[2]
    assert "1,700,000,000,123,456,789" in rows[2]
    assert rows[3].split()[0] == "—"
    assert [row.split()[-1] for row in rows] == ["3,332", "11,124", "0.00001", "1,000,000,000"]


LISTINGS = (
    ["events", str(SAMPLE), "--limit", "60"],
    ["layers", str(SAMPLE)],
    ["steps", str(SAMPLE)],
    ["presets", "models"],
    ["presets", "hardware"],
    ["sweep", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--deadline", "50ms"],
)
PAGES = (
    ["presets", "calibration"],
    ["floor", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--per-layer"],
    ["floor", "--model", "gpt2-xl", "--hardware", "b200-sxm", "--batch", "2048"],
)


@pytest.mark.parametrize("width", [200, 120, 80, 60, 40])
@pytest.mark.parametrize("command", LISTINGS, ids=lambda command: command[1 if command[0] == "presets" else 0])
def test_no_row_is_wider_than_the_terminal(
    command: list[str], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(command) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "  " in line.strip()]
    assert len(rows) > 5
    assert max(map(width_of, rows)) <= width


@pytest.mark.parametrize("command", [*LISTINGS, *PAGES], ids=" ".join)
def test_no_number_is_a_power_of_ten(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command) == 0
    assert not re.search(r"[0-9]e[+-][0-9]", capsys.readouterr().out)


def test_a_wide_terminal_gets_no_endless_rows_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "900")
    assert run(["presets", "hardware"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 200


def test_what_has_no_room_is_named() -> None:
    columns = [Column(title, [1_000_000_000] * 2, title) for title in ("id", "track", "took", "category")]
    assert lines(Table(tuple(columns)))[0].split() == ["id", "track", "took", "category"]
    narrow = lines(Table(tuple(columns)), 30)
    assert narrow[0].split() == ["id", "took"]
    assert " ".join(narrow[3:]) == "(no room here for: track, category; --json has every column)"
    assert GIVES_WAY.index("track") < GIVES_WAY.index("category")


def test_what_is_unknown_in_every_row_goes_before_a_name_is_shortened() -> None:
    table = Table(
        (Column("name", ["x" * 30], "name"), Column("floor", [None], "floor of an op"), Column("n", [7], "took"))
    )
    assert "floor" in lines(table, 60)[0]
    shown = lines(table, 40)
    assert "x" * 30 in shown[1]
    assert shown[2] == "(no room here for: floor of an op;"


def test_headings_go_on_for_lines_before_names_are_shortened_and_lose_no_word() -> None:
    table = Table((
        Column("name", ["a-name-of-twenty-two-x"], "name"),
        Column("a", [1], "keeps the deadline up to batch"),
        Column("b", [2.5], "energy a token at least", "kJ"),
    ))  # fmt: skip
    shown = lines(table, 44)
    assert max(map(len, shown)) <= 44
    assert "a-name-of-twenty-two-x" in shown[-1]
    words = sorted(" ".join(shown[:-1]).split())
    assert words == [
        "a",
        "at",
        "batch",
        "deadline",
        "energy",
        "kJ",
        "keeps",
        "least",
        "name",
        "the",
        "to",
        "token",
        "up",
    ]
    shorter = lines(table, 34)
    assert "a-name-o…y-two-x" in shorter[-1]
    assert not shorter[-1].startswith("(")


def test_long_names_of_a_recording_fit_and_stay_whole_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    event = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "dur": 5, "args": {"device": 0}}
    path.write_text(json.dumps({"traceEvents": [{**event, "name": LONG, "ts": 0}, {**event, "name": "b", "ts": 9}]}))
    assert run(["events", str(path)]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 200
    assert "void cutlass" in said
    assert "tensorop_bf16>" in said
    assert run(["events", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["name"] == LONG


def test_prose_goes_on_and_is_not_shortened() -> None:
    table = Table((Column("name", ["x"], "name"), Column("source", ["one two three four five"], "source", prose=True)))
    shown = lines(table, 20)
    assert " ".join(" ".join(line[6:].strip() for line in shown[1:]).split()) == "one two three four five"
