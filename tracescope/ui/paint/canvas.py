"""The few drawing acts that every view is made of: fills, hatches, lines on device pixels, texts, chips and tags."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QImage, QPainter, QPen, QPolygonF, QStaticText, QTransform

from tracescope.core.errors import printable
from tracescope.ui.fonts import elided, font, metrics, text_width
from tracescope.ui.paint.hatch import hatch_brush
from tracescope.ui.theme import Theme, colour

LEFT: Final = -1
CENTRE: Final = 0
RIGHT: Final = 1
LONGEST_TEXT: Final = 1024
_NO_PEN: Final = Qt.PenStyle.NoPen


@dataclass(frozen=True, slots=True)
class Style:
    """How a text is set: nominal px, weight and colour."""

    px: float
    weight: int
    colour: str


@dataclass(frozen=True, eq=False, slots=True)
class Canvas:
    """A painter in logical px with a theme and the device pixel ratio. Rectangles have hard edges, texts soft ones."""

    painter: QPainter
    theme: Theme
    scale: float

    @property
    def line(self) -> int:
        """Device pixels of a line of 1 px."""
        return max(1, round(self.scale))

    def begin(self) -> None:
        """Rectangles without antialiasing, no pen; texts are always smooth."""
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self.painter.setRenderHint(QPainter.RenderHint.TextAntialiasing, True)
        self.painter.setPen(Qt.PenStyle.NoPen)

    def snap(self, value: float) -> float:
        """``value`` on the nearest edge between device pixels."""
        return round(value * self.scale) / self.scale

    def snapped(self, rect: QRectF) -> QRectF:
        """``rect`` with all four edges between device pixels, at least one device pixel wide and high."""
        least = 1 / self.scale
        x0, y0 = self.snap(rect.left()), self.snap(rect.top())
        x1, y1 = max(self.snap(rect.right()), x0 + least), max(self.snap(rect.bottom()), y0 + least)
        return QRectF(x0, y0, x1 - x0, y1 - y0)

    def fill(self, rect: QRectF, hex_colour: str) -> None:
        """A plain rectangle, its edges between device pixels."""
        s = self.scale
        x0, y0 = round(rect.left() * s), round(rect.top() * s)
        wide, high = max(round(rect.right() * s) - x0, 1), max(round(rect.bottom() * s) - y0, 1)
        if s == 1:
            self.painter.fillRect(x0, y0, wide, high, colour(hex_colour))
        else:
            self.painter.fillRect(QRectF(x0 / s, y0 / s, wide / s, high / s), colour(hex_colour))

    def hatch(self, rect: QRectF, kind: str, pitch: int, origin: QPointF | None = None) -> None:
        """A hatched rectangle; ``origin`` fixes the pattern so that it does not swim when panned."""
        area = self.snapped(rect)
        self.painter.setBrushOrigin(area.topLeft() if origin is None else origin)
        self.painter.fillRect(area, hatch_brush(kind, self.theme, pitch, self.scale))

    def frame(self, rect: QRectF, hex_colour: str, width: float = 1.0) -> None:
        """The outline of a rectangle, drawn inside its edges."""
        area = self.snapped(rect)
        width = max(self.snap(width), 1 / self.scale)
        paint = colour(hex_colour)
        fill = self.painter.fillRect
        if area.width() <= 2 * width or area.height() <= 2 * width:
            fill(area, paint)
            return
        fill(QRectF(area.left(), area.top(), area.width(), width), paint)
        fill(QRectF(area.left(), area.bottom() - width, area.width(), width), paint)
        fill(QRectF(area.left(), area.top() + width, width, area.height() - 2 * width), paint)
        fill(QRectF(area.right() - width, area.top() + width, width, area.height() - 2 * width), paint)

    def hline(self, x0: float, x1: float, y: float, hex_colour: str, width: float = 1.0) -> None:
        """A horizontal line whose top is at ``y``."""
        self.fill(QRectF(x0, y, x1 - x0, width), hex_colour)

    def vline(self, x: float, y0: float, y1: float, hex_colour: str, width: float = 1.0) -> None:
        """A vertical line centred on ``x``."""
        self.fill(QRectF(self.snap(x - width / 2), y0, width, y1 - y0), hex_colour)

    def halo_vline(self, x: float, y0: float, y1: float, hex_colour: str, width: float) -> None:
        """A vertical line that stays visible on any ground: the panel colour, 2 px wider, goes first."""
        self.vline(x, y0, y1, self.theme.panel, width + 2)
        self.vline(x, y0, y1, hex_colour, width)

    def dashed(self, x0: float, x1: float, y: float, hex_colour: str, on: int, off: int, width: float = 1.0) -> None:
        """A dashed horizontal line whose top is at ``y``."""
        x = x0
        while x < x1:
            self.fill(QRectF(x, y, min(on, x1 - x), width), hex_colour)
            x += on + off

    def outline(self, rect: QRectF, hex_colour: str, width: float, radius: float, ground: str | None = None) -> None:
        """A smooth rounded outline centred on the edges of ``rect``, filled with ``ground`` where one is given."""
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        pen = QPen(colour(hex_colour))
        pen.setWidthF(width)
        self.painter.setPen(pen if width > 0 else Qt.PenStyle.NoPen)
        self.painter.setBrush(QBrush(colour(ground)) if ground is not None else Qt.BrushStyle.NoBrush)
        self.painter.drawRoundedRect(rect, radius, radius)
        self.begin()

    def polyline(self, points: list[QPointF], hex_colour: str, width: float) -> None:
        """A smooth line through points."""
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        pen = QPen(colour(hex_colour))
        pen.setWidthF(width)
        self.painter.setPen(pen)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.drawPolyline(QPolygonF(points))
        self.begin()

    def polygon(self, points: list[QPointF], ground: QColor | QBrush, hex_edge: str | None = None) -> None:
        """A smooth filled polygon, optionally with a 1 px edge."""
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        self.painter.setBrush(ground)
        self.painter.setPen(QPen(colour(hex_edge), 1) if hex_edge is not None else Qt.PenStyle.NoPen)
        self.painter.drawPolygon(QPolygonF(points))
        self.begin()

    def text(self, x: float, baseline: float, text: str, style: Style, align: int = LEFT) -> float:
        """One line of plain text; returns its width. ``align``: LEFT, CENTRE or RIGHT of ``x``."""
        laid, ascent, width, face = laid_out(text, style.px, style.weight)
        left = x if align == LEFT else x - width if align == RIGHT else x - width / 2
        painter, scale = self.painter, self.scale
        painter.setFont(face)
        painter.setPen(colour(style.colour))
        painter.drawStaticText(QPointF(round(left * scale) / scale, round(baseline * scale) / scale - ascent), laid)
        painter.setPen(_NO_PEN)
        return width

    def text_in(self, rect: QRectF, text: str, style: Style, align: int = LEFT) -> float:
        """One line centred vertically in ``rect`` and cut with an ellipsis where it is wider."""
        fitting = elided(shown_text(text), rect.width(), style.px, style.weight)
        if not fitting:
            return 0.0
        x = rect.left() if align == LEFT else rect.right() if align == RIGHT else rect.center().x()
        return self.text(x, centred_baseline(rect, style), fitting, style, align)

    def halo_text(self, x: float, baseline: float, text: str, style: Style, align: int = LEFT) -> None:
        """A text on a panel-coloured ground, for places where lines and hatches run behind it."""
        width = text_width(shown_text(text), style.px, style.weight)
        left = x if align == LEFT else x - width if align == RIGHT else x - width / 2
        m = metrics(style.px, style.weight)
        self.fill(QRectF(left - 2, baseline - m.capHeight() - 2, width + 4, m.capHeight() + 5), self.theme.panel)
        self.text(left, baseline, text, style)

    def chip(self, x: float, y: float, letter: str, size: float = 14) -> None:
        """The letter of a kind on its colour, the patch that stands wherever a kind is named."""
        colours = self.theme.kinds[letter]
        self.outline(QRectF(x + 0.5, y + 0.5, size - 1, size - 1), colours.edge, 1, 2, colours.fill)
        style = Style(round(size * 0.68), 700, colours.label)
        self.text(x + size / 2, centred_baseline(QRectF(x, y, size, size), style), letter, style, CENTRE)

    def tag(self, centre: float, y: float, text: str, ground: str, style: Style, edge: str | None = None) -> QRectF:
        """A small filled tag centred on ``centre``; returns its rectangle."""
        width = text_width(text, style.px, style.weight) + 10
        rect = QRectF(centre - width / 2, y, width, 15)
        self.outline(rect, edge if edge is not None else ground, 1 if edge is not None else 0, 3, ground)
        self.text(centre, centred_baseline(rect, style), text, style, CENTRE)
        return rect

    def arrow(self, x: float, y: float, hex_colour: str, pointing: int) -> None:
        """A small filled triangle whose tip is at (``x``, ``y``), pointing left (-1) or right (+1)."""
        points = [QPointF(x, y), QPointF(x - 6 * pointing, y - 4), QPointF(x - 6 * pointing, y + 4)]
        self.polygon(points, colour(hex_colour))

    def warning(self, x: float, y: float, size: float = 11) -> None:
        """The warning triangle (the font has none) with its top left at (``x``, ``y``)."""
        edge = self.theme.warning_text
        points = [QPointF(x + size / 2, y), QPointF(x + size, y + size), QPointF(x, y + size)]
        self.polygon(points, colour(self.theme.warning_fill), edge)
        self.fill(QRectF(x + size / 2 - 0.5, y + size * 0.35, 1, size * 0.32), edge)
        self.fill(QRectF(x + size / 2 - 0.5, y + size * 0.77, 1, 1), edge)


@lru_cache(maxsize=4096)
def laid_out(text: str, px: float, weight: int) -> tuple[QStaticText, float, float, QFont]:
    """``text`` as one printable line laid out once, how far its baseline is below its top, its width, and its font."""
    text = shown_text(text)
    laid = QStaticText(text)
    laid.setTextFormat(Qt.TextFormat.PlainText)
    laid.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
    face = font(px, weight)
    laid.prepare(QTransform(), face)
    return laid, metrics(px, weight).ascent(), text_width(text, px, weight), face


def layer(canvas: Canvas, rect: QRectF, paint: Callable[[Canvas], None]) -> QImage:
    """What ``paint`` draws in a transparent image as large as ``rect``, with its corner at (0, 0), to be kept."""
    size = canvas.snapped(QRectF(0, 0, rect.width(), rect.height()))
    image = QImage(
        round(size.width() * canvas.scale), round(size.height() * canvas.scale),
        QImage.Format.Format_ARGB32_Premultiplied,
    )  # fmt: skip
    image.setDevicePixelRatio(canvas.scale)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    inner = Canvas(painter, canvas.theme, canvas.scale)
    inner.begin()
    try:
        paint(inner)
    finally:  # Qt aborts when an image goes while it is painted on
        painter.end()
    return image


def centred_baseline(rect: QRectF, style: Style) -> float:
    """The baseline that centres capitals vertically in ``rect``."""
    return rect.center().y() + metrics(style.px, style.weight).capHeight() / 2


@lru_cache(maxsize=4096)
def shown_text(text: str) -> str:
    """``text`` as one printable line, cut where it is far longer than any line drawn."""
    return printable(text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…")
