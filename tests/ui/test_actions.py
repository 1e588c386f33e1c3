"""The ACTIONS table: unique names and keys, a method for each, and nothing in a menu that does not exist."""

from collections import Counter

import pytest
from PySide6.QtGui import QKeySequence
from pytestqt.qtbot import QtBot

from tracescope.ui.actions import ACTIONS, MENUS, action
from tracescope.ui.commands import Commands
from tracescope.ui.icons import ICON_NAMES
from tracescope.ui.key_overlay import KeyOverlay, key_rows
from tracescope.view.overlays import OVERLAY_KEYS


def test_names_titles_and_keys_are_unique() -> None:
    assert max(Counter(a.name for a in ACTIONS).values()) == 1
    assert max(Counter((a.menu, a.title) for a in ACTIONS if a.menu).values()) == 1
    keys = Counter(QKeySequence(key).toString() for a in ACTIONS for key in a.keys)
    assert max(keys.values()) == 1, keys.most_common(3)


@pytest.mark.parametrize("row", ACTIONS, ids=[a.name for a in ACTIONS])
def test_every_action_can_be_done(row: object) -> None:
    a = action(row.name)
    assert callable(getattr(Commands, "toggle" if a.overlay else a.name))
    assert a.menu in (*MENUS, "")
    assert a.menu or a.keys
    assert not a.icon or a.icon in ICON_NAMES
    assert not a.overlay or (a.checkable and a.overlay in OVERLAY_KEYS)
    assert all(not QKeySequence(key).isEmpty() for key in a.keys)


def test_no_key_that_moves_on_some_keyboards_is_bound() -> None:
    bound = {key for a in ACTIONS for key in a.keys}
    assert not bound & {"Q", "Z"}


def test_every_overlay_has_a_switch() -> None:
    assert sorted(a.overlay for a in ACTIONS if a.overlay) == sorted(OVERLAY_KEYS)


def test_the_overlay_lists_every_key_and_filters(qtbot: QtBot) -> None:
    overlay = KeyOverlay()
    qtbot.addWidget(overlay)
    assert overlay.rows.rowCount() == len(key_rows())
    qtbot.keyClicks(overlay.search, "decode")
    overlay.search.clear()
    qtbot.keyClicks(overlay.search, "next layer")
    assert overlay.rows.rowCount() == 1
    assert overlay.rows.index(0, 0).data() == "Ctrl+PgDown"
    overlay.search.setText("(*[")
    assert overlay.rows.rowCount() == 0
