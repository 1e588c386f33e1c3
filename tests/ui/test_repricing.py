"""Another bandwidth for the open trace: the pyramid is kept, or built beside the GUI thread, never in it."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.kit.pictures import llama
from tracescope.core.hardware import Basis
from tracescope.lod.planes import Plane
from tracescope.lod.pyramid import Pyramid, build_pyramid
from tracescope.lod.rescale import FloorScales
from tracescope.models import load_hardware, make_basis
from tracescope.ui.main_window import MainWindow
from tracescope.view import document as document_module
from tracescope.view.document import Document


@pytest.fixture
def builders(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which pyramids were built."""
    threads: list[threading.Thread] = []

    def built(*given: object) -> Pyramid:
        threads.append(threading.current_thread())
        return build_pyramid(*given)

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


def test_floors_of_flops_keep_their_share_when_the_memory_gets_slower() -> None:
    before = llama(steps=40)
    after = before.repriced(replace(before.basis, bandwidth_bytes_per_s=10**12))
    assert after.pyramid is before.pyramid
    factors = {p: after.scene.scales.of_plane(p) for p in (Plane.PATH, Plane.WEIGHTS, Plane.COMPUTE)}
    assert factors[Plane.WEIGHTS] == pytest.approx(3.35)
    assert factors[Plane.PATH] == pytest.approx(3.35, rel=0.01)
    assert factors[Plane.COMPUTE] == 1.0
    again = after.repriced(before.basis)
    assert before.scene.scales == again.scene.scales == FloorScales()


def test_a_stored_pyramid_was_priced_as_the_trace_was_made() -> None:
    made = llama(steps=40)
    other = make_basis(load_hardware("l4"))
    opened = Document(made.trace, other, made.path, made.pyramid)
    assert opened.pyramid_basis.peak_flops_per_s == made.basis.peak_flops_per_s
    assert opened.scene.scales.of_plane(Plane.COMPUTE) == pytest.approx(989 / 121)
    assert opened.scene.scales.of_plane(Plane.WEIGHTS) == pytest.approx(3.35 / 0.3)
