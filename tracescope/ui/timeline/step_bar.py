"""The current step against its floor, and the frame of what is in sight: drag it, or its edges, or click beside it."""

from enum import Enum
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from tracescope.core.timerange import TimeRange
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.geometry import TimeScale, split
from tracescope.ui.paint.step_bar import paint_step_bar
from tracescope.ui.session import Session
from tracescope.ui.theme import LIGHT, Theme
from tracescope.view import navigation
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

EDGE_PX: Final = 5
WHEEL_ZOOM: Final = 1.2


class Grip(Enum):
    """What of the frame is held."""

    LEFT = "left"
    RIGHT = "right"
    WHOLE = "whole"


class StepBarView(QWidget):
    """Floor and gap of the step, the step as it ran, and the wedge down to the lanes."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.setAccessibleName("Current step")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMouseTracking(True)
        self.theme = LIGHT
        self._session = session
        self._grip: Grip | None = None
        self._before: ViewState | None = None
        self._pressed_at = 0

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self.theme = theme
        self.update()

    def cancel_drag(self) -> bool:
        """Go back to the view before the drag; False where there is none."""
        before, self._before, self._grip = self._before, None, None
        if before is None:
            return False
        self._session.glide(before)
        return True

    def step_scale(self, document: Document, view: ViewState) -> TimeScale:
        """The whole step over the plot."""
        plot = split(QRectF(self.rect())).plot
        return TimeScale(document.step_range(view.step), plot.left(), plot.width())

    def grip_at(self, x: float, document: Document, view: ViewState) -> Grip | None:
        """The part of the frame at ``x``."""
        scale = self.step_scale(document, view)
        left, right = scale.x(view.visible.start), scale.x(view.visible.end)
        edge = min(EDGE_PX, max(1.0, (right - left) / 4))
        if abs(x - left) <= edge:
            return Grip.LEFT
        if abs(x - right) <= edge:
            return Grip.RIGHT
        return Grip.WHOLE if left < x < right else None

    def _opened(self) -> tuple[Document, ViewState] | None:
        document, view = self._session.document, self._session.view
        return None if document is None or view is None or view.step < 0 else (document, view)

    def paintEvent(self, _event: QPaintEvent) -> None:
        opened = self._opened()
        area, ratio = QRectF(self.rect()), self.devicePixelRatioF()
        with QPainter(self) as painter:
            if opened is None:
                Canvas(painter, self.theme, ratio).fill(area, self.theme.panel)
            else:
                paint_step_bar(painter, area, *opened, self.theme, ratio)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        opened = self._opened()
        if opened is None or event.button() != Qt.MouseButton.LeftButton:
            return
        document, view = opened
        x = event.position().x()
        self._before = view
        self._pressed_at = self.step_scale(document, view).time_at(x)
        self._grip = self.grip_at(x, document, view)
        if self._grip is None:
            half = view.visible.duration // 2
            centred = TimeRange(self._pressed_at - half, self._pressed_at - half + view.visible.duration)
            self._session.look(navigation.shown(document, view, centred))
            self._before = self._session.view
            self._grip = Grip.WHOLE

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        opened = self._opened()
        if opened is None:
            return
        document, view = opened
        before, grip = self._before, self._grip
        if before is None or grip is None:
            found = self.grip_at(event.position().x(), document, view)
            edge = found in (Grip.LEFT, Grip.RIGHT)
            self.setCursor(Qt.CursorShape.SizeHorCursor if edge else Qt.CursorShape.ArrowCursor)
            return
        delta = self.step_scale(document, before).time_at(event.position().x()) - self._pressed_at
        visible = before.visible
        if grip is Grip.WHOLE:
            moved = visible.panned(delta)
        elif grip is Grip.LEFT:
            moved = TimeRange(min(visible.start + delta, visible.end - 1), visible.end)
        else:
            moved = TimeRange(visible.start, max(visible.end + delta, visible.start + 1))
        shown = navigation.shown(document, before, moved)
        # The frame leads out of the step at its ends; the step itself stays the one that is drawn here.
        self._session.glide(shown.with_(step=before.step, layer=before.layer))

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        before, self._before, self._grip = self._before, None, None
        if before is not None:
            self._session.mark(before)

    def wheelEvent(self, event: QWheelEvent) -> None:
        opened = self._opened()
        turned = event.angleDelta().y() or event.angleDelta().x()
        if opened is None or not turned:
            return
        event.accept()
        document, view = opened
        middle = (view.visible.start + view.visible.end) // 2
        self._session.look(navigation.zoomed(document, view, middle, WHEEL_ZOOM ** (-turned / 120)))
