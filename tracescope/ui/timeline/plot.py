"""What every view with a time axis does with the mouse: zoom, pan, select a range, select an event, show a tip."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QEnterEvent, QFocusEvent, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QToolTip, QWidget

from tracescope.core.timerange import TimeRange
from tracescope.ui.messages import plain_tooltip
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.geometry import TimeScale, split, time_scale
from tracescope.ui.session import Session
from tracescope.ui.settings import SettingsStore
from tracescope.ui.theme import LIGHT, Theme
from tracescope.view import navigation
from tracescope.view.document import Document
from tracescope.view.tips import tip_text
from tracescope.view.view_state import ViewState

TIP_MS: Final = 150
DRAG_PX: Final = 4
SNAP_PX: Final = 6
WHEEL_ZOOM: Final = 1.2
"""Zoom of one wheel notch."""
WHEEL_PAN: Final = 0.1


class DragKind(Enum):
    """What a held button does."""

    SELECT = "select"
    PAN = "pan"
    ZOOM = "zoom"


@dataclass(slots=True)
class Drag:
    """A button that is held: where it went down, in which view, and whether it has moved far enough to count."""

    kind: DragKind
    origin: QPointF
    view: ViewState
    anchor: int
    moved: bool = False


@dataclass(slots=True)
class KeyState:
    """Whether Space is held, and whether it was used for a drag since: then its release does not play."""

    space: bool = False
    used: bool = False


class TimePlot(QWidget):
    """A view whose plot area shows ``view.visible``. Subclasses paint and say which event is where."""

    def __init__(self, name: str, session: Session, settings: SettingsStore, keys: KeyState) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.session = session
        self.theme = LIGHT
        self._settings = settings
        self._keys = keys
        self._drag: Drag | None = None
        self._mouse: QPointF | None = None
        self._tip_timer = QTimer(self)
        self._tip_timer.setSingleShot(True)
        self._tip_timer.setInterval(TIP_MS)
        self._tip_timer.timeout.connect(self._show_tip)
        self.scrolled: Callable[[int], None] = lambda _rows: None

    # For subclasses ----------------------------------------------------------------------------------------------

    def paint(self, painter: QPainter, document: Document, view: ViewState) -> None:
        """Draw the view; nothing is asked of it while no trace is open."""
        raise NotImplementedError

    def event_under(self, position: QPointF, document: Document, view: ViewState) -> int:
        """The event at a position, -1 none."""
        del position, document, view
        return -1

    def pressed_elsewhere(self, position: QPointF, document: Document, view: ViewState) -> bool:
        """A click outside the plot; True where it meant something."""
        del position, document, view
        return False

    # Shared ------------------------------------------------------------------------------------------------------

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self.theme = theme
        self.update()

    def plot(self) -> QRectF:
        """The plot area."""
        return split(QRectF(self.rect())).plot

    def time_scale(self, view: ViewState) -> TimeScale:
        """Time to pixels in this widget."""
        return time_scale(view.visible, self.plot())

    def cursor_time(self) -> int | None:
        """The time under the mouse pointer, None where it is not in the plot."""
        view = self.session.view
        if view is None or self._mouse is None or not self.plot().contains(self._mouse):
            return None
        return self.time_scale(view).time_at(self._mouse.x())

    def cancel_drag(self) -> bool:
        """Put the view back as it was before the drag; False where there is none."""
        drag, self._drag = self._drag, None
        if drag is None:
            return False
        self.session.glide(drag.view)
        self.unsetCursor()
        return True

    def _opened(self) -> tuple[Document, ViewState] | None:
        document, view = self.session.document, self.session.view
        return None if document is None or view is None else (document, view)

    def _snapped(self, x: float, document: Document, view: ViewState, *, free: bool) -> int:
        """The time at ``x``, on the edge of an event close by unless ``free``."""
        scale = self.time_scale(view)
        time = scale.time_at(x)
        if free:
            return time
        near = self.edges_near(time, scale.tolerance(SNAP_PX), document, view)
        return min(near, key=lambda edge: abs(edge - time), default=time)

    def edges_near(self, time: int, tolerance: int, document: Document, view: ViewState) -> list[int]:
        """Starts and ends of events within ``tolerance`` ns of ``time``."""
        del time, tolerance, document, view
        return []

    def _kind_of_press(self, event: QMouseEvent) -> DragKind | None:
        modifiers, button = event.modifiers(), event.button()
        if button == Qt.MouseButton.MiddleButton:
            return DragKind.PAN
        if button != Qt.MouseButton.LeftButton:
            return None
        if self._keys.space or modifiers & Qt.KeyboardModifier.ShiftModifier:
            return DragKind.PAN
        return DragKind.ZOOM if modifiers & Qt.KeyboardModifier.ControlModifier else DragKind.SELECT

    def _dragged(self, drag: Drag, event: QMouseEvent, document: Document) -> None:
        start = drag.view
        if drag.kind is DragKind.PAN:
            delta = round((drag.origin.x() - event.position().x()) / self.time_scale(start).px_per_ns)
            self.session.glide(navigation.panned(document, start, delta))
            return
        free = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        plot = self.plot()
        x = min(max(event.position().x(), plot.left()), plot.right())
        low, high = sorted((drag.anchor, self._snapped(x, document, start, free=free)))
        self.session.glide(start.with_(selection=TimeRange(low, high), event=-1))

    def _finish(self, drag: Drag, position: QPointF, document: Document) -> None:
        view = self.session.view
        if view is None:
            return
        if drag.moved:
            if drag.kind is DragKind.ZOOM and view.selection is not None:
                view = navigation.shown(document, drag.view, view.selection)
                self.session.glide(drag.view)
                self.session.look(view)
            else:
                self.session.mark(drag.view)
            return
        if drag.kind is DragKind.SELECT:
            if self.plot().contains(position):
                event = self.event_under(position, document, view)
                self.session.look(navigation.select_event(document, view, event).with_(selection=None))
            else:
                self.pressed_elsewhere(position, document, view)

    def _hover(self, position: QPointF | None) -> None:
        opened = self._opened()
        event = -1
        if opened is not None and position is not None and self.plot().contains(position):
            event = self.event_under(position, *opened)
        if event != self.session.hovered:
            QToolTip.hideText()
            self._tip_timer.stop()
        self.session.hover(event)
        if event >= 0 and not QToolTip.isVisible():
            self._tip_timer.start()

    def _show_tip(self) -> None:
        document, event = self.session.document, self.session.hovered
        if document is not None and event >= 0 and self._mouse is not None and self._drag is None:
            place = self.mapToGlobal(self._mouse.toPoint() + QPoint(10, 14))
            QToolTip.showText(place, plain_tooltip(tip_text(document, event)), self)

    # Qt ----------------------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        opened = self._opened()
        # Ended in any case: a painter that outlives a bug in painting takes the whole window down with it.
        with QPainter(self) as painter:
            if opened is None:
                Canvas(painter, self.theme, self.devicePixelRatioF()).fill(QRectF(self.rect()), self.theme.panel)
            else:
                self.paint(painter, *opened)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        opened = self._opened()
        kind = self._kind_of_press(event)
        if opened is None or kind is None:
            return
        document, view = opened
        QToolTip.hideText()
        self._tip_timer.stop()
        free = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        anchor = self._snapped(event.position().x(), document, view, free=free)
        self._drag = Drag(kind, event.position(), view, anchor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._mouse = event.position()
        opened, drag = self._opened(), self._drag
        if opened is None or drag is None:
            self._hover(event.position())
            return
        if not drag.moved:
            far = abs(event.position().x() - drag.origin.x()) >= DRAG_PX
            if not far or not self.plot().contains(drag.origin):
                return
            drag.moved = True
            self._keys.used = self._keys.space
            if drag.kind is DragKind.PAN:
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self._dragged(drag, event, opened[0])

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        opened, drag = self._opened(), self._drag
        self._drag = None
        self.unsetCursor()
        if opened is not None and drag is not None:
            self._finish(drag, event.position(), opened[0])

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        opened = self._opened()
        if opened is None or event.button() != Qt.MouseButton.LeftButton:
            return
        document, view = opened
        found = self.event_under(event.position(), document, view)
        if found >= 0 and self.plot().contains(event.position()):
            self.session.look(navigation.fit_event(document, view, found))

    def wheelEvent(self, event: QWheelEvent) -> None:
        opened = self._opened()
        # Alt turns the wheel sideways on some platforms, and Shift does on others.
        turned = event.angleDelta().y() or event.angleDelta().x()
        if opened is None or not turned:
            return
        event.accept()
        document, view = opened
        notches = turned / 120
        modifiers = event.modifiers()
        if modifiers & Qt.KeyboardModifier.ShiftModifier:
            self.session.look(navigation.panned_by(document, view, -notches * WHEEL_PAN))
            return
        inside = self.plot().contains(event.position())
        zooms = bool(modifiers & Qt.KeyboardModifier.ControlModifier) or (inside and self._settings.value.wheel_zooms)
        if zooms:
            anchor = self.time_scale(view).time_at(event.position().x()) if inside else None
            self.session.look(navigation.zoomed(document, view, anchor, WHEEL_ZOOM**-notches))
        else:
            self.scrolled(-1 if turned > 0 else 1)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._mouse = event.position()
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._mouse = None
        self._hover(None)
        super().leaveEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._keys.space = False
        super().focusOutEvent(event)
