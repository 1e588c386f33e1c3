"""The live floor bar of the welcome panel: one step of the run that the form describes, drawn to scale."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from tracescope.ui.fonts import font, text_width
from tracescope.ui.theme import LIGHT, Theme, colour
from tracescope.view.part_words import FloorPart
from tracescope.view.preview import Preview


class FloorBar(QWidget):
    """What one step's floor is made of, each part in its kind with its arithmetic inside."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Floor of one step")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._theme = LIGHT
        self._preview: Preview | None = None

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self._theme = theme
        self.update()

    def show_preview(self, preview: Preview | None) -> None:
        """Draw another step; None draws an empty frame."""
        self._preview = preview
        parts = () if preview is None else preview.parts
        self.setAccessibleDescription("; ".join(part.texts[0] for part in parts))
        self.update()

    def _paint(self, painter: QPainter) -> None:
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        parts = () if self._preview is None else self._preview.parts
        if not parts:
            painter.setPen(colour(self._theme.border))
            painter.drawRect(frame)
            return
        per_ns = frame.width() / sum(part.ns for part in parts)
        start = frame.left()
        for part in parts:
            area = QRectF(frame)
            area.setLeft(round(start - 0.5) + 0.5)
            start += part.ns * per_ns
            area.setRight(round(start - 0.5) + 0.5)
            if area.width() >= 1:
                self._part(painter, area, part)

    def _part(self, painter: QPainter, rect: QRectF, part: FloorPart) -> None:
        kind = self._theme.kinds[part.letter]
        painter.setPen(colour(kind.edge))
        painter.setBrush(colour(kind.fill))
        painter.drawRect(rect)
        painter.setPen(colour(kind.label))
        painter.setFont(font(12, 600))
        for text in part.texts:
            width = text_width(text, 12, 600)
            if width <= rect.width() - 16:
                painter.drawText(rect.adjusted(8, 0, -8, 0), Qt.AlignmentFlag.AlignVCenter, text)
                return
            if len(text) == 1 and width <= rect.width() - 4:
                painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)
                return

    def sizeHint(self) -> QSize:
        return QSize(400, 26)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(painter)
