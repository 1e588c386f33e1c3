"""Builds QActions and menus from the ACTIONS table, and says which of them are enabled."""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar

from tracescope.ui.actions import ACTIONS, MENUS, Action, Needs, Scope
from tracescope.ui.messages import plain_menu_text
from tracescope.ui.settings import THEMES, SettingsStore


def build_actions(owner: QObject, commands: object) -> dict[str, QAction]:
    """One QAction for every row of ACTIONS, triggering the method of ``commands`` with its name."""
    result = {}
    for row in ACTIONS:
        qaction = QAction(row.title, owner)
        qaction.setObjectName(row.name)
        qaction.setCheckable(row.checkable)
        if row.scope is Scope.WINDOW:
            qaction.setShortcuts([QKeySequence(key) for key in row.keys])
        method: Callable[..., None] = getattr(commands, "toggle" if row.overlay else row.name)
        if row.overlay:
            method = partial(method, row.overlay)
        qaction.triggered.connect(lambda _checked=False, call=method: call())
        tip = f"{row.title.rstrip('…')} ({', '.join(row.keys)})" if row.keys else row.title
        qaction.setToolTip(tip)
        qaction.setStatusTip("")
        result[row.name] = qaction
    return result


def shown_title(row: Action) -> str:
    """The menu text; keys that Qt does not handle as shortcuts are written behind a tab all the same."""
    return row.title if row.scope is Scope.WINDOW or not row.keys else f"{row.title}\t{row.keys[0]}"


class Menus:
    """The menu bar. ``panels`` and the lists of traces are filled by the window, everything else is the table."""

    def __init__(self, bar: QMenuBar, actions: dict[str, QAction], settings: SettingsStore) -> None:
        self._settings = settings
        self._actions = actions
        self.recent = QMenu("Open recent", bar)
        self.samples = QMenu("Open sample", bar)
        self.theme = QMenu("Theme", bar)
        self.panels = QMenu("Panels", bar)
        self.themes = QActionGroup(bar)
        for name in THEMES:
            choice = self.theme.addAction(name.capitalize())
            choice.setCheckable(True)
            choice.setData(name)
            self.themes.addAction(choice)
        for title in MENUS:
            self._fill(bar.addMenu(title), [row for row in ACTIONS if row.menu == title], title)

    def _fill(self, menu: QMenu, rows: Iterable[Action], title: str) -> None:
        for position, (_, group) in enumerate(groupby(rows, key=lambda row: row.group)):
            if position:
                menu.addSeparator()
            for row in group:
                qaction = self._actions[row.name]
                qaction.setText(shown_title(row))
                menu.addAction(qaction)
                if row.name == "open_file":
                    menu.addMenu(self.samples)
                    menu.addMenu(self.recent)
        if title == "View":
            menu.addSeparator()
            menu.addMenu(self.theme)
            menu.addMenu(self.panels)

    def enable(self, *, trace: bool, steps: bool, overlays: frozenset[str]) -> None:
        """Enable what can be done now; of the overlays those that have anything to show."""
        for row in ACTIONS:
            allowed = {Needs.NOTHING: True, Needs.TRACE: trace, Needs.STEPS: steps}[row.needs]
            self._actions[row.name].setEnabled(allowed and (not row.overlay or row.overlay in overlays))

    def list_recent(self, opened: Callable[[Path], None]) -> None:
        """Fill "Open recent" from the settings; traces that are gone are greyed."""
        self.recent.clear()
        recent = self._settings.value.recent
        for entry in recent:
            path = Path(entry.path)
            item = self.recent.addAction(plain_menu_text(path.name))
            item.setEnabled(path.exists())
            item.triggered.connect(lambda _checked=False, path=path: opened(path))
        self.recent.addSeparator()
        clear = self.recent.addAction("Clear")
        clear.setEnabled(bool(recent))
        clear.triggered.connect(lambda _checked=False: self._clear_recent(opened))

    def list_samples(self, samples: Iterable[Path], opened: Callable[[Path], None]) -> None:
        """Fill "Open sample"; the entry disappears where no samples are installed."""
        self.samples.clear()
        for path in samples:
            item = self.samples.addAction(plain_menu_text(path.name))
            item.triggered.connect(lambda _checked=False, path=path: opened(path))
        self.samples.menuAction().setVisible(not self.samples.isEmpty())

    def _clear_recent(self, opened: Callable[[Path], None]) -> None:
        self._settings.change(recent=())
        self.list_recent(opened)


def scan_code_letter(scan_code: int, key: int) -> str:
    """``W``, ``A``, ``S`` or ``D`` for a key in that place of the keyboard, else empty.

    Where the platform gives no code (0) or one of a kind not listed, the letter on the key decides.
    """
    places = _PLACES.get(sys.platform)
    if scan_code and places is not None:
        return places.get(scan_code, "")
    return _LETTERS.get(key, "")


_PLACES = {
    "linux": {25: "W", 38: "A", 39: "S", 40: "D"},  # evdev + 8, on X11 and Wayland
    "win32": {0x11: "W", 0x1E: "A", 0x1F: "S", 0x20: "D"},
}
_LETTERS = {int(Qt.Key.Key_W): "W", int(Qt.Key.Key_A): "A", int(Qt.Key.Key_S): "S", int(Qt.Key.Key_D): "D"}
