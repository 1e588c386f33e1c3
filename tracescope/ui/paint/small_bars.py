"""Bars under 3 px: all of a row at once, in one image; shares of kinds and the excess stay in sight."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

from tracescope.lod.fold import Bars, columns_of
from tracescope.ui.paint.bar_style import LETTERS, TAG_PX, UNKNOWN_SMALL, BarStyle, Placed
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.paint.folded import paint_columns
from tracescope.ui.paint.geometry import TimeScale
from tracescope.ui.theme import mixed

BOX_PX: Final = 12
"""Runs up to this width fill the height of the row; the stack of a wider one is as high as it is busy."""


def runs_of(placed: Placed, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbouring small bars that touch or nearly touch, as slices ``start:stop`` of ``rows``, int64 each."""
    gap = placed.x0[rows][1:] - placed.x1[rows][:-1] > 1
    apart = np.diff(rows) > 1
    start = np.concatenate([[0], np.flatnonzero(gap | apart) + 1])
    return start, np.append(start[1:], len(rows))


def _paint_ticks(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, rows: NDArray[np.int64], style: BarStyle
) -> NDArray[np.int64]:
    """Draw the bars that stand alone, and return the others."""
    start, stop = runs_of(placed, rows)
    alone = stop - start == 1
    for row in rows[start[alone]].tolist():
        fill = canvas.theme.kinds[LETTERS[bars.kind[row]]].fill
        quiet = bars.muted[row] or (style.floor and not bars.known[row])
        ground = mixed(fill, canvas.theme.panel, UNKNOWN_SMALL) if quiet else fill
        x0, x1 = float(placed.x0[row]), float(placed.x1[row])
        canvas.fill(QRectF(x0, band.top(), x1 - x0, band.height()), ground)
    others: NDArray[np.int64] = rows[np.repeat(~alone, stop - start)]
    return others


def paint_small(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, rows: NDArray[np.int64], style: BarStyle, time: TimeScale
) -> None:
    """Fold the bars ``rows`` (all under 3 px) into pixel columns: a lonely one is a tick, a run keeps its shares."""
    if not len(rows):
        return
    if style.ticks:
        rows = _paint_ticks(canvas, band, bars, placed, rows, style)
        if not len(rows):
            return
    small = bars.taken(rows)
    width = max(1, round(time.width))
    columns = columns_of(small, time.visible, width)
    start, stop = runs_of(placed, rows)
    left, right = placed.x0[rows][start], np.maximum.reduceat(placed.x1[rows], start)
    short = right - left <= BOX_PX
    full = np.zeros(width + 1, np.int64)
    low = np.clip(np.floor(left[short] - time.left).astype(np.int64) - 1, 0, width)
    high = np.clip(np.ceil(right[short] - time.left).astype(np.int64) + 1, 0, width)
    np.add.at(full, low, 1)
    np.add.at(full, high, -1)
    single = LETTERS[small.kind[0]] if (small.kind == small.kind[0]).all() else ""
    area = QRectF(time.left, band.top(), time.width, band.height())
    paint_columns(
        canvas, area, columns, floor=style.floor and not style.plain, letter=single, pitch=max(3, style.pitch - 1),
        pale=style.pale or style.plain, full=np.cumsum(full)[:width] > 0,
    )  # fmt: skip
    if style.tags:
        for i in np.flatnonzero(right - left >= TAG_PX).tolist():
            label = Style(10, 600, canvas.theme.text)
            centre = float(left[i] + right[i]) / 2
            canvas.tag(centre, band.center().y() - 7.5, f"×{stop[i] - start[i]:,}", canvas.theme.panel, label)
