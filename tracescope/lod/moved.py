"""How much of the roof each pixel column uses: bytes and FLOPs spread over the whole time of the events they are of."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I64
from tracescope.core.timerange import TimeRange
from tracescope.core.work_table import UNKNOWN
from tracescope.lod.binning import COARSER_BY
from tracescope.lod.fold import Scene, column_edges, ids_in_sight
from tracescope.lod.planes import Plane
from tracescope.lod.pyramid import Pyramid

F64 = NDArray[np.float64]

MOVED: Final = (Plane.WEIGHTS, Plane.KV_READS, Plane.KV_APPENDS, Plane.COMPUTE)
"""The planes that are told apart: three that move memory, one that computes."""
EXACT_PER_PX: Final = 3
"""Up to this many events a pixel are summed one by one."""


@dataclass(frozen=True, eq=False, slots=True)
class Moved:
    """``share`` float64[planes of MOVED, width]: what their bytes or FLOPs need of each column's time at the roof.

    The memory planes of a column sum to at most 1, but for events that were faster than the roof allows.
    ``unknown`` float64[width]: the part of each column in which something ran whose bytes are not known; None where
    the stored levels, which do not tell it, were used.
    """

    share: F64
    unknown: F64 | None


def moved_in_sight(scene: Scene, visible: TimeRange, width: int) -> Moved:
    """What is moved in each of ``width`` pixel columns."""
    lanes = np.flatnonzero(scene.trace.on_device)
    ids = ids_in_sight(scene.trace, lanes, visible, EXACT_PER_PX * width)
    edges = column_edges(visible, width)
    if ids is None:
        return Moved(_from_levels(scene, visible, edges), None)
    events = scene.trace.events
    start, duration, work = events.start[ids], events.duration[ids], events.work[ids]
    amounts = [scene.floors.of(plane, work)[0].astype(np.float64) for plane in MOVED]
    hidden = np.where(scene.trace.work.memory_bytes[work] == UNKNOWN, duration, 0).astype(np.float64)
    spread = spread_over(start, duration, [*amounts, hidden], edges)
    return Moved(spread[:-1], np.minimum(spread[-1], 1))


def spread_over(start: I64, duration: I64, amounts: list[F64], edges: I64) -> F64:
    """Amounts of ns, each spread evenly over its event, as shares of the time between ``edges``.

    ``start``, ``duration`` int64[n], ``amounts`` float64[n] each, ``edges`` int64[m + 1] rising; float64[amounts, m].
    Events may overlap; those of no duration are left out.
    """
    lasting = duration > 0
    since = (start[lasting] - edges[0]).astype(np.float64)
    until = since + duration[lasting]
    at = (edges - edges[0]).astype(np.float64)
    begun, ended = np.argsort(since, kind="stable"), np.argsort(until, kind="stable")
    begun_at = np.searchsorted(since[begun], at, side="right")
    ended_at = np.searchsorted(until[ended], at, side="right")
    time = np.maximum(np.diff(edges), 1)
    found = np.empty((len(amounts), len(edges) - 1))
    for row, amount in enumerate(amounts):
        rate = amount[lasting] / duration[lasting]
        rising = _ramps(rate[begun], since[begun], begun_at, at)
        falling = _ramps(rate[ended], until[ended], ended_at, at)
        found[row] = np.diff(rising - falling) / time
    # What is left of differences of large sums.
    return np.where(found < 1e-9, 0.0, found)


def _ramps(rate: F64, since: F64, upto: NDArray[np.intp], at: F64) -> F64:
    """The sum of ``rate * (at - since)`` over the first ``upto`` of them, float64 for each of ``at``."""
    slope = np.concatenate([[0.0], np.cumsum(rate)])
    offset = np.concatenate([[0.0], np.cumsum(rate * since)])
    total: F64 = slope[upto] * at - offset[upto]
    return total


def _from_levels(scene: Scene, visible: TimeRange, edges: I64) -> F64:
    """From bins of one width for all planes: wider bins of one plane would reach over what another one holds."""
    pyramid = scene.pyramid
    rows = [pyramid.row_of_plane(plane) for plane in MOVED]
    stored = [row for row in rows if row >= 0]
    wanted = int(np.log2(max(1.0, visible.duration / (len(edges) - 1))))
    finest = max((int(pyramid.row_shift[row]) for row in stored), default=0)
    coarsest = min((pyramid.coarsest_shift(row) for row in stored), default=wanted)
    shift = max(finest, min(wanted, coarsest))
    span = max(1, scene.trace.span[1] - scene.trace.span[0])
    low = max(0, (visible.start - pyramid.origin) >> shift)
    high = min(((span - 1) >> shift) + 1, ((visible.end - 1 - pyramid.origin) >> shift) + 1)
    if high <= low:
        return np.zeros((len(MOVED), len(edges) - 1))
    bins = np.stack(
        [
            np.minimum(_bins(pyramid, row, shift, low, high) * scene.scales.of_plane(plane), 1)
            if row >= 0
            else _few_events(scene, plane, pyramid.origin + (np.arange(low, high + 1, dtype=np.int64) << shift))
            for plane, row in zip(MOVED, rows, strict=True)
        ]
    )
    at = np.clip((edges - pyramid.origin) / float(1 << shift) - low, 0, high - low)
    grid = np.arange(high - low + 1)
    sums = [np.interp(at, grid, np.concatenate([[0.0], np.cumsum(row)])) for row in bins]
    per_bin = np.diff(edges) / float(1 << shift)
    share: F64 = np.diff(np.stack(sums), axis=1) / np.maximum(per_bin, 1e-12)
    return share


def _bins(pyramid: Pyramid, row: int, shift: int, low: int, high: int) -> F64:
    """The floor shares of the bins ``low:high`` of ``2**shift`` ns of one row, from its level or a finer one."""
    level = pyramid.coarse_bins(row, shift)
    if level is not None:
        stored: F64 = level[low:high, -1] / 255.0
        return stored
    finer = int(pyramid.row_shift[row])
    for candidate in range(shift - 1, finer + COARSER_BY - 1, -1):
        level = pyramid.coarse_bins(row, candidate)
        if level is not None:
            finer = candidate
            break
    table = level if level is not None else pyramid.fine_bins(row)
    times = 1 << (shift - finer)
    share = table[low * times : high * times, -1] / 255.0
    padded = np.zeros((high - low) * times)
    padded[: len(share)] = share
    mean: F64 = np.add.reduce(padded.reshape(-1, times), axis=1) / times
    return mean


def _few_events(scene: Scene, plane: Plane, edges: I64) -> F64:
    """The floor shares between ``edges`` of a plane that has so few events that no level is stored of it."""
    trace = scene.trace
    listed = scene.pyramid.members_of(plane)
    if listed is not None:
        ids = listed.astype(np.int64)
    else:
        device = np.flatnonzero(np.repeat(trace.on_device, np.diff(trace.lanes.offset)))
        columns = trace.events.work[device], trace.events.roles[device], trace.events.category[device]
        ids = device[scene.members.contains(plane, *columns)]
    floor, _ = scene.floors.of(plane, trace.events.work[ids])
    amounts = [floor.astype(np.float64)]
    share: F64 = spread_over(trace.events.start[ids], trace.events.duration[ids], amounts, edges)[0]
    return share
