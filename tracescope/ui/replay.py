"""Plays a trace: a playhead that moves at a chosen number of trace nanoseconds a second, the view following it."""

import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from tracescope.core import units
from tracescope.ui.session import Session
from tracescope.view.navigation import bounds, panned

SPEEDS: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
"""Trace nanoseconds a second, slowest first."""
FRAME_MS: Final = 16
_LEAD: Final = 0.85
"""The view turns the page when the playhead passes this share of it."""


def speed_label(speed: int) -> str:
    """``1 ms / s``."""
    number, unit = units.duration(speed).split(" ")
    return f"{units.significant(float(number.replace(',', '')), 6)} {unit} / s"


class Replay(QObject):
    """Starts at the playhead, or at the left edge of the view; stops at the end of the trace."""

    playing_changed = Signal(bool)
    speed_changed = Signal(int)

    def __init__(self, session: Session, speed: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._session = session
        self._clock = clock
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self.advance)
        self._last = 0.0
        self._position = 0.0
        self._speed = speed if speed in SPEEDS else 1_000_000
        session.document_changed.connect(self.pause)

    @property
    def playing(self) -> bool:
        """Whether the playhead moves."""
        return self._timer.isActive()

    @property
    def speed(self) -> int:
        """Trace nanoseconds a second."""
        return self._speed

    def set_speed(self, speed: int) -> None:
        """Choose one of SPEEDS."""
        if speed != self._speed:
            self._speed = speed
            self.speed_changed.emit(speed)

    def slower(self) -> None:
        """One speed down."""
        self.set_speed(SPEEDS[max(0, SPEEDS.index(self._speed) - 1)])

    def toggle(self) -> None:
        """Play or pause."""
        if self.playing:
            self.pause()
        elif self._session.document is not None and self._session.view is not None:
            view, limit = self._session.view, bounds(self._session.document)
            playhead = view.playhead
            inside = playhead is not None and view.visible.contains(playhead) and playhead < limit.end - 1
            self._position = float(playhead if inside and playhead is not None else view.visible.start)
            self._last = self._clock()
            self._timer.start()
            self.playing_changed.emit(True)

    def pause(self) -> None:
        """Stop where it is."""
        if self.playing:
            self._timer.stop()
            self.playing_changed.emit(False)

    def advance(self) -> None:
        """Move the playhead by the time since the last frame, and turn the page where it leaves the view."""
        document, view = self._session.document, self._session.view
        if document is None or view is None:
            self.pause()
            return
        now = self._clock()
        self._position += (now - self._last) * self._speed
        self._last = now
        limit = bounds(document)
        playhead = min(round(self._position), limit.end - 1)
        visible = view.visible
        if playhead >= visible.start + visible.duration * _LEAD and visible.end < limit.end:
            behind = round(visible.duration * (1 - _LEAD))
            view = panned(document, view, playhead - visible.start - behind)
        self._session.glide(view.with_(playhead=playhead))
        if playhead >= limit.end - 1:
            self.pause()
