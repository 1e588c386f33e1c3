"""A row with more events than pixels: per pixel column the shares of each kind, solid from below, hatch above them."""

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage

from tracescope.core.category import KINDS
from tracescope.lod.fold import Columns
from tracescope.ui.paint.bar_style import LETTERS, PALE
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.hatch import GAP, INK, hatch_pixels
from tracescope.ui.theme import Theme, mixed

_ABOVE = len(KINDS)
_IDLE = _ABOVE + 1
_NOTHING = _ABOVE + 2


def column_heights(columns: Columns, floor: bool) -> NDArray[np.float64]:
    """Upper edges of the stack of each column as shares of the height, float64[7, width]: six kinds, then above floor.

    Up to the floor each kind has its part of the busy time; what is above the floor comes last, so that it is kept
    however far one zooms out. Without the floor overlay all busy time is solid.
    """
    share = columns.share.astype(np.float64)
    busy = share.sum(axis=0)
    if floor:
        solid = share * np.divide(columns.floor, busy, out=np.zeros_like(busy), where=busy > 0)
        above = np.maximum(0, busy - columns.floor)
    else:
        solid, above = share, np.zeros_like(busy)
    return np.cumsum(np.vstack([solid, above]), axis=0)


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
) -> None:
    """Draw folded columns over ``rect``, one column a logical pixel.

    ``letter``: the row's own kind, whose hatch is then used; else ink. ``idle`` bool[width]: columns in which time
    without events is a gap, hatched the other way, rather than nothing. ``pale``: what is not floor is a pale fill.
    """
    area = canvas.snapped(rect)
    height = max(1, round(area.height() * canvas.scale))
    width = max(1, round(area.width() * canvas.scale))
    source = np.minimum((np.arange(width) * columns.share.shape[1]) // width, columns.share.shape[1] - 1)
    edges = column_heights(columns, floor)[:, source] * height
    top = edges[-1]
    # One event in a column is less than a pixel of it; it keeps one.
    edges = np.where((top > 0) & (top < 1), edges / np.maximum(top, 1e-12), edges)
    # Row r (from the bottom) belongs to the part whose span holds its middle.
    middle = np.arange(height)[::-1, None] + 0.5
    part = np.full((height, width), _NOTHING, np.uint8)
    if idle is not None:
        part[:, idle[source]] = _IDLE
    for index in range(_ABOVE, -1, -1):
        if edges.shape[0] > index and (edges[index] > (edges[index - 1] if index else 0)).any():
            part[middle < edges[index][None, :]] = index
    patterns = _patterns(canvas, letter, pitch)
    palette = _palette(canvas.theme)
    if pale:
        del patterns[_ABOVE]
        palette[_ABOVE] = _argb(mixed(canvas.theme.kinds[letter or "C"].fill, canvas.theme.panel, PALE))
    image = _image(part, palette, patterns)
    image.setDevicePixelRatio(canvas.scale)
    canvas.painter.drawImage(QPointF(area.left(), area.top()), image)


def _palette(theme: Theme) -> NDArray[np.uint32]:
    return np.array([_argb(theme.kinds[letter].fill) for letter in LETTERS] + [0, 0, 0], np.uint32)


def _argb(hex_colour: str) -> int:
    return 0xFF000000 | int(hex_colour[1:], 16)


def _patterns(canvas: Canvas, letter: str, pitch: int) -> dict[int, NDArray[np.uint32]]:
    return {
        _ABOVE: hatch_pixels(letter or INK, canvas.theme, pitch, canvas.scale),
        _IDLE: hatch_pixels(GAP, canvas.theme, pitch + 1, canvas.scale),
    }


def _image(part: NDArray[np.uint8], palette: NDArray[np.uint32], patterns: dict[int, NDArray[np.uint32]]) -> QImage:
    pixels = palette[part]
    height, width = part.shape
    for index, tile in patterns.items():
        inside = part == index
        if inside.any():
            size = len(tile)
            repeated = np.tile(tile, (height // size + 1, width // size + 1))[:height, :width]
            pixels[inside] = repeated[inside]
    image = QImage(pixels.tobytes(), width, height, width * 4, QImage.Format.Format_ARGB32)
    return image.copy()  # owns its pixels: the bytes above live only as long as this call
