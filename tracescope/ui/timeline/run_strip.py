"""All steps as bars with their floors: a click goes to a step, a drag shows several, the wheel moves by steps."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from tracescope.core.timerange import TimeRange
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.run_strip import paint_run_strip, plot_of, step_at_x
from tracescope.ui.session import Session
from tracescope.ui.theme import LIGHT, Theme
from tracescope.view import navigation
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState


class RunStripView(QWidget):
    """The minimap of the run."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.setAccessibleName("All steps")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.theme = LIGHT
        self._session = session
        self._pressed = -1
        self._before: ViewState | None = None

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self.theme = theme
        self.update()

    def cancel_drag(self) -> bool:
        """Go back to the view before the drag; False where there is none."""
        before, self._before, self._pressed = self._before, None, -1
        if before is None:
            return False
        self._session.glide(before)
        return True

    def step_under(self, x: float, document: Document) -> int:
        """The step drawn at ``x``, the nearest one outside the plot."""
        return step_at_x(document, plot_of(QRectF(self.rect())), x)

    def _show_steps(self, document: Document, view: ViewState, first: int, last: int) -> None:
        low, high = document.step_range(first), document.step_range(last)
        visible = TimeRange(low.start, high.end)
        self._session.glide(navigation.shown(document, view.with_(step=first), visible))

    def paintEvent(self, _event: QPaintEvent) -> None:
        document, view = self._session.document, self._session.view
        area, ratio = QRectF(self.rect()), self.devicePixelRatioF()
        with QPainter(self) as painter:
            if document is None or view is None or not document.has_steps:
                Canvas(painter, self.theme, ratio).fill(area, self.theme.panel)
            else:
                paint_run_strip(painter, area, document, view, self.theme, ratio)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        document, view = self._session.document, self._session.view
        if document is None or view is None or event.button() != Qt.MouseButton.LeftButton:
            return
        self._pressed = self.step_under(event.position().x(), document)
        self._before = view

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        document, before = self._session.document, self._before
        if document is None or before is None or self._pressed < 0:
            return
        step = self.step_under(event.position().x(), document)
        if step == self._pressed:
            self._session.glide(before)
        else:
            first, last = sorted((self._pressed, step))
            self._show_steps(document, before, first, last)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        document, before, pressed = self._session.document, self._before, self._pressed
        self._pressed, self._before = -1, None
        if document is None or before is None or pressed < 0:
            return
        if self.step_under(event.position().x(), document) == pressed:
            self._session.look(navigation.to_step(document, before, pressed))
        else:
            self._session.mark(before)

    def wheelEvent(self, event: QWheelEvent) -> None:
        document, view = self._session.document, self._session.view
        turned = event.angleDelta().y() or event.angleDelta().x()
        if document is not None and view is not None and turned:
            event.accept()
            self._session.look(navigation.to_step(document, view, view.step + (-1 if turned > 0 else 1)))
