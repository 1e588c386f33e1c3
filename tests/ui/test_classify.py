"""Classify the selected kernel: the rule is written, the trace recognised again, the view stays; ranks open as one."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from tests.kit.windows import open_in
from tracescope.core.category import Op
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.names.user_rules import load_rules, user_rules_path
from tracescope.ui.import_cache import cached_path
from tracescope.ui.main_window import MainWindow

MakeWindow = Callable[..., MainWindow]


def recording(path: Path, rank: int | None = None) -> Path:
    rows = [
        {
            "ph": "X",
            "pid": 0,
            "tid": 7,
            "ts": 10 * i,
            "dur": 5,
            "name": f"void cake_kernel<{i % 2}>(int)",
            "cat": "kernel",
        }
        for i in range(6)
    ]
    head = {} if rank is None else {"distributedInfo": {"rank": rank}}
    path.write_bytes(msgspec.json.encode({**head, "traceEvents": rows}))
    return path


def choose(window: MainWindow, family: str) -> None:
    window.actions_by_name["classify"].trigger()
    menu = window.findChild(QMenu, "families")
    assert menu is not None
    next(a for a in menu.actions() if a.text() == family).trigger()
    menu.close()


def test_a_rule_is_written_and_the_trace_recognised_again(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window()
    open_in(window, qtbot, recording(tmp_path / "run.json"))
    view, before = window.session.view, window.session.document
    assert view is not None
    assert before is not None
    assert not (before.trace.events.op == Op.ATTENTION).any()
    window.session.look(view.with_(event=3))
    choose(window, "attention")
    qtbot.waitUntil(lambda: window.session.document is not before, timeout=60_000)
    after = window.session.document
    assert after is not None
    assert (after.trace.events.op == Op.ATTENTION).all()
    assert window.session.view is not None
    assert window.session.view.event == 3
    rules = load_rules(user_rules_path())
    assert [(r.family, r.pattern) for r in rules] == [(Family.ATTENTION, "cake_kernel")]
    message = window.message_bar.message
    assert message is not None
    assert "attention now" in message.text
    assert str(user_rules_path()) in message.text


def test_without_a_selected_kernel_it_says_what_to_do(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path, window: MainWindow
) -> None:
    window.actions_by_name["classify"].trigger()
    assert window.message_bar.message is not None
    assert "imported" in window.message_bar.message.text
    foreign = make_window()
    open_in(foreign, qtbot, recording(tmp_path / "run.json"))
    foreign.actions_by_name["classify"].trigger()
    assert foreign.message_bar.message is not None
    assert foreign.message_bar.message.text.startswith("Select a kernel")
    assert not user_rules_path().exists()


def test_rules_that_cannot_be_used_are_said_and_the_trace_stays(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window()
    open_in(window, qtbot, recording(tmp_path / "run.json"))
    user_rules_path().parent.mkdir(parents=True, exist_ok=True)
    user_rules_path().write_text("mine = 1")
    view, before = window.session.view, window.session.document
    assert view is not None
    window.session.look(view.with_(event=0))
    choose(window, "gemm")
    assert window.message_bar.message is not None
    assert "kernel_rules.toml" in window.message_bar.message.text
    assert window.session.document is before
    assert user_rules_path().read_text() == "mine = 1"


def test_a_folder_opens_as_one_trace(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(8):
        recording(folder / f"r{rank}.json", rank)
    window = make_window()
    open_in(window, qtbot, folder)
    document = window.session.document
    assert document is not None
    assert sorted({t.rank for t in document.trace.tracks}) == list(range(8))
    assert len(document.trace.events) == 48
    assert np.unique(document.trace.lanes.track).tolist() == list(range(8))


def test_files_open_as_ranks(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    files = [recording(tmp_path / f"r{rank}.json", rank) for rank in range(3)]
    window = make_window()
    window.opener.open_several(files, ranks=True)
    qtbot.waitUntil(lambda: window.session.document is not None, timeout=60_000)
    document = window.session.document
    assert document is not None
    assert sorted({t.rank for t in document.trace.tracks}) == [0, 1, 2]
    assert "and 2 more" in window.windowTitle()


def test_an_import_is_not_used_again_after_its_rules_or_its_folder_changed(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    recording(folder / "r0.json", 0)
    rules = tmp_path / "rules.toml"
    rules.write_text("")
    words = ["--rules", str(rules)]
    first = cached_path(folder, words)
    assert cached_path(folder, words) == first
    recording(folder / "r1.json", 1)
    second = cached_path(folder, words)
    assert second != first
    rules.write_text('[[rule]]\npattern = "x"\nfamily = "gemm"\n')
    assert cached_path(folder, words) != second
