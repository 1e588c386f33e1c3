"""Bars under 3 px: all of a row at once, in one image; shares of kinds and the gap stay in sight."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from PySide6.QtCore import QRectF

from tracescope.core.columns import I64
from tracescope.core.timerange import TimeRange
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
    apart = (np.diff(rows) > 1) | (np.diff(placed.row[rows]) != 0)
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
    """The small bars of ``runs`` folded into pixel columns of the bands, uint32[height, columns]."""
    rows, start = runs.rows, runs.start
    # Only the rows that have any are folded: they are put one after another in time as their columns are in place.
    own, place = np.zeros(1, np.int64), np.zeros(len(rows), np.int64)
    if len(grid.tops) > 1:
        own, place = np.unique(placed.row[rows], return_inverse=True)
    width = max(1, round(time.width))
    small, visible = _after_one_another(bars.taken(rows), time.visible, place, len(own))
    columns = columns_of(small, visible, width * len(own))
    left, right = placed.x0[rows][start], np.maximum.reduceat(placed.x1[rows], start)
    short = right - left <= BOX_PX
    first = place[start][short] * width
    low = np.floor(left[short] - time.left).astype(np.int64) - 1
    high = np.ceil(right[short] - time.left).astype(np.int64) + 1
    low, high = (first + np.minimum(np.maximum(at, 0), width) for at in (low, high))
    ends = width * len(own)
    full = np.cumsum(np.bincount(low, minlength=ends + 1) - np.bincount(high, minlength=ends + 1))[:ends] > 0
    single = LETTERS[small.kind[0]] if (small.kind == small.kind[0]).all() else ""
    floor, pale = style.floor and not style.plain, style.pale or style.plain
    edges = column_heights(columns, floor)
    if full.any():
        edges = np.where(full & (edges[-1] > 0), edges / np.maximum(edges[-1], 1e-12), edges)
    fills = column_fills(canvas.theme, floor=floor, letter=single, pitch=max(3, style.pitch - 1), pale=pale)
    levels = stack_levels(edges, grid.height, grid.width * len(own))
    pixels = stacked(levels, grid.height, fills, canvas.theme, canvas.scale)
    if len(own) == len(grid.tops):
        return pixels
    under = np.zeros((grid.height, len(grid.tops), grid.width), np.uint32)
    under[:, own] = pixels.reshape(grid.height, len(own), grid.width)
    return under.reshape(grid.height, grid.columns)


def _after_one_another(bars: Bars, visible: TimeRange, place: I64, count: int) -> tuple[Bars, TimeRange]:
    """Bars of several rows as if row r ran after row r - 1, each cut to what is in sight."""
    if count == 1:
        return bars, visible
    shift = place * visible.duration
    start, end = np.maximum(bars.start, visible.start), np.minimum(bars.end, visible.end)
    floor = np.maximum(np.minimum(bars.start + bars.floor, end) - start, 0)
    cut = replace(bars, start=start + shift, end=np.maximum(start, end) + shift, floor=floor)
    return cut, TimeRange(visible.start, visible.start + visible.duration * count)


def paint_tags(canvas: Canvas, bands: Sequence[QRectF], placed: Placed, runs: Runs) -> None:
    """How many bars a wide run holds."""
    left, right = placed.x0[runs.rows][runs.start], np.maximum.reduceat(placed.x1[runs.rows], runs.start)
    label = Style(10, 600, canvas.theme.text)
    for i in np.flatnonzero(right - left >= TAG_PX).tolist():
        text = f"×{runs.stop[i] - runs.start[i]:,}"
        band = bands[placed.row[runs.rows[runs.start[i]]]]
        canvas.tag(float(left[i] + right[i]) / 2, band.center().y() - 7.5, text, canvas.theme.panel, label)
