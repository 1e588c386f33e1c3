"""Work off the GUI thread: the latest start of a kind wins, every job can be cancelled, all are joined before exit."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from tracescope.core.errors import TraceError

Cancelled = Callable[[], bool]
"""Asked by long work every 50 ms at least; True means: return anything, nobody will look."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    kind: str
    ticket: int
    done: Callable[[Any], None]
    failed: Callable[[TraceError], None]
    result: Any = None
    error: BaseException | None = None


class Jobs(QObject):
    """Runs functions in threads and delivers their results on the GUI thread.

    ``busy_changed`` tells whether any job of a kind that shows progress is running. A result of a job that was
    superseded or cancelled is dropped. Errors other than TraceError are raised again on the GUI thread: they are bugs.
    """

    busy_changed = Signal(bool)
    _finished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._tickets: dict[str, int] = {}
        self._threads: set[threading.Thread] = set()
        self._closing = False
        self._finished.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def start(
        self,
        kind: str,
        work: Callable[[Cancelled], Any],
        done: Callable[[Any], None],
        failed: Callable[[TraceError], None],
    ) -> None:
        """Run ``work`` in a thread; an earlier job of the same ``kind`` is cancelled and its result dropped."""
        if self._closing:
            return
        ticket = self._tickets.get(kind, 0) + 1
        self._tickets[kind] = ticket

        def cancelled() -> bool:
            return self._closing or self._tickets[kind] != ticket

        def run() -> None:
            try:
                outcome = _Outcome(kind, ticket, done, failed, result=work(cancelled))
            except BaseException as error:
                outcome = _Outcome(kind, ticket, done, failed, error=error)
            if not self._closing:
                self._finished.emit(outcome)

        # Ended threads are forgotten here rather than in the thread itself, which could still be emitting.
        self._threads = {t for t in self._threads if t.is_alive()}
        thread = threading.Thread(target=run, name=f"job {kind} {ticket}")
        self._threads.add(thread)
        thread.start()

    def cancel(self, kind: str) -> None:
        """Drop the running job of ``kind``, if any."""
        if kind in self._tickets:
            self._tickets[kind] += 1

    @property
    def running(self) -> bool:
        """Whether any thread is alive."""
        return any(t.is_alive() for t in self._threads)

    def close(self) -> None:
        """Cancel everything and wait for the threads to end; nothing is delivered after this."""
        self._closing = True
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _deliver(self, outcome: _Outcome) -> None:
        if self._closing or self._tickets[outcome.kind] != outcome.ticket:
            return
        if outcome.error is None:
            outcome.done(outcome.result)
        elif isinstance(outcome.error, TraceError):
            outcome.failed(outcome.error)
        else:
            raise outcome.error
