"""Reads one Perfetto protobuf trace into a RawTrace, without any library for it."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I64
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory, RawCounter, RawTrace
from tracescope.core.report import Source
from tracescope.io.collector import EPOCH_2001_NS, zero_flags
from tracescope.io.importer import Importer, Progress
from tracescope.io.perfetto.packets import PacketSource, first_packet
from tracescope.io.perfetto.track_events import DESCRIPTOR, PACKED, EventReader
from tracescope.io.perfetto.wire import BYTES, VARINT, WireError, read_varint
from tracescope.io.words import category_of

DEVICE_WORK: Final = frozenset({RawCategory.KERNEL, RawCategory.COPY})
MAX_DAMAGED: Final = 1_000
"""So many packets may be unreadable before it matters whether they are most of the file."""

_TELLING: Final = {3: VARINT, 8: VARINT, 10: VARINT, 13: VARINT, 33: BYTES, 36: BYTES, PACKED: BYTES, DESCRIPTOR: BYTES}
"""Fields of a packet, and their kinds, one of which each packet has; other messages begin with the same byte."""


def sniff(head: bytes, path: Path) -> bool:
    """Whether the file begins with a packet of a trace, or should by its name: then ``read`` says why it does not."""
    packet = first_packet(head)
    return (packet is not None and _is_packet(packet)) or PERFETTO.named(path)


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
        columns = _columns(reader)
        counters = _counters(reader)
        if not len(columns["start"]) and not counters:
            raise TraceError(
                f"{path.name}: a Perfetto trace without track events or stages of a GPU "
                f"({reader.seen:,} packets of other kinds)",
                action="Record with a data source of track events, or export a Chrome trace of it.",
            )
    on_device = [code for word, code in reader.words.items() if category_of(word) in DEVICE_WORK]
    tracks = reader.tree.finish(set(np.unique(columns["track"][np.isin(columns["category"], on_device)]).tolist()))
    events = reader.events(columns, tracks)
    base = reader.clocks.base_time_ns
    reader.flag("trailing_text", int(source.trailing))
    reader.flag("text_repaired", sum("\ufffd" in name for name in reader.names))
    return reader.trace(
        Source(path.name, sha256, source.bytes, "perfetto"),
        events,
        tracks,
        truncated_at_byte=source.cut_at,
        has_absolute_clock=bool(base) or events.first_start > EPOCH_2001_NS,
        base_time_ns=base,
        counters=counters,
    )


def _columns(reader: EventReader) -> dict[str, NDArray[Any]]:
    """Slices from begins and ends, by time, then what was whole from the start."""
    marks: dict[str, Any] = reader.marks.arrays()
    marks["ends"] = marks["ends"].astype(bool)
    whole = reader.whole.arrays()
    ends_at = [int((marks["start"]).max())] if len(reader.marks) else [0]
    if len(reader.whole):
        ends_at.append(int((whole["start"] + whole["duration"]).max()))
    pairs = reader.add_pairs(marks, max(ends_at))
    reader.imported += pairs.matched
    whole["correlation"] = _launches(reader, whole)
    del whole["stage"]
    reader.append(**whole, flags=zero_flags(whole["duration"]))
    return reader.taken()


def _launches(reader: EventReader, whole: dict[str, I64]) -> I64:
    """The correlation of each whole event; that of a GPU's stage is its launch's."""
    if not reader.launched_by:
        return whole["correlation"]
    stages = (reader.launched_by.get(stage, -1) for stage in whole["stage"].tolist())
    return np.where(whole["stage"] >= 0, np.fromiter(stages, np.int64, len(whole["stage"])), whole["correlation"])


def _counters(reader: EventReader) -> tuple[RawCounter, ...]:
    found = []
    for uuid, (times, values) in reader.samples.items():
        counted = reader.tree.counted(uuid)
        samples = np.array(values, np.float64) * counted.factor
        if counted.adds_up:
            samples = np.cumsum(samples)
        fits = np.isfinite(samples)
        reader.imported -= int((~fits).sum())
        reader.dropped["invalid_value"] += int((~fits).sum())
        name = reader.tree.name_of(uuid)
        shown = f"{name} ({counted.unit})" if counted.unit and f"({counted.unit})" not in name else name
        found.append(RawCounter(shown, -1, np.array(times, np.int64)[fits], samples[fits]))
    return tuple(found)


PERFETTO: Final = Importer(
    "Perfetto protobuf",
    (".pftrace", ".perfetto-trace", ".perfetto_trace"),
    "track events, counters and GPU stages",
    sniff,
    read,
    unzips=True,
)
