"""A window over a small trace, with its own settings and cache, closed and joined after every test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.kit.windows import open_in
from tracescope.core.model import Workload
from tracescope.load import save_trace
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.ui import backend
from tracescope.ui.fonts import font
from tracescope.ui.main_window import MainWindow
from tracescope.ui.messages import Messages
from tracescope.ui.settings import SettingsStore
from tracescope.view.document import Document

STEPS = 6


@pytest.fixture(scope="session")
def small_document() -> Document:
    """Six realistic steps of a small preset, with a floor, a model and a machine."""
    model, basis = load_model("llama-3-8b"), make_basis(load_hardware("h100-sxm"))
    trace = synthesize(model, basis, Workload(batch=16, context=4096), steps=STEPS, profile="realistic", seed=5)
    return Document(trace, basis, Path("small.tscope.h5"))


@pytest.fixture(scope="session")
def small_file(small_document: Document, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same trace as a native file."""
    path = tmp_path_factory.mktemp("traces") / "small.tscope.h5"
    save_trace(path, small_document.trace)
    return path


@pytest.fixture
def make_window(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., MainWindow]]:
    """``make_window(width, height)``: a shown window whose settings and cache lie in the test's own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    QLocale.setDefault(QLocale.c())
    made: list[MainWindow] = []

    def make(width: int = 1440, height: int = 900, settings: SettingsStore | None = None) -> MainWindow:
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.setStyle("Fusion")
        application.setFont(font(12))
        store = settings or SettingsStore(tmp_path / "settings.json")
        if settings is None:
            store.change(theme="light")
        window = MainWindow(store, Messages(), lambda: backend)
        window.resize(width, height)
        qtbot.addWidget(window)
        window.show()
        window.restore()
        qtbot.waitExposed(window)
        made.append(window)
        return window

    yield make
    for window in made:
        window.close()


@pytest.fixture
def window(make_window: Callable[..., MainWindow], qtbot: QtBot, small_file: Path) -> MainWindow:
    """A window in which the small trace is open."""
    window = make_window()
    open_in(window, qtbot, small_file)
    window.activateWindow()
    window.timeline.setFocus()
    qtbot.waitUntil(window.isActiveWindow)
    return window
