"""Another bandwidth for the open trace: the pyramid is kept, or built beside the GUI thread, never in it."""

import threading
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tracescope.core.hardware import Basis
from tracescope.lod.pyramid import Pyramid, build_pyramid
from tracescope.ui import document as document_module
from tracescope.ui.document import Document
from tracescope.ui.main_window import MainWindow


@pytest.fixture
def builders(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which pyramids were built."""
    threads: list[threading.Thread] = []

    def built(*given: object) -> Pyramid:
        threads.append(threading.current_thread())
        return build_pyramid(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(document_module, "build_pyramid", built)
    return threads


def test_a_priced_pyramid_is_kept(window: MainWindow, builders: list[threading.Thread]) -> None:
    before = window.session.document
    assert before is not None
    assert window.opener.reprice("2.0 TB/s")
    after = window.session.document
    assert after is not None
    assert after is not before
    assert after.basis.bandwidth_bytes_per_s == 2 * 10**12
    window.timeline.grab()
    assert after.pyramid is before.pyramid
    assert not builders


def test_without_a_priced_one_it_is_built_beside_the_window(
    window: MainWindow, qtbot: QtBot, small_document: Document, builders: list[threading.Thread]
) -> None:
    mute = Document(small_document.trace, Basis(), Path("mute.tscope.h5"))
    window.session.set_document(mute, mute.initial_view())
    assert mute.pyramid.bandwidth_bytes_per_s == 0
    builders.clear()
    assert window.opener.reprice("2.0 TB/s")
    qtbot.waitUntil(lambda: window.session.document is not mute, timeout=20_000)
    after = window.session.document
    assert after is not None
    window.timeline.grab()
    assert after.has_floor
    assert [thread is threading.main_thread() for thread in builders] == [False]


def test_a_trace_that_was_opened_meanwhile_stays(
    window: MainWindow, qtbot: QtBot, small_document: Document, builders: list[threading.Thread]
) -> None:
    mute = Document(small_document.trace, Basis(), Path("mute.tscope.h5"))
    window.session.set_document(mute, mute.initial_view())
    builders.clear()
    assert window.opener.reprice("2.0 TB/s")
    window.session.set_document(small_document, small_document.initial_view())
    qtbot.waitUntil(lambda: not window.jobs.running, timeout=20_000)
    qtbot.wait(20)
    assert window.session.document is small_document
