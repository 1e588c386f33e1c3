"""Recent traces, each with its share of the floor, and the samples that ship with the program."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from tracescope.core.errors import printable
from tracescope.core.units import MISSING, percent, plural
from tracescope.ui.fonts import elided, font
from tracescope.ui.messages import plain_label
from tracescope.ui.paint.hatch import INK, hatch_brush
from tracescope.ui.settings import Recent
from tracescope.ui.theme import LIGHT, Theme, colour

SHOWN = 5
_BAR = 90
_INSET = 6
"""Heads and rows begin at the same px; the rows' ground reaches farther."""


class TraceRow(QAbstractButton):
    """One trace: name, a second line, and a bar of its share of the floor where that is known."""

    def __init__(self, title: str, second: str, share: float | None, *, available: bool = True) -> None:
        super().__init__()
        self.setText(printable(title))
        self.setAccessibleName(f"Open {printable(title)}")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setEnabled(available)
        self._second = second
        self._share = share
        self._theme = LIGHT

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self._theme = theme
        self.update()

    def _paint(self, painter: QPainter) -> None:
        t = self._theme
        area = QRectF(self.rect())
        if self.underMouse() and self.isEnabled():
            painter.fillRect(area, colour(t.band))
        painter.setPen(colour(t.grid))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        room = area.width() - (_BAR + 70 if self._share is not None else 12)
        painter.setFont(font(12, 600))
        painter.setPen(colour(t.text if self.isEnabled() else t.muted))
        painter.drawText(QRectF(_INSET, 6, room, 18), Qt.AlignmentFlag.AlignVCenter, elided(self.text(), room, 12, 600))
        painter.setFont(font(11))
        painter.setPen(colour(t.text2 if self.isEnabled() else t.muted))
        painter.drawText(QRectF(_INSET, 25, room, 18), Qt.AlignmentFlag.AlignVCenter, elided(self._second, room, 11))
        if self._share is not None:
            self._paint_share(painter, area, min(1.0, max(0.0, self._share)))
        if self.hasFocus():
            painter.setPen(colour(t.accent))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(area.adjusted(1, 1, -2, -2))

    def _paint_share(self, painter: QPainter, area: QRectF, share: float) -> None:
        t = self._theme
        bar = QRectF(area.right() - _BAR - 58, 12, _BAR, 11)
        solid = QRectF(bar)
        solid.setWidth(round(bar.width() * share))
        painter.fillRect(bar, hatch_brush(INK, t, 4, self.devicePixelRatioF()))
        painter.fillRect(solid, colour(t.kinds["W"].fill))
        right = QRectF(area.right() - 52, 6, 46, 18)
        painter.setPen(colour(t.text))
        painter.setFont(font(12, 600))
        painter.drawText(right, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, percent(self._share))
        painter.setPen(colour(t.muted))
        painter.setFont(font(10))
        right.translate(0, 18)
        painter.drawText(right, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, "of floor")

    def sizeHint(self) -> QSize:
        return QSize(300, 50)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(painter)


class RecentList(QWidget):
    """Two short lists; ``chosen`` carries the path."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._rows: list[TraceRow] = []
        self._theme = LIGHT

    def fill(self, recent: Sequence[Recent], samples: Sequence[Path]) -> None:
        """Show the newest recent traces, then the samples."""
        while (item := self._layout.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        self._rows.clear()
        if recent:
            self._head("Recent")
            for entry in recent[:SHOWN]:
                path = Path(entry.path)
                steps = MISSING if entry.steps is None else plural(entry.steps, "step")
                events = MISSING if entry.events is None else plural(entry.events, "event")
                there = path.exists()
                second = f"{steps} · {events} · {entry.opened.replace('T', ' ')}" if there else "no longer there"
                self._row(path, TraceRow(path.name, second, entry.floor_share, available=there))
        if samples:
            self._head("Samples that ship with the program")
            for path in samples:
                self._row(path, TraceRow(path.name, f"{path.stat().st_size / 1e3:,.0f} kB", None))

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self._theme = theme
        for row in self._rows:
            row.set_theme(theme)

    def _head(self, title: str) -> None:
        label = plain_label(title)
        label.setFont(font(15, 600))
        label.setContentsMargins(_INSET, 10, 0, 4)
        self._layout.addWidget(label)

    def _row(self, path: Path, row: TraceRow) -> None:
        row.set_theme(self._theme)
        row.clicked.connect(lambda _checked=False: self.chosen.emit(path))
        self._rows.append(row)
        self._layout.addWidget(row)
