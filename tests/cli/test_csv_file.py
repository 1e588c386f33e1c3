"""Tables as files: names that a spreadsheet would run are made inert, numbers stay numbers, every table is there."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tracescope.analysis.table import Column, Table, inert
from tracescope.cli.app import run
from tracescope.cli.csv_file import write_csv
from tracescope.ui.panels.table_model import Draw, ScreenColumn, TableModel, plain

FORMULAS = ["=1+1", "@SUM(1)", "+1", "-1", "\t=1", "\r=cmd"]
HARMLESS = ["gemm", "a=b", "'=1", " =1", "1-1", ""]


def events_file(folder: Path, names: list[str]) -> Path:
    path = folder / "trace.json"
    rows = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5, "args": {"device": 0}}
        for i, name in enumerate(names)
    ]
    path.write_text(json.dumps({"traceEvents": rows}))
    return path


def exported(source: Path, out: Path, *more: str) -> list[dict[str, str]]:
    assert run(["export", str(source), "--table", "events", "-o", str(out), *more]) == 0
    with out.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_text(name: str) -> None:
    assert inert(name) == "'" + name


@pytest.mark.parametrize("name", HARMLESS)
def test_other_text_stays(name: str) -> None:
    assert inert(name) == name


def test_names_of_kernels_are_inert_in_csv_unless_raw_is_asked_for(tmp_path: Path) -> None:
    source = events_file(tmp_path, [*FORMULAS, "gemm"])
    rows = exported(source, tmp_path / "out.csv")
    assert [row["name"] for row in rows] == [*("'" + name for name in FORMULAS), "gemm"]
    assert [row["start_ns"] for row in rows[:2]] == ["0", "10000"]
    assert [row["name"] for row in exported(source, tmp_path / "raw.csv", "--raw")] == [*FORMULAS, "gemm"]
    assert run(["export", str(source), "--table", "events", "-o", str(tmp_path / "out.json")]) == 0
    assert [row["name"] for row in json.loads((tmp_path / "out.json").read_text())["events"]["rows"]] == [
        *FORMULAS,
        "gemm",
    ]


def test_case_103(shared: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = shared("cases/103-cells-that-are-formulas/trace.json")
    names = [event["name"] for event in json.loads(trace.read_text())["traceEvents"]]
    rows = exported(trace, tmp_path / "out.csv")
    assert [row["name"] for row in rows] == ["'" + n if n[0] in "=+-@\t\r" else n for n in names]
    assert sum(row["name"].startswith("'") for row in rows) == 5
    capsys.readouterr()
    assert run(["events", str(trace)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 200


def test_negative_numbers_stay_numbers_and_lists_of_text_do_not_run(tmp_path: Path) -> None:
    table = Table((Column("gap", [-3, -2.5]), Column("flags", [["=x", "y"], []]), Column("known", [None, True])))
    out = tmp_path / "out.csv"
    write_csv(out, table)
    assert out.read_text() == "gap,flags,known\n-3,'=x|y,\n-2.5,,true\n"


def test_rows_copied_in_the_window_are_inert_too() -> None:
    model = TableModel()
    cells = [("=1+1", -1500.5), ("gemm<float, 128>", 12345.0)]
    columns = (
        ScreenColumn("op", lambda i: cells[i][0], plain, draw=Draw.TEXT),
        ScreenColumn("gap", lambda i: cells[i][1], lambda v: f"{v:,.1f}", "µs"),
    )
    model.show_rows(columns, 2)
    assert model.copied([0, 1]) == "op\tgap µs\n'=1+1\t-1500.5\ngemm<float, 128>\t12345.0\n"


def test_requests_are_among_the_tables(tmp_path: Path) -> None:
    trace = tmp_path / "run.tscope.h5"
    synth = ["synth", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--arrivals", "poisson:20", "--prompt", "100"]
    assert run([*synth, "--output", "10", "--count", "7", "-o", str(trace)]) == 0
    out = tmp_path / "requests.csv"
    assert run(["export", str(trace), "--table", "requests", "-o", str(out)]) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["request"] for row in rows] == [str(i) for i in range(7)]
    assert {row["generated_tokens"] for row in rows} == {"10"}
    everything = tmp_path / "all.json"
    assert run(["export", str(trace), "-o", str(everything)]) == 0
    assert len(json.loads(everything.read_text())["requests"]["rows"]) == 7
