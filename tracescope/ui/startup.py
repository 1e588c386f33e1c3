"""Starts the window: checks that there is a display, paints first, then loads what the first paint does not need."""

import ctypes
import os
import shlex
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
_X_PORT = 6000
_PATIENCE_S = 3


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


def check_display(file: Path | None = None) -> None:
    """Raise TraceError where Qt would abort the process: there is no display, or a library that it needs is missing.

    ``file`` is what was to be shown: the refusal names the command that draws it without a display.
    """
    chosen = os.environ.get("QT_QPA_PLATFORM", "").split(":")[0].split(";")[0]
    if sys.platform != "linux" or chosen in ("offscreen", "minimal", "vnc", "linuxfb", "eglfs"):
        return
    wayland, display = os.environ.get("WAYLAND_DISPLAY"), os.environ.get("DISPLAY")
    named = "FILE" if file is None else shlex.quote(str(file))
    picture = "picture.png" if file is None else shlex.quote(f"{file.name.split('.')[0] or 'picture'}.png")
    headless = f"Without a display, make pictures with: tracescope render {named} -o {picture}"
    if not display and not wayland:
        raise TraceError("There is no display for a window.", action=headless)
    if wayland and chosen in ("", "wayland") and wayland_answers(wayland):
        return
    if not display or not answers(display):
        raise TraceError(f"The display {display or wayland} does not answer.", action=headless)
    missing = missing_library()
    if missing:
        raise TraceError(f"The window cannot start: {missing}", action="Run: tracescope doctor")


def answers(display: str) -> bool:
    """Whether an X server listens at ``display``, here or on another host, as one behind a secure shell does."""
    host, _, rest = display.rpartition(":")
    number = rest.split(".")[0]
    if not number.isdecimal() or host.endswith(":"):
        return True  # not an address that is known here: Qt may know it
    if host not in ("", "unix"):
        try:
            socket.create_connection((host.strip("[]"), _X_PORT + int(number)), _PATIENCE_S).close()
        except (OSError, OverflowError, UnicodeError):
            return False
        return True
    return _listens(f"\0/tmp/.X11-unix/X{number}") or _listens(f"/tmp/.X11-unix/X{number}")


def wayland_answers(display: str) -> bool:
    """Whether a Wayland compositor listens at ``display``: a path, or a name in the user's runtime folder."""
    return _listens(os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), display))


def _listens(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as attempt:
        attempt.settimeout(_PATIENCE_S)
        try:
            attempt.connect(address)
        except (OSError, ValueError):  # a path that is too long, or has a null inside
            return False
    return True


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
