"""Which track an event belongs to: device streams, annotations, host threads and Python stacks are kept apart."""

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tracescope.core.category import EventFlag, TrackKind
from tracescope.core.columns import I64, U8
from tracescope.core.raw import RawCategory, RawTrace, RawTrack
from tracescope.core.trace import Track
from tracescope.recognise.names.markers import read_marker


class TrackRole(IntEnum):
    """Where an event ran; also the order of the tracks of one trace."""

    DEVICE = 0
    ANNOTATION = 1
    HOST = 2
    OPERATOR = 3
    """An operator of the framework on a host thread: the device event of a trace without a device."""
    PYTHON = 4
    INSTANT = 5
    UNTIMED = 6
    """Wherever it ran: its recorder had no time for it."""


_ROLES = {
    RawCategory.KERNEL: TrackRole.DEVICE,
    RawCategory.COPY: TrackRole.DEVICE,
    RawCategory.OPERATOR: TrackRole.OPERATOR,
    RawCategory.ANNOTATION: TrackRole.ANNOTATION,
    RawCategory.RUNTIME: TrackRole.HOST,
    RawCategory.PYTHON: TrackRole.PYTHON,
    RawCategory.INSTANT: TrackRole.INSTANT,
    RawCategory.OTHER: TrackRole.HOST,
}
_ROLE_OF_CATEGORY = np.array([_ROLES[category] for category in RawCategory], np.uint8)


@dataclass(frozen=True, eq=False)
class TrackPlan:
    """``tracks`` of the trace to be, the track of each event (int64[events]) and its TrackRole (u8[events])."""

    tracks: tuple[Track, ...]
    track: I64
    place: U8

    def at(self, *places: TrackRole) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which events lie in one of ``places``; bool[events]."""
        return np.isin(self.place, places)


def plan_tracks(raw: RawTrace) -> TrackPlan:
    """Split every source row into one track a place: rows of one thread nest only among themselves.

    Annotations, Python frames and operators of one thread partly overlap by what entering and leaving costs.
    """
    place = _places(raw)
    # Operators and runtime calls of one thread share a track; annotations and Python frames get their own.
    group = np.where(place == TrackRole.OPERATOR, TrackRole.HOST, place)
    key = raw.events.track.astype(np.int64) * 8 + group
    distinct = np.flatnonzero(np.bincount(key))
    described = [_describe(raw.tracks[k // 8], TrackRole(k % 8)) for k in distinct.tolist()]
    order = sorted(range(len(described)), key=lambda i: described[i][0])
    position = np.zeros(8 * len(raw.tracks), np.int64)
    position[distinct[order]] = np.arange(len(order))
    tracks = tuple(described[i][1] for i in order)
    return TrackPlan(tracks, position[key] if len(key) else key, place)


def _places(raw: RawTrace) -> U8:
    place: U8 = _ROLE_OF_CATEGORY[raw.events.category]
    # Old profilers wrote their step marker as an operator; it encloses operators and is none.
    operators = np.flatnonzero(place == TrackRole.OPERATOR)
    is_marker = np.zeros(len(raw.names) + 1, bool)
    for code in np.unique(raw.events.name[operators]).tolist():
        is_marker[code] = read_marker(raw.names[code]) is not None
    place[operators[is_marker[raw.events.name[operators]]]] = TrackRole.ANNOTATION
    place[(raw.events.flags & EventFlag.SUSPECT_TIME) != 0] = TrackRole.UNTIMED
    return place


_SUFFIXES = {
    TrackRole.ANNOTATION: " · annotations",
    TrackRole.PYTHON: " · Python",
    TrackRole.INSTANT: " · instants",
    TrackRole.UNTIMED: " · without a time",
}
_MERGED_RANK = re.compile(r"^\[(?:TP|rank)[-_ ]?(\d{1,5})")


def merged_rank(track: RawTrack) -> int:
    """The rank that a tool wrote into the process id when it merged the files of several, -1 where none did."""
    found = _MERGED_RANK.match(track.pid)
    return int(found[1]) if found else -1


def _natural(text: str) -> tuple[int, int, str]:
    digits = "".join(c for c in text if c.isdigit())
    return (0, int(digits[:18]), text) if digits else (1, 0, text)


def _describe(raw: RawTrack, place: TrackRole) -> tuple[tuple[object, ...], Track]:
    kind = {
        TrackRole.DEVICE: TrackKind.DEVICE_STREAM,
        TrackRole.ANNOTATION: TrackKind.ANNOTATION,
        TrackRole.INSTANT: TrackKind.ANNOTATION,
        TrackRole.UNTIMED: TrackKind.ANNOTATION,
    }.get(place, TrackKind.HOST_THREAD)
    if place is TrackRole.DEVICE:
        # A row that has a name of its own ("XLA Ops") is called by it, a stream by its number.
        own = raw.thread not in ("", raw.tid) and not raw.thread.lower().startswith("stream")
        name = raw.thread if own else f"stream {raw.tid}" if raw.tid[:1].isdigit() else raw.tid
    else:
        name = raw.thread or f"thread {raw.tid}"
        suffix = _SUFFIXES.get(place, "")
        name = name.removesuffix(suffix) + suffix  # a trace that was exported has it already
    process = raw.process or (f"device {raw.device}" if raw.device >= 0 else f"process {raw.pid}")
    merged = merged_rank(raw)
    rank = raw.rank if merged < 0 else merged
    if merged >= 0:
        process = f"rank {rank} · {process}"
    key = (place, rank, raw.device, _natural(raw.pid), _natural(raw.tid))
    return key, Track(kind, name, process, raw.device, rank)
