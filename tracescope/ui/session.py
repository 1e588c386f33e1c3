"""The one holder of what is open and what is being looked at; every widget listens to it and none to another."""

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

HISTORY_LIMIT = 200
SETTLE_S = 0.7
"""A pan or zoom that comes sooner than this after the last one continues the same move in the history."""


class Session(QObject):
    """The open document, its view and the hovered event. A setter given an equal value does nothing."""

    document_changed = Signal()
    view_changed = Signal()
    hover_changed = Signal()

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._document: Document | None = None
        self._view: ViewState | None = None
        self._hovered = -1
        self._back: list[ViewState] = []
        self._forward: list[ViewState] = []
        self._moved_at = -1e9

    @property
    def document(self) -> Document | None:
        """What is open, None at first."""
        return self._document

    @property
    def view(self) -> ViewState | None:
        """What is being looked at; None exactly while nothing is open."""
        return self._view

    @property
    def hovered(self) -> int:
        """The event under the pointer, -1 none."""
        return self._hovered

    def set_document(
        self, document: Document | None, view: ViewState | None = None, *, keep_history: bool = False
    ) -> None:
        """Open another document in a view; ``keep_history``: its events are still the same (a new basis)."""
        if document is self._document:
            return
        self._document = document
        self._hovered = -1
        if document is None:
            self._view = None
        else:
            self._view = view if view is not None else document.initial_view()
        if not keep_history:
            self._back.clear()
            self._forward.clear()
        self.document_changed.emit()
        self.view_changed.emit()

    def look(self, view: ViewState) -> None:
        """Change the view and remember where it was."""
        if self._view is None or view == self._view:
            return
        now = self._clock()
        settled = now - self._moved_at > SETTLE_S
        selects = (view.step, view.event, view.layer) != (self._view.step, self._view.event, self._view.layer)
        if view.visible != self._view.visible or selects:
            if settled or selects:
                self._back = [*self._back, self._view][-HISTORY_LIMIT:]
                self._forward.clear()
            self._moved_at = now
        self._set(view)

    def glide(self, view: ViewState) -> None:
        """Change the view without leaving a mark in the history: the replay's playhead."""
        if self._view is not None and view != self._view:
            self._set(view)

    def mark(self, before: ViewState) -> None:
        """Remember ``before`` in the history: a drag glided away from it."""
        if before != self._view:
            self._back = [*self._back, before][-HISTORY_LIMIT:]
            self._forward.clear()
            self._moved_at = self._clock()

    def back(self) -> None:
        """Return to the view before the last move."""
        self._travel(self._back, self._forward)

    def forward(self) -> None:
        """Undo :meth:`back`."""
        self._travel(self._forward, self._back)

    def hover(self, event: int) -> None:
        """Say which event is under the pointer."""
        if event != self._hovered:
            self._hovered = event
            self.hover_changed.emit()

    def _travel(self, source: list[ViewState], other: list[ViewState]) -> None:
        if source and self._view is not None:
            other.append(self._view)
            self._moved_at = -1e9
            self._set(source.pop())

    def _set(self, view: ViewState) -> None:
        self._view = view
        self.view_changed.emit()
