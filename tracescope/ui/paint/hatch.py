"""Hatch tiles: seamless 45 degree lines on a tint, one tile per kind, theme, pitch and device pixel ratio."""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QBrush, QImage, QPainter, QPen

from tracescope.ui.theme import THEMES, Theme, colour, mixed

LINE_SHARE: Final = 0.3
"""Width of a hatch line as a share of the pitch."""
INK: Final = "ink"
"""Above the floor, kinds mixed."""
GAP: Final = "gap"
"""Nothing running: leans the other way."""
STATIC: Final = "static"
ROOF: Final = "roof"
"""Room under a roof that is not used: ink, but lighter than a gap."""


def _colours(kind: str, theme: Theme) -> tuple[str, str]:
    if kind in (INK, GAP):
        return theme.ink, theme.panel
    if kind == ROOF:
        return mixed(theme.ink, theme.panel, 0.5), theme.panel
    if kind == STATIC:
        return theme.static_hatch, theme.static_tint
    colours = theme.kinds[kind]
    return colours.hatch, colours.tint


@lru_cache(maxsize=256)
def _tile(kind: str, theme_name: str, pitch: int, dpr: float) -> QImage:
    theme = THEMES[theme_name]
    line, ground = _colours(kind, theme)
    size = max(3, round(pitch * dpr))
    image = QImage(size, size, QImage.Format.Format_RGB32)
    image.fill(colour(ground))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(colour(line))
    pen.setWidthF(LINE_SHARE * size * theme.hatch_weight)
    pen.setCapStyle(Qt.PenCapStyle.SquareCap)
    painter.setPen(pen)
    for shift in (-size, 0, size):
        if kind == GAP:
            painter.drawLine(QPointF(shift - 1, -1), QPointF(shift + size + 1, size + 1))
        else:
            painter.drawLine(QPointF(shift - 1, size + 1), QPointF(shift + size + 1, -1))
    painter.end()
    image.setDevicePixelRatio(size / pitch)
    return image


@lru_cache(maxsize=256)
def _brush(kind: str, theme_name: str, pitch: int, dpr: float) -> QBrush:
    # An image, not a pixmap: pixmaps in a cache outlive the application object and crash at exit.
    return QBrush(_tile(kind, theme_name, pitch, dpr))


def hatch_brush(kind: str, theme: Theme, pitch: int, dpr: float) -> QBrush:
    """The brush of a kind (its letter, ``INK``, ``GAP``, ``ROOF`` or ``STATIC``); callers must not change it.

    ``pitch`` in logical px: 8 in pictures, 6 in large bars, 5 in lanes and tables, 4 in small bars.
    """
    return _brush(kind, theme.name, pitch, dpr)


@lru_cache(maxsize=256)
def _pixels(kind: str, theme_name: str, pitch: int, dpr: float) -> NDArray[np.uint32]:
    image = _tile(kind, theme_name, pitch, dpr)
    pixels = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.bytesPerLine() // 4)
    return pixels[:, : image.width()].copy()


def hatch_pixels(kind: str, theme: Theme, pitch: int, dpr: float) -> NDArray[np.uint32]:
    """The same tile as 0xffRRGGBB device pixels, uint32[size, size], for pictures composed in memory."""
    return _pixels(kind, theme.name, pitch, dpr)
