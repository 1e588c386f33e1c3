"""The document's derived facts add up, and its first view shows a few layers of a typical step."""

from itertools import pairwise

import pytest

from tests.kit.pictures import document_of, llama
from tests.kit.traces import SECOND_STREAM, STREAM, Ev, St, kernel, make_trace
from tracescope.core.category import Category, Op
from tracescope.core.timerange import TimeRange
from tracescope.lod.planes import Plane
from tracescope.ui.paint.dependency import incoming
from tracescope.ui.paint.lanes import nearest_outside
from tracescope.view.inspection import inspect_event
from tracescope.view.lane_rows import content_of, figures, path_floor_ns, rows_of, step_time_in
from tracescope.view.navigation import fit_step


def test_the_rows_and_the_idle_time_sum_to_the_gap() -> None:
    for profile in ("ideal", "realistic"):
        document = llama(profile)
        taken = document.breakdown(2)
        rows = document.off_the_floor(2)
        assert sum(row.gap_ns for row in rows) + taken.idle_ns == taken.step_gap_ns
        assert [row.gap_ns for row in rows] == sorted((row.gap_ns for row in rows), reverse=True)
        assert sum(row.took_ns for row in rows) + taken.idle_ns == taken.duration_ns


def test_layers_follow_each_other_without_holes() -> None:
    document = llama()
    spans = document.layer_spans(1)
    assert [span.layer for span in spans] == list(range(32))
    assert all(a.end == b.start for a, b in pairwise(spans))
    step = document.step_range(1)
    assert step.start <= spans[0].start
    assert spans[-1].end <= step.end
    floor = document.breakdown(1).floor_ops_ns
    assert 0.9 * floor < sum(span.floor_ns for span in spans) < floor


def test_the_first_view_is_a_typical_step() -> None:
    document = llama(steps=8)
    view = document.initial_view()
    assert not document.trace.steps.warm_up[view.step]
    assert view.layer == 12
    shown = document.layers_in_sight(view.visible)
    assert 3 <= len(shown) <= 4
    assert document.initial_view() == view


def test_a_trace_opens_on_a_step_near_the_median_not_on_an_outlier() -> None:
    def opened(*durations: int) -> int:
        starts = [sum(durations[:n]) for n in range(len(durations))]
        steps = [St(start, took, warm_up=n == 0) for n, (start, took) in enumerate(zip(starts, durations, strict=True))]
        events = [Ev(start, 10, step=n) for n, start in enumerate(starts)]
        return document_of(make_trace(events, steps)).initial_view().step

    assert opened(100, 190, 109, 100, 101) == 2  # step 0 is warm-up, step 1 an outlier
    assert opened(100, 100, 190, 100) == 1
    assert opened(100, 50, 200) == 1  # none is near the median: the nearest
    assert opened(100) == 0


def test_searching_finds_ops_and_names_in_any_case() -> None:
    made = [kernel(0, 10, op=Op.ATTENTION, name="paged_ATTN"), kernel(10, 10, op=Op.DOWN, name="gemm"), kernel(20, 10)]
    document = document_of(make_trace(made))
    ids = document.trace.events.start.argsort()
    assert document.matching("attn")(ids).tolist() == [True, False, False]
    assert document.matching("DOWN")(ids).tolist() == [False, True, False]
    assert not document.matching("<b>")(ids).any()


def test_a_long_name_is_cut_and_an_op_is_preferred() -> None:
    document = document_of(make_trace([kernel(0, 10, op=Op.NONE, name="k" * 5000), kernel(10, 10, op=Op.QKV)]))
    assert len(document.title_of(0)) == 256
    assert document.title_of(1) == "qkv"


def test_rows_name_their_bytes_and_reads() -> None:
    document = llama()
    view = document.initial_view()
    rows = {row.key: row for row in rows_of(document, view)}
    assert list(rows) == ["path", "W", "K", "A", "C", "X", "S"]
    assert rows["W"].subtitle.startswith("15.01 GB in ")
    assert rows["K"].subtitle.endswith(" in 32 reads")
    assert rows["C"].subtitle == "peak 989 TFLOP/s"
    assert rows["X"].empty == "no events: one device"


def test_figures_are_of_what_is_in_sight() -> None:
    document = llama()
    step = document.step_range(1)
    view = document.initial_view().with_(step=1, visible=step)
    rows = {row.key: row for row in rows_of(document, view)}
    content = document.planes(step, 900)
    taken = document.breakdown(1)
    bold, small = figures(document, view, rows["path"], content[Plane.PATH])
    assert bold == f"{taken.floor_ops_ns / taken.duration_ns * 100:.0f} %"
    assert small == f"+{taken.step_gap_ns / 1e6:.3f} ms"
    assert step_time_in(document, step) == taken.duration_ns
    assert step_time_in(document, TimeRange(step.start, step.start + 10)) == 10


def test_figures_of_a_step_leave_out_the_margins_and_those_of_its_parts_sum_to_them() -> None:
    document = llama()
    step = document.step_range(2)
    view = document.initial_view().with_(step=2, visible=step)
    path = {row.key: row for row in rows_of(document, view)}["path"]

    def said(visible: TimeRange, key: str = "path") -> tuple[str, str]:
        shown = view.with_(visible=visible)
        row = {row.key: row for row in rows_of(document, shown)}[key]
        return figures(document, shown, row, content_of(document, row, visible, 900))

    assert path.plane is Plane.PATH
    wide = fit_step(document, view).visible
    assert wide.start < step.start
    for key in ("path", "W", "K", "C"):
        assert said(wide, key) == said(step, key)
    taken = document.breakdown(2)
    for cut in (step.start + 1, (step.start + step.end) // 2, step.start + step.duration // 3):
        halves = (TimeRange(step.start, cut), TimeRange(cut, step.end))
        floors = [path_floor_ns(document, view, half) for half in halves]
        assert sum(f[0] for f in floors if f) == pytest.approx(taken.floor_ops_ns)
    long = max(taken.events.tolist(), key=lambda e: int(document.trace.events.duration[e]))
    begin, took = int(document.trace.events.start[long]), int(document.trace.events.duration[long])
    quarters = {said(TimeRange(begin + n * took // 4, begin + (n + 1) * took // 4), "W")[0] for n in range(4)}
    assert len(quarters) == 1, "one op has one speed, whichever part of it is in sight"


def test_nearest_events_outside_the_view_stay_in_the_step() -> None:
    document = llama()
    view = document.initial_view()
    before, after = nearest_outside(document, view, Plane.SELECTION)
    events = document.trace.events
    assert events.category[before] == Category.HOST
    assert events.category[after] == Category.TOKEN_SELECTION
    assert events.step[before] == events.step[after] == view.step


def test_what_an_event_waited_for_has_a_word() -> None:
    document = llama()
    ids = document.breakdown(1).events
    attention = next(int(i) for i in ids if document.trace.events.op[i] == Op.ATTENTION)
    words = [word for _, word in incoming(document, attention)]
    assert "KV ready" in words


def test_results_are_computed_once() -> None:
    document = llama()
    assert document.breakdown(1) is document.breakdown(1)
    assert document.planes(document.step_range(1), 700) is document.planes(document.step_range(1), 700)
    assert document.series is document.series


def test_the_gap_of_an_event_is_that_of_the_tables_where_others_run_at_once() -> None:
    events = [
        Ev(0, 100, category=Category.KV_READ, kv_read=10),
        Ev(10, 50, track=1, category=Category.WEIGHT_READ, weight_read=40),
    ]
    document = document_of(make_trace(events, [St(0, 100)], (STREAM, SECOND_STREAM)))
    taken = document.breakdown(0)
    for row, event in enumerate(taken.events.tolist()):
        assert inspect_event(document, event).gap_ns == taken.gap_ns[row]
