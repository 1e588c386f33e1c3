"""Text for people: the message bar, and the only ways in which text from a file reaches a widget (always plain)."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QWidget

from tracescope.core.errors import TraceError, printable

FORGET_MS: Final = 8000
"""A message that is no warning goes by itself after this time; a warning stays until it is dismissed."""


@dataclass(frozen=True, slots=True)
class Message:
    """One sentence for the bar, what can be done about it, and an optional button."""

    text: str
    advice: str = ""
    button: str = ""
    pressed: Callable[[], None] | None = None
    warning: bool = True


class Messages(QObject):
    """Where anything posts a message; the window attaches the bar. Posts before that wait."""

    posted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Message] = []
        self.attached = False

    def post(self, message: Message) -> None:
        """Show ``message`` now, or as soon as there is a bar."""
        if self.attached:
            self.posted.emit(message)
        else:
            self.waiting.append(message)

    def refuse(self, error: TraceError) -> None:
        """Show a refusal."""
        self.post(Message(printable(error.what), printable(error.action)))

    def attach(self, show: Callable[[Message], None]) -> None:
        """Deliver to ``show`` from now on, waiting messages first."""
        self.posted.connect(show)
        self.attached = True
        for message in self.waiting:
            self.posted.emit(message)
        self.waiting.clear()


def plain_label(text: str = "", *, name: str = "") -> QLabel:
    """A label that never reads its text as markup; ``name`` is its accessible and style-sheet name."""
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(text)
    if name:
        label.setObjectName(name)
    return label


def plain_tooltip(text: str) -> str:
    """``text`` as a tool tip that shows every character as it is: Qt guesses markup in tips, so it is escaped."""
    return "<p style='white-space:pre-wrap'>" + html.escape(text) + "</p>" if text else ""


def plain_menu_text(text: str) -> str:
    """``text`` as a menu entry: an ampersand would become a mnemonic."""
    return printable(text).replace("&", "&&")


def joined(text: str, advice: str) -> str:
    """Two sentences one after the other, with a full stop between them where the first has none."""
    text, advice = text.strip(), advice.strip()
    if not text or not advice:
        return text or advice
    return f"{text} {advice}" if text[-1] in ".!?:" else f"{text}. {advice}"


class MessageBar(QWidget):
    """One line under the toolbar in warning colours; hidden while there is nothing to say."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("messageBar")
        self.setAccessibleName("Message")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._text = plain_label(name="messageText")
        self._text.setWordWrap(True)
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._button = QPushButton()
        self._button.setObjectName("messageButton")
        self._button.clicked.connect(self._press)
        close = QToolButton()
        close.setText("×")
        close.setAccessibleName("Dismiss the message")
        close.clicked.connect(self.hide)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 4, 8, 4)
        layout.setSpacing(8)
        layout.addWidget(self._text, 1)
        layout.addWidget(self._button)
        layout.addWidget(close)
        self._message = Message("")
        self._forget = QTimer(self)
        self._forget.setSingleShot(True)
        self._forget.setInterval(FORGET_MS)
        self._forget.timeout.connect(self.hide)
        self.hide()

    @property
    def message(self) -> Message | None:
        """What is shown, None while the bar is hidden."""
        return None if self.isHidden() else self._message

    def show_message(self, message: Message) -> None:
        """Replace what is shown."""
        self._message = message
        self._forget.stop()
        if not message.warning and not message.button:
            self._forget.start()
        self._text.setText(joined(message.text, message.advice))
        self._button.setVisible(bool(message.button))
        self._button.setText(message.button)
        self.setProperty("warning", message.warning)
        for widget in (self, self._text):  # a child's colour hangs on the property too
            self.style().unpolish(widget)
            self.style().polish(widget)
        self.show()

    def _press(self) -> None:
        pressed = self._message.pressed
        self.hide()
        if pressed is not None:
            pressed()
