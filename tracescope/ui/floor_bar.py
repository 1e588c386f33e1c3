"""The live floor bar of the welcome panel: one step of the run that the form describes, drawn to scale."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from tracescope.ui.fonts import elided, font
from tracescope.ui.theme import LIGHT, Theme, colour
from tracescope.view.preview import Preview


class FloorBar(QWidget):
    """Weights, KV read and the rest of one step's floor, each with its arithmetic inside."""

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
        text = ""
        if preview is not None:
            text = f"weights {preview.weight_label}; KV {preview.kv_label}; {preview.rest_label}"
        self.setAccessibleDescription(text)
        self.update()

    def _paint(self, painter: QPainter) -> None:
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        preview = self._preview
        if preview is None or not preview.weight_ns or preview.kv_ns is None or preview.rest_ns is None:
            painter.setPen(colour(self._theme.border))
            painter.drawRect(frame)
            return
        parts = (
            ("W", preview.weight_ns, preview.weight_label, "W"),
            ("K", preview.kv_ns, preview.kv_label, "KV"),
            ("C", preview.rest_ns, preview.rest_label, ""),
        )
        per_ns = frame.width() / sum(ns for _, ns, _, _ in parts)
        start = frame.left()
        for letter, ns, label, short in parts:
            area = QRectF(frame)
            area.setLeft(round(start - 0.5) + 0.5)
            start += ns * per_ns
            area.setRight(round(start - 0.5) + 0.5)
            if area.width() >= 1:
                self._part(painter, area, letter, label, short)

    def _part(self, painter: QPainter, rect: QRectF, letter: str, label: str, short: str) -> None:
        kind = self._theme.kinds[letter]
        painter.setPen(colour(kind.edge))
        painter.setBrush(colour(kind.fill))
        painter.drawRect(rect)
        painter.setPen(colour(kind.label))
        painter.setFont(font(12, 600))
        room = rect.width() - 16
        text = elided(f"{short} {label}".strip(), room, 12, 600)
        if "…" in text:
            text = elided(label.rsplit("= ", maxsplit=1)[-1], room, 12, 600)
        if "…" not in text:
            painter.drawText(rect.adjusted(8, 0, -8, 0), Qt.AlignmentFlag.AlignVCenter, text)

    def sizeHint(self) -> QSize:
        return QSize(400, 26)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(painter)
