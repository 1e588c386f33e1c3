"""What a panel is: a title, a place, and a function that makes its widget from the session."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from tracescope.ui.session import Session
from tracescope.ui.theme import LIGHT, Theme

NO_STEPS: Final = "No decode step was recognised, so there is none to measure against a floor."
"""What a panel about steps says of a trace without any."""


class PanelWidget(QWidget):
    """A panel's widget. It listens to the session and shows it while it is visible."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.setObjectName("panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.session = session
        self.theme = LIGHT

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self.theme = theme
        self.update()

    def copied_text(self) -> str:
        """What Copy takes from this panel; empty where nothing is selected in it."""
        return ""

    def set_narrow(self, narrow: bool) -> None:
        """Leave out what does not fit into a small window."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One entry of PANELS. ``key`` names its dock in a saved layout; ``area`` is where the dock is at first."""

    key: str
    title: str
    area: Qt.DockWidgetArea
    make: Callable[[Session], PanelWidget]
