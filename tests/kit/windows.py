"""Opening a file in a window and waiting for it, for the tests here."""

from pathlib import Path

from pytestqt.qtbot import QtBot

from tracescope.ui.main_window import MainWindow


def open_in(window: MainWindow, qtbot: QtBot, path: Path, **options: str) -> None:
    """Open a file and wait for it."""
    before = window.session.document
    window.opener.open(path, **options)
    qtbot.waitUntil(lambda: window.session.document is not before, timeout=60_000)
