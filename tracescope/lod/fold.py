"""What of a row is in sight: its events as exact bars where they are few, else their shares per pixel column."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import KINDS
from tracescope.core.columns import I64, U8, U32, Bool
from tracescope.core.ownership import owned_pieces
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.lod.planes import (
    KIND_INDEX,
    MUTED,
    PLANES,
    Plane,
    PlaneFloors,
    PlaneMembers,
)
from tracescope.lod.pyramid import Pyramid, finds_level
from tracescope.lod.rescale import SAME_FLOORS, FloorScales

F32 = NDArray[np.float32]

_OF_MEMORY: Final = (Plane.WEIGHTS, Plane.KV_READS, Plane.KV_APPENDS)
"""Lanes of a part of what an event moves: its floor may be longer than theirs."""

_KINDS: Final = len(KINDS)
BARS_PER_PX: Final = 1.25
"""Up to this many events a pixel they are drawn one by one."""
FEW_LANES: Final = 32
"""Up to this many lanes one search each is faster than one search over all of them at once."""


@dataclass(frozen=True, eq=False, slots=True)
class Bars:
    """Events in sight in time order: ids, ``[start, end)`` and floor in ns, whether the floor is known, kind, muted.

    ``kind`` indexes ``KINDS``. In the path one event may appear in several pieces. ``other`` int64 ns: what the floor
    of the whole event needs beyond ``floor``, for the bytes and FLOPs of other lanes; None: nothing.
    """

    event: I64
    start: I64
    end: I64
    floor: I64
    known: Bool
    kind: U8
    muted: Bool
    other: I64 | None = None

    def __len__(self) -> int:
        return len(self.event)

    def taken(self, rows: NDArray[np.integer] | Bool) -> "Bars":
        """The same columns with only these rows."""
        return Bars(
            self.event[rows], self.start[rows], self.end[rows], self.floor[rows], self.known[rows],
            self.kind[rows], self.muted[rows], None if self.other is None else self.other[rows],
        )  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """Shares of the time of each pixel column: ``share`` float32[6, width] by kind, ``floor`` float32[width] of all.

    All are 0 to 1 of the column's own time; the shares of one column sum to at most 1, the floor to at most that sum.
    ``unknown`` float32[width]: the part of the busy time of which no floor is known (not told apart in stored levels).
    ``other`` float32[width]: the part that the floors of the same events need for the bytes and FLOPs of other lanes,
    which is neither this lane's floor nor above it; None: nothing.
    """

    share: F32
    floor: F32
    unknown: F32
    other: F32 | None = None

    @property
    def busy(self) -> F32:
        """The share of each column in which anything ran."""
        total: F32 = self.share.sum(axis=0)
        return total


Content = Bars | Columns


def visible_rows(start: I64, low: I64, high: I64, visible: TimeRange) -> tuple[I64, I64]:
    """First and one-past-last event of many lanes at once that may intersect ``visible``; one binary search for all.

    Lane i owns ``low[i]:high[i]`` of ``start``. Events of a lane do not overlap, so that of the earlier ones only the
    last can still be running.
    """
    first = np.maximum(_lower_bound(start, low, high, visible.start) - 1, low)
    return first, _lower_bound(start, first, high, visible.end)


def _lower_bound(values: I64, low: I64, high: I64, wanted: int) -> I64:
    if len(low) <= FEW_LANES:
        found = [
            int(a + np.searchsorted(values[a:b], wanted)) for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ]
        return np.array(found, np.int64)
    low, high = low.copy(), high.copy()
    longest = int((high - low).max(initial=0))
    for _ in range(longest.bit_length()):
        open_ = low < high
        middle = (low + high) >> 1
        less = open_ & (values[np.where(open_, middle, 0)] < wanted)
        low = np.where(less, middle + 1, low)
        high = np.where(open_ & ~less, middle, high)
    return low


def ids_in_sight(trace: Trace, lanes: NDArray[np.integer], visible: TimeRange, most: float) -> I64 | None:
    """Ids of the events of ``lanes`` that intersect ``visible``, by (start, end, id); None if more than ``most``."""
    events = trace.events
    offset = trace.lanes.offset
    first, last = visible_rows(events.start, offset[lanes], offset[np.asarray(lanes) + 1], visible)
    count = last - first
    if not len(count) or int(count.sum()) > most:
        return np.empty(0, np.int64) if not len(count) else None
    ids = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    start = events.start[ids]
    end = start + events.duration[ids]
    seen = (end > visible.start) | (start >= visible.start)
    ids, start, end = ids[seen], start[seen], end[seen]
    return ids[np.lexsort((ids, end, start))] if len(lanes) > 1 else ids


def lanes_of(trace: Trace, ids: I64) -> I64:
    """The lane of each of a few events, int64, without a column for all of them."""
    return np.searchsorted(trace.lanes.offset, ids, side="right") - 1


def bars_of(trace: Trace, ids: I64, plane: Plane, floors: PlaneFloors) -> Bars:
    """The events ``ids`` (in time order) as bars, with the floor of ``plane``."""
    events = trace.events
    start = events.start[ids]
    floor, known = floors.of(plane, events.work[ids])
    category = events.category[ids]
    kind = KIND_INDEX[category] if plane is Plane.PATH else np.full(len(ids), plane - 1, np.uint8)
    other = None
    if plane in _OF_MEMORY:
        total, priced = floors.of(Plane.PATH, events.work[ids])
        beyond = np.where(known & priced, np.maximum(0, total - floor), 0)
        other = beyond if beyond.any() else None
    return Bars(ids, start, start + events.duration[ids], floor, known, kind, MUTED[category], other)


def path_bars(trace: Trace, ids: I64, floors: PlaneFloors) -> Bars:
    """The path through the device events ``ids``: each for the time in which it is the one that counts."""
    whole = bars_of(trace, ids, Plane.PATH, floors)
    lane = lanes_of(trace, ids)
    depth = trace.lanes.depth[lane] if trace.nested else np.zeros(len(ids), np.uint16)
    begin, stop, row = owned_pieces(whole.start, whole.end, depth, trace.lanes.track[lane])
    return Bars(
        whole.event[row], begin, stop, np.minimum(whole.floor[row], _floor_limit(whole, row, begin, stop)),
        whole.known[row], whole.kind[row], whole.muted[row],
    )  # fmt: skip


def _floor_limit(whole: Bars, row: I64, begin: I64, stop: I64) -> I64:
    """A piece of an event carries no more floor than its length, unless it is the whole event (then it may show that
    the event is faster than its floor)."""
    complete = (begin == whole.start[row]) & (stop == whole.end[row])
    return np.where(complete, np.iinfo(np.int64).max, stop - begin)


@dataclass(frozen=True, eq=False, slots=True)
class Scene:
    """A trace ready to be drawn: its pyramid, which events lie in which plane, and the floors.

    ``scales``: what the pyramid's floor shares are multiplied by, where it was priced on another basis.
    """

    trace: Trace
    pyramid: Pyramid
    members: PlaneMembers
    floors: PlaneFloors
    scales: FloorScales = SAME_FLOORS


def planes_in_sight(scene: Scene, visible: TimeRange, width: int) -> dict[Plane, Content]:
    """The content of every plane over ``width`` pixel columns."""
    lanes = np.flatnonzero(scene.trace.on_device)
    ids = ids_in_sight(scene.trace, lanes, visible, BARS_PER_PX * width)
    if ids is not None:
        return _exact_planes(scene, ids, PLANES)
    found: dict[Plane, Content] = {}
    missing: list[Plane] = []
    running = ids_in_sight(scene.trace, lanes, TimeRange(visible.start, visible.start + 1), np.inf)
    assert running is not None
    for plane in PLANES:
        few = _sparse_plane(scene, plane, visible, BARS_PER_PX * width, running)
        if few is not None:
            found[plane] = few
            continue
        row = scene.pyramid.row_of_plane(plane)
        columns = columns_from(scene.pyramid, row, visible, width, floor_scale=scene.scales.of_plane(plane))
        if columns is None:
            missing.append(plane)
        else:
            found[plane] = columns
    if missing:
        everything = ids_in_sight(scene.trace, lanes, visible, np.inf)
        assert everything is not None
        for plane, content in _exact_planes(scene, everything, tuple(missing)).items():
            if isinstance(content, Bars) and len(content) > BARS_PER_PX * width:
                content = columns_of(content, visible, width)
            found[plane] = content
    folded = [(p, c) for p in _OF_MEMORY if isinstance(c := found[p], Columns) and c.other is None]
    if folded:
        above = _above_path(found[Plane.PATH], visible, width)
        for plane, content in folded:
            found[plane] = replace(content, other=np.maximum(0, content.busy - content.floor - above))
    return {plane: found[plane] for plane in PLANES}


def _above_path(path: Content, visible: TimeRange, width: int) -> F32:
    """How much of each column is above the floor of all events: no more than that is so in any lane, float32[width].

    Stored levels keep each lane's own floor alone, and that of the path.
    """
    whole = path if isinstance(path, Columns) else columns_of(path, visible, width)
    above: F32 = np.maximum(0, whole.busy - whole.floor)
    return above


def _sparse_plane(scene: Scene, plane: Plane, visible: TimeRange, most: float, running: I64) -> Bars | None:
    """The events of a sparse plane in sight, through its list; None where it has none or more than ``most``.

    ``running``: ids of what runs at the left edge, among which is whatever began earlier and still is in sight.
    """
    members = scene.pyramid.members_of(plane)
    if members is None:
        return None
    events = scene.trace.events
    low, high = (_first_from(events.start, members, time) for time in (visible.start, visible.end))
    if high - low > most:
        return None
    ids = members[low:high].astype(np.int64)
    columns = events.work[running], events.roles[running], events.category[running]
    earlier = running[scene.members.contains(plane, *columns) & (events.start[running] < visible.start)]
    return bars_of(scene.trace, np.concatenate([earlier, ids]), plane, scene.floors)


def _first_from(start: I64, ids: U32, time: int) -> int:
    """Index of the first of ``ids`` (in order of start) that starts at or after ``time``."""
    return bisect_left(range(len(ids)), time, key=lambda i: int(start[ids[i]]))


def _exact_planes(scene: Scene, ids: I64, planes: tuple[Plane, ...]) -> dict[Plane, Content]:
    events = scene.trace.events
    work, roles, category = events.work[ids], events.roles[ids], events.category[ids]
    found: dict[Plane, Content] = {}
    for plane in planes:
        if plane is Plane.PATH:
            found[plane] = path_bars(scene.trace, ids, scene.floors)
        else:
            inside = scene.members.contains(plane, work, roles, category)
            found[plane] = bars_of(scene.trace, ids[inside], plane, scene.floors)
    return found


def lane_in_sight(scene: Scene, lane: int, visible: TimeRange, width: int) -> Content:
    """The content of one lane of the trace over ``width`` pixel columns."""
    ids = ids_in_sight(scene.trace, np.array([lane]), visible, BARS_PER_PX * width)
    if ids is not None:
        return bars_of(scene.trace, ids, Plane.PATH, scene.floors)
    row = scene.pyramid.row_of_lane(lane)
    columns = columns_from(scene.pyramid, row, visible, width, floor_scale=scene.scales.of_lane(lane))
    if columns is not None:
        return columns
    everything = ids_in_sight(scene.trace, np.array([lane]), visible, np.inf)
    assert everything is not None
    return columns_of(bars_of(scene.trace, everything, Plane.PATH, scene.floors), visible, width)


@lru_cache(maxsize=8)
def column_edges(visible: TimeRange, width: int) -> I64:
    """The ``width + 1`` instants that bound the pixel columns, int64 ns; callers must not change them."""
    share, rest = divmod(visible.duration, width)
    at = np.arange(width + 1, dtype=np.int64)
    return visible.start + at * share + at * rest // width


def columns_of(bars: Bars, visible: TimeRange, width: int) -> Columns:
    """Shares per pixel column, exact from the events themselves. Overlaps count once, for the earlier event."""
    edges = column_edges(visible, width)
    time = np.maximum(np.diff(edges), 1)
    begin, duration = _apart(bars)
    kinds = np.flatnonzero(np.bincount(bars.kind)).tolist()
    parts = [duration if len(kinds) == 1 else np.where(bars.kind == kind, duration, 0) for kind in kinds]
    unknown = not bars.known.all()
    hidden = [np.where(bars.known, 0, duration)] if unknown else []
    floor = np.minimum(bars.floor, duration)
    beyond = [] if bars.other is None else [np.minimum(bars.other, duration - floor)]
    covered = _covered_shares(begin, [*parts, floor, *beyond, *hidden], edges, time)
    share = np.zeros((_KINDS, width), np.float32)
    share[kinds] = covered[: len(kinds)]
    empty = np.flatnonzero(bars.end == bars.start)
    if len(empty):
        at = np.searchsorted(edges, bars.start[empty], side="right") - 1
        at = np.minimum(np.maximum(at, 0), width - 1)
        share[bars.kind[empty], at] = np.maximum(share[bars.kind[empty], at], 1 / 255)
    none = np.zeros(width, np.float32)
    other = covered[len(kinds) + 1] if beyond else none
    return Columns(share, covered[len(kinds)], covered[-1] if unknown else none, other)


def _apart(bars: Bars) -> tuple[I64, I64]:
    """Start and duration of what each event owns, the earlier-started event keeping what two share."""
    begin = bars.start.copy()
    stop = np.maximum.accumulate(bars.end) if len(bars) else bars.end
    begin[1:] = np.maximum(begin[1:], stop[:-1])
    return begin, np.maximum(0, stop - begin)


def _covered_shares(begin: I64, durations: list[I64], edges: I64, time: I64) -> F32:
    """How much of each column spans from ``begin`` (sorted) cover, for several lengths at once, float32[n, width]."""
    if not len(begin):
        return np.zeros((len(durations), len(edges) - 1), np.float32)
    last = np.searchsorted(begin, edges, side="right") - 1
    row, first = np.maximum(last, 0), int(np.searchsorted(last, 0))
    since = edges - begin[row]
    shares = np.empty((len(durations), len(edges) - 1), np.float32)
    for n, duration in enumerate(durations):
        before = (np.cumsum(duration) - duration)[row] + np.minimum(since, duration[row])
        before[:first] = 0
        shares[n] = np.diff(before) / time
    return shares


def columns_from(
    pyramid: Pyramid, row: int, visible: TimeRange, width: int, *, floor_scale: float = 1.0
) -> Columns | None:
    """Shares per pixel column from the stored levels; None where the row has none, or none as fine as a pixel."""
    found = finds_level(pyramid, row, visible, width)
    if found is None:
        return None
    shift, bins = found
    if not len(bins):
        nothing = np.zeros(width, np.float32)
        return Columns(np.zeros((_KINDS, width), np.float32), nothing, nothing)
    low = max(0, (visible.start - pyramid.origin) >> shift)
    origin = pyramid.origin + (low << shift)
    edges = (column_edges(visible, width) - origin) / float(1 << shift)
    edges = np.minimum(np.maximum(edges, 0), len(bins))
    in_bins = 255.0 * visible.duration / width / (1 << shift)
    kinds, channels = _channels(bins)
    sums = _pooled(channels, edges) / in_bins
    total = sums[:-1].sum(axis=0)
    over = np.maximum(total, 1)
    share = np.zeros((_KINDS, width), np.float32)
    share[kinds] = sums[:-1] / over
    floor = np.minimum(sums[-1] * floor_scale, total / over).astype(np.float32)
    return Columns(share, floor, np.zeros(width, np.float32))


def _channels(bins: U8) -> tuple[list[int], U8]:
    """The kinds in a fine (dominant kind) or coarse level, and its shares of each and of the floor, u8[n + 1, bins]."""
    if bins.shape[1] == _KINDS + 1:
        kinds = np.flatnonzero(bins[:, :_KINDS].any(axis=0)).tolist() or [0]
        return kinds, bins.T[[*kinds, _KINDS]]
    kinds = np.flatnonzero(np.bincount(bins[:, 0])).tolist()
    if len(kinds) == 1:
        return kinds, bins.T[1:]
    channels = np.zeros((len(kinds) + 1, len(bins)), np.uint8)
    for row, kind in enumerate(kinds):
        np.copyto(channels[row], bins[:, 1], where=bins[:, 0] == kind)
    channels[-1] = bins[:, 2]
    return kinds, channels


def _pooled(channels: U8, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of each channel between neighbouring edges (in bins), bins cut by an edge in proportion."""
    whole = np.minimum(edges.astype(np.int64), channels.shape[1] - 1)
    part = edges - whole
    pooled = np.empty((len(channels), len(edges) - 1))
    for row, shares in enumerate(channels):
        upto = np.cumsum(shares, dtype=np.int64)
        own = shares[whole]
        at = (upto[whole] - own) + part * own
        pooled[row] = at[1:] - at[:-1]
    return np.maximum(pooled, 0)
