"""The toolbar: files, transport with speed and step, overlays and bandwidth, export."""

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QComboBox, QSizePolicy, QSpinBox, QToolBar, QToolButton, QWidget

from tracescope.core import units
from tracescope.core.hardware import Basis
from tracescope.core.units import rate, short_source
from tracescope.ui.actions import ACTIONS
from tracescope.ui.icons import icon
from tracescope.ui.messages import plain_label
from tracescope.ui.replay import SPEEDS, Replay, speed_label
from tracescope.ui.session import Session
from tracescope.ui.style import SPIN_INSET, disabled_colour
from tracescope.ui.theme import Theme
from tracescope.view.document import Document

TEXT_FROM = 1360
"""Below this window width the file tools show their icon only."""
_FILE_TOOLS = ("open_file", "synthesize")
_WITH_TEXT = (*_FILE_TOOLS, "toggle_path", "toggle_floor", "toggle_energy", "export_image")


class Toolbar(QToolBar):
    """Shows the session; everything it changes goes through actions, the session or ``bandwidth_chosen``."""

    bandwidth_chosen = Signal(str)
    step_chosen = Signal(int)

    def __init__(self, actions: dict[str, QAction], session: Session, replay: Replay) -> None:
        super().__init__("Tools")
        self.setObjectName("toolbar")
        self.setMovable(False)
        self.setFloatable(False)
        self.setFixedHeight(38)
        self.toggleViewAction().setVisible(False)
        self._actions = actions
        self._session = session
        self._replay = replay
        self._buttons: dict[str, QToolButton] = {}
        self.speed = QComboBox()
        self.step = QSpinBox()
        self._step_word = plain_label("step")
        self._of_steps = plain_label()
        self.bandwidth = QComboBox()
        self._build()
        session.document_changed.connect(self._show_document)
        session.view_changed.connect(self._show_view)
        replay.playing_changed.connect(self._show_playing)
        replay.speed_changed.connect(self._show_speed)
        self._show_document()
        self._show_view()

    def set_theme(self, theme: Theme) -> None:
        """Draw the icons in the theme's colours."""
        self._theme = theme
        for row in ACTIONS:
            if row.icon:
                self._actions[row.name].setIcon(icon(row.icon, theme.text, disabled_colour(theme)))
        self._show_playing(self._replay.playing)

    def fit_width(self, width: int) -> None:
        """Leave out the words of the file tools where the window is narrow."""
        style = Qt.ToolButtonStyle.ToolButtonTextBesideIcon if width >= TEXT_FROM else None
        for name in _FILE_TOOLS:
            button = self._buttons[name]
            button.setToolButtonStyle(style or Qt.ToolButtonStyle.ToolButtonIconOnly)
            button.setProperty("words", style is not None)
            button.style().unpolish(button)
            button.style().polish(button)

    def _build(self) -> None:
        for name in _FILE_TOOLS:
            self._add(name, {"open_file": "Open", "synthesize": "Synthesize"}[name])
        self.addSeparator()
        self._add("previous_step", "")
        self._add("play", "")
        self._add("next_step", "")
        self.speed.setAccessibleName("Replay speed")
        self.speed.setToolTip("Replay speed: trace time in one second")
        for value in SPEEDS:
            self.speed.addItem(speed_label(value), value)
        self._show_speed(self._replay.speed)
        self.speed.activated.connect(lambda index: self._replay.set_speed(self.speed.itemData(index)))
        self.addWidget(self.speed)
        self.addWidget(_padded(self._step_word, 8, 4))
        self.step.setAccessibleName("Decode step")
        self.step.setFixedWidth(68)
        self.step.lineEdit().setTextMargins(*SPIN_INSET)
        self.step.setKeyboardTracking(False)
        self.step.valueChanged.connect(self.step_chosen)
        self.addWidget(self.step)
        self.addWidget(_padded(self._of_steps, 4, 2))
        self.addSeparator()
        for name in ("toggle_path", "toggle_floor", "toggle_energy"):
            self._add(name, self._actions[name].text())
        self.bandwidth.setEditable(True)
        self.bandwidth.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.bandwidth.setAccessibleName("Bandwidth the floor is priced with")
        self.bandwidth.setToolTip("Bandwidth the floor is priced with: choose one or type 3.0 TB/s")
        self.bandwidth.setFixedWidth(168)
        self.bandwidth.activated.connect(self._choose_bandwidth)
        edit = self.bandwidth.lineEdit()
        if edit is not None:
            edit.setAccessibleName("Bandwidth")
            edit.setPlaceholderText("bandwidth unknown")
            edit.returnPressed.connect(self._type_bandwidth)
            edit.editingFinished.connect(self._show_bandwidth)
        self.addWidget(_padded(self.bandwidth, 6, 6))
        space = QWidget()
        space.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(space)
        self._add("export_image", "Export image").setObjectName("exportButton")

    def _add(self, name: str, text: str) -> QToolButton:
        button = QToolButton()
        qaction = self._actions[name]
        button.setDefaultAction(qaction)
        qaction.setIconText(text or qaction.text())
        button.setAccessibleName(qaction.text().rstrip("…"))
        beside = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        button.setProperty("words", name in _WITH_TEXT)
        button.setToolButtonStyle(beside if name in _WITH_TEXT else Qt.ToolButtonStyle.ToolButtonIconOnly)
        self._buttons[name] = button
        self.addWidget(button)
        return button

    def _show_document(self) -> None:
        document = self._session.document
        steps = 0 if document is None else len(document.trace.steps)
        for widget in (self.speed, self.bandwidth):
            widget.setEnabled(document is not None)
        for of_step in (self.step, self._step_word):
            of_step.setEnabled(steps > 0)
        with QSignalBlocker(self.step):
            self.step.setRange(0, max(0, steps - 1))
        self._of_steps.setText(units.numbers_of(steps))
        self._fill_bandwidths(document)

    def _fill_bandwidths(self, document: Document | None) -> None:
        with QSignalBlocker(self.bandwidth):
            self.bandwidth.clear()
            hardware = None if document is None else document.basis.hardware
            if hardware is not None:
                self.bandwidth.addItem(f"{rate(hardware.bandwidth_bytes_per_s)} datasheet", "datasheet")
                if hardware.sustained_bytes_per_s is not None:
                    self.bandwidth.addItem(f"{rate(hardware.sustained_bytes_per_s)} sustained", "sustained")
            self._show_bandwidth()

    def _show_bandwidth(self) -> None:
        document = self._session.document
        text = "" if document is None else basis_label(document.basis)
        self.bandwidth.setEditText(text)
        edit = self.bandwidth.lineEdit()
        if edit is not None:
            edit.setCursorPosition(0)

    def _choose_bandwidth(self, index: int) -> None:
        name = self.bandwidth.itemData(index)
        if name:
            self.bandwidth_chosen.emit(name)

    def _type_bandwidth(self) -> None:
        text = self.bandwidth.currentText().strip()
        document = self._session.document
        index = self.bandwidth.findText(text)
        if index >= 0:
            self._choose_bandwidth(index)
        elif text and document is not None and text != basis_label(document.basis):
            self.bandwidth_chosen.emit(text)

    def _show_view(self) -> None:
        view = self._session.view
        with QSignalBlocker(self.step):
            self.step.setValue(0 if view is None else max(0, view.step))
        for row in ACTIONS:
            if row.overlay:
                self._actions[row.name].setChecked(view is not None and row.overlay in view.overlays)

    def _show_playing(self, playing: bool) -> None:
        qaction = self._actions["play"]
        qaction.setIcon(icon("pause" if playing else "play", self._theme.text, disabled_colour(self._theme)))

    def _show_speed(self, speed: int) -> None:
        self.speed.setCurrentIndex(self.speed.findData(speed))


def basis_label(basis: Basis) -> str:
    """``3.35 TB/s datasheet``; empty where no bandwidth is known."""
    if basis.bandwidth_bytes_per_s is None:
        return ""
    return f"{rate(basis.bandwidth_bytes_per_s)} {short_source(basis.bandwidth_source)}"


def _padded(widget: QWidget, left: int, right: int) -> QWidget:
    widget.setContentsMargins(left, 0, right, 0)
    return widget
