"""Stacks per pixel column, composed in memory and blitted once: folded rows, and the areas of counters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage

from tracescope.core.category import KINDS
from tracescope.lod.fold import Columns
from tracescope.ui.paint.bar_style import LETTERS, PALE, UNKNOWN_SMALL
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.hatch import GAP, INK, hatch_pixels
from tracescope.ui.theme import mixed

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hatched:
    """A part of a stack that is filled with a hatch: its kind and pitch."""

    kind: str
    pitch: int


Fill = str | Hatched
"""A hex colour or a hatch."""


def paint_stack(
    canvas: Canvas,
    rect: QRectF,
    edges: F64,
    fills: Sequence[Fill],
    ground: tuple[Fill, NDArray[np.bool_]] | None = None,
    *,
    keep: bool = True,
) -> None:
    """Draw ``edges`` (upper edges of the parts as shares of the height, float64[parts, columns], rising) in ``rect``.

    One column is a logical pixel; part i has ``fills[i]``. ``ground``: a fill for what no part covers, and in which
    columns. ``keep``: a column whose stack is less than a device pixel high gets one, so that no event vanishes.
    """
    area = canvas.snapped(rect)
    height = max(1, round(area.height() * canvas.scale))
    width = max(1, round(area.width() * canvas.scale))
    source = np.minimum((np.arange(width) * edges.shape[1]) // width, edges.shape[1] - 1)
    high = edges[:, source] * height
    top = high[-1]
    if keep:
        high = np.where((top > 0) & (top < 1), high / np.maximum(top, 1e-12), high)
    nothing = len(fills)
    part = np.full((height, width), nothing, np.uint8)
    if ground is not None:
        part[:, ground[1][source]] = nothing + 1
    # Row r (counted from below) belongs to the lowest part that reaches above its middle.
    levels = np.ceil(high - 0.5).astype(np.int16)
    rows = np.arange(height, dtype=np.int16)[::-1, None]
    below = np.vstack([np.zeros((1, width), np.int16), levels[:-1]])
    for index in np.flatnonzero((levels > below).any(axis=1))[::-1].tolist():
        np.copyto(part, index, where=rows < levels[index])
    shown = [*fills, "", ground[0] if ground is not None else ""]
    image = _image(canvas, part, shown)
    image.setDevicePixelRatio(canvas.scale)
    canvas.painter.drawImage(QPointF(area.left(), area.top()), image)


def _image(canvas: Canvas, part: NDArray[np.uint8], fills: Sequence[Fill]) -> QImage:
    palette = np.array([_argb(f) if isinstance(f, str) and f else 0 for f in fills], np.uint32)
    pixels = palette[part]
    height, width = part.shape
    for index, fill in enumerate(fills):
        if not isinstance(fill, Hatched):
            continue
        inside = part == index
        if inside.any():
            tile = hatch_pixels(fill.kind, canvas.theme, fill.pitch, canvas.scale)
            size = len(tile)
            rows, columns = np.nonzero(inside)
            pixels[rows, columns] = tile[rows % size, columns % size]
    image = QImage(pixels.tobytes(), width, height, width * 4, QImage.Format.Format_ARGB32)
    return image.copy()  # owns its pixels: the bytes above live only as long as this call


def _argb(hex_colour: str) -> int:
    return 0xFF000000 | int(hex_colour[1:], 16)


def column_heights(columns: Columns, floor: bool) -> F64:
    """Upper edges of the stack of each column as shares of the height, float64[8, width].

    Six kinds, then time of which no floor is known, then what is above the floor. Up to the floor each kind has its
    part of the busy time; the excess comes last, so that it is kept however far one zooms out. Without the floor
    overlay all busy time is solid.
    """
    share = columns.share.astype(np.float64)
    busy = share.sum(axis=0)
    if not floor:
        nothing = np.zeros_like(busy)
        return np.cumsum(np.vstack([share, nothing, nothing]), axis=0)
    solid = share * np.divide(columns.floor, busy, out=np.zeros_like(busy), where=busy > 0)
    unknown = np.minimum(columns.unknown, np.maximum(0, busy - columns.floor))
    above = np.maximum(0, busy - columns.floor - unknown)
    return np.cumsum(np.vstack([solid, unknown, above]), axis=0)


def paint_columns(
    canvas: Canvas,
    rect: QRectF,
    columns: Columns,
    *,
    floor: bool,
    letter: str = "",
    pitch: int = 4,
    idle: NDArray[np.bool_] | None = None,
    pale: bool = False,
    full: NDArray[np.bool_] | None = None,
) -> None:
    """Draw folded columns over ``rect``, one column a logical pixel.

    ``letter``: the row's own kind, whose hatch is then used; else ink. ``idle`` bool[width]: columns in which time
    without events is a gap, hatched the other way, rather than nothing. ``pale``: what is not floor is a pale fill.
    ``full`` bool[width]: columns whose stack fills the whole height, its shares kept.
    """
    theme = canvas.theme
    edges = column_heights(columns, floor)
    if full is not None:
        edges = np.where(full & (edges[-1] > 0), edges / np.maximum(edges[-1], 1e-12), edges)
    fills: list[Fill] = [theme.kinds[own].fill for own in LETTERS]
    if pale and not floor:
        fills = [mixed(theme.kinds[own].fill, theme.panel, PALE) for own in LETTERS]
    quiet = theme.kinds[letter or "C"].fill
    fills.append(mixed(quiet, theme.panel, UNKNOWN_SMALL))
    fills.append(mixed(quiet, theme.panel, PALE) if pale else Hatched(letter or INK, pitch))
    assert len(fills) == len(KINDS) + 2
    paint_stack(canvas, rect, edges, fills, None if idle is None else (Hatched(GAP, pitch + 1), idle))
