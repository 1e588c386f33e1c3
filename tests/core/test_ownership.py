"""Every instant in which anything runs is owned by exactly one event: the rule against a walk over each nanosecond."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracescope.core.assemble import lay_out
from tracescope.core.category import TrackKind
from tracescope.core.ownership import owned_pieces
from tracescope.core.trace import Track

spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(0, 1)), min_size=1, max_size=12)


def owner_at(time: int, start: list[int], end: list[int], depth: list[int], track: list[int]) -> int:
    """The owner of ``[time, time + 1)`` by the definition, -1 for nobody."""
    innermost: dict[int, int] = {}
    for row in range(len(start)):
        if start[row] <= time < end[row]:
            held = innermost.get(track[row])
            if held is None or depth[row] > depth[held]:
                innermost[track[row]] = row
    return min(innermost.values(), default=-1)


@settings(max_examples=150, deadline=None)
@given(spans, st.booleans())
def test_each_instant_has_the_owner_that_the_rule_names(events: list[tuple[int, int, int]], nested: bool) -> None:
    start, duration, track = (np.array(column, np.int64) for column in zip(*events, strict=True))
    kind = TrackKind.HOST_THREAD if nested else TrackKind.DEVICE_STREAM
    laid = lay_out(track, start, duration, [Track(kind, "a"), Track(kind, "b")])
    lane = np.repeat(np.arange(len(laid.lanes)), np.diff(laid.lanes.offset))
    depth, place = laid.lanes.depth[lane].astype(np.int64), laid.lanes.track[lane].astype(np.int64)
    start, end = start[laid.order], (start + duration)[laid.order]
    order = np.lexsort((end, start))
    start, end, place = start[order], end[order], place[order]
    depth = depth[order] if nested else np.zeros(len(order), np.int64)
    begin, stop, row = owned_pieces(start, end, depth, place)
    long = stop > begin
    assert (begin[long][1:] >= stop[long][:-1]).all()
    found = {t: r for b, s, r in zip(begin.tolist(), stop.tolist(), row.tolist(), strict=True) for t in range(b, s)}
    columns = start.tolist(), end.tolist(), depth.tolist(), place.tolist()
    if nested:
        expected = {t: owner_at(t, *columns) for t in range(45)}
    else:
        alone = (*columns[:2], columns[2], list(range(len(order))))  # sub-lanes are no nesting: the earliest event owns
        expected = {t: owner_at(t, *alone) for t in range(45)}
    assert found == {t: r for t, r in expected.items() if r >= 0}
