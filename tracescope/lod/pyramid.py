"""Level of detail: per lane and plane, power-of-two time bins with the share of each kind and of the floor."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import KINDS, TrackKind
from tracescope.core.columns import I64, U8, U32
from tracescope.core.hardware import Basis
from tracescope.core.ownership import owned_pieces
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.lod.binning import COARSER_BY, Spans, binned
from tracescope.lod.planes import (
    KIND_INDEX,
    PLANES,
    Plane,
    PlaneFloors,
    PlaneMembers,
    plane_floors,
)

SMALLEST_ROW: Final = 2048
"""Rows with fewer events are always drawn from the events themselves."""
SPARSE: Final = 4
"""Planes with at most a fourth of the events list them."""
MOST_PX_PER_BIN: Final = 4
"""The finest level may be spread over this many pixels: between it and single events there is nothing sharper."""
KIND_COUNT: Final = len(KINDS)
_KINDS: Final = KIND_COUNT
_EVENTS_PER_PLANE_BIN: Final = 2
_LONGEST_SPAN: Final = 2**61

_MEMBERS: Final = {"member_plane": np.uint8, "member_offset": np.int64, "members": np.uint32}
"""Arrays that a file may lack: sparse planes are then drawn from their levels."""

LANE_ROW: Final = 0
PLANE_ROW: Final = 1


@dataclass(frozen=True, eq=False)
class Pyramid:
    """The stored levels of every row (a lane of the trace or a plane of the device) that has many events.

    Bin j of a level with shift k covers ``[origin + (j << k), origin + ((j + 1) << k))`` ns.
    ``row_kind`` u8[r] (0 lane, 1 plane), ``row_index`` u32[r] (which one), ``row_shift`` u8[r] its finest shift.
    ``fine`` u8[n, 3]: dominant kind, coverage, floor share (255 is the whole bin); row i owns
    ``fine_offset[i]:fine_offset[i + 1]``. ``coarse`` u8[m, 7]: share of each kind (W K A C X S), floor share; level l
    belongs to ``level_row[l]``, has shift ``level_shift[l]`` and owns ``level_offset[l]:level_offset[l + 1]``.
    ``bandwidth_bytes_per_s``: what the floor shares were computed with, 0 for none.
    ``members`` u32: event ids in order of start of the planes ``member_plane`` u8[k] that hold only a part of the
    events (plane i owns ``member_offset[i]:member_offset[i + 1]``), so that sparse lanes need no search through all.
    """

    origin: int
    bandwidth_bytes_per_s: int
    row_kind: U8
    row_index: U32
    row_shift: U8
    fine_offset: I64
    fine: U8
    level_row: U32
    level_shift: U8
    level_offset: I64
    coarse: U8
    member_plane: U8 = field(default_factory=lambda: np.empty(0, np.uint8))
    member_offset: I64 = field(default_factory=lambda: np.zeros(1, np.int64))
    members: U32 = field(default_factory=lambda: np.empty(0, np.uint32))

    def __post_init__(self) -> None:
        rows, levels = len(self.row_kind), len(self.level_row)
        fits = (
            len(self.row_index) == len(self.row_shift) == rows
            and len(self.level_shift) == levels
            and _covers(self.fine_offset, rows, self.fine, 3)
            and _covers(self.level_offset, levels, self.coarse, _KINDS + 1)
            and (levels == 0 or int(self.level_row.max()) < rows)
            and _covers(self.member_offset, len(self.member_plane), self.members[:, None], 1)
            and (len(self.fine) == 0 or int(self.fine[:, 0].max()) < _KINDS)
            and max(self.row_shift.max(initial=0), self.level_shift.max(initial=0)) < 63
        )
        if not fits:
            raise ValueError("the level-of-detail arrays do not fit together")

    @cached_property
    def _rows(self) -> dict[tuple[int, int], int]:
        pairs = zip(self.row_kind.tolist(), self.row_index.tolist(), strict=True)
        return {pair: row for row, pair in enumerate(pairs)}

    @cached_property
    def _levels(self) -> dict[tuple[int, int], int]:
        pairs = zip(self.level_row.tolist(), self.level_shift.tolist(), strict=True)
        return {pair: level for level, pair in enumerate(pairs)}

    @cached_property
    def _member_rows(self) -> dict[int, slice]:
        spans = pairwise(self.member_offset.tolist())
        return {plane: slice(*span) for plane, span in zip(self.member_plane.tolist(), spans, strict=True)}

    @cached_property
    def _coarsest(self) -> dict[int, int]:
        pairs = zip(self.level_row.tolist(), self.level_shift.tolist(), strict=True)
        return {row: shift for row, shift in sorted(pairs)}

    def row_of_lane(self, lane: int) -> int:
        """The row of a lane of the trace, -1 where it has none (few events)."""
        return self._rows.get((LANE_ROW, lane), -1)

    def row_of_plane(self, plane: Plane) -> int:
        """The row of a plane, -1 where it has none."""
        return self._rows.get((PLANE_ROW, int(plane)), -1)

    def fine_bins(self, row: int) -> U8:
        """The finest level of a row, u8[bins, 3]."""
        return self.fine[int(self.fine_offset[row]) : int(self.fine_offset[row + 1])]

    def coarse_bins(self, row: int, shift: int) -> U8 | None:
        """The level of a row with this shift, u8[bins, 7]; None where it is not stored."""
        level = self._levels.get((row, shift))
        if level is None:
            return None
        return self.coarse[int(self.level_offset[level]) : int(self.level_offset[level + 1])]

    def members_of(self, plane: Plane) -> U32 | None:
        """Event ids of a sparse plane in order of start, u32; None where they are not listed."""
        at = self._member_rows.get(int(plane))
        return None if at is None else self.members[at]

    def fits(self, trace: Trace) -> bool:
        """Whether this can be the pyramid of ``trace``: a file may hold one that points past its events."""
        span = max(1, trace.span[1] - trace.span[0])
        rows = zip(self.row_kind.tolist(), self.row_index.tolist(), self.row_shift.tolist(), strict=True)
        bins = np.diff(self.fine_offset).tolist()
        level_bins = np.diff(self.level_offset).tolist()
        return (
            self.origin == trace.span[0]
            and (not len(self.members) or int(self.members.max()) < len(trace.events))
            and all(n == ((span - 1) >> shift) + 1 for (_, _, shift), n in zip(rows, bins, strict=True))
            and all(n == ((span - 1) >> k) + 1 for k, n in zip(self.level_shift.tolist(), level_bins, strict=True))
            and bool((self.row_index[self.row_kind == LANE_ROW] < len(trace.lanes)).all())
        )

    def coarsest_shift(self, row: int) -> int:
        """The largest stored shift of a row; its finest where no coarser level was worth storing."""
        return self._coarsest.get(row, int(self.row_shift[row]))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.to_arrays().values())

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The pyramid as named 1-D and 2-D arrays of fixed types."""
        return {
            "basis": np.array([self.origin, self.bandwidth_bytes_per_s], np.int64),
            "row_kind": self.row_kind, "row_index": self.row_index, "row_shift": self.row_shift,
            "fine_offset": self.fine_offset, "fine": self.fine,
            "level_row": self.level_row, "level_shift": self.level_shift,
            "level_offset": self.level_offset, "coarse": self.coarse,
            "member_plane": self.member_plane, "member_offset": self.member_offset, "members": self.members,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray[Any, Any]]) -> Self:
        """The inverse of :meth:`to_arrays`. Raises ValueError where an array is missing or does not fit."""
        try:
            basis = arrays["basis"]
            origin, bandwidth = (int(v) for v in basis)
            return cls(
                origin, bandwidth,
                arrays["row_kind"].astype(np.uint8, copy=False), arrays["row_index"].astype(np.uint32, copy=False),
                arrays["row_shift"].astype(np.uint8, copy=False), arrays["fine_offset"].astype(np.int64, copy=False),
                arrays["fine"].astype(np.uint8, copy=False), arrays["level_row"].astype(np.uint32, copy=False),
                arrays["level_shift"].astype(np.uint8, copy=False), arrays["level_offset"].astype(np.int64, copy=False),
                arrays["coarse"].astype(np.uint8, copy=False),
                **{k: arrays[k].astype(t, copy=False) for k, t in _MEMBERS.items() if k in arrays},
            )  # fmt: skip
        except (KeyError, TypeError) as error:
            raise ValueError(f"the level-of-detail arrays are incomplete: {error}") from error


def _covers(offset: I64, parts: int, table: NDArray[np.unsignedinteger[Any]], width: int) -> bool:
    return (
        offset.ndim == 1
        and len(offset) == parts + 1
        and int(offset[0]) == 0
        and bool((np.diff(offset) >= 0).all())
        and table.ndim == 2
        and table.shape == (int(offset[-1]), width)
    )


def finds_level(pyramid: Pyramid, row: int, visible: TimeRange, width: int) -> tuple[int, U8] | None:
    """The shift and the bins in sight (u8[n, 3 or 7]) of the level of ``row`` that suits ``width`` pixel columns.

    None where the row has no level as fine as a pixel.
    """
    if row < 0:
        return None
    per_px = visible.duration / width
    finest = int(pyramid.row_shift[row])
    if per_px * MOST_PX_PER_BIN < 1 << finest:
        return None
    shift = min(int(np.log2(max(per_px, 1))), pyramid.coarsest_shift(row))
    if shift < finest + COARSER_BY:
        shift, bins = finest, pyramid.fine_bins(row)
    else:
        found = pyramid.coarse_bins(row, shift)
        if found is None:
            return None
        bins = found
    low = max(0, (visible.start - pyramid.origin) >> shift)
    return shift, bins[low : max(low, ((visible.end - 1 - pyramid.origin) >> shift) + 1)]


@dataclass(frozen=True, eq=False, slots=True)
class _Row:
    """One row to be binned: which it is, what it holds, and about how many events a bin of it has."""

    kind: int
    index: int
    spans: Spans
    events_per_bin: int


@dataclass(frozen=True, eq=False, slots=True)
class _Made:
    """What has been built so far: (kind, index, shift) of rows, their finest levels, (row, shift) of coarser ones."""

    rows: list[tuple[int, int, int]]
    fine: list[U8]
    levels: list[tuple[int, int]]
    coarse: list[U8]
    planes: list[int]
    members: list[U32]


def build_pyramid(trace: Trace, basis: Basis) -> Pyramid:
    """Bin every lane and plane of ``trace`` that has at least ``SMALLEST_ROW`` events, floors priced on ``basis``."""
    origin, end = trace.span
    span = max(1, end - origin)
    made = _Made([], [], [], [], [], [])
    if span < _LONGEST_SPAN:
        for row in _rows(trace, basis, made):
            shift = _finest_shift(span, max(1, len(row.spans.start) // row.events_per_bin))
            made.rows.append((row.kind, row.index, shift))
            bins = binned(row.spans, origin, span, shift)
            made.fine.append(bins.fine)
            made.levels.extend((len(made.rows) - 1, level) for level, _ in bins.coarse)
            made.coarse.extend(shares for _, shares in bins.coarse)
    row_table = np.array(made.rows, np.int64).reshape(-1, 3)
    level_table = np.array(made.levels, np.int64).reshape(-1, 2)
    return Pyramid(
        origin=origin,
        bandwidth_bytes_per_s=basis.bandwidth_bytes_per_s or 0,
        row_kind=row_table[:, 0].astype(np.uint8),
        row_index=row_table[:, 1].astype(np.uint32),
        row_shift=row_table[:, 2].astype(np.uint8),
        fine_offset=_offsets(made.fine),
        fine=np.concatenate(made.fine) if made.fine else np.empty((0, 3), np.uint8),
        level_row=level_table[:, 0].astype(np.uint32),
        level_shift=level_table[:, 1].astype(np.uint8),
        level_offset=_offsets(made.coarse),
        coarse=np.concatenate(made.coarse) if made.coarse else np.empty((0, _KINDS + 1), np.uint8),
        member_plane=np.array(made.planes, np.uint8),
        member_offset=_offsets(made.members),
        members=np.concatenate(made.members) if made.members else np.empty(0, np.uint32),
    )


def _offsets(parts: Sequence[NDArray[Any]]) -> I64:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum([len(p) for p in parts], dtype=np.int64)])


def _finest_shift(span: int, bins: int) -> int:
    """The smallest shift with at most about ``bins`` bins over ``span`` ns."""
    return max(0, (span // bins).bit_length())


def _rows(trace: Trace, basis: Basis, made: _Made) -> Iterator[_Row]:
    if len(trace.events) < SMALLEST_ROW:
        return
    events = trace.events
    floors = plane_floors(trace.work, basis)
    offset = trace.lanes.offset.tolist()
    for lane, (low, high) in enumerate(pairwise(offset)):
        # Synthesised engines are shown as resource lanes only, so their own rows are never folded.
        if high - low < SMALLEST_ROW or trace.tracks[trace.lanes.track[lane]].kind is TrackKind.ENGINE:
            continue
        if events.start[low] < trace.span[0]:  # without a time
            continue
        rows = slice(low, high)
        floor, _ = floors.of(Plane.PATH, events.work[rows])
        kinds, inside = KIND_INDEX[events.category[rows]], np.minimum(floor, events.duration[rows])
        yield _Row(LANE_ROW, lane, Spans(events.start[rows], events.duration[rows], kinds, inside), 1)
    yield from _plane_rows(trace, floors, made)


def _in_order(start: I64, end: I64) -> I64:
    """The order by (start, end). Lanes are sorted already, so that a merging sort by start takes linear time."""
    order = np.argsort(start, kind="stable")
    same = start[order[1:]] == start[order[:-1]]
    return np.lexsort((end, start)) if (same & (end[order[1:]] < end[order[:-1]])).any() else order


def _plane_rows(trace: Trace, floors: PlaneFloors, made: _Made) -> Iterator[_Row]:
    events = trace.events
    device = np.flatnonzero(np.repeat(trace.on_device, np.diff(trace.lanes.offset)))
    if len(device) < SMALLEST_ROW:
        return
    start = events.start[device]
    end = start + events.duration[device]
    if (start[1:] < start[:-1]).any():
        order = _in_order(start, end)
        device, start, end = device[order], start[order], end[order]
    work, category = events.work[device], events.category[device]
    masks = PlaneMembers.of(trace.work).masks(work, events.roles[device], category)
    for plane in PLANES:
        if plane is Plane.PATH:
            depth = track = np.zeros(len(device), np.uint32)
            if trace.nested:
                lane = trace.event_lane[device]
                depth, track = trace.lanes.depth[lane].astype(np.uint32), trace.lanes.track[lane]
            begin, stop, row = owned_pieces(start, end, depth, track)
        else:
            row = np.flatnonzero(masks & (1 << plane))
            if len(row) <= len(device) // SPARSE:
                made.planes.append(plane)
                made.members.append(device[row].astype(np.uint32))
            begin, stop = start[row].copy(), np.maximum.accumulate(end[row]) if len(row) else end[row]
            begin[1:] = np.maximum(begin[1:], stop[:-1])
        if len(row) < SMALLEST_ROW:
            continue
        duration = np.maximum(0, stop - begin)
        own, _ = floors.of(plane, work[row])
        colour = KIND_INDEX[category[row]] if plane is Plane.PATH else np.full(len(row), plane - 1, np.uint8)
        spans = Spans(begin, duration, colour, np.minimum(own, duration))
        yield _Row(PLANE_ROW, plane, spans, _EVENTS_PER_PLANE_BIN)
