"""The pyramid holds exact time sums, keeps the floor, never lets an event vanish and survives a round trip."""

from fractions import Fraction

import numpy as np
import pytest

from tests.kit.traces import FAST, kernel, make_trace, random_stream
from tracescope.core.category import Category
from tracescope.core.hardware import Basis
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.lod import binning
from tracescope.lod.binning import COARSER_BY, Spans, binned
from tracescope.lod.fold import columns_from
from tracescope.lod.planes import Plane
from tracescope.lod.pyramid import SMALLEST_ROW, Pyramid, build_pyramid


@pytest.fixture(scope="module")
def trace() -> Trace:
    return random_stream(9000, origin=1_767_000_000_000_000_000)


@pytest.fixture(scope="module")
def pyramid(trace: Trace) -> Pyramid:
    return build_pyramid(trace, FAST)


def slow_busy(start: np.ndarray, duration: np.ndarray, low: int, high: int) -> int:
    return sum(max(0, min(s + d, high) - max(s, low)) for s, d in zip(start.tolist(), duration.tolist(), strict=True))


@pytest.mark.parametrize("piece", [16, 64, 1 << 15])
def test_busy_sums_are_exact_whatever_the_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    duration = rng.integers(0, 50, 300)
    start = 10**18 + np.cumsum(duration + rng.integers(0, 20, 300)) - duration
    kind = rng.integers(0, 2, 300).astype(np.uint8)
    monkeypatch.setattr(binning, "PIECE", piece)
    end = int((start + duration).max())
    bins = binned(Spans(start, duration, kind, duration // 2), 10**18, end - 10**18, 6).fine
    assert len(bins) == ((end - 10**18 - 1) >> 6) + 1
    for b in range(len(bins)):
        low, high = 10**18 + (b << 6), 10**18 + ((b + 1) << 6)
        exact = slow_busy(start, duration, low, high)
        by_kind = [slow_busy(start[kind == k], duration[kind == k], low, high) for k in (0, 1)]
        assert bins[b, 1] == max(round(exact * 255 / 64), exact > 0)
        assert bins[b, 2] == min(round(slow_busy(start, duration // 2, low, high) * 255 / 64), bins[b, 1])
        if abs(by_kind[0] - by_kind[1]) > 1:  # an event without length counts as one
            assert bins[b, 0] == int(np.argmax(by_kind))


def test_finest_level_matches_a_slow_count(trace: Trace, pyramid: Pyramid) -> None:
    row = pyramid.row_of_lane(0)
    bins, shift = pyramid.fine_bins(row), int(pyramid.row_shift[row])
    start, duration = trace.events.start, trace.events.duration
    for b in (0, 1, 100, len(bins) // 2, len(bins) - 1):
        low = pyramid.origin + (b << shift)
        exact = slow_busy(start, duration, low, low + (1 << shift)) / (1 << shift) * 255
        assert abs(float(bins[b, 1]) - exact) <= 1
        assert bins[b, 2] <= bins[b, 1]


def test_coarser_levels_keep_the_shares_of_every_kind_and_of_the_floor(trace: Trace, pyramid: Pyramid) -> None:
    row = pyramid.row_of_lane(0)
    shift = int(pyramid.row_shift[row]) + COARSER_BY
    bins = pyramid.coarse_bins(row, shift)
    assert bins is not None
    kinds = trace.events.category
    for b in (0, 3, len(bins) // 2):
        low = pyramid.origin + (b << shift)
        for kind in range(6):
            own = kinds == kind
            if kind == 3:
                own |= kinds == Category.OTHER
            exact = slow_busy(trace.events.start[own], trace.events.duration[own], low, low + (1 << shift))
            assert abs(float(bins[b, kind]) - exact / (1 << shift) * 255) <= 1
    assert (bins[:, 6] <= bins[:, :6].astype(int).sum(axis=1) + 1).all()
    assert bins[:, 6].any()


def test_the_whole_trace_folded_keeps_total_busy_and_floor_time(trace: Trace, pyramid: Pyramid) -> None:
    whole = TimeRange(*trace.span)
    for width in (7, 100, 900):
        columns = columns_from(pyramid, pyramid.row_of_lane(0), whole, width)
        assert columns is not None
        assert float(columns.busy.max()) <= 1 + 1e-6
        assert (columns.floor <= columns.busy + 1e-6).all()
        busy = trace.events.duration.sum() / whole.duration
        assert columns.busy.mean() == pytest.approx(busy, abs=0.004)


def test_an_instant_is_never_lost() -> None:
    made = [kernel(i * 1000, 0 if i == 2500 else 1) for i in range(5000)]
    trace = make_trace([e for e in made if e.duration == 0 or e.start > 3_000_000 or e.start < 2_000_000])
    pyramid = build_pyramid(trace, FAST)
    columns = columns_from(pyramid, pyramid.row_of_lane(0), TimeRange(0, 5_000_000), 100)
    assert columns is not None
    assert columns.busy[50] > 0
    assert columns.busy[45] == 0


def test_small_rows_need_no_levels() -> None:
    pyramid = build_pyramid(random_stream(SMALLEST_ROW - 1), FAST)
    assert len(pyramid.row_kind) == 0
    assert pyramid.row_of_plane(Plane.PATH) == -1


def test_without_a_bandwidth_there_is_no_floor_share(trace: Trace) -> None:
    pyramid = build_pyramid(trace, Basis())
    assert pyramid.bandwidth_bytes_per_s == 0
    rows = trace.events.category == Category.WEIGHT_READ
    plane = pyramid.fine_bins(pyramid.row_of_plane(Plane.PATH))
    assert rows.any()
    assert not plane[:, 2].any()


def test_arrays_round_trip(pyramid: Pyramid) -> None:
    arrays = pyramid.to_arrays()
    assert all(a.ndim in (1, 2) and a.dtype.kind in "iu" for a in arrays.values())
    again = Pyramid.from_arrays(arrays)
    assert again.to_arrays().keys() == arrays.keys()
    for name, array in again.to_arrays().items():
        assert np.array_equal(array, arrays[name]), name


@pytest.mark.parametrize("name", ["basis", "row_kind", "fine_offset", "fine", "level_row", "coarse"])
def test_damaged_arrays_are_refused(pyramid: Pyramid, name: str) -> None:
    arrays = dict(pyramid.to_arrays())
    arrays[name] = arrays[name][:-1]
    with pytest.raises((ValueError, TypeError)):
        Pyramid.from_arrays(arrays)
    del arrays[name]
    with pytest.raises(ValueError, match="incomplete"):
        Pyramid.from_arrays(arrays)


def test_size_stays_near_four_bytes_an_event() -> None:
    trace = random_stream(60_000)
    pyramid = build_pyramid(trace, FAST)
    lane = pyramid.row_of_lane(0)
    fine = pyramid.fine_bins(lane).nbytes
    coarse = sum(
        pyramid.coarse[int(a) : int(b)].nbytes
        for r, a, b in zip(pyramid.level_row, pyramid.level_offset[:-1], pyramid.level_offset[1:], strict=True)
        if r == lane
    )
    assert Fraction(fine + coarse, len(trace.events)) <= Fraction(4)


def test_a_file_without_lists_of_members_still_opens(trace: Trace, pyramid: Pyramid) -> None:
    arrays = {name: array for name, array in pyramid.to_arrays().items() if not name.startswith("member")}
    older = Pyramid.from_arrays(arrays)
    assert older.members_of(Plane.KV_APPENDS) is None
    assert older.fits(trace)


def test_a_pyramid_of_another_trace_does_not_fit(trace: Trace, pyramid: Pyramid) -> None:
    assert pyramid.fits(trace)
    assert Pyramid.from_arrays(pyramid.to_arrays()).fits(trace)
    assert not pyramid.fits(random_stream(9000))
    wrong = dict(pyramid.to_arrays())
    assert len(wrong["members"])
    wrong["members"] = wrong["members"] + np.uint32(len(trace.events))
    assert not Pyramid.from_arrays(wrong).fits(trace)
