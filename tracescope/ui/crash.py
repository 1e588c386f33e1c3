"""What happens to an exception that nobody caught: a refusal becomes a message, anything else a report to copy."""

import platform
import sys
import traceback
from types import TracebackType

import PySide6
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from tracescope import __version__
from tracescope.core.errors import TraceError
from tracescope.ui.messages import Messages, plain_label


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str:
    """The text to send: versions and the traceback; nothing from the open file but what the message says."""
    versions = f"tracescope {__version__}, Python {platform.python_version()}, PySide6 {PySide6.__version__}"
    system = f"{platform.system()} {platform.release()}, {QGuiApplication.platformName()}"
    return "\n".join([versions, system, "", *traceback.format_exception(kind, error, trace)])


class CrashDialog(QDialog):
    """Says that this is a bug and shows the report."""

    def __init__(self, text: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setWindowTitle("A bug in tracescope")
        self.resize(720, 420)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        words = plain_label("Something went wrong that is not your fault. What is open stays open; please report this:")
        words.setWordWrap(True)
        self.text = QPlainTextEdit(text)
        self.text.setReadOnly(True)
        self.text.setAccessibleName("Report")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy report", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(words)
        layout.addWidget(self.text)
        layout.addWidget(buttons)


class CrashHandler:
    """Installed as ``sys.excepthook`` while the window is open. One dialog at a time."""

    def __init__(self, messages: Messages, window: QWidget) -> None:
        self._messages = messages
        self._window = window
        self._open: CrashDialog | None = None

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Handle one uncaught exception."""
        if isinstance(error, TraceError):
            self._messages.refuse(error)
            return
        if issubclass(kind, KeyboardInterrupt):
            self._window.close()
            return
        sys.__excepthook__(kind, error, trace)
        if self._open is None:
            self._open = CrashDialog(report(kind, error, trace), self._window)
            self._open.finished.connect(self._closed)
            self._open.open()

    def _closed(self) -> None:
        self._open = None
