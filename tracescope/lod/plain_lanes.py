"""What of many lanes is in sight at once: the rows of plain tracks, fetched together since there may be hundreds."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I64, U8
from tracescope.core.timerange import TimeRange
from tracescope.lod.fold import BARS_PER_PX, Bars, Scene, bars_of, column_edges, visible_rows
from tracescope.lod.planes import Plane
from tracescope.lod.pyramid import KIND_COUNT, finds_level

F32 = NDArray[np.float32]

PX_PER_BAR: Final = 4
"""Where many lanes are in sight, one with more events than one in so many pixels is drawn from its stored levels."""


@dataclass(frozen=True, eq=False, slots=True)
class PlainLanes:
    """Events of lanes, lane by lane, each lane in time order, and the lanes that are folded instead.

    ``row`` int64: the position of each bar's lane among those asked for; ``folded`` int64[n] positions with
    ``share`` float32[kinds, n, width] of the kinds ``kinds`` in each pixel column.
    """

    bars: Bars
    row: I64
    folded: I64
    kinds: tuple[int, ...]
    share: F32


def plain_lanes_in_sight(scene: Scene, lanes: NDArray[np.integer], visible: TimeRange, width: int) -> PlainLanes:
    """The content of ``lanes`` over ``width`` pixel columns."""
    trace = scene.trace
    offset = trace.lanes.offset
    first, last = visible_rows(trace.events.start, offset[lanes], offset[lanes + 1], visible)
    count = last - first
    most = BARS_PER_PX * width
    if count.sum() > most:
        most = min(most, width / PX_PER_BAR)
    folded, kinds, share = _folded(scene, lanes, np.flatnonzero(count > most), visible, width)
    exact = np.ones(len(lanes), bool)
    exact[folded] = False
    row = np.repeat(np.flatnonzero(exact), count[exact])
    first, count = first[exact], count[exact]
    ids = np.arange(len(row)) + np.repeat(first - (np.cumsum(count) - count), count)
    start = trace.events.start[ids]
    seen = (start + trace.events.duration[ids] > visible.start) | (start >= visible.start)
    return PlainLanes(bars_of(trace, ids[seen], Plane.PATH, scene.floors), row[seen], folded, kinds, share)


def _folded(
    scene: Scene, lanes: NDArray[np.integer], many: I64, visible: TimeRange, width: int
) -> tuple[I64, tuple[int, ...], F32]:
    """Those of the lanes at positions ``many`` that have a level as fine as a pixel, and their shares."""
    pyramid = scene.pyramid
    levels: dict[int, list[tuple[int, U8]]] = {}
    for position in many.tolist():
        found = finds_level(pyramid, pyramid.row_of_lane(int(lanes[position])), visible, width)
        if found is not None:
            levels.setdefault(found[0], []).append((position, found[1]))
    share = np.zeros((KIND_COUNT, sum(len(same) for same in levels.values()), width), np.float32)
    folded: list[int] = []
    for shift, same in levels.items():
        here = slice(len(folded), len(folded) + len(same))
        folded += [position for position, _ in same]
        _pool(np.stack([bins for _, bins in same]), shift, pyramid.origin, visible, share[:, here])
    kinds = np.flatnonzero(share.any(axis=(1, 2)))
    return np.array(folded, np.int64), tuple(kinds.tolist()), share[kinds]


def _pool(bins: U8, shift: int, origin: int, visible: TimeRange, share: F32) -> None:
    """Fill ``share`` [kinds, lanes, width] from ``bins`` u8[lanes, bins, 3 or 7] of one level, cut to what is seen."""
    width = share.shape[2]
    low = max(0, (visible.start - origin) >> shift)
    edges = (column_edges(visible, width) - (origin + (low << shift))) / float(1 << shift)
    edges = np.minimum(np.maximum(edges, 0), bins.shape[1])
    whole = np.minimum(edges.astype(np.int64), bins.shape[1] - 1)
    part = (edges - whole).astype(np.float32)
    scale = np.float32((1 << shift) * width / (255.0 * visible.duration))
    coarse = bins.shape[2] > 3
    largest = bins.max(axis=(0, 1))[:KIND_COUNT] if coarse else np.bincount(bins[:, :, 0].ravel())
    for kind in np.flatnonzero(largest).tolist():
        own: U8 = bins[:, :, kind] if coarse else bins[:, :, 1] * (bins[:, :, 0] == kind)
        upto: NDArray[np.float64] = np.cumsum(own, axis=1, dtype=np.float64)
        cut = own[:, whole]
        at = upto[:, whole] - cut + part * cut
        share[kind] = np.maximum(at[:, 1:] - at[:, :-1], 0) * scale
    over = share.sum(axis=0)
    if over.max(initial=0) > 1:
        share /= np.maximum(over, 1)
