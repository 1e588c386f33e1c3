"""Jobs deliver on the GUI thread, the latest wins, and closing leaves no thread."""

import threading
import time

import pytest
from pytestqt.exceptions import capture_exceptions
from pytestqt.qtbot import QtBot

from tracescope.core.errors import TraceError
from tracescope.ui.jobs import Cancelled, Jobs


def no_failure(error: TraceError) -> None:
    raise error


def test_results_arrive_on_the_gui_thread(qtbot: QtBot) -> None:
    jobs, got = Jobs(), []
    jobs.start(
        "a", lambda _c: threading.current_thread(), lambda t: got.append((t, threading.current_thread())), no_failure
    )
    qtbot.waitUntil(lambda: bool(got))
    worker, gui = got[0]
    assert gui is threading.main_thread()
    assert worker is not gui
    jobs.close()
    assert not jobs.running


def test_the_latest_start_of_a_kind_wins(qtbot: QtBot) -> None:
    jobs, got, release = Jobs(), [], threading.Event()

    def slow(_cancelled: Cancelled) -> str:
        release.wait(5)
        return "old"

    jobs.start("open", slow, got.append, no_failure)
    jobs.start("open", lambda _c: "new", got.append, no_failure)
    jobs.start("other", lambda _c: "other", got.append, no_failure)
    qtbot.waitUntil(lambda: len(got) == 2)
    release.set()
    qtbot.wait(50)
    assert sorted(got) == ["new", "other"]
    jobs.close()


def test_a_cancelled_job_is_told_and_delivers_nothing(qtbot: QtBot) -> None:
    jobs, got, told = Jobs(), [], threading.Event()

    def work(cancelled: Cancelled) -> str:
        while not cancelled():
            time.sleep(0.005)
        told.set()
        return "late"

    jobs.start("open", work, got.append, no_failure)
    jobs.cancel("open")
    assert told.wait(2)
    qtbot.wait(30)
    assert got == []
    jobs.close()


def test_close_joins_and_nothing_is_delivered_afterwards(qtbot: QtBot) -> None:
    jobs, got = Jobs(), []

    def work(cancelled: Cancelled) -> str:
        while not cancelled():
            time.sleep(0.005)
        return "late"

    jobs.start("a", work, got.append, no_failure)
    jobs.start("b", lambda _c: "done", got.append, no_failure)
    jobs.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("job ")]
    qtbot.wait(30)
    assert got == []
    jobs.start("c", lambda _c: "after", got.append, no_failure)
    qtbot.wait(30)
    assert got == []


def test_refusals_and_bugs_are_told_apart(qtbot: QtBot) -> None:
    jobs, refused = Jobs(), []

    def refuse(_cancelled: Cancelled) -> None:
        raise TraceError("no", action="do")

    jobs.start("a", refuse, no_failure, refused.append)
    qtbot.waitUntil(lambda: bool(refused))
    assert refused[0].lines() == ["no", "do"]

    def bug(_cancelled: Cancelled) -> None:
        raise ZeroDivisionError

    with capture_exceptions() as exceptions:
        jobs.start("b", bug, no_failure, no_failure)
        qtbot.waitUntil(lambda: bool(exceptions))
    assert exceptions[0][0] is ZeroDivisionError
    jobs.close()


@pytest.mark.parametrize("count", [30])
def test_many_starts_leave_no_threads(qtbot: QtBot, count: int) -> None:
    jobs, got = Jobs(), []
    for i in range(count):
        jobs.start("k", lambda _c, i=i: i, got.append, no_failure)
    qtbot.waitUntil(lambda: bool(got) and got[-1] == count - 1)
    jobs.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("job ")]
