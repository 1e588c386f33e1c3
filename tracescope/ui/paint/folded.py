"""Stacks per pixel column, composed in memory and blitted once: folded rows, and the areas of counters."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

from tracescope.core.category import KINDS
from tracescope.core.columns import Bool
from tracescope.lod.fold import Columns
from tracescope.ui.paint.bar_style import LETTERS, PALE, UNKNOWN_SMALL
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.hatch import GAP, INK
from tracescope.ui.paint.pixels import Fill, Hatched, Levels, draw_pixels, stacked
from tracescope.ui.theme import Theme, mixed

F64 = NDArray[np.float64]


def paint_stack(canvas: Canvas, rect: QRectF, edges: F64, fills: Sequence[Fill], *, keep: bool = True) -> None:
    """Draw ``edges`` (upper edges of the parts as shares of the height, float64[parts, columns], rising) in ``rect``.

    One column is a logical pixel; part i has ``fills[i]``. ``keep``: a column whose stack is less than a device pixel
    high gets one, so that no event vanishes.
    """
    area = canvas.snapped(rect)
    height = max(1, round(area.height() * canvas.scale))
    width = max(1, round(area.width() * canvas.scale))
    levels = stack_levels(edges, height, width, keep=keep)
    draw_pixels(canvas, stacked(levels, height, fills, canvas.theme, canvas.scale), area.left(), area.top())


def stack_levels(edges: F64, height: int, width: int, *, keep: bool = True) -> Levels:
    """Upper edges of parts as shares of the height (float64[parts, columns]) in device pixels, int16[parts, width].

    A pixel belongs to the lowest part that reaches above its middle.
    """
    high = edges * height
    if keep:
        top = high[-1]
        low = (top > 0) & (top < 1)
        if low.any():
            high = np.where(low, high / np.maximum(top, 1e-12), high)
    levels: Levels = np.ceil(high - 0.5).astype(np.int16)
    columns = edges.shape[1]
    if columns != width:
        levels = levels[:, np.minimum((np.arange(width) * columns) // width, columns - 1)]
    return levels


def column_heights(columns: Columns, floor: bool) -> F64:
    """Upper edges of the stack of each column as shares of the height, float64[8, width].

    Six kinds, then time that is told to be neither floor nor above it (its floor is not known, or is that of other
    lanes), then what is above the floor. Up to the floor each kind has its
    part of the busy time; the gap comes last, so that it is kept however far one zooms out. Without the floor
    overlay all busy time is solid.
    """
    share = columns.share.astype(np.float64)
    busy = share.sum(axis=0)
    edges = np.empty((len(share) + 2, share.shape[1]))
    if not floor:
        np.cumsum(share, axis=0, out=edges[:-2])
        edges[-2:] = edges[-3]
        return edges
    solid = share * np.divide(columns.floor, busy, out=np.zeros_like(busy), where=busy > 0)
    np.cumsum(solid, axis=0, out=edges[:-2])
    above = np.maximum(0, busy - columns.floor)
    neither = columns.unknown if columns.other is None else columns.unknown + columns.other
    unknown = np.minimum(neither, above)
    edges[-2] = edges[-3] + unknown
    edges[-1] = edges[-2] + (above - unknown)
    return edges


def column_fills(theme: Theme, *, floor: bool, letter: str = "", pitch: int = 4, pale: bool = False) -> list[Fill]:
    """The fills of :func:`column_heights`. ``letter``: the row's own kind, whose hatch is then used; else ink."""
    fills: list[Fill] = [theme.kinds[own].fill for own in LETTERS]
    if pale and not floor:
        fills = [mixed(theme.kinds[own].fill, theme.panel, PALE) for own in LETTERS]
    quiet = theme.kinds[letter or "C"].fill
    fills.append(mixed(quiet, theme.panel, UNKNOWN_SMALL))
    fills.append(mixed(quiet, theme.panel, PALE) if pale else Hatched(letter or INK, pitch))
    assert len(fills) == len(KINDS) + 2
    return fills


def paint_columns(
    canvas: Canvas,
    rect: QRectF,
    columns: Columns,
    *,
    floor: bool,
    letter: str = "",
    pitch: int = 4,
    idle: Bool | None = None,
    pale: bool = False,
) -> None:
    """Draw folded columns over ``rect``, one column a logical pixel.

    ``letter``: the row's own kind, whose hatch is then used; else ink. ``idle`` bool[width]: columns in which time
    without events is a gap, hatched the other way, rather than nothing. ``pale``: what is not floor is a pale fill.
    """
    area = canvas.snapped(rect)
    height = max(1, round(area.height() * canvas.scale))
    width = max(1, round(area.width() * canvas.scale))
    levels = stack_levels(column_heights(columns, floor), height, width)
    fills = column_fills(canvas.theme, floor=floor, letter=letter, pitch=pitch, pale=pale)
    ground = None
    if idle is not None:
        at = np.minimum((np.arange(width) * len(idle)) // width, len(idle) - 1)
        ground = Hatched(GAP, pitch + 1), idle[at]
    pixels = stacked(levels, height, fills, canvas.theme, canvas.scale, ground)
    draw_pixels(canvas, pixels, area.left(), area.top())
