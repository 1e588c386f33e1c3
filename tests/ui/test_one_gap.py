"""The gap of a step is one number: in the window, in the picture, in listings and in tables for other programs."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytestqt.qtbot import QtBot

from tests.kit.windows import open_in
from tracescope.cli.app import run
from tracescope.core import units
from tracescope.ui.main_window import MainWindow
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.panels.off_the_floor import OffTheFloorPanel
from tracescope.ui.panels.steps import StepsPanel
from tracescope.ui.panels.table_view import PanelTable
from tracescope.ui.picture import render_picture
from tracescope.view.inspection import inspect_step
from tracescope.view.picture_words import headline


class Case(NamedTuple):
    """A recording, how it is opened, and the gap of its step in ns."""

    path: Path
    options: dict[str, str]
    gap: int


FOLDER = "traces/kineto_inference"
CASES = {
    "sglang": ("sglang_Qwen3-8B_decode.json.gz", {"model": "qwen3-8b", "hardware": "mi300x"}, 6_285_258),
    "vllm": ("vllm_decode_full_graph_execution.json.gz", {"hardware": "h100-sxm"}, 806_679),
}


def column(table: PanelTable, title: str) -> list[Any]:
    """The cells of one column, rows as the table was given them."""
    found = next(c for c in table.rows.columns if c.title == title)
    return [found.cell(row) for row in range(table.rows.rowCount())]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that was drawn."""
    texts: list[str] = []
    draw = Canvas.text

    def noted(canvas: Canvas, x: float, baseline: float, text: str, *style: Any) -> float:
        texts.append(text)
        return draw(canvas, x, baseline, text, *style)

    monkeypatch.setattr(Canvas, "text", noted)
    return texts


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, shared: Callable[[str], Path]) -> Case:
    name, options, gap = CASES[request.param]
    return Case(shared(f"{FOLDER}/{name}"), options, gap)


def test_in_the_window_and_its_picture(
    case: Case, make_window: Callable[..., MainWindow], qtbot: QtBot, drawn: list[str]
) -> None:
    window, gap = make_window(), case.gap
    open_in(window, qtbot, case.path, **case.options)
    document, view = window.session.document, window.session.view
    assert document is not None
    assert view is not None
    taken = document.breakdown(view.step)
    assert taken.step_gap_ns == gap

    window.grab()  # the step bar, and where the gap goes
    assert f"gap {units.millis(gap)} ms" in drawn
    assert f"{units.micros(gap)} µs in step {view.step}" in drawn
    assert sum(cause.ns for cause in document.gap_causes(view.step) if cause.known) == gap
    rows = {label: result for label, _, result in inspect_step(document, view.step).rows}
    assert rows["gap"] == f"{units.millis(gap)} ms"
    off, steps = (window.docks.panels[key] for key in ("off_the_floor", "steps"))
    assert isinstance(off, OffTheFloorPanel)
    assert isinstance(steps, StepsPanel)
    assert sum(cell or 0 for cell in column(off.table, "gap")) + taken.idle_ns == gap
    assert sum(row.unknown_ns for row in document.off_the_floor(view.step)) == taken.unknown_ns
    assert sum(cell or 0 for cell in column(off.table, "of step gap")) == pytest.approx(1 - taken.idle_ns / gap)
    window.docks._docks["steps"].raise_()
    qtbot.waitUntil(steps.isVisible)
    assert column(steps.table, "gap")[view.step] == gap

    drawn.clear()
    render_picture(document, view)
    assert f"gap {units.millis(gap)} ms" in drawn
    assert f"{gap / 1e3:,.0f} µs" in drawn
    assert f"{units.millis(gap)} ms" in headline(document, view)


def test_in_listings_and_tables(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = [str(case.path), *(f"--{key}={value}" for key, value in case.options.items())]
    layers = answer(capsys, "layers", *named, "--step=0")
    idle = layers["idle_ns"]
    assert layers["gap_ns"] == case.gap
    assert layers["step_ns"] - layers["floor_ops_ns"] - layers["unknown_ns"] == case.gap
    assert sum(row["gap_ns"] or 0 for row in layers["rows"]) + idle == case.gap
    assert answer(capsys, "steps", *named)["rows"][0]["gap_ns"] == case.gap
    for table, more in (("layers", idle), ("steps", 0)):
        out = tmp_path / f"{table}.csv"
        assert run(["export", *named, "--table", table, "-o", str(out)]) == 0
        with out.open(newline="") as lines:
            assert sum(int(row["gap_ns"] or 0) for row in csv.DictReader(lines)) + more == case.gap
