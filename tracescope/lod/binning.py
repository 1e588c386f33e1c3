"""Binning a row: exact busy and floor time of power-of-two bins, as shares of a byte, piece by piece of the row."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import KINDS
from tracescope.core.columns import I64, U8, Bool

COARSER_BY: Final = 4
"""Levels this much coarser than the finest, and above, hold the share of each kind."""
FEWEST_BINS: Final = 256
PIECE: Final = 1 << 15
"""Bins made at a time: a piece and its events stay in the processor's cache, and no column of all bins is needed."""
_KINDS: Final = len(KINDS)


@dataclass(frozen=True, eq=False, slots=True)
class Spans:
    """Sorted intervals that do not overlap, the kind of each and the floor inside each, in ns."""

    start: I64
    duration: I64
    colour: U8
    floor: I64


@dataclass(frozen=True, eq=False, slots=True)
class Binned:
    """The finest level u8[bins, 3] (kind, coverage, floor) and coarser ones as (shift, u8[bins, 7])."""

    fine: U8
    coarse: list[tuple[int, U8]]


@dataclass(frozen=True, eq=False, slots=True)
class _Sums:
    """Busy ns by kind and floor ns (int64[kinds + 1, bins]) and where events without length lie (bool[kinds, bins])."""

    time: I64
    instants: Bool

    def folded(self, times: int) -> "_Sums":
        """Every ``times`` bins summed to one."""
        time, instants = _padded(self.time, times), _padded(self.instants, times)
        kinds = len(instants)
        instants = np.logical_or.reduce(instants.reshape(kinds, -1, times), axis=2)
        return _Sums(np.add.reduce(time.reshape(kinds + 1, -1, times), axis=2), instants)


def binned(spans: Spans, origin: int, span: int, shift: int) -> Binned:
    """Bins of ``2**shift`` ns over ``span`` ns from ``origin`` and all levels above them worth storing."""
    bins = ((span - 1) >> shift) + 1
    present = np.flatnonzero(np.bincount(spans.colour, minlength=_KINDS))
    fine = np.empty((bins, 3), np.uint8)
    parts: list[_Sums] = []
    for low, sums in _pieces(spans, present, origin, shift, bins):
        table = fine[low : low + PIECE]
        busy = sums.time[:-1]
        if len(present) == 1:
            table[:, 0] = present[0]
            covered = _share(busy[0], shift)
        else:
            table[:, 0] = present[(busy + sums.instants).argmax(axis=0)]
            covered = _share(busy.sum(axis=0), shift)
        table[:, 1] = np.maximum(covered, sums.instants.max(axis=0))
        table[:, 2] = np.minimum(_share(sums.time[-1], shift), table[:, 1])
        parts.append(sums.folded(1 << COARSER_BY))
    sums = _Sums(np.concatenate([p.time for p in parts], axis=1), np.concatenate([p.instants for p in parts], axis=1))
    return Binned(fine, list(_coarser(sums, present, shift + COARSER_BY)))


def _coarser(sums: _Sums, present: I64, shift: int) -> Iterator[tuple[int, U8]]:
    for level in range(shift, 62):
        shares = np.zeros((sums.time.shape[1], _KINDS + 1), np.uint8)
        for i, kind in enumerate(present.tolist()):
            shares[:, kind] = np.maximum(_share(sums.time[i], level), sums.instants[i])
        shares[:, _KINDS] = _share(sums.time[-1], level)
        yield level, shares
        if sums.time.shape[1] <= FEWEST_BINS:
            return
        sums = sums.folded(2)


def _pieces(spans: Spans, present: I64, origin: int, shift: int, bins: int) -> Iterator[tuple[int, _Sums]]:
    """The first bin of each piece and its sums."""
    edges = origin + (np.minimum(np.arange(0, bins + PIECE, PIECE), bins).astype(np.int64) << shift)
    first = np.searchsorted(spans.start, edges)
    for n, low in enumerate(range(0, bins, PIECE)):
        count = min(PIECE, bins - low)
        begin, stop = int(first[n]), int(first[n + 1])
        earlier = max(0, begin - 1)  # it may still be running
        rows = slice(earlier, max(stop, earlier))
        start, duration = spans.start[rows] - edges[n], spans.duration[rows]
        time = np.zeros((len(present) + 1, count), np.int64)
        instants = np.zeros((len(present), count), bool)
        if len(start):
            last = _last_started(start, shift, count)
            colour = spans.colour[rows]
            for i, kind in enumerate(present.tolist()):
                own = duration if len(present) == 1 else np.where(colour == kind, duration, 0)
                time[i] = _covered(start, own, last, shift)
            time[-1] = _covered(start, spans.floor[rows], last, shift)
            empty = np.flatnonzero((duration == 0) & (start >= 0))
            if len(empty):
                at = np.minimum(start[empty] >> shift, count - 1)
                instants[np.searchsorted(present, colour[empty]), at] = True
        yield low, _Sums(time, instants)


def _last_started(start: I64, shift: int, bins: int) -> I64:
    """The last span that starts at or before each edge of ``bins`` bins from 0, int64[bins + 1], -1 where none does."""
    # Counting starts per bin finds each edge's last event in one linear pass, where a search would take log n.
    index = np.maximum((start + ((1 << shift) - 1)) >> shift, 0)
    last: I64 = np.cumsum(np.bincount(index, minlength=bins + 1)[: bins + 1]) - 1
    return last


def _covered(start: I64, duration: I64, last: I64, shift: int) -> I64:
    """How much of each bin from 0 the spans cover, int64[bins]. Exact: integers throughout."""
    before = np.cumsum(duration) - duration
    row = np.maximum(last, 0)
    at = np.arange(len(last), dtype=np.int64) << shift
    sums = before[row] + np.minimum(at - start[row], duration[row])
    if last[0] < 0:
        sums[: int(np.searchsorted(last, 0))] = 0
    covered: I64 = sums[1:] - sums[:-1]
    return covered


def _padded(values: NDArray[np.generic], times: int) -> NDArray[np.generic]:
    missing = -values.shape[1] % times
    return np.pad(values, ((0, 0), (0, missing))) if missing else values


def _share(busy: I64, shift: int) -> U8:
    """Busy ns of bins of ``2**shift`` ns as 0 to 255; anything at all is at least 1, so that nothing vanishes."""
    scaled = np.rint(busy * (255.0 / (1 << shift)))
    share: U8 = np.minimum(np.maximum(scaled, busy > 0), 255).astype(np.uint8)
    return share
