"""The event bar: solid up to the floor, hatched above it, a rail under the floor, its label and its marks."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
from PySide6.QtCore import QRectF

from tracescope.core.columns import I64
from tracescope.lod.fold import Bars
from tracescope.ui.fonts import elided, text_width
from tracescope.ui.paint.bar_pixels import drawn_bars, grid_of, paint_drawn
from tracescope.ui.paint.bar_style import (
    DIMMED,
    ELIDE_FROM_PX,
    LABEL_PAD,
    LETTERS,
    RAIL,
    RAIL_GAP,
    BarStyle,
    Marks,
    Placed,
    place,
)
from tracescope.ui.paint.canvas import CENTRE, Canvas, Style, centred_baseline
from tracescope.ui.paint.geometry import FULL_BAR_PX, THIN_BAR_PX, TimeScale
from tracescope.ui.paint.pixels import Pixels
from tracescope.ui.paint.small_bars import lonely, paint_tags, runs_of, small_pixels
from tracescope.ui.theme import colour

NARROWEST_LABEL_PX: Final = 8
"""No text fits into a narrower part of a bar."""
NARROWEST_IN_MANY_PX: Final = 44
MOST_LABELS: Final = 300
FEW_ROWS: Final = 8
"""Where more rows than this are drawn at once, so many of their bars of at least so many px carry labels."""


def paint_bars(canvas: Canvas, band: QRectF, bars: Bars, time: TimeScale, style: BarStyle, marks: Marks) -> None:
    """Draw bars in ``band`` (its y and height; x comes from ``time``)."""
    paint_rows(canvas, (band,), bars, None, time, style, marks)


def paint_rows(
    canvas: Canvas, bands: Sequence[QRectF], bars: Bars, row: I64 | None, time: TimeScale, style: BarStyle,
    marks: Marks, under: Pixels | None = None,
) -> None:  # fmt: skip
    """Draw bars of several rows at once, each in the band of its ``row`` (int64, None: all in the first), over
    ``under`` (uint32[height, columns] of the bands side by side)."""
    placed = place(bars, time, canvas.scale, row)
    if marks.matches is not None:
        found = marks.matches(bars.event)
        canvas.painter.setOpacity(DIMMED)
        plain = replace(style, labels=None, tags=False)
        _paint_all(canvas, bands, bars, placed, np.flatnonzero(~found), plain, marks, time, under)
        canvas.painter.setOpacity(1)
        _paint_all(canvas, bands, bars, placed, np.flatnonzero(found), style, marks, time)
    else:
        _paint_all(canvas, bands, bars, placed, np.arange(len(bars)), style, marks, time, under)
    _paint_marks(canvas, bands, bars, placed, style, marks)


def _paint_all(
    canvas: Canvas, bands: Sequence[QRectF], bars: Bars, placed: Placed, rows: I64, style: BarStyle, marks: Marks,
    time: TimeScale, ground: Pixels | None = None,
) -> None:  # fmt: skip
    if not len(rows) and ground is None:
        return
    width = placed.width[rows]
    grid = grid_of(bands, placed, style.pitch, canvas.scale)
    small = rows[width < THIN_BAR_PX]
    thin, full = rows[(width >= THIN_BAR_PX) & (width < FULL_BAR_PX)], rows[width >= FULL_BAR_PX]
    alone = small[:0]
    if style.ticks and len(small):
        alone, small = lonely(placed, small)
    drawn = drawn_bars(bars, placed, alone, thin, full, style, marks.tolerance_ns, grid, canvas.theme)
    runs = runs_of(placed, small) if len(small) else None
    under = ground
    if runs is not None:
        folded = small_pixels(canvas, bars, placed, runs, style, time, grid)
        under = folded if ground is None else np.where(folded != 0, folded, ground)
    paint_drawn(canvas, grid, drawn, under)
    if runs is not None and style.tags:
        paint_tags(canvas, bands, placed, runs)
    if len(full):
        _paint_labels(canvas, bands, bars, placed, full, style)


def _paint_labels(
    canvas: Canvas, bands: Sequence[QRectF], bars: Bars, placed: Placed, rows: I64, style: BarStyle
) -> None:
    """The labels of full bars, in their solid part (of a pale bar in its pale part, of others in all of them)."""
    theme = canvas.theme
    start, end = np.maximum(placed.x0[rows], placed.left), placed.x1[rows]
    solid = style.floor & bars.known[rows]
    reached = np.minimum(placed.floor[rows], end)
    if style.pale and not style.plain:
        start = np.maximum(start, np.where(solid, reached, start))
    elif not style.plain:
        end = np.where(solid, reached, end)
    end = np.minimum(end, placed.right)
    labels = style.labels
    if labels is None:
        return
    room = end - start
    least: float = NARROWEST_LABEL_PX
    if len(bands) > FEW_ROWS:
        # Of hundreds of rows only the longest bars are named: more could not be read, and not be drawn in time.
        longest = np.sort(room[room >= NARROWEST_IN_MANY_PX])[-MOST_LABELS:]
        least = float(longest[0]) if len(longest) else np.inf
    for i in np.flatnonzero(room >= least).tolist():
        row = rows[i]
        texts = labels(int(bars.event[row]))
        if not texts:
            continue
        muted = bars.muted[row]
        if style.plain or style.pale:
            shade = theme.text
        elif style.floor and not bars.known[row]:
            shade = theme.text2 if muted else theme.text
        else:
            shade = theme.text if muted else theme.kinds[LETTERS[bars.kind[row]]].label
        _label(canvas, (float(start[i]), float(end[i])), bands[placed.row[row]], texts, style, shade)


def _label(
    canvas: Canvas, span: tuple[float, float], band: QRectF, texts: tuple[str, ...], style: BarStyle, hex_colour: str
) -> None:
    """The longest text that fits into ``span`` (the part in sight) with 5 px on each side."""
    room = span[1] - span[0] - 2 * LABEL_PAD
    if style.plain and room >= ELIDE_FROM_PX:
        fitting = next((t for t in texts if text_width(t, style.label_px, 400) <= room), None)
        plain = Style(style.label_px, 400, hex_colour)
        shown = fitting if fitting is not None else elided(texts[-1], room, plain.px)
        canvas.text(span[0] + LABEL_PAD, centred_baseline(band, plain), shown, plain)
        return
    if room < narrowest(texts, style.label_px) - 2 * LABEL_PAD:
        return
    for text in texts:
        if text_width(text, style.label_px, 600) <= room:
            text_style = Style(style.label_px, 600, hex_colour)
            canvas.text(span[0] + LABEL_PAD, centred_baseline(band, text_style), text, text_style)
            return
    # A last try: the shortest text a size smaller, as close to the edges as still looks apart from them.
    small = Style(10, 600, hex_colour)
    if text_width(texts[-1], small.px, 600) <= room + 2 * (LABEL_PAD - 1):
        canvas.text((span[0] + span[1]) / 2, centred_baseline(band, small), texts[-1], small, CENTRE)


@lru_cache(maxsize=4096)
def narrowest(texts: tuple[str, ...], px: float) -> float:
    """The narrowest part of a bar that any of ``texts`` fits into, in px."""
    return min(min(text_width(text, px, 600) for text in texts) + 2 * LABEL_PAD, text_width(texts[-1], 10, 600) + 2)


def _paint_marks(
    canvas: Canvas, bands: Sequence[QRectF], bars: Bars, placed: Placed, style: BarStyle, marks: Marks
) -> None:
    below = RAIL_GAP + RAIL if style.rail and style.floor and not style.plain and not style.pale else 0
    for event, is_hover in ((marks.selected, False), (marks.hover, True)):
        if event < 0:
            continue
        for row in np.flatnonzero(bars.event == event).tolist():
            band = bands[placed.row[row]]
            rect = QRectF(placed.x0[row], band.top(), placed.x1[row] - placed.x0[row], band.height())
            if is_hover:
                canvas.frame(rect.adjusted(-1, -1, 1, 1), canvas.theme.ink)
            else:
                canvas.outline(rect.adjusted(-2, -2, 2, 2 + below), canvas.theme.accent, 2, 3)


def gap_labels(
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
