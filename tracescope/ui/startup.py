"""Starts the window: checks that there is a display, paints first, then loads what the first paint does not need."""

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import PySide6
from PySide6.QtCore import QLibraryInfo, QLocale, QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication

from tracescope.core.errors import TraceError

if TYPE_CHECKING:
    from tracescope.ui.opener import Backend, Opener

EXIT_INTERRUPTED = 130
_HEADLESS = "Without a display, make pictures with: tracescope render FILE -o picture.png"


def run_app(files: Sequence[Path], fresh: bool = False, *, ranks: bool = False) -> int:
    """Open the window with ``files``, as one trace where they are ``ranks`` of a run; returns the exit code.

    Raises TraceError where there is no display."""
    check_display()
    # Qt reads numbers by the user's locale where it can; the product writes them in one way everywhere.
    QLocale.setDefault(QLocale.c())
    application = QApplication.instance() or QApplication(["tracescope"])
    assert isinstance(application, QApplication)
    application.setApplicationName("tracescope")
    application.setApplicationDisplayName("tracescope")
    application.setDesktopFileName("tracescope")

    from tracescope.ui.crash import CrashHandler
    from tracescope.ui.fonts import font
    from tracescope.ui.main_window import MainWindow
    from tracescope.ui.messages import Messages
    from tracescope.ui.settings import SettingsStore, settings_path

    application.setStyle("Fusion")
    application.setFont(font(12))
    messages = Messages()
    window = MainWindow(SettingsStore(settings_path(), fresh_layout=fresh), messages, load_backend)
    sys.excepthook = CrashHandler(messages, window)
    stop = Interrupts(window.close)
    window.show()
    window.restore()

    def open_files(opener: "Opener") -> None:
        if files:
            opener.open_several(files, ranks=ranks)
        else:
            opener.warm_up()

    # After the first paint: an empty window that answers is better than none while modules or a file are read.
    QTimer.singleShot(0, lambda: open_files(window.opener))
    application.exec()
    sys.excepthook = sys.__excepthook__
    window.deleteLater()
    return EXIT_INTERRUPTED if stop.close() else 0


def load_backend() -> "Backend":
    """Import readers, recognition, storage and synthesis; called from a job, never before the first paint."""
    from tracescope.ui import backend

    return backend


class Interrupts:
    """Lets Ctrl+C and a termination signal close the window, although Qt's loop never runs Python by itself."""

    def __init__(self, close_window: object) -> None:
        assert callable(close_window)
        self._close_window = close_window
        self._caught = False
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read)
        self._notifier.activated.connect(self._wake)
        self._old_fd = signal.set_wakeup_fd(self._write.fileno())
        self._old = {number: signal.signal(number, self._catch) for number in (signal.SIGINT, signal.SIGTERM)}

    def close(self) -> bool:
        """Put everything back; whether a signal was caught."""
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_fd)
        self._notifier.setEnabled(False)
        self._read.close()
        self._write.close()
        return self._caught

    def _catch(self, _number: int, _frame: object) -> None:
        self._caught = True

    def _wake(self) -> None:
        self._read.recv(64)
        if self._caught:
            self._close_window()


def check_display() -> None:
    """Raise TraceError where Qt would abort the process: there is no display, or a library that it needs is missing."""
    chosen = os.environ.get("QT_QPA_PLATFORM", "").split(":")[0].split(";")[0]
    if sys.platform != "linux" or chosen in ("offscreen", "minimal", "vnc", "linuxfb", "eglfs"):
        return
    wayland, display = os.environ.get("WAYLAND_DISPLAY"), os.environ.get("DISPLAY")
    if not display and not wayland:
        raise TraceError("There is no display for a window.", action=_HEADLESS)
    if wayland and chosen in ("", "wayland"):
        return
    if display and not answers(display):
        raise TraceError(f"The display {display} does not answer.", action=_HEADLESS)
    missing = missing_library()
    if missing:
        raise TraceError(f"The window cannot start: {missing}", action="Run: tracescope doctor")


def answers(display: str) -> bool:
    """Whether an X server listens at ``display``; True for one on another host, which is not tried."""
    host, _, rest = display.rpartition(":")
    number = rest.split(".")[0]
    if host not in ("", "unix") or not number.isdigit():
        return True
    for address in (f"\0/tmp/.X11-unix/X{number}", f"/tmp/.X11-unix/X{number}"):
        with socket.socket(socket.AF_UNIX) as attempt:
            attempt.settimeout(2)
            try:
                attempt.connect(address)
            except OSError:
                continue
            return True
    return False


def missing_library() -> str:
    """What the loader says about Qt's X11 plugin; empty where it loads."""
    plugins = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath))
    plugin = plugins / "platforms" / "libqxcb.so"
    if not plugin.exists():
        plugin = Path(PySide6.__file__).parent / "Qt" / "plugins" / "platforms" / "libqxcb.so"
    try:
        ctypes.CDLL(str(plugin))
    except OSError as error:
        return str(error).split(": cannot open", maxsplit=1)[0] + " is missing."
    return ""
