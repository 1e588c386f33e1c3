"""The middle of the window: run strip, step bar, lanes and counters over one set of columns, and their keys."""

from collections.abc import Callable

from PySide6.QtCore import QKeyCombination, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from tracescope.ui.actions import ACTIONS, Scope
from tracescope.ui.menus import scan_code_letter
from tracescope.ui.paint.geometry import NORMAL, sizes_for
from tracescope.ui.session import Session
from tracescope.ui.settings import SettingsStore
from tracescope.ui.theme import Theme
from tracescope.ui.timeline.counters import BandwidthView, EnergyView
from tracescope.ui.timeline.lanes import LanesView
from tracescope.ui.timeline.plot import KeyState, TimePlot
from tracescope.ui.timeline.run_strip import RunStripView
from tracescope.ui.timeline.step_bar import StepBarView

_UNLIMITED = (1 << 24) - 1
"""Qt's own greatest height of a widget."""
_MODIFIERS = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier


class Timeline(QWidget):
    """Lays the views out and turns keys into actions; ``trigger`` does an action by its name."""

    def __init__(self, session: Session, settings: SettingsStore, trigger: Callable[[str], None]) -> None:
        super().__init__()
        self.setObjectName("timeline")
        self.setAccessibleName("Timeline")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._session = session
        self._trigger = trigger
        self._keys = KeyState()
        self._sizes = NORMAL
        self.run_strip = RunStripView(session)
        self.step_bar = StepBarView(session)
        self.lanes = LanesView(session, settings, self._keys)
        self.bandwidth = BandwidthView(session, settings, self._keys)
        self.energy = EnergyView(session, settings, self._keys)
        self._plots: tuple[TimePlot, ...] = (self.lanes, self.bandwidth, self.energy)
        self._parts = (self.run_strip, self.step_bar, *self._plots)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for view in self._parts:
            layout.addWidget(view, 1 if view is self.lanes else 0)
            view.setFocusProxy(self)
        for plot in self._plots:
            plot.scrolled = self.lanes.scroll_rows
        self._keys_of_actions = {
            QKeySequence(key).toString(): row.name
            for row in ACTIONS
            if row.scope is not Scope.WINDOW
            for key in row.keys
        }
        session.view_changed.connect(self.refresh)
        session.document_changed.connect(self.refresh)
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        for view in self._parts:
            view.set_theme(theme)

    def fit_window(self, width: int, height: int) -> None:
        """Take the heights that belong to a window of this size."""
        self._sizes = sizes_for(width, height)
        self.run_strip.setFixedHeight(self._sizes.run_strip)
        self.step_bar.setFixedHeight(self._sizes.step_bar)
        for counter in (self.bandwidth, self.energy):
            # A little less than the design's height where the rows need it, more where they leave room.
            counter.setMinimumHeight(round(self._sizes.counter * 0.8))
        self.lanes.set_sizes(self._sizes)
        self.refresh()

    def refresh(self) -> None:
        """Show the parts that the trace and the overlays have, and draw them."""
        document, view = self._session.document, self._session.view
        steps = document is not None and document.has_steps
        self.run_strip.setVisible(steps)
        self.step_bar.setVisible(steps)
        self.bandwidth.setVisible(steps)
        wanted = view is not None and "energy" in view.overlays
        priced = document is not None and document.basis.energy is not None
        self.energy.setVisible(steps and wanted and priced and self._sizes.energy)
        self._share_height()
        for part in self._parts:
            part.update()

    def cursor_time(self) -> int | None:
        """The time under the mouse pointer in any of the views with a time axis."""
        for plot in self._plots:
            time = plot.cursor_time()
            if time is not None:
                return time
        return None

    def cancel_drag(self) -> bool:
        """Stop whatever is being dragged."""
        return any([view.cancel_drag() for view in self._parts])

    def scroll_tracks(self, rows: int) -> None:
        """Move the tracks."""
        self.lanes.scroll_rows(rows)

    def key_pressed(self, event: QKeyEvent) -> bool:
        """Do what a key means here; False where it means nothing. Space waits for its release: it may begin a drag."""
        modifiers = event.modifiers() & _MODIFIERS
        if event.key() == Qt.Key.Key_Space and not modifiers:
            if not event.isAutoRepeat():
                self._keys.space, self._keys.used = True, False
            return True
        name = self._action_of(event, modifiers)
        if name is None:
            return False
        self._trigger(name)
        return True

    def key_released(self, event: QKeyEvent) -> bool:
        """Space plays when it was pressed and released without a drag between."""
        if event.key() != Qt.Key.Key_Space or event.isAutoRepeat() or not self._keys.space:
            return False
        self._keys.space = False
        if not self._keys.used:
            self._trigger("play")
        return True

    def _share_height(self) -> None:
        """Give the lanes as many whole rows as fit; what they leave goes to the counters, where there are any."""
        counters = [part for part in (self.bandwidth, self.energy) if not part.isHidden()]
        if not counters:
            self.lanes.setMaximumHeight(_UNLIMITED)
            return
        fixed = sum(part.height() for part in (self.run_strip, self.step_bar) if not part.isHidden())
        free = self.height() - fixed - sum(part.minimumHeight() for part in counters)
        self.lanes.setMaximumHeight(max(self.lanes.minimumHeight(), self.lanes.whole_rows_height(free)))

    def _action_of(self, event: QKeyEvent, modifiers: Qt.KeyboardModifier) -> str | None:
        shift = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        if not modifiers & ~Qt.KeyboardModifier.ShiftModifier:
            letter = scan_code_letter(event.nativeScanCode(), event.key())
            if letter:
                return self._keys_of_actions.get(f"Shift+{letter}" if shift else letter)
        # Where the platform cannot say that Shift made the question mark, its shortcut does not match.
        if event.key() == Qt.Key.Key_Question:
            return "show_keys"
        # The arrows of the keypad are arrows too: their own modifier is left out.
        pressed = QKeyCombination(modifiers, Qt.Key(event.key()))
        return self._keys_of_actions.get(QKeySequence(pressed).toString())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_height()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.key_pressed(event):
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if not self.key_released(event):
            super().keyReleaseEvent(event)
