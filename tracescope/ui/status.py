"""The status bar: where the reader is, in words, and what is being loaded."""

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QLabel, QProgressBar, QPushButton, QStatusBar

from tracescope.core.category import KIND_OF_CATEGORY, Category
from tracescope.core.units import MISSING, duration, place, plural, rate, short_source
from tracescope.ui.fonts import font
from tracescope.ui.messages import plain_label
from tracescope.ui.opener import Loading
from tracescope.ui.session import Session
from tracescope.view.document import Document
from tracescope.view.floor_words import event_floor, share_of_floor, share_text
from tracescope.view.view_state import ViewState

PROGRESS_AFTER_MS = 300
"""Loads that are done sooner show no progress: it would only flicker."""


def status_parts(document: Document | None, view: ViewState | None) -> tuple[list[str], str]:
    """The words at the left (in order) and the basis at the right."""
    if document is None or view is None:
        return ["no trace"], ""
    trace = document.trace
    parts = []
    if view.step >= 0:
        parts.append(place("step", view.step, len(trace.steps)))
    if view.layer >= 0:
        layers = document.layer_spans(view.step)
        total = max((span.layer for span in layers), default=view.layer) + 1
        parts.append(place("layer", view.layer, total))
    if view.event >= 0:
        parts += _event_parts(document, view)
    in_step = len(trace.step_events(view.step)) if view.step >= 0 else 0
    counts = f"{plural(len(trace.events), 'event')} in trace"
    parts.append(f"{plural(in_step, 'event')} in step, {counts}" if view.step >= 0 else counts)
    return parts, _basis_text(document)


def _event_parts(document: Document, view: ViewState) -> list[str]:
    events = document.trace.events
    category = Category(int(events.category[view.event]))
    took = int(events.duration[view.event])
    title = document.title_of(view.event)
    kind = KIND_OF_CATEGORY[category].title
    parts = [title if title == kind or document.plain_events[view.event] else f"{title}, {kind}", duration(took)]
    share = share_of_floor(event_floor(document, view.event), took)
    if share is not None:
        parts.append(f"{share_text(share)} of floor")
    return parts


def _basis_text(document: Document) -> str:
    basis = document.basis
    machine = basis.hardware.title if basis.hardware is not None else ""
    if basis.bandwidth_bytes_per_s is None:
        return f"{machine} bandwidth {MISSING}".strip()
    return f"{machine} {rate(basis.bandwidth_bytes_per_s)} ({short_source(basis.bandwidth_source)})".strip()


class StatusBar(QStatusBar):
    """Shows the session; ``cancelled`` is the press of Cancel."""

    cancelled = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.setObjectName("status")
        self.setSizeGripEnabled(False)
        self.setFixedHeight(24)
        self._session = session
        self._labels: list[QLabel] = []
        self._rules: list[QFrame] = []
        self._right = plain_label(name="statusBasis")
        self._right.setContentsMargins(0, 0, 10, 0)
        self._what = plain_label()
        self._progress = QProgressBar()
        self._progress.setFixedWidth(140)
        self._progress.setTextVisible(False)
        self._progress.setAccessibleName("Progress")
        self._cancel = QPushButton("Cancel")
        self._cancel.setFlat(True)
        self._cancel.setFixedHeight(18)
        self._cancel.setStyleSheet("min-height: 0; padding: 0 8px;")
        self._cancel.clicked.connect(self.cancelled)
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.setInterval(PROGRESS_AFTER_MS)
        self._delay.timeout.connect(lambda: self._show_progress(True))
        for widget in (self._what, self._progress, self._cancel, self._right):
            self.addPermanentWidget(widget)
        self._show_progress(False)
        session.document_changed.connect(self.refresh)
        session.view_changed.connect(self.refresh)
        self.refresh()

    @property
    def text(self) -> str:
        """The words at the left, as one line."""
        return " · ".join(label.text() for label in self._labels if not label.isHidden())

    def show_loading(self, loading: Loading | None) -> None:
        """Show what is being loaded, after a moment; None: nothing."""
        if loading is None:
            self._delay.stop()
            self._show_progress(False)
            return
        self._what.setText(loading.title)
        # Qt counts progress in 32 bits, files have more bytes than that.
        self._progress.setRange(0, 1000 if loading.total > 0 else 0)
        if loading.total > 0:
            self._progress.setValue(min(1000, 1000 * loading.done // loading.total))
        if self._what.isHidden() and not self._delay.isActive():
            self._delay.start()

    def refresh(self) -> None:
        """Say where the reader is."""
        parts, right = status_parts(self._session.document, self._session.view)
        while len(self._labels) < len(parts):
            if self._labels:
                rule = QFrame()
                rule.setObjectName("tick")
                rule.setFixedSize(1, 12)
                self._rules.append(rule)
                self.addWidget(rule)
            label = plain_label()
            label.setContentsMargins(5, 0, 5, 0)
            self._labels.append(label)
            self.addWidget(label)
        event = self._session.view is not None and self._session.view.event >= 0
        for i, label in enumerate(self._labels):
            label.setVisible(i < len(parts))
            text = parts[i] if i < len(parts) else ""
            label.setText(text if len(text) <= 60 else text[:59] + "…")
            label.setFont(font(11, 600 if event and 2 <= i < len(parts) - 1 else 400))
        for i, rule in enumerate(self._rules):
            rule.setVisible(i + 1 < len(parts))
        self._right.setText(right)

    def _show_progress(self, visible: bool) -> None:
        for widget in (self._what, self._progress, self._cancel):
            widget.setVisible(visible)
