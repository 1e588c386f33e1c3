"""Whole views: every zoom draws, nothing in sight vanishes, texts and edges stay in their columns."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from tests.kit.pictures import document_of, is_colour, llama, painted, pixels
from tests.kit.traces import St, kernel, make_trace, random_stream
from tracescope.core.category import Category, Op, TrackKind
from tracescope.core.model import Workload
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Track
from tracescope.lod.fold import ids_in_sight
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.ui.paint.counters import paint_bandwidth, paint_energy
from tracescope.ui.paint.geometry import COMPACT, GUTTER, HUGE, LARGE, NORMAL, RIGHT, Sizes, sizes_for
from tracescope.ui.paint.lanes import paint_lanes, place_rows
from tracescope.ui.paint.run_strip import nice_top, paint_run_strip, step_at_x
from tracescope.ui.paint.step_bar import paint_step_bar
from tracescope.ui.paint.time_axis import paint_playhead, paint_time_axis, tick_step, ticks
from tracescope.ui.picture import render_picture
from tracescope.ui.theme import DARK, LIGHT, Theme
from tracescope.view.document import Document
from tracescope.view.step_facts import step_facts
from tracescope.view.view_state import ViewState

ALL = frozenset({"path", "floor", "energy"})


def centre(
    document: Document, view: ViewState, theme: Theme = LIGHT, *, width: int = 900, sizes: Sizes = NORMAL,
    scale: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """Everything the middle of the window shows, one part under the other."""
    lanes = 320
    height = sizes.run_strip + sizes.step_bar + sizes.axis + lanes + 2 * sizes.counter

    def paint(painter: QPainter) -> None:
        y = 0.0
        for part, high in ((paint_run_strip, sizes.run_strip), (paint_step_bar, sizes.step_bar)):
            part(painter, QRectF(0, y, width, high), document, view, theme, scale)
            y += high
        axis = QRectF(0, y, width, sizes.axis)
        paint_time_axis(painter, axis, document, view, theme, scale)
        y += sizes.axis
        paint_lanes(painter, QRectF(0, y, width, lanes), document, view, theme, scale, sizes=sizes)
        y += lanes
        for part in (paint_bandwidth, paint_energy):
            part(painter, QRectF(0, y, width, sizes.counter), document, view, theme, scale)
            y += sizes.counter
        paint_playhead(painter, axis, y, document, view, theme, scale)

    return painted(width, height, theme, paint, scale)


def lanes_only(painter: QPainter, document: Document, view: ViewState) -> None:
    paint_lanes(painter, QRectF(0, 0, 600, 30), document, view, LIGHT, 1, sizes=NORMAL)


@pytest.mark.parametrize("origin", [0, 10**15, 1_767_000_000_000_000_000])
def test_zoom_sweep_paints_whatever_is_in_sight(qapp: object, origin: int) -> None:
    trace = random_stream(3000, origin=origin)
    document = document_of(trace)
    anchor = int(trace.events.start[1500]) + 1
    view = ViewState(TimeRange(anchor, anchor + 1))
    duration = 1
    while duration < 4 * 10**18:
        # A view may not begin before what int64 can count from the trace's start.
        start = max(anchor - duration // 2, -(2**62))
        visible = TimeRange(start, start + duration)
        shown = view.with_(visible=visible)
        image = painted(600, 30, LIGHT, partial(lanes_only, document=document, view=shown))
        plot = image[2:16, GUTTER + 1 : 600 - RIGHT - 1]
        ids = ids_in_sight(trace, np.array([0]), visible, np.inf)
        assert ids is not None
        coloured = (np.ptp(plot.astype(int), axis=2) > 30).any()
        assert coloured == bool(len(ids)), f"{duration} ns"
        labels = [label for _, label in ticks(visible, 368, anchor)]
        assert len(set(labels)) == len(labels)
        duration = duration * 7 + 1


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("scale", [1.0, 1.25, 2.0])
def test_all_parts_draw_at_every_zoom_and_scale(qapp: object, theme: Theme, scale: float) -> None:
    document = llama()
    view = document.initial_view().with_(overlays=ALL)
    step = document.step_range(view.step)
    for visible in (view.visible, step, document.whole_range, TimeRange(step.start + 5, step.start + 6)):
        shown = view.with_(visible=visible, playhead=(visible.start + visible.end) // 2)
        image = centre(document, shown, theme, scale=scale)
        assert len(np.unique(image.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32))) > 20


def test_plot_edges_are_the_same_pixel_in_every_part(qapp: object) -> None:
    document = llama()
    view = document.initial_view().with_(visible=document.step_range(1), overlays=ALL)
    image = centre(document, view)
    y = NORMAL.run_strip + 45
    bar = np.flatnonzero(is_colour(image[y], LIGHT.kinds["W"].fill) | is_colour(image[y], LIGHT.kinds["W"].edge))
    assert bar[0] in (GUTTER, GUTTER + 1), "the border line may lie on its first pixel"
    strip = image[NORMAL.run_strip - 22]
    weights = np.flatnonzero(is_colour(strip, LIGHT.kinds["W"].fill))
    assert weights[0] == GUTTER
    assert weights[-1] <= 900 - RIGHT
    border = np.flatnonzero(is_colour(image[NORMAL.run_strip + NORMAL.step_bar + NORMAL.axis + 200], LIGHT.border))
    assert {GUTTER, 900 - RIGHT} <= set(border.tolist()) | set((border + 1).tolist())


def test_floor_bar_parts_sum_to_the_floor_and_the_gap(qapp: object) -> None:
    for profile in ("realistic", "ideal"):
        document = llama(profile)
        facts = step_facts(document, 1)
        assert sum(part.ns for part in facts.parts) == facts.floor_ns
        assert sum(part.ns for part in facts.gaps) == facts.gap_ns
        assert facts.floor_ns is not None
        assert facts.gap_ns == facts.duration_ns - facts.floor_ns


def test_step_bar_shows_floor_and_gap_in_proportion(qapp: object) -> None:
    document = llama()
    view = document.initial_view()
    facts = step_facts(document, view.step)
    image = painted(1000, 94, LIGHT, lambda p: paint_step_bar(p, QRectF(0, 0, 1000, 94), document, view, LIGHT, 1))
    plot = 1000 - GUTTER - RIGHT
    assert facts.floor_ns is not None
    floor_x = GUTTER + plot * facts.floor_ns / facts.duration_ns
    column = is_colour(image[30:50, :], LIGHT.ink).all(axis=0)
    line = np.flatnonzero(column)
    assert abs(line[:2].mean() + 0.5 - floor_x) <= 2
    weights = np.flatnonzero(is_colour(image[28], LIGHT.kinds["W"].fill))
    share = facts.parts[0].ns / facts.duration_ns
    assert abs(weights[-1] - GUTTER - plot * share) <= 3


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("steps", [4, 400])
def test_what_is_sent_is_communication_in_bar_strip_and_picture(qapp: object, theme: Theme, steps: int) -> None:
    basis = make_basis(load_hardware("a100-80gb-sxm"))
    workload = Workload(128, 16, tensor_parallel=8)
    trace = synthesize(load_model("llama-3-8b"), basis, workload, steps=steps, profile="ideal")
    document = Document(trace, basis, Path("split.tscope.h5"))
    view = document.initial_view().with_(overlays=ALL)
    sent, floor = (int(v[view.step]) for v in (document.floor_parts.link, document.series.floor_ops_ns))
    assert sent > 0.25 * floor
    assert document.floor_parts.compute.max() < 1000
    plot = 900 - GUTTER - RIGHT
    bar = painted(900, 94, theme, lambda p: paint_step_bar(p, QRectF(0, 0, 900, 94), document, view, theme, 1))[30]
    strip = painted(900, 84, theme, lambda p: paint_run_strip(p, QRectF(0, 0, 900, 84), document, view, theme, 1))
    whole = strip[:, GUTTER + plot // 2]
    image = pixels(render_picture(document, view, (1600, 900), 1, theme))
    row = image[127]
    for line, room in ((bar, plot), (row, 1600 - 2 * 40 - 144)):
        assert is_colour(line, theme.kinds["X"].fill).sum() == pytest.approx(room * sent / floor, abs=20)
        assert not is_colour(line, theme.kinds["C"].fill).any()
    solid = [int(is_colour(whole, theme.kinds[letter].fill).sum()) for letter in "WX"]
    assert solid[1] / sum(solid) == pytest.approx(sent / floor, abs=0.12)
    assert not is_colour(whole, theme.kinds["C"].fill).any()


def test_overlays_switch_what_they_name(qapp: object) -> None:
    document = llama()
    view = document.initial_view()
    rows = [p.row.key for p in place_rows(document, view, QRectF(0, 0, 900, 900), NORMAL)]
    without = [p.row.key for p in place_rows(document, view.toggled("path"), QRectF(0, 0, 900, 900), NORMAL)]
    assert rows[0] == "path"
    assert without == rows[1:]
    with_floor, without_floor = centre(document, view), centre(document, view.toggled("floor"))
    rail = NORMAL.run_strip + NORMAL.step_bar + NORMAL.axis
    ink = [is_colour(image[rail : rail + 60], LIGHT.ink).sum() for image in (with_floor, without_floor)]
    assert ink[0] > 4 * ink[1]


def test_a_trace_without_bandwidth_claims_no_floor(qapp: object) -> None:
    made = [kernel(i * 100, 90, Category.WEIGHT_READ, weight_read=10, layer=0, step=0) for i in range(20)]
    trace = make_trace(made, [St(0, 2000)])
    document = Document(trace, type(document_of(trace).basis)(), document_of(trace).path)
    assert not document.has_floor
    facts = step_facts(document, 0)
    assert facts.floor_ns is None
    assert facts.parts == ()
    image = centre(document, document.initial_view())
    lanes = image[NORMAL.run_strip + NORMAL.step_bar + NORMAL.axis :]
    assert not is_colour(lanes[:40, GUTTER + 2 :].reshape(-1, 3), LIGHT.kinds["W"].fill).any()


def test_a_trace_without_steps_is_a_plain_timeline(qapp: object) -> None:
    thread = (Track(TrackKind.HOST_THREAD, "main"), Track(TrackKind.HOST_THREAD, "worker"))
    made = [kernel(0, 900, Category.HOST, name="outer", op=Op.NONE), kernel(100, 300, Category.HOST, op=Op.NONE)]
    document = document_of(make_trace([*made, kernel(0, 500, track=1, op=Op.NONE)], tracks=thread))
    view = document.initial_view()
    assert view.step == -1
    rows = [p.row for p in place_rows(document, view, QRectF(0, 0, 900, 200), NORMAL)]
    assert [r.title for r in rows] == ["main", "", "worker"]
    image = centre(document, view)
    assert (np.ptp(image.astype(int), axis=2) > 40).any()


@pytest.mark.parametrize(
    ("window", "sizes"),
    [
        ((1280, 720), COMPACT),
        ((1440, 900), NORMAL),
        ((1920, 1080), LARGE),
        ((2560, 1440), HUGE),
        ((1120, 640), COMPACT),
    ],
)
def test_heights_follow_the_window(window: tuple[int, int], sizes: Sizes) -> None:
    assert sizes_for(*window) is sizes


def test_design_heights_add_up_at_the_design_size() -> None:
    lanes = NORMAL.path + NORMAL.weights + NORMAL.kv_reads + NORMAL.kv_appends + NORMAL.compute + 18 + NORMAL.selection
    assert 62 + NORMAL.run_strip + NORMAL.step_bar + NORMAL.axis + lanes == 526


@pytest.mark.parametrize("duration", [1, 3, 17, 1000, 10**6, 10**9, 10**12, 10**18])
def test_ticks_are_round_and_not_crowded(duration: int) -> None:
    visible = TimeRange(10**18, 10**18 + duration)
    step = tick_step(visible, 800)
    assert str(step).strip("0") in {"1", "2", "5"}
    shown = ticks(visible, 800, 10**18)
    assert 1 <= len(shown) <= 12
    assert all((at - 10**18) % step == 0 for at, _ in shown)


@pytest.mark.parametrize(("value", "top"), [(8.65, 10), (9.9, 10), (10.4, 15), (0.02, 0.02), (2.18, 3), (0, 1)])
def test_axis_tops_are_round(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def test_the_step_under_the_pointer(qapp: object) -> None:
    document = llama()
    plot = QRectF(148, 0, 600, 84)
    assert step_at_x(document, plot, 148) == 0
    assert step_at_x(document, plot, 747) == 5
    assert step_at_x(document, plot, 148 + 350) == 3
