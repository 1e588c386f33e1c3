"""Pictures composed in memory: stacks of columns, hatched areas and bars as arrays of pixels, drawn as one image."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage

from tracescope.core.columns import I64, Bool
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.hatch import hatch_pixels
from tracescope.ui.theme import THEMES, Theme

Pixels = NDArray[np.uint32]
"""Premultiplied 0xAARRGGBB, uint32[height, width] in device pixels; 0 is nothing."""
Levels = NDArray[np.int16]
_LINES_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class Hatched:
    """A part of a stack that is filled with a hatch: its kind and pitch."""

    kind: str
    pitch: int


Fill = str | Hatched
"""A hex colour or a hatch; an empty string is nothing."""


@lru_cache(maxsize=512)
def argb(hex_colour: str) -> np.uint32:
    """An opaque pixel of a hex colour; nothing where it is empty."""
    return np.uint32(0xFF000000 | int(hex_colour[1:], 16)) if hex_colour else np.uint32(0)


def draw_pixels(canvas: Canvas, pixels: Pixels, left: float, top: float, *, opaque: bool = False) -> None:
    """Draw ``pixels`` with their corner at (``left``, ``top``), which lies between device pixels."""
    height, width = pixels.shape
    data = np.ascontiguousarray(pixels)
    layout = QImage.Format.Format_RGB32 if opaque else QImage.Format.Format_ARGB32_Premultiplied
    # The image looks into the array, which outlives it: the painter is done with it when this returns.
    image = QImage(data.data, width, height, width * 4, layout)
    image.setDevicePixelRatio(canvas.scale)
    canvas.painter.drawImage(QPointF(left, top), image)


def draw_line(canvas: Canvas, line: NDArray[np.uint32], area: QRectF) -> None:
    """Spread one line of opaque pixels, uint32[width], over the height of ``area``, which it fills from side to side.

    The edges of ``area`` lie between device pixels.
    """
    height = round(area.height() * canvas.scale)
    rows = min(height, _LINES_AT_ONCE)
    # Copies of a few lines are drawn several times faster than one line is stretched.
    lines = np.empty((rows, len(line)), np.uint32)
    lines[:] = line
    for top in range(0, height, rows):
        draw_pixels(canvas, lines[: height - top], area.left(), area.top() + top / canvas.scale, opaque=True)


@lru_cache(maxsize=32)
def _hatched(kind: str, theme_name: str, pitch: int, scale: float, height: int, width: int) -> Pixels:
    tile = hatch_pixels(kind, THEMES[theme_name], pitch, scale)
    size = len(tile)
    return tile[np.ix_(np.arange(height) % size, np.arange(width) % size)]


def hatched_area(fill: Hatched, theme: Theme, scale: float, height: int, width: int) -> Pixels:
    """A hatch over an area, from its upper left corner; callers must not change it."""
    return _hatched(fill.kind, theme.name, fill.pitch, scale, height, width)


def stacked(
    levels: Levels, height: int, fills: Sequence[Fill], theme: Theme, scale: float,
    ground: tuple[Fill, Bool] | None = None,
) -> Pixels:  # fmt: skip
    """Columns of parts, each up to ``levels`` int16[parts, width] in device pixels (rising), filled with ``fills``.

    ``ground``: a fill for what no part covers, and in which columns bool[width].
    """
    width = levels.shape[1]
    below = np.vstack([np.zeros((1, width), np.int16), levels[:-1]])
    present = np.flatnonzero((levels > below).any(axis=1)).tolist()
    rows = np.arange(height, dtype=np.int16)[::-1, None]
    # The part of a pixel is the number of parts that end below it.
    part = np.zeros((height, width), np.uint8)
    for index in present:
        part += rows >= levels[index]
    shown = [fills[index] for index in present]
    palette = np.array([argb(f) if isinstance(f, str) else 0 for f in [*shown, ""]], np.uint32)
    pixels = palette[part]
    for index, fill in enumerate(shown):
        if isinstance(fill, Hatched):
            np.copyto(pixels, hatched_area(fill, theme, scale, height, width), where=part == index)
    if ground is not None:
        open_ = (part == len(present)) & ground[1]
        fill = ground[0]
        area = hatched_area(fill, theme, scale, height, width) if isinstance(fill, Hatched) else argb(fill)
        np.copyto(pixels, area, where=open_)
    return pixels


def covered(low: I64, high: I64, width: int, row: I64) -> tuple[I64, I64]:
    """The columns of the spans ``[low, high)``, span by span, and the span of each.

    Rows of ``width`` columns stand one after another; a span is cut to those of its ``row``.
    """
    first = row * width
    low, high = np.minimum(np.maximum(low, first), first + width), np.minimum(high, first + width)
    count = np.maximum(high - low, 0)
    span = np.repeat(np.arange(len(low)), count)
    column = np.arange(len(span)) - np.repeat(np.cumsum(count) - count - low, count)
    return column, span


def last_over(low: I64, high: I64, width: int, row: I64 | None = None, rows: int = 1) -> I64:
    """The last of the spans ``[low, high)`` that covers each column of all rows, int64, -1 where none does."""
    column, span = covered(low, high, width, np.zeros(len(low), np.int64) if row is None else row)
    owner = np.full(width * rows, -1)
    owner[column] = span
    return owner
