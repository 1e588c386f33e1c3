"""Many lanes fetched at once hold what each holds alone."""

import numpy as np
import pytest

from tests.kit.many_lanes import DEPTHS, TRACKS, many_lanes
from tracescope.core.hardware import Basis
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.lod.fold import Columns, Scene, columns_from, ids_in_sight, lane_in_sight
from tracescope.lod.plain_lanes import plain_lanes_in_sight
from tracescope.lod.planes import PlaneMembers, plane_floors
from tracescope.lod.pyramid import SMALLEST_ROW, Pyramid, build_pyramid

pytestmark = pytest.mark.slow

BASIS = Basis()
WIDTH = 400


@pytest.fixture(scope="module")
def trace() -> Trace:
    return many_lanes(TRACKS * DEPTHS * SMALLEST_ROW)


@pytest.fixture(scope="module")
def pyramid(trace: Trace) -> Pyramid:
    return build_pyramid(trace, BASIS)


@pytest.fixture(scope="module")
def scene(trace: Trace, pyramid: Pyramid) -> Scene:
    return Scene(trace, pyramid, PlaneMembers.of(trace.work), plane_floors(trace.work, BASIS))


@pytest.mark.parametrize("share", [1e-5, 1e-3, 0.01, 0.03])
def test_bars_of_lanes_equal_those_of_each_lane(scene: Scene, share: float) -> None:
    first, last = scene.trace.span
    start = first + (last - first) // 3
    visible = TimeRange(start, start + int((last - first) * share))
    lanes = np.array([5, 0, 17, 100, 191])
    tracks = plain_lanes_in_sight(scene, lanes, visible, WIDTH)
    assert not len(tracks.folded)
    for position, lane in enumerate(lanes.tolist()):
        expected = ids_in_sight(scene.trace, np.array([lane]), visible, np.inf)
        assert expected is not None
        assert tracks.bars.event[tracks.row == position].tolist() == expected.tolist()


@pytest.mark.parametrize("share", [0.2, 0.7, 1.0])
def test_folded_lanes_equal_the_columns_of_each_lane(scene: Scene, share: float) -> None:
    first, last = scene.trace.span
    visible = TimeRange(first, first + int((last - first) * share))
    lanes = np.arange(40)
    tracks = plain_lanes_in_sight(scene, lanes, visible, WIDTH)
    assert len(tracks.folded)
    for n, position in enumerate(tracks.folded.tolist()):
        row = scene.pyramid.row_of_lane(position)
        single = columns_from(scene.pyramid, row, visible, WIDTH)
        assert single is not None
        for k, kind in enumerate(tracks.kinds):
            assert tracks.share[k, n] == pytest.approx(single.share[kind], abs=1e-4)
        assert tracks.share[:, n].sum() == pytest.approx(single.busy.sum(), rel=1e-3)


def test_no_lane_is_lost_between_bars_and_levels(scene: Scene) -> None:
    lanes = np.arange(TRACKS * DEPTHS)
    first, last = scene.trace.span
    for share in (0.001, 0.05, 0.2, 0.5, 1.0):
        visible = TimeRange(first, first + int((last - first) * share))
        tracks = plain_lanes_in_sight(scene, lanes, visible, WIDTH)
        shown = set(tracks.row.tolist()) | set(tracks.folded.tolist())
        for lane in range(0, len(lanes), 11):
            content = lane_in_sight(scene, lane, visible, WIDTH)
            if isinstance(content, Columns) or len(content):
                assert lane in shown
