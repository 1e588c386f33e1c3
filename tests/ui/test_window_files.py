"""Opening: a bad file keeps the old trace, closing while loading leaves nothing, dropped and foreign files, themes."""

import gzip
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from tests.kit.windows import open_in
from tracescope.ui.import_cache import cache_folder, cached_path, trim
from tracescope.ui.main_window import MainWindow
from tracescope.ui.settings import SettingsStore, SynthForm

MakeWindow = Callable[..., MainWindow]


def chrome_trace(path: Path, names: list[str], events: int = 3) -> Path:
    rows = [
        {"ph": "X", "pid": 1, "tid": 2, "ts": 10 * i, "dur": 5, "name": names[i % len(names)], "cat": "kernel"}
        for i in range(events)
    ]
    path.write_bytes(msgspec.json.encode({"traceEvents": rows}))
    return path


def drop(window: MainWindow, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    enter = QDragEnterEvent(
        QPoint(50, 50), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    window.dragEnterEvent(enter)
    assert enter.isAccepted()
    window.dropEvent(
        QDropEvent(
            QPointF(50, 50), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        )
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.tscope.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 40),
        ("not.json", b"<html>this is not a trace</html>"),
        ("empty.json", b""),
    ],
)
def test_a_bad_file_is_one_message_and_the_old_trace_stays(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, name: str, content: bytes
) -> None:
    before, view = window.session.document, window.session.view
    bad = tmp_path / name
    bad.write_bytes(content)
    window.opener.open(bad)
    qtbot.waitUntil(lambda: window.message_bar.message is not None, timeout=60_000)
    message = window.message_bar.message
    assert message is not None
    assert name.split(".", maxsplit=1)[0] in message.text
    assert "Traceback" not in message.text
    assert (window.session.document, window.session.view) == (before, view)
    assert window.opener.loading is None
    assert "small.tscope.h5" in window.windowTitle()
    assert bad.read_bytes() == content
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == sorted([name, "settings.json"])


def test_losses_are_said(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window()
    text = chrome_trace(tmp_path / "whole.json", ["k"], events=3).read_bytes()
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(text[:-20]))
    open_in(window, qtbot, cut)
    message = window.message_bar.message
    assert message is not None
    assert message.warning
    assert "cut short at byte" in message.text
    assert window.session.document is not None
    assert len(window.session.document.trace.events) == 2


def test_missing_files_and_folders_are_refused(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    for path, word in ((tmp_path / "gone.json", "does not exist"), (tmp_path, "no trace is in this folder")):
        window.message_bar.hide()
        window.opener.open(path)
        qtbot.waitUntil(lambda: window.message_bar.message is not None, timeout=60_000)
        assert word in window.message_bar.message.text


def test_a_dropped_file_opens(make_window: MakeWindow, qtbot: QtBot, small_file: Path) -> None:
    window = make_window()
    drop(window, small_file)
    qtbot.waitUntil(lambda: window.session.document is not None)
    assert window.pages.currentWidget() is window.timeline
    assert [r.path for r in window.settings.value.recent] == [str(small_file)]
    recent = window.settings.value.recent[0]
    assert recent.steps == 6
    assert 0.3 < (recent.floor_share or 0) < 1


def test_a_dropped_picture_brings_its_view_back(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    document, view = window.session.document, window.session.view
    assert document is not None
    assert view is not None
    window.commands.next_step()
    shown = window.session.view
    window.commands.export_to(tmp_path / "a.png")
    window.commands.fit_all()
    drop(window, tmp_path / "a.png")
    assert window.session.view == shown
    other = QImage(40, 40, QImage.Format.Format_RGB32)
    other.save(str(tmp_path / "other.png"))
    drop(window, tmp_path / "other.png")
    assert window.session.view == shown
    assert window.message_bar.message is not None
    assert "other.png" in window.message_bar.message.text
    window.commands.close_trace()
    drop(window, tmp_path / "a.png")
    assert window.message_bar.message is not None
    assert "small.tscope.h5" in window.message_bar.message.text


def test_a_foreign_file_is_imported_in_a_child_and_cached(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window()
    source = chrome_trace(tmp_path / "trace.json", ["some_kernel"])
    drop(window, source)
    qtbot.waitUntil(lambda: window.session.document is not None, timeout=60_000)
    document = window.session.document
    assert document is not None
    assert document.name == "trace.json"
    assert len(document.trace.events) == 3
    cached = list(cache_folder().iterdir())
    assert [p.suffixes for p in cached] == [[".tscope", ".h5"]]
    assert cached[0] == cached_path(source, [])
    assert not window.import_bar.isHidden()
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["settings.json", "trace.json"]
    # A plain timeline: no step was recognised, and the window says so instead of showing empty parts.
    assert "No decode step" in (window.message_bar.message.text if window.message_bar.message else "")
    assert window.timeline.run_strip.isHidden()
    assert not window.actions_by_name["next_step"].isEnabled()
    stamp = cached[0].stat().st_mtime_ns
    os.utime(cached[0], ns=(1, 1))
    window.opener.close_document()
    open_in(window, qtbot, source)
    assert cached[0].stat().st_mtime_ns >= stamp


def test_a_damaged_cache_entry_is_imported_again(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window()
    source = chrome_trace(tmp_path / "trace.json", ["some_kernel"])
    cached = cached_path(source, [])
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    open_in(window, qtbot, source)
    assert window.session.document is not None
    assert len(window.session.document.trace.events) == 3
    assert cached.stat().st_size > 1000


def test_choosing_a_model_and_a_machine_imports_again(
    make_window: MakeWindow, qtbot: QtBot, shared: Callable[[str], Path]
) -> None:
    window = make_window()
    source = shared("traces/kineto_inference/sglang_Qwen3-8B_decode.json.gz")
    open_in(window, qtbot, source)
    first = window.session.document
    assert first is not None
    assert first.trace.meta.model is None
    assert not window.import_bar.isHidden()
    window.import_bar.model.setCurrentIndex(window.import_bar.model.findData("qwen3-8b"))
    window.import_bar.hardware.setCurrentIndex(window.import_bar.hardware.findData("mi300x"))
    window.import_bar.button.click()
    qtbot.waitUntil(lambda: window.session.document is not first, timeout=60_000)
    document = window.session.document
    assert document is not None
    assert document.trace.meta.model is not None
    assert document.has_floor
    assert window.import_bar.isHidden()
    assert int(document.series.kv_read[0]) == 4_834_344_960
    assert window.status.text.startswith("step 0 ")


def test_the_cache_drops_the_oldest_first(tmp_path: Path) -> None:
    for i in range(5):
        path = tmp_path / f"{i}.tscope.h5"
        path.write_bytes(b"x" * 100)
        os.utime(path, (1000 + i, 1000 + i))
    trim(tmp_path, limit=250, keep=tmp_path / "0.tscope.h5")
    assert sorted(p.name[0] for p in tmp_path.iterdir()) == ["0", "4"]


def test_closing_while_an_import_runs_leaves_no_process_and_no_part(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window()
    source = chrome_trace(tmp_path / "long.json", ["k"], events=400_000)
    window.opener.open(source)
    qtbot.waitUntil(lambda: window.opener._import is not None and window.opener._import.running, timeout=10_000)
    job = window.opener._import
    assert job is not None
    assert job._process is not None
    child = job._process.processId()
    assert child > 0
    started = time.monotonic()
    window.close()
    assert time.monotonic() - started < 2
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert not list(cache_folder().glob("*"))
    qtbot.wait(50)
    assert window.session.document is None


def test_escape_cancels_an_import(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window()
    window.opener.open(chrome_trace(tmp_path / "long.json", ["k"], events=300_000))
    qtbot.waitUntil(lambda: window.opener._import is not None and window.opener._import.running, timeout=10_000)
    window.actions_by_name["cancel"].trigger()
    assert window.opener.loading is None
    assert not list(cache_folder().glob("*"))
    qtbot.wait(50)
    assert window.message_bar.message is None


def test_closing_at_random_moments_of_opening(make_window: MakeWindow, qtbot: QtBot, small_file: Path) -> None:
    for milliseconds in (0, 1, 5, 20, 60):
        window = make_window()
        window.opener.open(small_file)
        qtbot.wait(milliseconds)
        window.close()
        assert not window.jobs.running


def test_the_last_of_two_opens_wins(make_window: MakeWindow, qtbot: QtBot, small_file: Path, tmp_path: Path) -> None:
    window = make_window()
    other = tmp_path / "other.tscope.h5"
    shutil.copy(small_file, other)
    window.opener.open(small_file)
    window.opener.open(other)
    qtbot.waitUntil(lambda: window.session.document is not None)
    qtbot.wait(100)
    assert window.session.document is not None
    assert window.session.document.name == "other.tscope.h5"


def test_markup_in_names_is_shown_as_it_is(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path, shared: Callable[[str], Path]
) -> None:
    folder = shared("cases/61-markup-in-names")
    window = make_window()
    trace = next(p for p in folder.rglob("*.json") if p.name.startswith("<b>"))
    open_in(window, qtbot, trace)
    document = window.session.document
    assert document is not None
    assert "<b>trace<b> & co.json" in window.windowTitle()
    assert window._title.text() == "<b>trace<b> & co.json"
    open_in(window, qtbot, folder / "trace.json")
    document = window.session.document
    assert document is not None
    marked = [i for i, name in enumerate(document.trace.names) if "<img" in name]
    events = [i for i in range(len(document.trace.events)) if int(document.trace.events.name[i]) in marked]
    assert events
    for event in events:
        window.session.hover(event)
        window.session.look(window.session.view.with_(event=event))
        qtbot.wait(1)
        inspection = window.docks.panels["inspector"].inspection
        assert "<img" in inspection.title + inspection.details
    labels = [w for w in window.findChildren(QLabel) if "<" in w.text()]
    assert labels
    assert all(label.textFormat() == Qt.TextFormat.PlainText for label in window.findChildren(QLabel))
    tips = [w.toolTip() for w in window.findChildren(QWidget) if "<img" in w.toolTip()]
    assert not tips
    window.opener.open(tmp_path / "<img src=pixel.png>.json")
    qtbot.waitUntil(lambda: window.message_bar.message is not None and "exist" in window.message_bar.message.text)
    assert window.message_bar.message.text.startswith("<img src=pixel.png>.json")
    assert window.message_bar._text.textFormat() == Qt.TextFormat.PlainText


def test_a_broken_settings_file_is_said_in_the_bar(make_window: MakeWindow, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text("{ not json")
    window = make_window(settings=SettingsStore(path))
    assert window.message_bar.message is not None
    assert "own.broken.json" in window.message_bar.message.text


def test_a_synthesized_run_can_be_saved_and_opened_again(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window()
    card = window.welcome.card
    card.set_form(SynthForm("lesson-20gb", "lesson-1tbs", 4, 0, 3, "ideal"))
    assert card.shown_preview is not None
    assert card.shown_preview.weight_bytes == 20_000_000_000
    assert card.shown_preview.floor_ns == 20_000_729.088  # the new tokens, too
    assert next((part.letter, part.ns) for part in card.shown_preview.parts) == ("W", 20e6)
    assert [part.texts[0].split()[0] for part in card.shown_preview.parts] == ["weights", "embedding", "KV", "compute"]
    card.button.click()
    qtbot.waitUntil(lambda: window.session.document is not None)
    assert "not saved" in window._saved.text()
    out = tmp_path / "run.tscope.h5"
    window.opener.save(out)
    qtbot.waitUntil(lambda: window._saved.text() == "saved")
    first = window.session.document
    open_in(window, qtbot, out)
    assert window.session.document is not None
    assert first is not None
    assert (window.session.document.trace.events.start == first.trace.events.start).all()


def run_cli(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    return subprocess.run(
        [sys.executable, "-m", "tracescope", *arguments],
        env=clean | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="displays are X11 or Wayland here")
def test_without_a_display_there_is_one_sentence(small_file: Path) -> None:
    for environment in ({}, {"DISPLAY": ":987"}):
        result = run_cli(str(small_file), **environment)
        assert result.returncode == 2, result.stderr
        assert "display" in result.stderr
        assert len(result.stderr.strip().splitlines()) <= 3
        assert "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_ctrl_c_closes_the_window(tmp_path: Path, small_file: Path) -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tracescope", str(small_file)], env=environment, stderr=subprocess.PIPE, text=True
    )
    settings = tmp_path / "tracescope" / "settings.json"
    deadline = time.monotonic() + 40
    while not (settings.exists() and "small" in settings.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(2)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors == ""


def test_two_files_open_one_after_the_other(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    files = [chrome_trace(tmp_path / f"{name}.json", [name]) for name in ("first", "second", "third")]
    window.opener.open_several(files)
    for shown, following in (("first", "second"), ("second", "third")):
        qtbot.waitUntil(
            lambda shown=shown: window.session.document is not None and window.session.document.name == f"{shown}.json",
            timeout=60_000,
        )
        message = window.message_bar.message
        assert message is not None
        assert f"{shown}.json is shown, one trace at a time; {following}.json" in message.text
        assert message.button == f"Open {following}.json"
        assert message.pressed is not None
        message.pressed()
    qtbot.waitUntil(lambda: window.session.document is not None and window.session.document.name == "third.json")
    last = window.message_bar.message
    assert last is None or not last.button
