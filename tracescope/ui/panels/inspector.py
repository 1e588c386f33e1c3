"""The inspector: one event (or the step) with its arithmetic, energy, dependencies, twins and recorded arguments."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from tracescope.core.timerange import TimeRange
from tracescope.ui.fonts import font, metrics
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.panels.inspection_layout import PAD, Block, Hit, blocks_of, height_of
from tracescope.ui.panels.panel import PanelWidget
from tracescope.ui.session import Session
from tracescope.ui.theme import LIGHT, Theme
from tracescope.view import navigation
from tracescope.view.document import Document
from tracescope.view.inspection import Inspection, inspect_event, inspect_step
from tracescope.view.range_statistics import inspect_range
from tracescope.view.view_state import ViewState


class InspectorView(QWidget):
    """The painted part, block by block; a click on a dependency or a twin selects that event."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.setAccessibleName("Inspector")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.theme = LIGHT
        self._session = session
        self._blocks: tuple[Block, ...] = ()
        self._hits: list[tuple[QRectF, Hit]] = []

    def show_blocks(self, blocks: tuple[Block, ...], spoken: str) -> None:
        """Draw other blocks; ``spoken`` is the same in words."""
        self._blocks = blocks
        self._hits = []
        self.setAccessibleDescription(spoken)
        self.setFixedHeight(height_of(blocks))
        self.update()

    def _paint(self, canvas: Canvas) -> None:
        canvas.begin()
        canvas.fill(QRectF(self.rect()), self.theme.panel)
        top = 0.0
        self._hits = []
        for block in self._blocks:
            area = QRectF(PAD, top, self.width() - 2 * PAD, block.height)
            self._hits += block.paint(canvas, area)
            top += block.height

    def sizeHint(self) -> QSize:
        return QSize(300, height_of(self._blocks))

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(Canvas(painter, self.theme, self.devicePixelRatioF()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        document, view = self._session.document, self._session.view
        for rect, hit in self._hits:
            if rect.contains(event.position()) and document is not None and view is not None:
                target = hit.event(document, view)
                if target >= 0:
                    self._session.look(navigation.select_event(document, view, target))
                return


class Details(QPlainTextEdit):
    """Recorded arguments, as plain text that can be selected and copied."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Recorded details")
        self.setFont(font(11))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(4)
        self.setViewportMargins(PAD - 4, 0, PAD - 4, 0)

    def show_text(self, text: str) -> None:
        """Replace the text and take the height that it needs."""
        if text != self.toPlainText():
            self.setPlainText(text)
        self.fit()

    def fit(self) -> None:
        """As high as the wrapped text."""
        line = metrics(11).lineSpacing()
        self.setFixedHeight(round(self.document().size().height() * line + 14))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # Read-only text would swallow Esc and the letters that are shortcuts.
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
        else:
            event.ignore()


class InspectorPanel(PanelWidget):
    """Follows the selection: an event, else a dragged range, else the step."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.view = InspectorView(session)
        self.details = Details()
        inner = QWidget()
        inner.setObjectName("panel")
        inner.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        inside = QVBoxLayout(inner)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(0)
        inside.addWidget(self.view)
        inside.addWidget(self.details)
        inside.addStretch(1)
        area = QScrollArea()
        area.setWidget(inner)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(area)
        self.inspection: Inspection | None = None
        self._key: tuple[object, int, int, TimeRange | None, bool] | None = None
        session.view_changed.connect(self.refresh)
        session.document_changed.connect(self.refresh)

    def refresh(self) -> None:
        """Show what is selected."""
        document, view = self.session.document, self.session.view
        if document is None or view is None:
            self._key = None
            self.inspection = None
            self.view.show_blocks((), "")
            self.details.hide()
            return
        energy = "energy" in view.overlays
        key = (document, view.event, view.step, view.selection, energy)
        if key == self._key:
            return
        self._key = key
        self.inspection = inspect(document, view)
        blocks = blocks_of(self.inspection, energy=energy) if self.inspection is not None else ()
        self.view.show_blocks(blocks, spoken(self.inspection))
        text = "" if self.inspection is None else self.inspection.details
        self.details.setVisible(bool(text))
        self.details.show_text(text)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.view.theme = theme
        self.view.update()

    def copied_text(self) -> str:
        if self.details.textCursor().hasSelection():
            return self.details.textCursor().selectedText().replace("\u2029", "\n")
        return ""


def inspect(document: Document, view: ViewState) -> Inspection | None:
    """What the inspector is about; None where there is nothing to say."""
    if view.event >= 0:
        return inspect_event(document, view.event)
    if view.selection is not None:
        return inspect_range(document, view.selection)
    return inspect_step(document, view.step) if view.step >= 0 else None


def spoken(inspection: Inspection | None) -> str:
    """The inspection as one text, for screen readers and tests."""
    if inspection is None:
        return ""
    rows = (f"{label}: {expression} = {result}" for label, expression, result in inspection.rows)
    return "\n".join((inspection.title, inspection.subtitle, *rows))
