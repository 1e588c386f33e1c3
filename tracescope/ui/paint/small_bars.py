"""Bars under 3 px: all of a row at once, in one image; shares of kinds and the excess stay in sight."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtCore import QRectF

from tracescope.core.columns import I64
from tracescope.lod.fold import Bars, columns_of
from tracescope.ui.paint.bar_pixels import Grid
from tracescope.ui.paint.bar_style import LETTERS, TAG_PX, BarStyle, Placed
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.paint.folded import column_fills, column_heights, stack_levels
from tracescope.ui.paint.geometry import TimeScale
from tracescope.ui.paint.pixels import Pixels, stacked

BOX_PX: Final = 12
"""Runs up to this width fill the height of the row; the stack of a wider one is as high as it is busy."""


@dataclass(frozen=True, eq=False, slots=True)
class Runs:
    """Neighbouring small bars that touch or nearly touch: rows ``start:stop`` of ``rows``, int64 each."""

    rows: I64
    start: I64
    stop: I64


def runs_of(placed: Placed, rows: I64) -> Runs:
    """The runs among the small bars ``rows``."""
    gap = placed.x0[rows][1:] - placed.x1[rows][:-1] > 1
    apart = np.diff(rows) > 1
    start = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(gap | apart) + 1])
    return Runs(rows, start, np.append(start[1:], len(rows)))


def lonely(placed: Placed, rows: I64) -> tuple[I64, I64]:
    """The small bars that stand alone, and the others."""
    if not len(rows):
        return rows, rows
    runs = runs_of(placed, rows)
    alone = runs.stop - runs.start == 1
    return rows[runs.start[alone]], rows[np.repeat(~alone, runs.stop - runs.start)]


def small_pixels(
    canvas: Canvas, bars: Bars, placed: Placed, runs: Runs, style: BarStyle, time: TimeScale, grid: Grid
) -> Pixels:
    """The small bars of ``runs`` folded into pixel columns of the band, uint32[height, width]."""
    rows, start = runs.rows, runs.start
    small = bars.taken(rows)
    width = max(1, round(time.width))
    columns = columns_of(small, time.visible, width)
    left, right = placed.x0[rows][start], np.maximum.reduceat(placed.x1[rows], start)
    short = right - left <= BOX_PX
    low = np.clip(np.floor(left[short] - time.left).astype(np.int64) - 1, 0, width)
    high = np.clip(np.ceil(right[short] - time.left).astype(np.int64) + 1, 0, width)
    full = np.cumsum(np.bincount(low, minlength=width + 1) - np.bincount(high, minlength=width + 1))[:width] > 0
    single = LETTERS[small.kind[0]] if (small.kind == small.kind[0]).all() else ""
    floor, pale = style.floor and not style.plain, style.pale or style.plain
    edges = column_heights(columns, floor)
    if full.any():
        edges = np.where(full & (edges[-1] > 0), edges / np.maximum(edges[-1], 1e-12), edges)
    fills = column_fills(canvas.theme, floor=floor, letter=single, pitch=max(3, style.pitch - 1), pale=pale)
    levels = stack_levels(edges, grid.height, grid.width)
    return stacked(levels, grid.height, fills, canvas.theme, canvas.scale)


def paint_tags(canvas: Canvas, band: QRectF, placed: Placed, runs: Runs) -> None:
    """How many bars a wide run holds."""
    left, right = placed.x0[runs.rows][runs.start], np.maximum.reduceat(placed.x1[runs.rows], runs.start)
    label = Style(10, 600, canvas.theme.text)
    for i in np.flatnonzero(right - left >= TAG_PX).tolist():
        text = f"×{runs.stop[i] - runs.start[i]:,}"
        canvas.tag(float(left[i] + right[i]) / 2, band.center().y() - 7.5, text, canvas.theme.panel, label)
