"""An event that moves weights and KV at once: no lane calls the other's time above the floor."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QRectF

from tests.kit.pictures import is_colour, painted
from tests.kit.traces import FAST, St, kernel, make_trace
from tracescope.core.category import Category, Op
from tracescope.core.timerange import TimeRange
from tracescope.lod.fold import Bars, Columns
from tracescope.lod.planes import Plane
from tracescope.lod.pyramid import SMALLEST_ROW
from tracescope.ui.paint.bar_style import PALE, BarStyle, Marks
from tracescope.ui.paint.bars import paint_bars
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.geometry import TimeScale
from tracescope.ui.theme import LIGHT, mixed
from tracescope.view.document import Document
from tracescope.view.lane_rows import figures, rows_of
from tracescope.view.view_state import ViewState


def document_of(count: int, took: int = 1000) -> Document:
    """``count`` events of ``took`` ns that need 600 ns for weights and 400 ns for KV."""
    made = [
        kernel(n * took, took, Category.KV_READ, weight_read=600_000, kv_read=400_000, op=Op.ATTENTION, step=0)
        for n in range(count)
    ]
    return Document(make_trace(made, [St(0, count * took)]), FAST, Path("fused.json"))


def lane_row(document: Document, plane: Plane, visible: TimeRange) -> np.ndarray:
    """The pixels of the middle line of a lane 200 px wide."""
    content = document.planes(visible, 200)[plane]
    assert isinstance(content, Bars)
    time = TimeScale(visible, 0, 200)

    def paint(painter: object) -> None:
        canvas = Canvas(painter, LIGHT, 1)
        canvas.begin()
        paint_bars(canvas, QRectF(0, 0, 200, 20), content, time, BarStyle(rail=False), Marks())

    return painted(200, 20, LIGHT, paint)[4:16]


@pytest.mark.parametrize(("plane", "letter", "solid"), [(Plane.WEIGHTS, "W", 120), (Plane.KV_READS, "K", 80)])
def test_on_its_floor_it_is_hatched_in_no_lane(qapp: object, plane: Plane, letter: str, solid: int) -> None:
    document = document_of(1)
    image = lane_row(document, plane, TimeRange(0, 1000))
    colours = LIGHT.kinds[letter]
    assert abs(is_colour(image, colours.fill).all(axis=0).sum() - solid) <= 3
    assert abs(is_colour(image, mixed(colours.fill, LIGHT.panel, PALE)).all(axis=0).sum() - (200 - solid)) <= 4
    late = lane_row(document_of(1, 1250), plane, TimeRange(0, 1250))
    assert len(np.unique(late[:, 100:155].reshape(-1, 3), axis=0)) <= 3, "solid, its edge and pale"
    assert len(np.unique(late[:, 165:195].reshape(-1, 3), axis=0)) > 3, "hatched above the floor of the whole event"


@pytest.mark.parametrize("count", [3, 900, 3 * SMALLEST_ROW])
def test_its_speed_is_that_of_what_each_lane_explains(count: int) -> None:
    for took, said in ((1000, {"W": "100 %", "K": "100 %"}), (1250, {"W": "71 %", "K": "62 %"})):
        document = document_of(count, took)
        visible = document.step_range(0)
        view = ViewState(visible, step=0)
        planes = document.planes(visible, 300)
        for row in rows_of(document, view):
            if row.key in said and row.plane is not None:
                assert figures(document, view, row, planes[row.plane])[0] == said[row.key]
        if count > SMALLEST_ROW:
            content = planes[Plane.WEIGHTS]
            assert isinstance(content, Columns)
            assert content.other is not None
            above = content.busy - content.floor - content.other
            assert above == pytest.approx(np.full(300, (took - 1000) / took), abs=0.02)
