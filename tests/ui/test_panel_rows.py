"""Rows of the panels: a range counts what lies inside it, tables follow the selection and fit small windows."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.kit.pictures import document_of, llama
from tests.kit.traces import THREAD, St, kernel, make_trace
from tracescope.analysis.steps import steps_table
from tracescope.core.category import Category, Op, TrackKind
from tracescope.core.model import Workload
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Track
from tracescope.floor.energy import Energy, worth_a_range
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.ui.main_window import MainWindow
from tracescope.ui.paint.time_axis import ticks
from tracescope.ui.panels.constraints import dependence_lines
from tracescope.ui.panels.layers import LayersPanel
from tracescope.ui.panels.steps import steps_columns
from tracescope.ui.panels.where_the_gap_goes import row_height
from tracescope.ui.status import status_parts
from tracescope.view.document import Document
from tracescope.view.inspection import inspect_event, inspect_step
from tracescope.view.overlays import shown_overlays
from tracescope.view.range_statistics import inspect_range
from tracescope.view.step_latency import latency_of_step


def test_a_range_counts_the_part_of_an_event_that_lies_inside() -> None:
    # 1 TB/s: 1,000 bytes are 1 ns of floor. The second event lies outside.
    document = document_of(
        make_trace([kernel(0, 4000, weight_read=2_000_000), kernel(5000, 4000, weight_read=8_000_000)])
    )
    shown = inspect_range(document, TimeRange(0, 1000))
    rows = {label: result for label, _, result in shown.rows}
    assert rows["bytes"] == "500.0 kB"
    assert rows["floor"] == "0.5 µs"
    assert rows["W"] == "1.0 µs"
    assert shown.floor_ns == 500


def test_a_range_counts_operators_once_however_they_nest() -> None:
    outer, inner = kernel(0, 4000, Category.COMPUTE), kernel(1000, 2000, Category.WEIGHT_READ)
    document = document_of(make_trace([outer, inner], [St(0, 4000)], (THREAD,)))
    rows = {label: result for label, _, result in inspect_range(document, TimeRange(0, 4000)).rows}
    assert (rows["busy"], rows["W"], rows["C"]) == ("4.0 µs", "2.0 µs", "2.0 µs")


def test_times_of_a_range_have_one_unit() -> None:
    document = document_of(make_trace([kernel(0, 3_000_000, weight_read=1), kernel(3_000_000, 400, kv_read=1)]))
    shown = inspect_range(document, TimeRange(0, 3_000_400))
    times = [result for label, _, result in shown.rows if label in ("busy", "idle", "floor", "W", "K")]
    assert times
    assert all(text.endswith(" ms") for text in times)


def test_a_step_shows_its_energy_and_the_parts_of_its_bar() -> None:
    shown = inspect_step(llama(), 1)
    assert shown.energy is not None
    assert sum(part for _, part in shown.energy_parts) == pytest.approx(shown.energy.mid)
    assert shown.facts is not None
    assert [part.letter for part in shown.facts.parts] == ["W", "W", "K", "A"]
    assert sum(part.ns for part in shown.facts.parts) + sum(gap.ns for gap in shown.facts.gaps) == shown.took_ns


@pytest.mark.parametrize(("low", "high", "worth"), [(1.0, 1.0, False), (0.995, 1.01, False), (0.9, 1.1, True)])
def test_a_range_that_cannot_be_seen_is_not_drawn(low: float, high: float, worth: bool) -> None:
    assert worth_a_range(Energy(low, 1.0, high, "board")) is worth


def test_columns_of_steps_fit_a_small_window() -> None:
    document = llama()
    columns = steps_columns(steps_table(document.trace, document.basis), narrow=True)
    assert sum(column.width for column in columns) <= 960
    assert not {"idle", "host wait"} & {column.title for column in columns}


@pytest.mark.parametrize(("room", "causes"), [(160, 6), (160, 1), (90, 6)])
def test_rows_of_causes_never_overlap(room: int, causes: int) -> None:
    assert 17 <= row_height(room, causes) <= max(17, room // causes, 34)


def test_layers_mark_the_selected_op(window: MainWindow, qtbot: QtBot) -> None:
    session = window.session
    window.docks._docks["layers"].raise_()
    qtbot.waitUntil(window.docks.panels["layers"].isVisible)
    document, view = session.document, session.view
    assert document is not None
    assert view is not None
    event = next(row.event for row in document.off_the_floor(view.step) if row.layer == 1)
    session.look(view.with_(event=event))
    panel = window.docks.panels["layers"]
    assert isinstance(panel, LayersPanel)
    cells = panel.table.rows
    place = panel.table.currentIndex().row()
    assert place >= 0
    assert cells.data(cells.index(place, 0)) == document.title_of(event)
    assert cells.data(cells.index(place, 1)) == "1"


def test_plain_events_are_of_no_kind() -> None:
    thread = (Track(TrackKind.HOST_THREAD, "main"),)
    made = kernel(0, 100, op=Op.NONE, category=Category.HOST, name="fib", unknown=True)
    document = document_of(make_trace([made], tracks=thread))
    shown = inspect_event(document, 0)
    assert shown.category is None
    assert shown.title == "fib"
    parts, _ = status_parts(document, document.initial_view().with_(event=0))
    assert parts[0] == "fib"
    assert shown_overlays(document) == frozenset()


def test_overlays_of_a_trace_with_steps() -> None:
    assert shown_overlays(llama()) == {"path", "floor", "energy"}


def test_the_first_view_shows_the_selected_layer_with_its_neighbours() -> None:
    document = llama()
    view = document.initial_view()
    seen = [span.layer for span in document.layers_in_sight(view.visible)]
    assert {view.layer - 1, view.layer, view.layer + 1} <= set(seen)


@pytest.mark.parametrize("end", [900, 2_450_000, 3_000_000_000])
def test_labels_of_a_time_axis_have_one_unit(end: int) -> None:
    labels = [label for _, label in ticks(TimeRange(0, end), 800, 0)]
    assert len(labels) > 2
    assert len({label.split()[-1] for label in labels}) == 1
    assert len(set(labels)) == len(labels)


def test_a_step_of_several_ranks_says_what_its_all_reduces_take() -> None:
    basis = make_basis(load_hardware("h100-sxm"))
    trace = synthesize(load_model("llama-3-8b"), basis, Workload(4, 512, tensor_parallel=4), steps=2)
    document = Document(trace, basis, Path("ranks"))
    rows = inspect_step(document, 1).rows
    assert ("latency", "64 × 2.8–3.5 µs", "+ 0.18–0.22 ms") in rows
    assert ("", "not part of the floor; measured on H100 SXM, 2–8 ranks, 8 KiB", "") in rows
    _, lines = dependence_lines(document.constraints(1), latency_of_step(document, 1))
    assert lines[-2:] == (
        "all-reduce latency: 64 × 2.8–3.5 µs = + 0.18–0.22 ms",
        "not part of the floor; measured on H100 SXM, 2–8 ranks, 8 KiB",
    )
    assert latency_of_step(llama(), 1) is None
    assert not any(label == "latency" for label, _, _ in inspect_step(llama(), 1).rows)
