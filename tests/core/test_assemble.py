"""Lanes: nothing dropped, nothing shortened, nesting as a stack would give it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracescope.core.assemble import lay_out
from tracescope.core.category import TrackKind
from tracescope.core.trace import EventTable, Lanes, Trace, TraceMeta, Track

HOST = Track(TrackKind.HOST_THREAD, "host")
STREAM = Track(TrackKind.DEVICE_STREAM, "stream 7")

intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=25)


def laid_out(events: list[tuple[int, int]], track: Track) -> tuple[Lanes, Trace, np.ndarray]:
    start = np.array([s for s, _ in events], np.int64)
    duration = np.array([d for _, d in events], np.int64)
    zero = np.zeros(len(events), np.int64)
    laid = lay_out(zero, start, duration, [track])
    table = EventTable(
        start[laid.order], duration[laid.order], zero, zero, zero, zero, zero - 1, zero - 1, zero, zero, zero
    )
    return laid.lanes, Trace(TraceMeta(), (track,), laid.lanes, table, ("event",)), laid.order


@given(intervals)
def test_no_event_is_lost_or_changed_whatever_overlaps(events: list[tuple[int, int]]) -> None:
    for track in (HOST, STREAM):
        _, trace, order = laid_out(events, track)
        rows = sorted(zip(trace.events.start.tolist(), trace.events.duration.tolist(), strict=True))
        assert rows == sorted(events)
        assert sorted(order.tolist()) == list(range(len(events)))


def test_nested_host_events_lie_one_deeper_than_their_container() -> None:
    lanes, trace, _ = laid_out([(0, 100), (10, 20), (12, 5), (40, 10), (50, 50)], HOST)
    depth = {int(trace.events.start[i]): int(lanes.depth[lanes.of_event(i)]) for i in range(5)}
    assert depth == {0: 0, 10: 1, 12: 2, 40: 1, 50: 1}


def test_a_thousand_levels_keep_their_depth() -> None:
    lanes, _, _ = laid_out([(i, 4000 - 2 * i) for i in range(1000)], HOST)
    assert len(lanes) == 1000
    assert int(lanes.depth.max()) == 999


def test_a_partial_overlap_on_a_stream_goes_to_a_sub_lane_and_is_marked() -> None:
    events = [(100_000, 60_000), (150_000, 80_000), (230_000, 10_000)]
    laid = lay_out(np.zeros(3, np.int64), *(np.array(c, np.int64) for c in zip(*events, strict=True)), [STREAM])
    assert laid.lanes.depth.tolist() == [0, 1]
    assert int(laid.overlapping.sum()) == 1


@given(intervals)
def test_sub_lanes_of_a_stream_are_the_first_that_are_free(events: list[tuple[int, int]]) -> None:
    events = sorted(events, key=lambda e: (e[0], -e[1]))
    laid = lay_out(
        np.zeros(len(events), np.int64), *(np.array(c, np.int64) for c in zip(*events, strict=True)), [STREAM]
    )
    found = {int(row): int(laid.lanes.depth[laid.lanes.of_event(i)]) for i, row in enumerate(laid.order)}
    ends: list[int] = []
    for row, (start, duration) in enumerate(events):
        lane = next((k for k, end in enumerate(ends) if end <= start), len(ends))
        ends[lane : lane + 1] = [start + duration]
        assert found[row] == lane


def test_seventy_thousand_kernels_on_top_of_each_other_are_laid_out() -> None:
    start = np.arange(70_000)
    laid = lay_out(np.zeros_like(start), start, np.full_like(start, 1_000_000), [STREAM])
    assert len(laid.lanes) == 70_000
