"""The live floor bar of the welcome panel: one step of the run that the form describes, drawn to scale."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from tracescope.ui.fonts import elided, font
from tracescope.ui.preview import Preview
from tracescope.ui.theme import LIGHT, Theme, colour


class FloorBar(QWidget):
    """Weights and KV read of one step, each with its arithmetic inside."""

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
        text = "" if preview is None else f"weights {preview.weight_label}; KV {preview.kv_label}"
        self.setAccessibleDescription(text)
        self.update()

    def _paint(self, painter: QPainter) -> None:
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        preview = self._preview
        if preview is None or not preview.weight_ns or preview.kv_ns is None:
            painter.setPen(colour(self._theme.border))
            painter.drawRect(frame)
            return
        split = round(frame.width() * preview.weight_ns / (preview.weight_ns + preview.kv_ns))
        left, right = QRectF(frame), QRectF(frame)
        left.setWidth(split)
        right.setLeft(left.right())
        self._part(painter, left, "W", preview.weight_label, "W")
        if preview.kv_ns > 0:
            self._part(painter, right, "K", preview.kv_label, "KV")

    def _part(self, painter: QPainter, rect: QRectF, letter: str, label: str, short: str) -> None:
        kind = self._theme.kinds[letter]
        painter.setPen(colour(kind.edge))
        painter.setBrush(colour(kind.fill))
        painter.drawRect(rect)
        painter.setPen(colour(kind.label))
        painter.setFont(font(12, 600))
        room = rect.width() - 16
        text = elided(f"{short} {label}", room, 12, 600)
        if "…" in text:
            text = elided(label.rsplit("= ", maxsplit=1)[-1], room, 12, 600)
        if "…" not in text:
            painter.drawText(rect.adjusted(8, 0, -8, 0), Qt.AlignmentFlag.AlignVCenter, text)

    def sizeHint(self) -> QSize:
        return QSize(400, 26)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(painter)
