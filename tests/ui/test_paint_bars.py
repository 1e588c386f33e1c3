"""Pixel probes: solid is the floor, hatch is what is above it, the rail is as long as the solid part."""

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from tests.kit.pictures import document_of, is_colour, painted, rgb
from tests.kit.traces import kernel, make_trace
from tracescope.core.category import Category, Op
from tracescope.core.timerange import TimeRange
from tracescope.lod.fold import Bars, Columns, columns_of
from tracescope.lod.planes import Plane
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.bar_style import BarStyle, Marks, place
from tracescope.ui.paint.bars import paint_bars
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.folded import column_heights, paint_columns
from tracescope.ui.paint.geometry import TimeScale
from tracescope.ui.paint.hatch import GAP, INK, hatch_brush, hatch_pixels
from tracescope.ui.theme import DARK, LIGHT, Theme
from tracescope.view.document import Document

VISIBLE = TimeRange(0, 1000)
BAND = QRectF(0, 10, 500, 20)


def bars_of(document: Document, plane: Plane = Plane.PATH, visible: TimeRange = VISIBLE) -> Bars:
    content = document.planes(visible, 500)[plane]
    assert isinstance(content, Bars)
    return content


def draw(
    document: Document, *, visible: TimeRange = VISIBLE, scale: float = 1, theme: Theme = LIGHT,
    style: BarStyle | None = None, marks: Marks | None = None, plane: Plane = Plane.PATH,
) -> np.ndarray:  # fmt: skip
    bars = bars_of(document, plane, visible)

    def paint(painter: QPainter) -> None:
        canvas = Canvas(painter, theme, scale)
        canvas.begin()
        paint_bars(canvas, BAND, bars, TimeScale(visible, 0, 500), style or BarStyle(), marks or Marks())

    return painted(500, 50, theme, paint, scale)


def one(duration: int, weight: int, start: int = 100) -> Document:
    """One event; at 1 TB/s a thousand bytes take one nanosecond."""
    return document_of(make_trace([kernel(start, duration, weight_read=weight)]))


@pytest.mark.parametrize("scale", [1, 1.25, 1.5, 2, 3])
@pytest.mark.parametrize(("duration", "floor"), [(600, 480), (600, 600), (300, 30), (80, 50)])
def test_solid_is_the_floor_and_hatch_the_rest(qapp: object, scale: float, duration: int, floor: int) -> None:
    image = draw(one(duration, floor * 1000), scale=scale)
    fill = LIGHT.kinds["W"].fill
    middle = image[round(20 * scale)]
    solid = np.flatnonzero(is_colour(middle, fill))
    inside = np.flatnonzero(~is_colour(middle, LIGHT.panel))
    left, right = round(50 * scale), round((100 + duration) / 2 * scale)
    edge = round(scale) + 1
    assert abs(inside[0] - left) <= 1
    assert abs(inside[-1] + 1 - right) <= 1
    assert abs(solid[-1] + 1 - round((100 + floor) / 2 * scale)) <= edge
    rail = np.flatnonzero(is_colour(image[round(33 * scale)], LIGHT.ink))
    assert abs(rail[0] - left) <= 1
    assert abs(rail[-1] + 1 - round((100 + floor) / 2 * scale)) <= 1


def test_hatch_fills_everything_above_the_floor(qapp: object) -> None:
    image = draw(one(600, 200_000))
    hatched = image[12:28, 155:345].reshape(-1, 3)
    colours = LIGHT.kinds["W"]
    assert is_colour(hatched, colours.tint).any()
    assert not is_colour(hatched, colours.fill).any()
    assert not is_colour(hatched, LIGHT.panel).any()
    dark = is_colour(hatched, colours.hatch).mean()
    assert 0.1 < dark < 0.6


def test_without_the_overlay_bars_are_solid_and_have_no_rail(qapp: object) -> None:
    image = draw(one(600, 200_000), style=BarStyle(floor=False))
    assert is_colour(image[20, 60:340], LIGHT.kinds["W"].fill).all()
    assert not is_colour(image[33], LIGHT.ink).any()


def test_unknown_bytes_are_tinted_dotted_and_have_no_rail(qapp: object) -> None:
    image = draw(one(600, -1))
    colours = LIGHT.kinds["W"]
    assert is_colour(image[20, 60:340], colours.tint).all()
    top = is_colour(image[10, 50:350], colours.edge)
    assert 0.3 < top.mean() < 0.5
    assert not is_colour(image[33], LIGHT.ink).any()


def test_a_bar_faster_than_its_floor_ends_before_its_rail(qapp: object) -> None:
    image = draw(one(400, 600_000))
    assert not is_colour(image[20, 252:340], LIGHT.kinds["W"].fill).any()
    rail = np.flatnonzero(is_colour(image[33], LIGHT.ink))
    assert abs(rail[-1] - 349) <= 1
    assert is_colour(image[15, 340:352], LIGHT.ink).any(), "the ink stop at the floor"
    assert is_colour(image[10:30, 255:345].reshape(-1, 3), LIGHT.warning_text).any(), "the warning triangle"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_selection_and_hover_are_both_shown(qapp: object, theme: Theme) -> None:
    document = one(600, 300_000)
    image = draw(document, theme=theme, marks=Marks(selected=0, hover=0))
    assert is_colour(image[20, 46:50], theme.accent).any()
    assert is_colour(image[20, 48:52], theme.ink).any()


def test_what_a_search_did_not_find_is_dimmed(qapp: object) -> None:
    trace = make_trace([kernel(100, 200, weight_read=200_000), kernel(500, 200, weight_read=200_000, op=Op.DOWN)])
    document = document_of(trace)
    image = draw(document, marks=Marks(matches=document.matching("down")))
    fill = LIGHT.kinds["W"].fill
    assert not is_colour(image[20, 50:150], fill).any()
    assert is_colour(image[20, 255:345], fill).any()


@pytest.mark.parametrize("width", [60, 90, 140, 200])
def test_a_label_never_leaves_the_solid_part(qapp: object, width: int) -> None:
    document = one(width * 2, width * 1400)
    texts = ("attention 98.4 µs", "attention", "at")
    style = BarStyle(labels=lambda _event: texts)
    plain, labelled = draw(document), draw(document, style=style)
    changed = np.flatnonzero((plain != labelled).any(axis=(0, 2)))
    solid_end = 50 + width * 0.7
    assert len(changed)
    assert changed[0] >= 51
    assert changed[-1] < solid_end


def test_a_label_that_does_not_fit_is_left_out(qapp: object) -> None:
    document = one(20, 10_000)
    style = BarStyle(labels=lambda _event: ("attention",))
    assert text_width("attention", 10, 600) > 20
    assert (draw(document) == draw(document, style=style)).all()


def test_every_event_is_painted_however_small(qapp: object) -> None:
    made = [kernel(i * 50, 1, Category.KV_APPEND, kv_append=1) for i in range(20)]
    image = draw(document_of(make_trace(made)), plane=Plane.KV_APPENDS)
    drawn = ~is_colour(image[20], LIGHT.panel)
    for i in range(20):
        assert drawn[round(i * 25)], f"event {i}"


def test_a_folded_run_keeps_shares_and_excess() -> None:
    made = [kernel(i * 10, 10, weight_read=4_000) for i in range(10)]
    made += [kernel(100 + i * 10, 10, Category.KV_READ, kv_read=10_000) for i in range(10)]
    made += [kernel(200, 100, weight_read=-1)]
    bars = bars_of(document_of(make_trace(made)))
    columns = columns_of(bars, VISIBLE, 10)
    assert columns.share[0].tolist() == pytest.approx([1, 0, 1] + [0] * 7)
    assert columns.share[1].tolist() == pytest.approx([0, 1] + [0] * 8)
    assert columns.floor.tolist() == pytest.approx([0.4, 1] + [0] * 8)
    assert columns.unknown.tolist() == pytest.approx([0, 0, 1] + [0] * 7)
    heights = column_heights(columns, floor=True)
    assert heights[5, :3].tolist() == pytest.approx([0.4, 1, 0])
    assert heights[6, :3].tolist() == pytest.approx([0.4, 1, 1])
    assert heights[7, :3].tolist() == pytest.approx([1, 1, 1])
    assert column_heights(columns, floor=False)[5].tolist() == pytest.approx([1, 1, 1] + [0] * 7)


def test_folded_columns_stack_kinds_then_what_is_above() -> None:
    share = np.zeros((6, 2), np.float32)
    share[0], share[1] = 0.5, 0.25
    heights = column_heights(Columns(share, np.array([0.6, 0.75], np.float32), np.zeros(2, np.float32)), floor=True)
    assert heights[-1].tolist() == pytest.approx([0.75, 0.75])
    assert heights[1].tolist() == pytest.approx([0.6, 0.75])
    assert heights[0, 0] == pytest.approx(0.4)


def test_folded_hatch_does_not_vanish(qapp: object) -> None:
    share = np.zeros((6, 100), np.float32)
    share[0] = 0.9
    columns = Columns(share, np.full(100, 0.5, np.float32), np.zeros(100, np.float32))

    def paint(painter: QPainter) -> None:
        canvas = Canvas(painter, LIGHT, 1)
        paint_columns(canvas, QRectF(0, 0, 100, 20), columns, floor=True, letter="W")

    image = painted(100, 20, LIGHT, paint)
    colours = LIGHT.kinds["W"]
    assert is_colour(image[12:20].reshape(-1, 3), colours.fill).all()
    upper = image[3:9].reshape(-1, 3)
    assert is_colour(upper, colours.tint).any()
    line = np.abs(upper.astype(int) - np.array(rgb(colours.hatch))).max(axis=1) < 12
    assert 0.1 < line.mean() < 0.6
    assert is_colour(image[0], LIGHT.panel).all()


def test_gap_hatch_leans_the_other_way(qapp: object) -> None:
    ink, gap = hatch_pixels(INK, LIGHT, 8, 1).astype(np.int64), hatch_pixels(GAP, LIGHT, 8, 1).astype(np.int64)
    assert (np.abs((ink & 0xFF) - (gap[:, ::-1] & 0xFF)) <= 6).all()
    assert (np.abs((ink & 0xFF) - (gap & 0xFF)) > 40).any()
    assert hatch_brush("W", LIGHT, 5, 1) is hatch_brush("W", LIGHT, 5, 1)


@pytest.mark.parametrize("dpr", [1, 1.25, 2, 3])
def test_hatch_tiles_are_seamless(qapp: object, dpr: float) -> None:
    tile = hatch_pixels(INK, LIGHT, 6, dpr) & 0xFF
    size = len(tile)
    doubled = np.tile(tile, (2, 2)).astype(np.int64)
    for shift in range(1, size):
        window = doubled[shift : shift + size, size - shift : 2 * size - shift]
        assert (np.abs(window - tile.astype(np.int64)) <= 40).all(), "a 45 degree pattern repeats along itself"


def test_clipping_happens_in_integers_before_pixels(qapp: object) -> None:
    base = 1_767_000_000_000_000_000
    document = document_of(make_trace([kernel(base, 10**17, weight_read=10**3)]))
    bars = bars_of(document, visible=TimeRange(base + 500, base + 501))
    placed = place(bars, TimeScale(TimeRange(base + 500, base + 501), 0, 500), 1)
    assert -10_000 < placed.x0[0] <= 0
    assert 500 <= placed.x1[0] < 10_000
