"""The causes of a step's gap as bars that add up to it."""

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from tracescope.analysis.gap_causes import GapCause
from tracescope.core.category import KIND_OF_CATEGORY, Category
from tracescope.core.units import micros, percent
from tracescope.ui.paint.canvas import RIGHT, Canvas, Style
from tracescope.ui.paint.step_bar import paint_unknown
from tracescope.ui.panels.table_view import paint_gap_bar
from tracescope.ui.theme import LIGHT, Theme
from tracescope.view.document import Document
from tracescope.view.step_facts import NO_GAP, StepFacts, step_facts

_PAD = 14
_ROW = 34
_HEAD = 30
_RIGHT = 70
_LOW = 28
"""Rows lower than this have no room for a second line."""
_WORDS, _SHARE = 170, 38


def row_height(room: int, causes: int) -> int:
    """The height of a row where ``causes`` share ``room`` px; a row is never too low for its words."""
    return min(_ROW, max(17, room // max(1, causes)))


class WhereTheGapGoes(QWidget):
    """One row a cause: chip, title, bar in the cause's hatch, time and share."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("causes")
        self.setAccessibleName("Where the gap goes")
        self.setMinimumWidth(240)
        self._theme = LIGHT
        self._causes: tuple[GapCause, ...] = ()
        self._gap = 0
        self._facts: StepFacts | None = None
        self._step = -1

    def show_step(self, document: Document | None, step: int) -> None:
        """Show the causes of one step; nothing where there is no step."""
        self._step = step
        known = document is not None and step >= 0
        self._causes = document.gap_causes(step) if document is not None and known else ()
        self._facts = step_facts(document, step) if document is not None and known else None
        if self._facts is None or self._facts.gap_ns is None:
            self._causes = ()
        self._gap = (self._facts.gap_ns or 0) if self._facts is not None else 0
        lines = [f"{c.title} {micros(c.ns)} µs" for c in self._causes]
        self.setAccessibleDescription("; ".join(lines))
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self._theme = theme
        self.update()

    def _paint(self, canvas: Canvas) -> None:
        t = self._theme
        canvas.begin()
        canvas.fill(QRectF(self.rect()), t.panel)
        canvas.vline(0.5, 0, self.height(), t.border)
        title = "Where the gap goes"
        width = canvas.text(_PAD, 19, title, Style(12, 600, t.text))
        if self._step < 0:
            return
        if self._facts is not None and self._facts.gap_ns is None:
            line = QRectF(_PAD, _HEAD, self.width() - 2 * _PAD, 16)
            canvas.text_in(line, NO_GAP, Style(11, 400, t.text2))
            return
        left = _PAD + width + 12
        shown = f"{micros(self._gap)} µs in step {self._step}"
        canvas.text_in(QRectF(left, 6, self.width() - left - _PAD, 18), shown, Style(11, 400, t.text2))
        largest = max((abs(c.ns) for c in self._causes), default=1)
        height = row_height(self.height() - _HEAD, len(self._causes))
        for i, cause in enumerate(self._causes):
            top = _HEAD + i * height
            if top + 16 > self.height():
                break
            self._paint_cause(canvas, cause, top, largest, beside=height < _LOW)

    def _paint_cause(self, canvas: Canvas, cause: GapCause, top: float, largest: int, *, beside: bool) -> None:
        """One cause; ``beside``: its bar and share beside the words, where there is no height for a second line."""
        t = canvas.theme
        patch = QRectF(_PAD, top + 1, 12, 12)
        if not cause.known:
            paint_unknown(canvas, patch)
        elif cause.category is None:
            paint_gap_bar(canvas, patch, None, 4)
        else:
            canvas.chip(_PAD, top + 1, KIND_OF_CATEGORY[Category(cause.category)].letter, 12)
        right = self.width() - _PAD
        known_share = self._gap > 0 and cause.known
        room: float = self.width() - 2 * _PAD - _RIGHT - 18
        if beside:
            words = min(_WORDS, 0.6 * room)
            left, full = _PAD + 18 + words + 8, room - words - 8 - (_SHARE if known_share else 0)
            bar = QRectF(left, top + 3, max(1, round(full * abs(cause.ns) / largest)), 8)
            room = words
        else:
            full = self.width() - 2 * _PAD - _RIGHT
            bar = QRectF(_PAD, top + 16, max(1, round(full * abs(cause.ns) / largest)), 8)
        canvas.text_in(QRectF(_PAD + 18, top - 1, room, 16), cause.title, Style(11, 400, t.text))
        if cause.known:
            paint_gap_bar(canvas, bar, cause.category, 4)
        else:
            paint_unknown(canvas, bar)
        took = right - (_SHARE if beside and known_share else 0)
        canvas.text(took, top + 11, f"{micros(cause.ns)} µs", Style(11, 600, t.text), RIGHT)
        if known_share:
            share = percent(cause.ns / self._gap)
            canvas.text(right, top + (11 if beside else 24), share, Style(10, 400, t.text2), RIGHT)

    def sizeHint(self) -> QSize:
        return QSize(330, 190)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(Canvas(painter, self._theme, self.devicePixelRatioF()))
