"""The event bar: solid up to the floor, hatched above it, a rail under the floor, its label and its marks."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF

from tracescope.lod.fold import Bars
from tracescope.ui.fonts import elided, text_width
from tracescope.ui.paint.bar_style import (
    DIMMED,
    ELIDE_FROM_PX,
    LABEL_PAD,
    LETTERS,
    MUTED,
    PALE,
    PALE_EDGE_PX,
    RAIL,
    RAIL_GAP,
    SMALL,
    BarStyle,
    Marks,
    Placed,
    place,
)
from tracescope.ui.paint.canvas import CENTRE, Canvas, Style, centred_baseline
from tracescope.ui.paint.geometry import FULL_BAR_PX, THIN_BAR_PX, TimeScale
from tracescope.ui.paint.small_bars import paint_small
from tracescope.ui.theme import colour, mixed


def paint_bars(canvas: Canvas, band: QRectF, bars: Bars, time: TimeScale, style: BarStyle, marks: Marks) -> None:
    """Draw bars in ``band`` (its y and height; x comes from ``time``)."""
    if not len(bars):
        return
    placed = place(bars, time, canvas.scale)
    if marks.matches is not None:
        found = marks.matches(bars.event)
        canvas.painter.setOpacity(DIMMED)
        plain = replace(style, labels=None, tags=False)
        _paint_all(canvas, band, bars, placed, np.flatnonzero(~found), plain, marks, time)
        canvas.painter.setOpacity(1)
        _paint_all(canvas, band, bars, placed, np.flatnonzero(found), style, marks, time)
    else:
        _paint_all(canvas, band, bars, placed, np.arange(len(bars)), style, marks, time)
    _paint_marks(canvas, band, bars, placed, style, marks)


def _paint_all(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, rows: NDArray[np.int64], style: BarStyle, marks: Marks,
    time: TimeScale,
) -> None:  # fmt: skip
    width = placed.width[rows]
    paint_small(canvas, band, bars, placed, rows[width < THIN_BAR_PX], style, time)
    thin = rows[(width >= THIN_BAR_PX) & (width < FULL_BAR_PX)]
    for row in thin.tolist():
        _thin_bar(canvas, band, bars, placed, row, style)
    for row in rows[width >= FULL_BAR_PX].tolist():
        _full_bar(canvas, band, bars, placed, row, style, marks)


def _full_bar(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, row: int, style: BarStyle, marks: Marks
) -> None:
    theme = canvas.theme
    colours = theme.kinds[LETTERS[bars.kind[row]]]
    muted = bool(bars.muted[row])
    x0, x1, floor = float(placed.x0[row]), float(placed.x1[row]), float(placed.floor[row])
    rect = QRectF(x0, band.top(), x1 - x0, band.height())
    label_start, label_end, label_colour = x0, x1, theme.text
    if style.plain:
        canvas.fill(rect, mixed(colours.fill, theme.panel, PALE))
    elif style.pale:
        canvas.fill(rect, mixed(colours.fill, theme.panel, PALE / 2 if muted else PALE))
        if style.floor and bars.known[row] and floor > x0:
            canvas.fill(QRectF(x0, band.top(), min(floor, x1) - x0, band.height()), colours.fill)
            label_start = min(floor, x1)
    elif style.floor and not bars.known[row]:
        canvas.fill(rect, colours.tint)
        label_colour = theme.text2 if muted else theme.text
    else:
        solid = min(floor, x1) if style.floor else x1
        if solid > x0:
            ground = mixed(colours.fill, theme.panel, MUTED) if muted else colours.fill
            canvas.fill(QRectF(x0, band.top(), solid - x0, band.height()), ground)
        if style.floor:
            _above_floor(canvas, band, bars, placed, row, style, marks)
        label_end, label_colour = solid, theme.text if muted else colours.label
    if style.floor and not (style.plain or style.pale or bars.known[row]):
        _dotted(canvas, rect, colours.edge)
    # The outline of a narrow pale bar would be heavier than what it holds.
    elif not style.pale or x1 - x0 >= PALE_EDGE_PX:
        canvas.frame(rect, colours.edge)
    span = max(label_start, placed.left), min(label_end, placed.right)
    _label(canvas, span, band, int(bars.event[row]), style, label_colour)


def _above_floor(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, row: int, style: BarStyle, marks: Marks
) -> None:
    """The hatch, the edge at the floor and the rail under it; for an impossible bar the ink stop and the triangle."""
    letter = LETTERS[bars.kind[row]]
    x0, x1, floor = float(placed.x0[row]), float(placed.x1[row]), float(placed.floor[row])
    if floor < x1:
        hatched = QRectF(floor, band.top(), x1 - floor, band.height())
        canvas.hatch(hatched, letter, style.pitch, QPointF(x0, band.top()))
        if floor > x0:
            canvas.fill(QRectF(floor, band.top(), 1, band.height()), canvas.theme.kinds[letter].edge)
    if not style.rail or floor <= x0:
        return
    canvas.fill(QRectF(x0, band.bottom() + RAIL_GAP, floor - x0, RAIL), canvas.theme.ink)
    if bars.floor[row] - (bars.end[row] - bars.start[row]) > marks.tolerance_ns:
        canvas.fill(QRectF(floor - RAIL, band.top(), RAIL, band.height() + RAIL_GAP + RAIL), canvas.theme.ink)
        if floor - x1 > 18:
            canvas.warning((x1 + floor) / 2 - 6, band.center().y() - 6)


def _dotted(canvas: Canvas, rect: QRectF, edge: str) -> None:
    """The 2-3 dashed outline of "no bytes recorded"."""
    canvas.dashed(rect.left(), rect.right(), rect.top(), edge, 2, 3)
    canvas.dashed(rect.left(), rect.right(), rect.bottom() - 1, edge, 2, 3)
    y = rect.top()
    while y < rect.bottom():
        height = min(2.0, rect.bottom() - y)
        canvas.fill(QRectF(rect.left(), y, 1, height), edge)
        canvas.fill(QRectF(rect.right() - 1, y, 1, height), edge)
        y += 5


def _label(
    canvas: Canvas, span: tuple[float, float], band: QRectF, event: int, style: BarStyle, hex_colour: str
) -> None:
    """The longest text that fits into ``span`` (the part in sight) with 5 px on each side."""
    room = span[1] - span[0] - 2 * LABEL_PAD
    if style.labels is None or room < -LABEL_PAD:
        return
    text_style = Style(style.label_px, 600, hex_colour)
    texts = style.labels(event)
    if style.plain and texts and room >= ELIDE_FROM_PX:
        fitting = next((t for t in texts if text_width(t, style.label_px, 400) <= room), None)
        plain = Style(style.label_px, 400, hex_colour)
        shown = fitting if fitting is not None else elided(texts[-1], room, plain.px)
        canvas.text(span[0] + LABEL_PAD, centred_baseline(band, plain), shown, plain)
        return
    for text in texts:
        if text_width(text, style.label_px, 600) <= room:
            canvas.text(span[0] + LABEL_PAD, centred_baseline(band, text_style), text, text_style)
            return
    # A last try: the shortest text a size smaller, as close to the edges as still looks apart from them.
    small = Style(10, 600, hex_colour)
    width = text_width(texts[-1], small.px, 600) if texts else room
    if texts and width <= room + 2 * (LABEL_PAD - 1):
        canvas.text((span[0] + span[1]) / 2, centred_baseline(band, small), texts[-1], small, CENTRE)


def _thin_bar(canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, row: int, style: BarStyle) -> None:
    colours = canvas.theme.kinds[LETTERS[bars.kind[row]]]
    x0, x1 = float(placed.x0[row]), float(placed.x1[row])
    unknown = style.floor and not bars.known[row] and not style.plain
    share = PALE if bars.muted[row] or unknown or style.plain else SMALL
    canvas.fill(QRectF(x0, band.top(), x1 - x0, band.height()), mixed(colours.fill, canvas.theme.panel, share))
    canvas.fill(QRectF(x0, band.top(), 1.2, band.height()), colours.edge)


def _paint_marks(canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, style: BarStyle, marks: Marks) -> None:
    below = RAIL_GAP + RAIL if style.rail and style.floor and not style.plain and not style.pale else 0
    for event, is_hover in ((marks.selected, False), (marks.hover, True)):
        if event < 0:
            continue
        for row in np.flatnonzero(bars.event == event).tolist():
            rect = QRectF(placed.x0[row], band.top(), placed.x1[row] - placed.x0[row], band.height())
            if is_hover:
                canvas.frame(rect.adjusted(-1, -1, 1, 1), canvas.theme.ink)
            else:
                canvas.outline(rect.adjusted(-2, -2, 2, 2 + below), canvas.theme.accent, 2, 3)


def excess_labels(
    canvas: Canvas, baseline: float, ends: list[tuple[float, str, bool]], limits: tuple[float, float], px: float = 10
) -> None:
    """Texts right-aligned at bar ends, given largest first; one that would touch another or a limit is left out."""
    taken: list[tuple[float, float]] = []
    for right, text, bold in ends:
        style = Style(px, 600 if bold else 400, canvas.theme.text if bold else canvas.theme.text2)
        width = text_width(text, style.px, style.weight)
        left = right - width
        if left < limits[0] or right > limits[1] or any(left < b + 5 and a - 5 < right for a, b in taken):
            continue
        canvas.text(left, baseline, text, style)
        taken.append((left, right))


def letter_tag(canvas: Canvas, rect: QRectF, texts: tuple[str, ...]) -> None:
    """The longest of ``texts`` that fits into a hatched ``rect``, on a panel-coloured ground."""
    style = Style(11, 600, canvas.theme.text)
    for text in texts:
        width = text_width(text, style.px, style.weight) + 8
        if width <= rect.width() - 4:
            ground = QRectF(rect.center().x() - width / 2, rect.center().y() - 8, width, 16)
            canvas.painter.fillRect(canvas.snapped(ground), colour(canvas.theme.panel))
            canvas.text(rect.center().x(), centred_baseline(rect, style), text, style, CENTRE)
            return
