"""Exact and folded views agree, sums are kept, and whatever is in sight is found at every zoom."""

from dataclasses import replace

import numpy as np
import pytest

from tests.kit.traces import FAST, kernel, make_trace, random_stream
from tracescope.core.category import Category, Op, TrackKind
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace, Track
from tracescope.lod.fold import (
    Bars,
    Columns,
    Scene,
    column_edges,
    columns_of,
    ids_in_sight,
    lane_in_sight,
    planes_in_sight,
)
from tracescope.lod.pick import event_at, nearest_in_plane
from tracescope.lod.planes import PLANES, Plane, PlaneMembers, plane_floors
from tracescope.lod.pyramid import build_pyramid
from tracescope.lod.rescale import floor_scales


def scene_of(trace: Trace) -> Scene:
    return Scene(trace, build_pyramid(trace, FAST), PlaneMembers.of(trace.work), plane_floors(trace.work, FAST))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return scene_of(random_stream(9000))


@pytest.mark.parametrize("origin", [0, 10**15, 1_767_000_000_000_000_000])
def test_every_event_that_intersects_is_found_and_no_other(origin: int) -> None:
    trace = random_stream(400, origin=origin)
    start, end = trace.events.start, trace.events.start + trace.events.duration
    first, last = trace.span
    rng = np.random.default_rng(3)
    for _ in range(200):
        a = int(rng.integers(first - 5000, last))
        visible = TimeRange(a, a + int(10 ** rng.uniform(0, 6)))
        found = ids_in_sight(trace, np.array([0]), visible, np.inf)
        expected = np.flatnonzero((start < visible.end) & ((end > visible.start) | (start >= visible.start)))
        assert found is not None
        assert found.tolist() == expected.tolist()


def test_exact_while_few_and_folded_when_many(scene: Scene) -> None:
    whole = TimeRange(*scene.trace.span)
    near = TimeRange(whole.start, whole.start + whole.duration // 100)
    assert isinstance(lane_in_sight(scene, 0, near, 800), Bars)
    assert isinstance(lane_in_sight(scene, 0, whole, 800), Columns)
    assert all(isinstance(c, Bars) for c in planes_in_sight(scene, near, 800).values())
    assert isinstance(planes_in_sight(scene, whole, 800)[Plane.PATH], Columns)


def test_folded_shares_equal_the_exact_ones(scene: Scene) -> None:
    whole = TimeRange(*scene.trace.span)
    for width in (50, 300, 1200):
        folded = lane_in_sight(scene, 0, whole, width)
        everything = ids_in_sight(scene.trace, np.array([0]), whole, np.inf)
        assert isinstance(folded, Columns)
        assert everything is not None
        bars = Bars(
            everything, scene.trace.events.start, scene.trace.events.end,
            *scene.floors.of(Plane.PATH, scene.trace.events.work),
            np.minimum(scene.trace.events.category, 3), np.zeros(len(everything), bool),
        )  # fmt: skip
        exact = columns_of(bars, whole, width)
        assert folded.busy.sum() == pytest.approx(exact.busy.sum(), rel=0.01)
        assert folded.floor.sum() == pytest.approx(exact.floor.sum(), rel=0.02)
        assert np.abs(folded.busy - exact.busy).mean() < 0.03


@pytest.mark.parametrize("factor", [0.25, 0.5, 4.0])
def test_folded_floors_follow_another_basis_row_by_row(factor: float) -> None:
    trace = long_events(9000)
    whole, members = TimeRange(*trace.span), PlaneMembers.of(trace.work)
    slower = replace(FAST, bandwidth_bytes_per_s=round(10**12 * factor))
    then, now = plane_floors(trace.work, FAST), plane_floors(trace.work, slower)
    pyramid = build_pyramid(trace, FAST)
    scales = floor_scales(trace, pyramid, members, then, now)
    assert scales.of_plane(Plane.WEIGHTS) == pytest.approx(1 / factor)
    assert scales.of_plane(Plane.KV_READS) == pytest.approx(1 / factor)
    assert scales.of_plane(Plane.COMPUTE) == 1.0
    assert scales.of_plane(Plane.PATH) == pytest.approx(scales.of_lane(0))
    assert min(1, 1 / factor) < scales.of_plane(Plane.PATH) < max(1, 1 / factor)
    rescaled = Scene(trace, pyramid, members, now, scales)
    rebuilt = Scene(trace, build_pyramid(trace, slower), members, now)
    for width in (60, 300):
        one, other = planes_in_sight(rescaled, whole, width), planes_in_sight(rebuilt, whole, width)
        for plane in (Plane.PATH, Plane.WEIGHTS, Plane.KV_READS, Plane.COMPUTE):
            a, b = one[plane], other[plane]
            assert isinstance(a, Columns)
            assert isinstance(b, Columns)
            assert a.floor.sum() == pytest.approx(b.floor.sum(), rel=0.03, abs=width * 0.5 / 255), plane
    raw, again = lane_in_sight(rescaled, 0, whole, 100), lane_in_sight(rebuilt, 0, whole, 100)
    assert isinstance(raw, Columns)
    assert isinstance(again, Columns)
    assert raw.floor.sum() == pytest.approx(again.floor.sum(), rel=0.03, abs=100 * 0.5 / 255)  # half a level


def long_events(count: int) -> Trace:
    """Weights, KV reads and FLOPs in turn, each a good deal longer than its floor on any bandwidth tried here."""
    rng = np.random.default_rng(7)
    made = []
    for i, duration in enumerate(rng.integers(5000, 9000, count).tolist()):
        amount = int(rng.integers(500_000, 1_000_000))
        weight, kv, flops = (amount, 0, 10**7), (0, amount, 10**7), (0, 0, 2 * 10**8)
        w, k, f = (weight, kv, flops)[i % 3]
        kind = (Category.WEIGHT_READ, Category.KV_READ, Category.COMPUTE)[i % 3]
        made.append(kernel(9000 * i, duration, kind, weight_read=w, kv_read=k, flops=f))
    return make_trace(made)


def test_column_edges_are_integers_that_never_decrease() -> None:
    for visible in (TimeRange(0, 1), TimeRange(5, 12), TimeRange(1_767_000_000_000_000_000, 1_767_000_000_000_000_777)):
        edges = column_edges(visible, 640)
        assert edges[0] == visible.start
        assert edges[-1] == visible.end
        assert (np.diff(edges) >= 0).all()


def test_zoom_sweep_from_one_nanosecond_to_years() -> None:
    trace = random_stream(5000, origin=10**18)
    scene = scene_of(trace)
    middle = (trace.span[0] + trace.span[1]) // 2
    duration = 1
    while duration < 4 * 10**18 // 2:
        visible = TimeRange(middle - duration // 2, middle - duration // 2 + duration)
        content = lane_in_sight(scene, 0, visible, 700)
        ids = ids_in_sight(trace, np.array([0]), visible, np.inf)
        assert ids is not None
        if isinstance(content, Bars):
            assert content.event.tolist() == ids.tolist()
        else:
            assert (content.busy > 0).any() == (len(ids) > 0)
        planes_in_sight(scene, visible, 700)
        duration = duration * 3 + 1


def test_an_event_lies_in_every_plane_it_has_bytes_for() -> None:
    fused = kernel(
        0, 1000, Category.KV_READ, weight_read=100_000, kv_read=400_000, kv_append=2, flops=10**7, op=Op.ATTENTION
    )
    sample = kernel(1000, 500, Category.TOKEN_SELECTION, op=Op.SAMPLE)
    scene = scene_of(make_trace([fused, sample]))
    planes = planes_in_sight(scene, TimeRange(0, 2000), 500)
    inside = {plane: content.event.tolist() for plane, content in planes.items() if isinstance(content, Bars)}
    assert inside == {
        Plane.PATH: [0, 1], Plane.WEIGHTS: [0], Plane.KV_READS: [0], Plane.KV_APPENDS: [0], Plane.COMPUTE: [0],
        Plane.COMMUNICATION: [], Plane.SELECTION: [1],
    }  # fmt: skip
    floors = {plane: int(planes[plane].floor[0]) for plane in PLANES if inside[plane]}
    assert floors[Plane.WEIGHTS] == 100
    assert floors[Plane.KV_READS] == 400
    assert floors[Plane.COMPUTE] == 100
    assert floors[Plane.PATH] == 500


def test_the_path_gives_each_instant_to_one_event() -> None:
    tracks = (Track(TrackKind.DEVICE_STREAM, "a", device=0), Track(TrackKind.DEVICE_STREAM, "b", device=0))
    trace = make_trace([kernel(0, 100), kernel(60, 100, track=1), kernel(70, 20, track=1)], tracks=tracks)
    bars = planes_in_sight(scene_of(trace), TimeRange(0, 200), 500)[Plane.PATH]
    assert isinstance(bars, Bars)
    assert list(zip(bars.start.tolist(), bars.end.tolist(), strict=True)) == [(0, 100), (100, 160)]


def test_nested_operators_show_the_innermost() -> None:
    thread = (Track(TrackKind.HOST_THREAD, "python"),)
    trace = make_trace([kernel(0, 100), kernel(20, 30), kernel(25, 5)], tracks=thread)
    bars = planes_in_sight(scene_of(trace), TimeRange(0, 200), 500)[Plane.PATH]
    assert isinstance(bars, Bars)
    pieces = list(zip(bars.event.tolist(), bars.start.tolist(), bars.end.tolist(), strict=True))
    assert pieces == [(0, 0, 20), (1, 20, 25), (2, 25, 30), (1, 30, 50), (0, 50, 100)]


def test_picking_finds_what_is_drawn() -> None:
    trace = random_stream(3000)
    members = PlaneMembers.of(trace.work)
    start, end = trace.events.start, trace.events.start + trace.events.duration
    rng = np.random.default_rng(2)
    for time in rng.integers(0, trace.span[1], 300).tolist():
        running = np.flatnonzero((start <= time) & (time < end))
        found = event_at(trace, members, 0, time)
        assert found == (int(running[0]) if len(running) else found)
        if not len(running):
            assert found == -1 or start[found] == time
    gap_end = int(start[1:][start[1:] > end[:-1]][0])
    assert event_at(trace, members, 0, gap_end - 1, tolerance=0) == -1
    assert event_at(trace, members, 0, gap_end - 1, tolerance=600) >= 0


def test_picking_in_a_plane_and_the_nearest_outside_the_view() -> None:
    made = [kernel(i * 100, 80, Category.KV_READ if i % 50 == 7 else Category.WEIGHT_READ) for i in range(2000)]
    trace = make_trace(made)
    members = PlaneMembers.of(trace.work)
    whole = TimeRange(*trace.span)
    assert event_at(trace, members, Plane.KV_READS, 710) == 7
    assert event_at(trace, members, Plane.KV_READS, 810) == -1
    assert event_at(trace, members, Plane.KV_READS, 810, tolerance=100) == 7
    after = nearest_in_plane(trace, members, Plane.KV_READS, 1000, forward=True, within=whole)
    before = nearest_in_plane(trace, members, Plane.KV_READS, 5000, forward=False, within=whole)
    assert (after, before) == (57, 7)
    assert nearest_in_plane(trace, members, Plane.KV_APPENDS, 0, forward=True, within=whole) == -1


def test_sparse_planes_are_exact_while_the_others_are_folded() -> None:
    made = [kernel(i * 100, 90, Category.KV_APPEND if i % 40 == 7 else Category.WEIGHT_READ) for i in range(8000)]
    scene = scene_of(make_trace(made))
    assert scene.pyramid.members_of(Plane.KV_APPENDS) is not None
    assert scene.pyramid.members_of(Plane.WEIGHTS) is None
    visible = TimeRange(60_745, 790_000)
    planes = planes_in_sight(scene, visible, 500)
    appends = planes[Plane.KV_APPENDS]
    assert isinstance(planes[Plane.PATH], Columns)
    assert isinstance(planes[Plane.WEIGHTS], Columns)
    assert isinstance(appends, Bars)
    wanted = [i for i in range(8000) if i % 40 == 7 and i * 100 + 90 > visible.start and i * 100 < visible.end]
    assert appends.event.tolist() == wanted
    assert int(appends.start[0]) < visible.start


def test_between_single_events_and_levels_nothing_is_gathered_whole(scene: Scene) -> None:
    whole = TimeRange(*scene.trace.span)
    for share in (0.5, 0.3, 0.2, 0.15):
        part = TimeRange(whole.start, whole.start + round(whole.duration * share))
        content = planes_in_sight(scene, part, 1000)[Plane.PATH]
        count = ids_in_sight(scene.trace, np.array([0]), part, np.inf)
        assert count is not None
        assert isinstance(content, Columns) == (len(count) > 1250)
