"""The words of the message bar: sentences stay apart, a notice is no warning, advice with an action is a button."""

import pytest
from pytestqt.qtbot import QtBot

from tracescope.ui.messages import Message, MessageBar, joined


@pytest.mark.parametrize(
    ("text", "advice", "said"),
    [
        ("not a trace", "Open another.", "not a trace. Open another."),
        ("Not a trace.", "Open another.", "Not a trace. Open another."),
        ("Done.", "", "Done."),
        ("", "Open another.", "Open another."),
    ],
)
def test_sentences_are_joined_with_a_full_stop(text: str, advice: str, said: str) -> None:
    assert joined(text, advice) == said


def test_advice_with_an_action_is_a_button(qtbot: QtBot) -> None:
    bar = MessageBar()
    qtbot.addWidget(bar)
    pressed: list[bool] = []
    bar.show_message(Message("One.", "Two.", "Open…", lambda: pressed.append(True)))
    bar._press()
    assert pressed == [True]
    assert bar.message is None
