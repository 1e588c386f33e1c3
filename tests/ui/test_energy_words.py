"""Inspector, counter and picture say of an energy what it stands on, and say one number."""

from functools import lru_cache
from pathlib import Path

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from tests.kit.pictures import painted
from tracescope.core.model import Workload
from tracescope.core.timerange import TimeRange
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.counters import energy_columns, paint_energy
from tracescope.ui.paint.report_blocks import paint_energy_of_step
from tracescope.ui.paint.report_lanes import Block
from tracescope.ui.panels.inspection_layout import blocks_of
from tracescope.ui.theme import LIGHT
from tracescope.view.document import Document
from tracescope.view.inspection import inspect_step
from tracescope.view.picture_words import caption_parts

MACHINES = {"h100-sxm": "in 9 of 10 public runs", "a100-80gb-sxm": "extrapolated", "lesson-1tbs": "invented"}
CAPPED = "b200-sxm"

pytestmark = pytest.mark.usefixtures("qapp")


@lru_cache(maxsize=4)
def document(machine: str, profile: str = "ideal") -> Document:
    basis = make_basis(load_hardware(machine))
    trace = synthesize(load_model("llama-3-8b"), basis, Workload(8, 512), steps=2, profile=profile)
    return Document(trace, basis, Path("made.tscope.h5"))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is drawn from here on."""
    found: list[str] = []
    text = Canvas.text

    def text_and_note(canvas: Canvas, x: float, y: float, words: str, *rest: object) -> float:
        found.append(words)
        return text(canvas, x, y, words, *rest)

    monkeypatch.setattr(Canvas, "text", text_and_note)
    return found


@pytest.mark.parametrize("machine", MACHINES)
def test_every_place_says_what_the_energy_stands_on(machine: str, said: list[str]) -> None:
    shown, word = document(machine), MACHINES[machine]
    view, block = shown.initial_view(), Block(0, 0, 480)

    def picture(painter: QPainter) -> None:
        paint_energy_of_step(Canvas(painter, LIGHT, 1), block, shown, view)

    def inspector(painter: QPainter) -> None:
        canvas, y = Canvas(painter, LIGHT, 1), 0.0
        for part in blocks_of(inspect_step(shown, 0), energy=True):
            part.paint(canvas, QRectF(0, y, 480, part.height))
            y += part.height

    def counter(painter: QPainter) -> None:
        paint_energy(painter, QRectF(0, 0, 900, 72), shown, view, LIGHT, 1)

    for paint in (picture, inspector):
        said.clear()
        painted(480, 700, LIGHT, paint)
        assert any(word in text for text in said), (paint.__name__, said)
        assert any("board level" in text for text in said)
    said.clear()
    painted(900, 72, LIGHT, counter)
    fit = shown.basis.energy
    assert fit is not None
    assert f"± {fit.error:.0%}".replace("%", " %") in said
    assert (fit.word in said) == bool(fit.word)
    assert any(word in part for part in caption_parts(shown, view) if part.startswith("energy"))


@pytest.mark.parametrize("machine", [*MACHINES, CAPPED])
@pytest.mark.parametrize("width", [300, 900])
def test_the_counter_of_a_step_ends_at_the_energy_of_the_step(machine: str, width: int) -> None:
    shown = document(machine, "realistic")
    for step in (0, 1):
        start, took = int(shown.trace.steps.start[step]), int(shown.trace.steps.duration[step])
        view = shown.initial_view().with_(visible=TimeRange(start, start + took))
        energy = inspect_step(shown, step).energy
        assert energy is not None
        columns = energy_columns(shown, view, shown.basis, width)
        assert float(columns.sum()) == pytest.approx(energy.mid, rel=3e-3)


def test_a_board_at_its_power_says_so(said: list[str]) -> None:
    shown = document(CAPPED)
    energy = inspect_step(shown, 0).energy
    assert energy is not None
    assert energy.capped
    assert energy.mid / int(shown.trace.steps.duration[0]) * 1e9 == pytest.approx(1000)
    painted(480, 200, LIGHT, lambda p: paint_energy_of_step(
        Canvas(p, LIGHT, 1), Block(0, 0, 480), shown, shown.initial_view()
    ))  # fmt: skip
    assert any("at the power limit" in text for text in said)
