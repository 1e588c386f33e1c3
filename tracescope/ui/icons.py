"""The toolbar's icons: SVG strokes in the theme's text colour, rendered for the screen's own scale."""

from typing import Final

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

SIZE: Final = 16
_STROKES: Final = {
    "open": '<path d="M1.5 12.5V3.5h4l1.5 2h6v2"/><path d="M1.5 12.5l2.2-5h11l-2.2 5z"/>',
    "synthesize": '<path d="M1.5 13.5h13"/><path d="M1.5 10.5l3-5 3 4 3-7 3.5 6"/>',
    "previous": '<path d="M3 3v10"/><path d="M12.5 3.5L6 8l6.5 4.5z"/>',
    "next": '<path d="M13 3v10"/><path d="M3.5 3.5L10 8l-6.5 4.5z"/>',
    "play": '<path class="f" d="M4 2.5L13 8l-9 5.5z"/>',
    "pause": '<path class="f" d="M4 3h3v10H4zM9 3h3v10H9z"/>',
    "path": '<path d="M1.5 11.5h3l3-7h3l1.5 3h2.5"/>',
    "floor": '<path d="M1.5 13.5h13"/><path d="M4 10.5V5M8 10.5v-8M12 10.5V6.5"/>',
    "energy": '<path d="M9 1.5L3.5 9H8l-1 5.5L12.5 7H8z"/>',
    "export": '<path d="M2 2.5h12v11H2z"/><path d="M2 11l3.5-3.5L9 11l2-2 3 2.5"/><circle cx="10.5" cy="5.7" r="1"/>',
    "close": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "float": '<path d="M5.5 2.5h8v8"/><path d="M2.5 5.5h8v8h-8z"/>',
}
ICON_NAMES: Final = frozenset(_STROKES)


def svg(name: str, hex_colour: str) -> bytes:
    """The icon ``name`` as an SVG document; KeyError where there is none."""
    body = _STROKES[name].replace('class="f"', f'fill="{hex_colour}"')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="{hex_colour}" '
        f'stroke-width="1.3" stroke-linejoin="round" stroke-linecap="round">{body}</svg>'
    ).encode()


def icon(name: str, hex_colour: str, disabled: str) -> QIcon:
    """The icon in a colour, with sharp pixmaps for scales 1, 1.25, 1.5, 2 and 3, and one for disabled controls."""
    result = QIcon()
    for mode, tone in ((QIcon.Mode.Normal, hex_colour), (QIcon.Mode.Disabled, disabled)):
        renderer = QSvgRenderer(QByteArray(svg(name, tone)))
        for scale in (1.0, 1.25, 1.5, 2.0, 3.0):
            pixmap = QPixmap(QSize(round(SIZE * scale), round(SIZE * scale)))
            pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(pixmap)
            renderer.render(painter, QRectF(pixmap.rect()))
            painter.end()
            pixmap.setDevicePixelRatio(scale)
            result.addPixmap(pixmap, mode)
    return result
