"""Bytes are spread over the time of their event, in every plane on one grid: no column is above the roof."""

from dataclasses import replace

import numpy as np
import pytest

from tests.kit.pictures import llama
from tests.kit.traces import FAST, kernel, make_trace
from tracescope.core.category import Category
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.lod.fold import Scene
from tracescope.lod.moved import EXACT_PER_PX, moved_in_sight, spread_over
from tracescope.lod.planes import PlaneMembers, plane_floors
from tracescope.lod.pyramid import build_pyramid

KV = Category.KV_READ


def scene_of(trace: Trace) -> Scene:
    return Scene(trace, build_pyramid(trace, FAST), PlaneMembers.of(trace.work), plane_floors(trace.work, FAST))


def test_amounts_are_spread_evenly_and_add_up() -> None:
    start, duration = np.array([10, 30, 35, 50]), np.array([20, 10, 10, 0])
    amounts = np.array([10.0, 4.0, 2.0, 7.0])
    edges = np.array([0, 20, 30, 40, 50])
    found = spread_over(start, duration, [amounts], edges)[0]
    assert found == pytest.approx([5 / 20, 5 / 10, (4 + 1) / 10, 1 / 10])
    assert found @ np.diff(edges) == pytest.approx(16)
    inside = spread_over(start, duration, [amounts], np.array([12, 13, 29]))[0]
    assert inside == pytest.approx([0.5, 0.5])


def test_part_of_an_op_shows_the_rate_of_the_op() -> None:
    scene = scene_of(make_trace([kernel(0, 1000, weight_read=400_000), kernel(1000, 500, KV, kv_read=500_000)]))
    for visible in (TimeRange(0, 1000), TimeRange(900, 950), TimeRange(10, 12)):
        moved = moved_in_sight(scene, visible, 2)
        assert moved.share[0] == pytest.approx([0.4, 0.4])
        assert moved.unknown is not None
        assert not moved.unknown.any()


def test_time_of_unknown_bytes_is_told() -> None:
    scene = scene_of(make_trace([kernel(0, 100, weight_read=1000), kernel(100, 100, unknown=True)]))
    moved = moved_in_sight(scene, TimeRange(0, 200), 4)
    assert moved.unknown is not None
    assert moved.unknown.tolist() == [0, 0, 1, 1]


def alternating(count: int) -> Trace:
    """Weights and KV by turns, each at the roof, and short appends: a sparse plane beside two dense ones."""
    made, at = [], 0
    for n in range(count):
        took = (900, 700, 30)[n % 3] + n % 7
        amounts = ({"weight_read": took * 1000}, {"kv_read": took * 1000}, {"kv_append": took * 1000})[n % 3]
        made.append(kernel(at, took, (Category.WEIGHT_READ, KV, Category.KV_APPEND)[n % 3], **amounts))
        at += took
    return make_trace(made)


@pytest.mark.parametrize("count", [3000, 60_000])
@pytest.mark.parametrize("width", [37, 700, 1117])
def test_columns_of_folded_planes_sum_to_at_most_the_roof(count: int, width: int) -> None:
    scene = scene_of(alternating(count))
    low, high = scene.trace.span
    for part in (1, 0.61, 0.2):
        visible = TimeRange(low + (high - low) // 7, low + (high - low) // 7 + int((high - low) * part))
        total = moved_in_sight(scene, visible, width).share[:3].sum(axis=0)
        assert total.max() <= 1.01, "a level tells shares to 1/255"
        seen = np.linspace(visible.start, visible.end, width + 1)[1:] < high - (high - low) // 100
        assert total[seen].min() > 0.97, "and there is no wave under it either"


def test_levels_and_events_tell_the_same(qapp: object) -> None:
    scene = scene_of(alternating(60_000))
    visible, width = TimeRange(*scene.trace.span), 300
    folded = moved_in_sight(scene, visible, width)
    assert folded.unknown is None
    assert len(scene.trace.events) > EXACT_PER_PX * width
    exact = moved_in_sight(scene, visible, len(scene.trace.events) // EXACT_PER_PX // 300 * 300 + 300)
    assert exact.unknown is not None
    pooled = exact.share.reshape(4, width, -1).mean(axis=2)
    # The last bin reaches over the end of the trace.
    assert np.abs(pooled - folded.share)[:, :-1].max() < 0.02


def test_a_realistic_run_stays_under_its_roof(qapp: object) -> None:
    document = llama(steps=40)
    for width in (300, 900):
        for visible in (document.whole_range, document.step_range(3), document.initial_view().visible):
            assert document.moved(visible, width).share[:3].sum(axis=0).max() <= 1.01


def test_steps_of_unknown_bytes_are_blank_in_the_folded_form(qapp: object) -> None:
    document = llama(steps=40)
    work = document.trace.work
    hidden = replace(work, kv_read=np.where(work.kv_read > 0, -1, work.kv_read))
    unknown = type(document)(replace(document.trace, work=hidden), document.basis, document.path)
    visible, width = document.whole_range, 300
    assert unknown.moved(visible, width).unknown is None
    assert unknown.unknown_columns(visible, width).mean() > 0.9
    assert not document.unknown_columns(visible, width).any()
