"""Every instant of a step belongs to one event or to nobody, and gaps add up exactly."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.traces import (
    BASIS,
    NO_BASIS,
    SECOND_STREAM,
    SECOND_THREAD,
    STREAM,
    THREAD,
    Ev,
    St,
    make_trace,
)
from tracescope.analysis.breakdown import break_down, row_times
from tracescope.analysis.exposed_time import idle_ns, step_rows
from tracescope.core.category import Category, TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.ownership import union_of
from tracescope.core.trace import Trace

WEIGHTS = Category.WEIGHT_READ


def exposed_by_start(trace: Trace, step: int = 0) -> dict[int, int]:
    broken = break_down(trace, BASIS, step)
    return dict(zip(trace.events.start[broken.events].tolist(), broken.exposed_ns.tolist(), strict=True))


def slow_exposed(trace: Trace, step: int) -> tuple[dict[int, int], int]:
    """Exposed time of each event id and the idle time, one nanosecond at a time, straight from the definition."""
    begin = int(trace.steps.start[step])
    end = begin + int(trace.steps.duration[step])
    e = trace.events
    ids = [i for i in range(len(e)) if e.step[i] == step]
    nested = all(t.kind is TrackKind.HOST_THREAD for t in trace.tracks)
    share = dict.fromkeys(ids, 0)
    idle = 0
    for t in range(begin, end):
        running = [i for i in ids if e.start[i] <= t < e.end[i]]
        if nested:
            deepest: dict[int, int] = {}
            for i in running:
                lane = trace.lanes.of_event(i)
                track = int(trace.lanes.track[lane])
                held = deepest.get(track)
                if held is None or trace.lanes.depth[lane] > trace.lanes.depth[trace.lanes.of_event(held)]:
                    deepest[track] = i
            running = list(deepest.values())
        if running:
            share[min(running, key=lambda i: (e.start[i], e.end[i], i))] += 1
        else:
            idle += 1
    return share, idle


def test_the_earliest_started_event_owns_an_overlap() -> None:
    events = [Ev(0, 10), Ev(5, 10), Ev(7, 3), Ev(20, 5)]
    broken = break_down(make_trace(events, [St(0, 25)]), BASIS, 0)
    assert broken.exposed_ns.tolist() == [10, 5, 0, 5]
    assert broken.idle_ns == 5
    assert [a.tolist() for a in broken.idle_spans] == [[15], [5]]


def test_two_streams_share_one_step() -> None:
    events = [Ev(0, 10), Ev(2, 4, track=1), Ev(9, 6, track=1)]
    trace = make_trace(events, [St(0, 20)], (STREAM, SECOND_STREAM))
    assert exposed_by_start(trace) == {0: 10, 2: 0, 9: 5}


def test_operators_on_a_host_thread_count_their_self_time() -> None:
    events = [Ev(0, 100), Ev(10, 20), Ev(12, 5), Ev(40, 10)]
    assert exposed_by_start(make_trace(events, [St(0, 100)], (THREAD,))) == {0: 70, 10: 15, 12: 5, 40: 10}


def test_between_threads_the_earlier_started_innermost_operator_owns_the_instant() -> None:
    events = [Ev(0, 100), Ev(20, 30), Ev(10, 20, track=1)]
    trace = make_trace(events, [St(0, 100)], (THREAD, SECOND_THREAD))
    # 0-20 outer; from 20 the other thread's operator (start 10) is older than the inner one (start 20) until 30.
    assert exposed_by_start(trace) == {0: 70, 20: 20, 10: 10}


def test_a_cluster_before_the_step_counts_nothing_inside_it() -> None:
    events = [Ev(0, 5), Ev(90, 20), Ev(110, 10)]
    broken = break_down(make_trace(events, [St(100, 20)]), BASIS, 0)
    assert broken.exposed_ns.tolist() == [0, 10, 10]
    assert broken.idle_ns == 0


def test_gaps_no_longer_than_the_clock_count_as_idle_but_are_not_listed() -> None:
    broken = break_down(make_trace([Ev(0, 5), Ev(6, 5), Ev(14, 1)], [St(0, 20)]), BASIS, 0)
    assert broken.idle_ns == 1 + 3 + 5
    assert [a.tolist() for a in broken.idle_spans] == [[11, 15], [3, 5]]


def test_a_step_without_events_is_idle() -> None:
    broken = break_down(make_trace([Ev(0, 5)], [St(0, 5), St(10, 7)]), BASIS, 1)
    assert (broken.idle_ns, broken.floor_ops_ns, broken.ops_without_floor) == (7, 0, 0)
    assert [a.tolist() for a in broken.idle_spans] == [[10], [7]]


def test_floors_and_gaps_of_known_events() -> None:
    events = [
        Ev(0, 100, category=WEIGHTS, weight_read=80),
        Ev(100, 30, unknown=True),
        Ev(130, 20, category=Category.KV_READ, kv_read=25),
    ]
    broken = break_down(make_trace(events, [St(0, 150)]), BASIS, 0)
    assert broken.floor_ns.tolist() == [80, 0, 25]
    assert broken.floor_known.tolist() == [True, False, True]
    assert broken.gap_ns.tolist() == [20, 0, -5]
    assert (broken.floor_ops_ns, broken.ops_without_floor, broken.step_gap_ns) == (105, 1, 15)
    assert broken.unknown_ns == 30


def test_without_a_bandwidth_no_floor_is_known() -> None:
    events = [Ev(0, 100, category=WEIGHTS, weight_read=80), Ev(100, 30)]
    broken = break_down(make_trace(events, [St(0, 130)]), NO_BASIS, 0)
    assert broken.floor_known.tolist() == [False, False]
    assert (broken.ops_without_floor, broken.unknown_ns, broken.step_gap_ns) == (2, 130, 0)


def test_an_unknown_step_is_refused_with_what_there_is() -> None:
    with pytest.raises(TraceError, match="no step 3: the trace has steps 0 to 0"):
        break_down(make_trace([Ev(0, 5)], [St(0, 5)]), BASIS, 3)


random_events = st.lists(
    st.builds(
        Ev,
        start=st.integers(0, 40),
        duration=st.integers(0, 15),
        track=st.integers(0, 1),
        step=st.integers(0, 1),
        weight_read=st.integers(-1, 12),
        category=st.just(WEIGHTS),
    ),
    max_size=14,
)
windows = st.tuples(st.integers(0, 15), st.integers(0, 40), st.integers(0, 20))


@settings(max_examples=150, deadline=None)
@given(random_events, windows, st.booleans())
def test_exposed_time_is_what_the_definition_says_nanosecond_by_nanosecond(
    events: list[Ev], window: tuple[int, int, int], host: bool
) -> None:
    tracks = (THREAD, SECOND_THREAD) if host else (STREAM, SECOND_STREAM)
    first, length, second = window
    trace = make_trace(events, [St(first, length), St(first + second, 30)], tracks)
    together = row_times(trace, BASIS, np.array([0, 1]))
    idle = idle_ns(step_rows(trace, np.array([0, 1]), in_order=False))
    for step in (0, 1):
        broken = break_down(trace, BASIS, step)
        share, slow_idle = slow_exposed(trace, step)
        assert dict(zip(broken.events.tolist(), broken.exposed_ns.tolist(), strict=True)) == share
        assert broken.idle_ns == slow_idle == idle[step]
        low, high = together.rows.offset[step : step + 2]
        assert together.rows.ids[low:high].tolist() == broken.events.tolist()
        assert together.exposed[low:high].tolist() == broken.exposed_ns.tolist()
        assert together.floor[low:high].tolist() == broken.floor_ns.tolist()
        assert broken.gap_ns.sum() + broken.idle_ns == broken.step_gap_ns
        whole = broken.duration_ns - max(0, broken.floor_ops_ns)
        assert broken.step_gap_ns + broken.unknown_ns == whole
        assert broken.floor_ops_ns in {int(broken.floor_ns.sum()), -1}
        assert broken.events.tolist() == trace.step_events(step).tolist()


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=12))
def test_the_union_of_intervals_counts_every_covered_instant_once(spans: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in spans], np.int64)
    end = np.array([s + d for s, d in spans], np.int64)
    assert union_of(start, end) == len({t for s, d in spans for t in range(s, s + d)})


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(10**9, 10**13))
def test_floors_are_rounded_as_the_arithmetic_rounds_them(bytes_read: list[int], bandwidth: int) -> None:
    basis = Basis(bandwidth_bytes_per_s=bandwidth)
    events = [Ev(i, 1, category=WEIGHTS, weight_read=count) for i, count in enumerate(bytes_read)]
    broken = break_down(make_trace(events, [St(0, len(events))]), basis, 0)
    exact = list(accumulate(Fraction(count * 10**9, bandwidth) for count in bytes_read))
    assert all(
        abs(total - wanted) <= Fraction(1, 2) + Fraction(1, 10**6)
        for total, wanted in zip(np.cumsum(broken.floor_ns).tolist(), exact, strict=True)
    )


def test_a_bandwidth_without_its_unit_is_refused() -> None:
    events = [Ev(0, 1, category=WEIGHTS, weight_read=10**12)]
    with pytest.raises(TraceError, match="would need 1,000,000,000,000 s"):
        break_down(make_trace(events, [St(0, 1)]), Basis(bandwidth_bytes_per_s=1), 0)
