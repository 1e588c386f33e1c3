"""Reads one Perfetto protobuf trace into a RawTrace, without any library for it."""

from pathlib import Path
from typing import Any, Final

import numpy as np

from tracescope.core.category import EventFlag
from tracescope.core.columns import I64
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCounter, RawEvents, RawTrace
from tracescope.core.report import Source
from tracescope.io.chrome.pairing import pair
from tracescope.io.importer import Importer, Progress
from tracescope.io.perfetto.packets import PacketSource, first_packet
from tracescope.io.perfetto.track_events import DESCRIPTOR, PACKED, EventReader
from tracescope.io.perfetto.wire import BYTES, VARINT, WireError, read_varint

SUFFIXES: Final = frozenset({".pftrace", ".perfetto-trace", ".perfetto_trace"})
DEVICE_CATEGORIES: Final = ("kernel", "gpu_memcpy", "gpu_memset")
MAX_DAMAGED: Final = 1_000
"""So many packets may be unreadable before it matters whether they are most of the file."""
EPOCH_2001_NS: Final = 10**18

_TELLING: Final = {3: VARINT, 8: VARINT, 10: VARINT, 13: VARINT, 33: BYTES, 36: BYTES, PACKED: BYTES, DESCRIPTOR: BYTES}
"""Fields of a packet, and their kinds, one of which each packet has; other messages begin with the same byte."""


def sniff(head: bytes, path: Path) -> bool:
    """Whether the file begins with a packet of a trace, or should by its name: then ``read`` says why it does not."""
    packet = first_packet(head)
    return (packet is not None and _is_packet(packet)) or path.suffix.lower() in SUFFIXES


def _is_packet(packet: bytes) -> bool:
    """Whether the fields at the beginning of ``packet``, which may be cut, are those of a TracePacket."""
    at = 0
    try:
        while at < len(packet):
            tag, at = read_varint(packet, at, len(packet))
            if _TELLING.get(tag >> 3) == tag & 7:
                return True
            if tag & 7 == VARINT:
                _, at = read_varint(packet, at, len(packet))
            elif tag & 7 == BYTES:
                length, at = read_varint(packet, at, len(packet))
                at += length
            else:
                at += {1: 8, 5: 4}[tag & 7]
    except (WireError, KeyError):
        return False
    return False


def read(path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace:
    """The trace in ``path``. A cut file gives what came before the cut, whatever ``allow_truncated`` says. TraceError
    where it is no trace, is damaged, or holds neither track events nor stages of a GPU.
    """
    with PacketSource(path, progress) as source:
        reader = EventReader(source)
        for packet in source.packets():
            reader.take(packet)
            unreadable = reader.dropped["unreadable_packet"]
            if unreadable > max(MAX_DAMAGED, reader.seen // 2):
                raise TraceError(f"{path.name}: damaged: more than half of its packets cannot be read")
        if not reader.seen or reader.seen == reader.dropped["unreadable_packet"]:
            raise TraceError(
                f"{path.name}: not a Perfetto trace, or damaged: it has no packet that can be read",
                action="Record it again, or convert it with Perfetto's traceconv.",
            )
        sha256 = source.sha256
        events = _events(reader)
        counters = _counters(reader)
        if not len(events) and not counters:
            raise TraceError(
                f"{path.name}: a Perfetto trace without track events or stages of a GPU "
                f"({reader.seen:,} packets of other kinds)",
                action="Record with a data source of track events, or export a Chrome trace of it.",
            )
    categories = tuple(reader.categories.codes)
    if reader.categories.merged:
        reader.flagged["category_merged"] += reader.categories.merged
    codes = [code for code, word in enumerate(categories) if word in DEVICE_CATEGORIES]
    on_device = set(np.unique(events.track[np.isin(events.category, codes)]).tolist())
    base = reader.clocks.base_time_ns
    names = tuple(reader.names.codes)
    repaired = sum("\ufffd" in name for name in names)
    if repaired:
        reader.flagged["text_repaired"] += repaired
    return RawTrace(
        source=Source(path.name, sha256, source.bytes, "perfetto"),
        events=events,
        names=names,
        categories=categories,
        tracks=reader.tracks.finish(on_device),
        details=tuple(reader.details.texts),
        seen=reader.seen,
        imported=reader.imported,
        dropped=dict(+reader.dropped),
        flagged=dict(+reader.flagged),
        truncated_at_byte=source.cut_at,
        has_absolute_clock=bool(base) or (len(events) > 0 and int(events.start.min()) > EPOCH_2001_NS),
        base_time_ns=base,
        counters=counters,
    )


def _events(reader: EventReader) -> RawEvents:
    """Slices from begins and ends, by time, then what was whole from the start."""
    marks: dict[str, Any] = reader.marks.arrays()
    marks["ends"] = marks["ends"].astype(bool)
    whole = reader.rows.arrays()
    ends_at = [int((marks["start"]).max())] if len(reader.marks) else [0]
    if len(reader.rows):
        ends_at.append(int((whole["start"] + whole["duration"]).max()))
    pairs = pair(marks, max(ends_at), reader.dropped, reader.flagged)
    reader.imported += pairs.matched
    zero = np.where(whole["duration"] == 0, EventFlag.ZERO_LENGTH, 0).astype(np.uint8)
    both = {
        column: np.concatenate([marks[column][pairs.marks], whole[column]])
        for column in ("start", "name", "category", "track")
    }
    return RawEvents(
        start=both["start"],
        duration=np.concatenate([pairs.duration, whole["duration"]]),
        name=both["name"].astype(np.uint32),
        category=both["category"].astype(np.uint8),
        track=both["track"].astype(np.uint32),
        correlation=np.concatenate([marks["correlation"][pairs.marks], _launches(reader, whole)]),
        detail=np.concatenate([pairs.detail, whole["detail"].astype(np.uint32)]),
        flags=np.concatenate([pairs.flags, zero]),
    )


def _launches(reader: EventReader, whole: dict[str, I64]) -> I64:
    """The correlation of each whole event; that of a GPU's stage is its launch's."""
    if not reader.launched_by:
        return whole["correlation"]
    stages = (reader.launched_by.get(stage, -1) for stage in whole["stage"].tolist())
    return np.where(whole["stage"] >= 0, np.fromiter(stages, np.int64, len(whole["stage"])), whole["correlation"])


def _counters(reader: EventReader) -> tuple[RawCounter, ...]:
    found = []
    for uuid, (times, values) in reader.samples.items():
        counted = reader.tracks.counted(uuid)
        samples = np.array(values, np.float64) * counted.factor
        if counted.adds_up:
            samples = np.cumsum(samples)
        fits = np.isfinite(samples)
        reader.imported -= int((~fits).sum())
        reader.dropped["invalid_value"] += int((~fits).sum())
        name = reader.tracks.name_of(uuid)
        shown = f"{name} ({counted.unit})" if counted.unit and f"({counted.unit})" not in name else name
        found.append(RawCounter(shown, -1, np.array(times, np.int64)[fits], samples[fits]))
    return tuple(found)


PERFETTO: Final = Importer("Perfetto trace", sniff, read)
