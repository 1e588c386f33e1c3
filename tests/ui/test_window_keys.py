"""The whole job with keys alone, the mouse in the timeline, the toolbar and the panels."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from tracescope.core.category import Op
from tracescope.core.timerange import TimeRange
from tracescope.ui.key_overlay import KeyOverlay
from tracescope.ui.main_window import MainWindow
from tracescope.ui.panels.inspector import spoken
from tracescope.view.document import Document
from tracescope.view.navigation import select_event
from tracescope.view.overlays import OVERLAY_KEYS
from tracescope.view.view_state import ViewState

MakeWindow = Callable[..., MainWindow]
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
NONE = Qt.KeyboardModifier.NoModifier


def opened(window: MainWindow) -> tuple[Document, ViewState]:
    assert window.session.document is not None
    assert window.session.view is not None
    return window.session.document, window.session.view


def key(window: MainWindow, qtbot: QtBot, name: Qt.Key, modifiers: Qt.KeyboardModifier = NONE) -> ViewState:
    target = QApplication.focusWidget() or window
    qtbot.keyClick(target, name, modifiers)
    return opened(window)[1]


def pixels(widget: QWidget) -> bytes:
    image = widget.grab().toImage()
    return bytes(image.constBits())


def test_with_keys_alone(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    document, view = opened(window)
    events = document.trace.events

    steps = [view.step]
    for _ in range(3):
        steps.append(key(window, qtbot, Qt.Key.Key_PageDown).step)
    assert steps == [view.step + i for i in range(4)]
    assert window.status.text.startswith(f"step {steps[-1]} of 0–5")
    assert window.toolbar.step.value() == steps[-1]

    layers = [key(window, qtbot, Qt.Key.Key_PageDown, CTRL).layer for _ in range(5)]
    assert layers == list(range(layers[0], layers[0] + 5))
    view = opened(window)[1]
    span = next(s for s in document.layer_spans(view.step) if s.layer == layers[-1])
    assert view.visible.start <= span.start
    assert span.end <= view.visible.end

    walked = [key(window, qtbot, Qt.Key.Key_Period).event for _ in range(10)]
    assert len(set(walked)) == 10
    assert len({document.trace.lanes.of_event(e) for e in walked}) == 1
    assert sorted(walked, key=lambda e: int(events.start[e])) == walked
    assert key(window, qtbot, Qt.Key.Key_Comma).event == walked[-2]
    along = [key(window, qtbot, Qt.Key.Key_BracketRight).event for _ in range(10)]
    order = list(document.breakdown(opened(window)[1].step).events)
    assert [order.index(e) for e in along] == list(range(order.index(along[0]), order.index(along[0]) + 10))
    assert spoken(window.docks.panels["inspector"].inspection).startswith(document.title_of(along[-1]))

    for name, overlay in ((Qt.Key.Key_C, "path"), (Qt.Key.Key_B, "floor"), (Qt.Key.Key_E, "energy")):
        before, shown = opened(window)[1].overlays, pixels(window.timeline)
        assert key(window, qtbot, name).overlays == before ^ {overlay}
        assert window.actions_by_name[f"toggle_{overlay}"].isChecked() == (overlay not in before)
        assert pixels(window.timeline) != shown
        assert key(window, qtbot, name).overlays == before
    assert {"path", "floor", "energy"} == set(OVERLAY_KEYS)

    width = opened(window)[1].visible.duration
    assert key(window, qtbot, Qt.Key.Key_W).visible.duration < width
    assert key(window, qtbot, Qt.Key.Key_S).visible.duration == pytest.approx(width, abs=2)
    start = opened(window)[1].visible.start
    assert key(window, qtbot, Qt.Key.Key_D).visible.start > start
    assert key(window, qtbot, Qt.Key.Key_A).visible.start == pytest.approx(start, abs=2)
    near = opened(window)[1].visible
    assert key(window, qtbot, Qt.Key.Key_W, SHIFT).visible.duration < near.duration / 2

    qtbot.keyClick(window.timeline, Qt.Key.Key_E, CTRL)
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    qtbot.waitUntil(dialog.isVisible)
    field = dialog.findChild(QLineEdit, "fileNameEdit")
    assert field is not None
    field.selectAll()
    out = tmp_path / "picture.png"
    qtbot.keyClicks(field, str(out))

    def confirmed() -> bool:
        # The list of completions comes up in its own time, and takes the first Return for itself.
        if not out.exists():
            qtbot.keyClick(field, Qt.Key.Key_Return)
        return out.exists()

    qtbot.waitUntil(confirmed)
    check_picture(out, document)


def check_picture(path: Path, document: Document) -> None:
    image = QImage(str(path))
    assert (image.width(), image.height()) == (3200, 1800)
    colours = {image.pixel(x, y) for x in range(0, 3200, 16) for y in range(0, 1800, 8)}
    assert len(colours) > 50
    caption = " ".join(msgspec.json.decode(image.text("tracescope"))["caption"])
    for part in ("llama-3-8b", "H100", "3.35 TB/s", "datasheet", "batch 16", "synthetic", "all generated tokens"):
        assert part in caption, part
    assert document.name in caption
    ground = image.pixel(4, 1796)
    bottom = sum(image.pixel(x, y) != ground for x in range(80, 2400, 2) for y in range(1690, 1790, 2))
    assert bottom > 1000


def test_the_ends_of_a_run_hold(window: MainWindow, qtbot: QtBot) -> None:
    for _ in range(9):
        key(window, qtbot, Qt.Key.Key_PageDown)
    assert opened(window)[1].step == 5
    for _ in range(9):
        key(window, qtbot, Qt.Key.Key_PageUp)
    assert opened(window)[1].step == 0
    for _ in range(60):
        key(window, qtbot, Qt.Key.Key_W, SHIFT)
    assert opened(window)[1].visible.duration == 1
    for _ in range(90):
        key(window, qtbot, Qt.Key.Key_S, SHIFT)
    document, view = opened(window)
    assert view.visible.start <= document.whole_range.start
    assert view.visible.end >= document.whole_range.end


def test_history_goes_back_and_forward(window: MainWindow, qtbot: QtBot) -> None:
    first = opened(window)[1]
    second = key(window, qtbot, Qt.Key.Key_PageDown)
    third = key(window, qtbot, Qt.Key.Key_PageDown)
    alt = Qt.KeyboardModifier.AltModifier
    assert key(window, qtbot, Qt.Key.Key_Left, alt) == second
    assert key(window, qtbot, Qt.Key.Key_Left, alt) == first
    assert key(window, qtbot, Qt.Key.Key_Right, alt) == second
    assert key(window, qtbot, Qt.Key.Key_Right, alt) == third


def test_space_plays_and_pauses_but_not_after_a_drag(window: MainWindow, qtbot: QtBot) -> None:
    start = opened(window)[1].visible.start
    qtbot.keyClick(window.timeline, Qt.Key.Key_Space)
    assert window.replay.playing
    qtbot.waitUntil(lambda: (opened(window)[1].playhead or 0) > start)
    qtbot.keyClick(window.timeline, Qt.Key.Key_Space)
    assert not window.replay.playing
    before = opened(window)[1].visible
    lanes = window.timeline.lanes
    qtbot.keyPress(window.timeline, Qt.Key.Key_Space)
    drag(lanes, QPoint(700, 100), QPoint(600, 100))
    qtbot.keyRelease(window.timeline, Qt.Key.Key_Space)
    assert not window.replay.playing
    assert opened(window)[1].visible.start > before.start
    assert opened(window)[1].selection is None
    speed = window.replay.speed
    qtbot.keyClick(window.timeline, Qt.Key.Key_Space, SHIFT)
    assert window.replay.speed == speed // 10
    assert window.settings.value.replay_speed == speed // 10


def test_escape_clears_playhead_and_selection(window: MainWindow, qtbot: QtBot) -> None:
    key(window, qtbot, Qt.Key.Key_Period)
    view = key(window, qtbot, Qt.Key.Key_Escape)
    assert (view.event, view.layer, view.selection) == (-1, -1, None)


def test_the_question_mark_shows_the_keys(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.keyClick(window.timeline, Qt.Key.Key_Question, SHIFT)
    overlay = window.findChild(KeyOverlay)
    assert overlay is not None
    qtbot.waitUntil(overlay.isVisible)
    qtbot.keyClicks(overlay.search, "pgdown")
    assert overlay.rows.rowCount() == 2
    qtbot.keyClick(overlay.search, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: window.findChild(KeyOverlay) is None)


def drag(
    widget: QWidget, start: QPoint, end: QPoint, modifiers: Qt.KeyboardModifier = NONE,
    button: Qt.MouseButton = Qt.MouseButton.LeftButton,
) -> None:  # fmt: skip
    QTest.mousePress(widget, button, modifiers, start)
    for i in range(1, 5):
        QTest.mouseMove(widget, start + (end - start) * i / 4)
    QTest.mouseRelease(widget, button, modifiers, end)


def wheel(widget: QWidget, at: QPoint, turned: int, modifiers: Qt.KeyboardModifier = NONE) -> None:
    event = QWheelEvent(
        QPointF(at), QPointF(widget.mapToGlobal(at)), QPoint(), QPoint(0, turned),
        Qt.MouseButton.NoButton, modifiers, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)


def test_the_wheel_zooms_at_the_cursor(window: MainWindow) -> None:
    lanes = window.timeline.lanes
    at = QPoint(500, 120)
    before = opened(window)[1]
    time = lanes.time_scale(before).time_at(500)
    wheel(lanes, at, 120)
    zoomed = opened(window)[1]
    assert zoomed.visible.duration == pytest.approx(before.visible.duration / 1.2, rel=1e-3)
    assert lanes.time_scale(zoomed).time_at(500) == pytest.approx(time, abs=before.visible.duration / 500)
    wheel(lanes, at, -120, SHIFT)
    assert opened(window)[1].visible.start > zoomed.visible.start
    window.actions_by_name["wheel_zooms"].trigger()
    width = opened(window)[1].visible.duration
    wheel(lanes, at, 120)
    assert opened(window)[1].visible.duration == width
    wheel(lanes, at, 120, CTRL)
    assert opened(window)[1].visible.duration < width


def test_dragging_selects_zooms_and_pans(window: MainWindow) -> None:
    lanes = window.timeline.lanes
    first = opened(window)[1]
    drag(lanes, QPoint(300, 120), QPoint(700, 120))
    document, view = opened(window)
    assert view.selection is not None
    assert view.visible == first.visible
    edges = {int(t) for t in document.trace.events.start} | {int(t) for t in document.trace.events.end}
    scale = lanes.time_scale(view)
    for time, x in ((view.selection.start, 300), (view.selection.end, 700)):
        assert time in edges or abs(scale.x(time) - x) <= 1
        assert abs(scale.x(time) - x) <= 7
    inspection = window.docks.panels["inspector"].inspection
    assert inspection.title == "Selected range"
    assert inspection.took_ns == view.selection.duration
    drag(lanes, QPoint(300, 120), QPoint(700, 120), CTRL)
    view = opened(window)[1]
    assert view.visible.duration < first.visible.duration / 2
    before = view.visible
    drag(lanes, QPoint(500, 120), QPoint(600, 120), button=Qt.MouseButton.MiddleButton)
    moved = opened(window)[1].visible
    assert moved.duration == before.duration
    assert before.start - moved.start == pytest.approx(100 / lanes.time_scale(view).px_per_ns, abs=2)
    drag(lanes, QPoint(500, 120), QPoint(400, 120), SHIFT)
    assert opened(window)[1].visible.start == pytest.approx(before.start, abs=4)


def test_a_drag_can_be_cancelled(window: MainWindow, qtbot: QtBot) -> None:
    lanes = window.timeline.lanes
    before = opened(window)[1]
    QTest.mousePress(lanes, Qt.MouseButton.LeftButton, NONE, QPoint(300, 120))
    QTest.mouseMove(lanes, QPoint(400, 120))
    assert opened(window)[1].selection is not None
    key(window, qtbot, Qt.Key.Key_Escape)
    assert opened(window)[1] == before
    QTest.mouseRelease(lanes, Qt.MouseButton.LeftButton, NONE, QPoint(420, 120))
    assert opened(window)[1] == before


def middle_of(window: MainWindow, event: int) -> QPoint:
    """The middle of an event's bar in the lane of device time."""
    document, view = opened(window)
    lanes = window.timeline.lanes
    placed = lanes.placed(document, view)[0]
    events = document.trace.events
    time = (int(events.start[event]) + int(events.end[event])) // 2
    return QPoint(round(lanes.time_scale(view).x(time)), round(placed.bar.center().y()))


def test_a_click_selects_everywhere_and_a_double_click_zooms(window: MainWindow, qtbot: QtBot) -> None:
    document, view = opened(window)
    events, ids = document.trace.events, document.breakdown(view.step).events
    inside = ids[(events.start[ids] > view.visible.start) & (events.end[ids] < view.visible.end)]
    event = int(next(i for i in inside if events.op[i] == Op.ATTENTION))
    at = middle_of(window, event)
    qtbot.mouseClick(window.timeline.lanes, Qt.MouseButton.LeftButton, pos=at)
    view = opened(window)[1]
    assert (view.event, view.layer) == (event, int(events.layer[event]))
    panel = window.docks.panels["off_the_floor"]
    row = panel.table.rows.source_of(panel.table.currentIndex().row())
    assert panel._rows[row].event == event
    inspection = window.docks.panels["inspector"].inspection
    assert inspection.title.startswith("attention")
    words = spoken(inspection)
    assert "16 req × 4," in words
    assert "÷ 3.35 TB/s" in words
    taken = document.breakdown(view.step)
    floor = int(taken.floor_ns[taken.row_of(event)])
    assert inspection.floor_ns == floor
    assert f"{round(100 * floor / int(events.duration[event]))} % of floor" in window.status.text
    qtbot.mouseDClick(window.timeline.lanes, Qt.MouseButton.LeftButton, pos=at)
    visible = opened(window)[1].visible
    assert visible.duration == pytest.approx(2 * int(events.duration[event]), rel=0.02)


def test_hovering_tells_about_the_event(window: MainWindow, qtbot: QtBot) -> None:
    document, view = opened(window)
    ids = document.breakdown(view.step).events
    events = document.trace.events
    event = int(next(i for i in ids if events.start[i] > view.visible.start and events.op[i] == Op.GATE_UP))
    QTest.mouseMove(window.timeline.lanes, middle_of(window, event))
    qtbot.waitUntil(lambda: window.session.hovered == event)
    assert window.session.hovered == event


def test_a_table_row_selects_and_copies_with_units(window: MainWindow, qtbot: QtBot) -> None:
    panel = window.docks.panels["off_the_floor"]
    document, view = opened(window)
    gaps = [row.gap_ns or 0 for row in document.off_the_floor(view.step)]
    assert gaps == sorted(gaps, reverse=True)
    total = sum(gaps) + document.breakdown(view.step).idle_ns
    assert total == document.breakdown(view.step).step_gap_ns
    assert sum(c.ns for c in document.gap_causes(view.step)) == total
    panel.table.setCurrentIndex(panel.table.rows.index(2, 0))
    assert opened(window)[1].event == panel._rows[2].event
    window.actions_by_name["copy_table"].trigger()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[:5] == ["op", "layer", "events", "took µs", "floor µs"]
    assert lines[1].split("\t")[5] == f"{panel._rows[2].gap_ns / 1e3:.1f}"
    assert len(lines) == 2
    panel.table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
    layers = [panel._rows[panel.table.rows.source_of(i)].layer for i in range(panel.table.rows.rowCount())]
    known = [layer for layer in layers if layer >= 0]
    assert known == sorted(known)
    assert layers[: len(known)] == known


def test_the_step_and_layer_tables_lead_there(window: MainWindow, qtbot: QtBot) -> None:
    window.docks._docks["steps"].raise_()
    steps = window.docks.panels["steps"]
    qtbot.waitUntil(steps.isVisible)
    assert steps.table.rows.rowCount() == 6
    steps.table.setCurrentIndex(steps.table.rows.index(4, 0))
    assert opened(window)[1].step == 4
    window.docks._docks["layers"].raise_()
    layers = window.docks.panels["layers"]
    qtbot.waitUntil(layers.isVisible)
    layers.one_step.setChecked(True)
    row = next(i for i in range(layers.table.rows.rowCount()) if layers.table.rows.index(i, 1).data() == "20")
    layers.table.setCurrentIndex(layers.table.rows.index(row, 0))
    assert opened(window)[1].layer == 20
    window.docks._docks["data_quality"].raise_()
    quality = window.docks.panels["data_quality"]
    qtbot.waitUntil(quality.isVisible)
    assert quality.table.rows.rowCount() > 2


def type_bandwidth(window: MainWindow, qtbot: QtBot, text: str) -> None:
    edit = window.toolbar.bandwidth.lineEdit()
    assert edit is not None
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, text)
    qtbot.keyClick(edit, Qt.Key.Key_Return)


def test_a_typed_bandwidth_reprices_everything(window: MainWindow, qtbot: QtBot) -> None:
    document, view = opened(window)
    window.session.look(select_event(document, view, int(document.breakdown(view.step).events[20])))
    document, view = opened(window)
    before = pixels(window.timeline.step_bar), spoken(window.docks.panels["inspector"].inspection)
    type_bandwidth(window, qtbot, "3.0 TB/s")
    repriced, same_view = opened(window)
    assert repriced is not document
    assert repriced.trace is document.trace
    assert same_view == view
    assert repriced.basis.bandwidth_bytes_per_s == 3_000_000_000_000
    assert repriced.basis.bandwidth_source == "user"
    assert pixels(window.timeline.step_bar) != before[0]
    words = spoken(window.docks.panels["inspector"].inspection)
    assert "3.00 TB/s" in words
    assert words != before[1]
    assert "3.00 TB/s (given)" in window.status._right.text()
    ratio = repriced.breakdown(1).floor_ops_ns / document.breakdown(1).floor_ops_ns
    assert ratio == pytest.approx(3.35 / 3.0, rel=2e-3)
    assert "3.00 TB/s (given)" in window.docks.panels["constraints"].view.accessibleDescription()
    type_bandwidth(window, qtbot, "fast")
    assert opened(window)[0] is repriced
    assert window.message_bar.message is not None
    assert window.toolbar.bandwidth.currentText() == "3.00 TB/s given"
    window.toolbar.bandwidth.setCurrentIndex(1)
    window.toolbar.bandwidth.activated.emit(1)
    assert opened(window)[0].basis.bandwidth_source == "sustained"


def test_the_theme_switches_everything_at_once(window: MainWindow, qtbot: QtBot) -> None:
    assert window.theme is not None
    assert window.theme.name == "light"
    dark = next(a for a in window.menus.themes.actions() if a.data() == "dark")
    light_pixels = pixels(window)
    dark.trigger()
    assert window.theme.name == "dark"
    assert window.settings.value.theme == "dark"
    image = window.grab().toImage()
    assert pixels(window) != light_pixels
    assert sum(image.pixelColor(x, y).lightness() > 200 for x in range(0, 1440, 7) for y in range(0, 900, 7)) < 2500
    next(a for a in window.menus.themes.actions() if a.data() == "light").trigger()
    qtbot.wait(1)
    assert pixels(window) == light_pixels


def test_run_strip_and_step_bar_take_the_mouse(window: MainWindow, qtbot: QtBot) -> None:
    strip = window.timeline.run_strip
    width = strip.width() - 148 - 84
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(round(148 + width * 4.5 / 6), 40))
    assert opened(window)[1].step == 4
    drag(strip, QPoint(round(148 + width * 1.5 / 6), 40), QPoint(round(148 + width * 3.5 / 6), 40))
    document, view = opened(window)
    assert view.visible == TimeRange(document.step_range(1).start, document.step_range(3).end)
    window.actions_by_name["fit_step"].trigger()
    key(window, qtbot, Qt.Key.Key_W, SHIFT)
    key(window, qtbot, Qt.Key.Key_W, SHIFT)
    bar = window.timeline.step_bar
    document, view = opened(window)
    scale = bar.step_scale(document, view)
    middle = (view.visible.start + view.visible.end) // 2
    at = QPoint(round(scale.x(middle)), 67)
    drag(bar, at, at + QPoint(60, 0))
    moved = opened(window)[1].visible
    assert moved.duration == view.visible.duration
    assert moved.start - view.visible.start == pytest.approx(60 / scale.px_per_ns, rel=0.05)
    edge = QPoint(round(scale.x(moved.end)), 67)
    drag(bar, edge, edge + QPoint(-20, 0))
    assert opened(window)[1].visible.duration < moved.duration


def test_the_columns_of_all_views_are_the_same_pixels(window: MainWindow) -> None:
    parts = window.timeline._parts
    assert len({part.width() for part in parts}) == 1
    assert len({part.mapTo(window, QPoint(0, 0)).x() for part in parts}) == 1


@pytest.mark.parametrize(("width", "height"), [(1120, 640), (1280, 720), (1440, 900), (1920, 1080), (2560, 1440)])
def test_every_size_keeps_the_timeline_usable(
    make_window: MakeWindow, qtbot: QtBot, small_file: Path, width: int, height: int
) -> None:
    window = make_window(width, height)
    window.opener.open(small_file)
    qtbot.waitUntil(lambda: window.session.document is not None)
    qtbot.wait(20)
    assert (window.width(), window.height()) == (width, height)
    document, view = opened(window)
    rows = window.timeline.lanes.placed(document, view)
    last = rows[-1].rect.bottom()
    assert last <= window.timeline.lanes.height() + 1
    assert window.timeline.bandwidth.isVisible()
    for name in ("inspector", "off_the_floor"):
        assert window.docks.panels[name].isVisible()
    panel = window.docks.panels["off_the_floor"]
    assert panel.table.horizontalScrollBar().maximum() == 0


def test_layout_and_geometry_come_back(make_window: MakeWindow, small_file: Path, qtbot: QtBot) -> None:
    window = make_window(1500, 950)
    window.opener.open(small_file)
    qtbot.waitUntil(lambda: window.session.document is not None)
    window.docks._docks["steps"].setFloating(True)
    assert not window.docks.automatic
    settings = window.settings
    window.close()
    again = make_window(settings=settings)
    assert again.docks._docks["steps"].isFloating()
    again.reset_layout()
    assert not again.docks._docks["steps"].isFloating()
    assert again.docks.automatic


def test_copy_image_fills_the_clipboard(window: MainWindow) -> None:
    QGuiApplication.clipboard().clear()
    window.actions_by_name["copy_image"].trigger()
    assert QGuiApplication.clipboard().image().width() == 3200


def test_closing_the_trace_shows_the_welcome_panel(window: MainWindow) -> None:
    window.actions_by_name["close_trace"].trigger()
    assert window.session.document is None
    assert window.pages.currentWidget() is window.welcome
    assert not any(dock.isVisible() for dock in window.docks._docks.values())
    assert not window.actions_by_name["export_image"].isEnabled()
    assert window.status.text == "no trace"
