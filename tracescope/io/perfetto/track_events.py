"""Packets become rows: slices, instants, counters and stages of a GPU."""

import math
from typing import Any, Final

import msgspec

from tracescope.core.errors import TraceError
from tracescope.io.chrome.repair import MAX_DEPTH, depth_of
from tracescope.io.collector import MAX_TEXT, MAX_TRACKS, PER_EVENT_KEYS, UNNAMED, Collector, Rows
from tracescope.io.perfetto import sequences
from tracescope.io.perfetto.packets import PacketSource
from tracescope.io.perfetto.sequences import LIMIT_NS, Clocks, Sequence
from tracescope.io.perfetto.tracks import TrackTree
from tracescope.io.perfetto.wire import (
    Message,
    WireError,
    messages,
    number,
    numbers,
    parse,
    real,
    signed,
    text,
)

# TracePacket: what is read.
CLOCK_SNAPSHOT: Final = 6
TRACK_EVENT: Final = 11
PACKED: Final = 50
GPU_STAGE: Final = 53
DESCRIPTOR: Final = 60
SHARED: Final = frozenset({3, 8, 10, 12, 13, 41, 42, 58, 59, 79, 87, CLOCK_SNAPSHOT})
"""Fields of packets that carry no event: times, ids and what later packets refer to."""

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
LEGACY_TYPES: Final = {ord("B"): BEGIN, ord("E"): END, ord("I"): INSTANT, ord("i"): INSTANT, ord("X"): INSTANT}
"""Phases of events that came from a Chrome trace; those of X carry their duration."""

CORRELATIONS: Final = ("correlation", "corr_id", "correlation_id")
STAGE_CATEGORIES: Final = {1: "graphics", 2: "kernel"}
PER_EVENT: Final = frozenset(PER_EVENT_KEYS) | {"begin_ns", "end_ns", "delta_ns", "corr_id", "correlation_id"}
MAX_NESTING: Final = 16
MAX_63: Final = (1 << 63) - 1


class EventReader(Collector):
    """Everything that packets said so far. ``seen == imported + sum(dropped)`` once ends have found their begins."""

    def __init__(self, source: PacketSource) -> None:
        super().__init__()
        self.source = source
        self.tree = TrackTree()
        self.clocks = Clocks(self.flagged)
        self.whole = Rows("start", "duration", "name", "category", "track", "correlation", "detail", "stage")
        """Complete events; ``stage`` is the id of a GPU stage, -1 for others."""
        self.marks = Rows("start", "key", "name", "category", "track", "correlation", "detail", "ends")
        self.samples: dict[int, tuple[list[int], list[float]]] = {}
        """Times and values of each counter, by its track's uuid."""
        self.launched_by: dict[int, int] = {}
        """The correlation of a GPU stage, by its id, where a track event says that it launched it."""
        self._sequences: dict[int, Sequence] = {}

    def take(self, data: bytes) -> None:
        """Read one packet. One that cannot be read is dropped and counted."""
        try:
            packet = parse(data)
            packed = [value for value in packet.get(PACKED, ()) if isinstance(value, bytes)]
            if packed:
                for inner in [one for value in packed for one in self.source.unpacked(value)]:
                    self._take_one(inner)
                return
        except WireError:
            self._leave("unreadable_packet")
            return
        self._take_one(data, packet)

    def _take_one(self, data: bytes, packet: Message | None = None) -> None:
        try:
            self._read(parse(data) if packet is None else packet)
        except WireError:
            self._leave("unreadable_packet")

    def _read(self, packet: Message) -> None:
        sequence = self._sequence(number(packet, 10))
        sequence.take(packet)
        if number(packet, 42):
            self.flagged["packets_lost_in_recording"] += 1
        for snapshot in packet.get(CLOCK_SNAPSHOT, ()):
            if isinstance(snapshot, bytes):
                self.clocks.take(snapshot, sequence)
        events, stages = messages(packet, TRACK_EVENT), messages(packet, GPU_STAGE)
        if events:
            self._read_event(events[-1], packet, sequence)
        elif stages:
            self._read_stage(stages[-1], packet, sequence)
        elif DESCRIPTOR in packet:
            for descriptor in messages(packet, DESCRIPTOR):
                self.tree.describe(descriptor)
            self._count()
        elif packet.keys() <= SHARED:
            self._count()
        else:
            self._leave("unsupported_packet")

    def _sequence(self, identity: int) -> Sequence:
        found = self._sequences.get(identity)
        if found is None:
            found = self._sequences[identity] = Sequence(identity)
        return found

    def _count(self) -> None:
        self.seen += 1
        self.imported += 1

    def _leave(self, reason: str) -> None:
        self.seen += 1
        self.dropped[reason] += 1

    # --- track events ---

    def _read_event(self, event: Message, packet: Message, sequence: Sequence) -> None:
        legacy = next(iter(messages(event, 6)), {})
        kind = number(event, 9) or LEGACY_TYPES.get(number(legacy, 2), 0)
        if 8 in packet:
            time = self.clocks.time(packet, sequence)
        else:
            time = number(event, 16) * 1000 if 16 in event else None
            if time is None:
                return self._leave("no_timestamp")
        if time is None:
            return self._leave("unknown_clock")
        if not 0 <= time < LIMIT_NS:
            return self._leave("invalid_timestamp")
        uuid = number(event, 11, sequence.track)
        if kind == COUNTER:
            return self._read_sample(event, time, uuid)
        if kind not in {BEGIN, END, INSTANT}:
            return self._leave("unsupported_event")
        if 12 in event or 46 in event:
            self.flagged["counters_of_events_not_read"] += 1
        track = self._track(uuid)
        name = text(event, 23) or sequence.text(sequences.NAMES, number(event, 10) or number(legacy, 1))
        if kind == END:
            self.seen += 1  # imported or dropped when it is paired
            self.marks.add(time, track, -1, 0, track, -1, 0, 1)
            return None
        self._count()
        if not name:
            self.flagged["unknown_name"] += 1
        arguments = self._arguments(event, sequence)
        row = self.names[name[:MAX_TEXT] or UNNAMED], self._category(event, sequence), track
        rest = self._correlation(event, arguments), self._detail(arguments)
        if kind == BEGIN:
            self.marks.add(time, track, *row, *rest, 0)
            return None
        lasts = signed(number(legacy, 3)) * 1000 if number(legacy, 2) == ord("X") else 0
        self.whole.add(time, max(min(lasts, LIMIT_NS), 0), *row, *rest, -1)
        return None

    def _track(self, uuid: int) -> int:
        track = self.tree.of(uuid)
        if track >= MAX_TRACKS:
            raise TraceError(f"{self.source.path.name}: has more than {MAX_TRACKS:,} tracks")
        return track

    def _category(self, event: Message, sequence: Sequence) -> int:
        word = text({22: event.get(22, [])[:1]}, 22)
        if not word:
            word = sequence.text(sequences.CATEGORIES, next(iter(numbers(event, 3)), 0))
        return self.words[word[:MAX_TEXT].lower()]

    def _correlation(self, event: Message, arguments: dict[str, Any]) -> int:
        """What ties a launch to what it launched: an argument, the event's own field, or the one flow it is part of."""
        launched = [stage for one in messages(event, 3000) for stage in numbers(one, 1)]
        if launched:
            found = launched[0] & MAX_63
            self.launched_by.update(dict.fromkeys(launched, found))
            return found
        for key in CORRELATIONS:
            value = arguments.get(key)
            if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_63:
                return value
        if 52 in event:
            return number(event, 52) & MAX_63
        flows = [flow for field in (47, 48) for flow in numbers(event, field, fixed=True)]
        flows += [flow for field in (36, 42) for flow in numbers(event, field)]
        return flows[0] & MAX_63 if len(flows) == 1 else -1

    def _read_sample(self, event: Message, time: int, uuid: int) -> None:
        value: float | None = float(signed(number(event, 30))) if 30 in event else real(event, 44)
        if value is None or not math.isfinite(value):
            return self._leave("invalid_value")
        self._track(uuid)
        times, values = self.samples.setdefault(uuid, ([], []))
        times.append(time)
        values.append(value)
        return self._count()

    # --- arguments ---

    def _detail(self, arguments: dict[str, Any]) -> int:
        return self.details.of({name: value for name, value in arguments.items() if name not in PER_EVENT})

    def _arguments(self, event: Message, sequence: Sequence) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for note in messages(event, 4):
            name = text(note, 10) or sequence.text(sequences.ARGUMENT_NAMES, number(note, 1))
            if name:
                found[name[:MAX_TEXT]] = self._value(note, sequence, MAX_NESTING)
        return found

    def _value(self, note: Message, sequence: Sequence, room: int) -> Any:
        """The value of a DebugAnnotation; None where it has none that is known, or nests too deep."""
        if room == 0:
            self.flagged["too_deep"] += 1
            return None
        if 6 in note or 9 in note:
            return plain_value(text(note, 6) or text(note, 9))
        if 11 in note:
            entries = messages(note, 11)
            names = [text(one, 10) or sequence.text(sequences.ARGUMENT_NAMES, number(one, 1)) for one in entries]
            return {name: self._value(one, sequence, room - 1) for name, one in zip(names, entries, strict=True)}
        if 12 in note:
            return [self._value(one, sequence, room - 1) for one in messages(note, 12)]
        if 17 in note:
            return sequence.text(sequences.STRINGS, number(note, 17))
        if 5 in note:
            value = real(note, 5)
            return value if value is not None and math.isfinite(value) else str(value)
        return _whole(note, {2: bool, 3: int, 4: signed, 7: hex})

    # --- stages of a GPU ---

    def _read_stage(self, stage: Message, packet: Message, sequence: Sequence) -> None:
        time = self.clocks.time(packet, sequence)
        if time is None:
            return self._leave("unknown_clock")
        lasts = number(stage, 2)
        if not 0 <= time < LIMIT_NS:
            return self._leave("invalid_timestamp")
        if lasts >= LIMIT_NS:
            return self._leave("invalid_duration")
        self._count()
        kernel = sequence.interned[sequences.KERNELS].get(number(stage, 19))
        specified = sequence.interned[sequences.STAGES].get(number(stage, 14))
        shown = text(specified, 2) if specified else ""
        name = (text(kernel, 3) or text(kernel, 2)) if kernel else ""
        name = name or text(stage, 17) or sequence.text(sequences.NAMES, number(stage, 20)) or shown
        if not name:
            self.flagged["unknown_name"] += 1
        word = "kernel" if kernel else STAGE_CATEGORIES.get(number(specified, 4) if specified else 0, "gpu_stage")
        queue = number(stage, 13)
        track = self.tree.of_queue(
            gpu=signed(number(stage, 11)), queue=queue, name=sequence.text(sequences.STAGES, queue)
        )
        arguments: dict[str, Any] = {"stage": shown} if shown and shown != name else {}
        if kernel and text(kernel, 4):
            arguments["arch"] = text(kernel, 4)
        for launch in messages(stage, 21):
            arguments |= self._launch(launch, sequence)
        for extra in messages(stage, 6):
            arguments[text(extra, 1)[:MAX_TEXT]] = plain_value(text(extra, 2))
        row = self.names[name[:MAX_TEXT] or UNNAMED], self.words[word], track
        self.whole.add(time, lasts, *row, -1, self._detail(arguments), number(stage, 1) & MAX_63)
        return None

    def _launch(self, launch: Message, sequence: Sequence) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for field, key in ((1, "grid"), (2, "block")):
            for size in messages(launch, field):
                found[key] = [number(size, axis, 1) for axis in (1, 2, 3)]
        for extra in messages(launch, 3):
            name = text(extra, 2) or sequence.text(sequences.KERNEL_ARGUMENT_NAMES, number(extra, 1))
            if not name:
                continue
            if 5 in extra:
                found[name[:MAX_TEXT]] = str(real(extra, 5))
            elif 6 in extra:
                found[name[:MAX_TEXT]] = text(extra, 6)
            else:
                found[name[:MAX_TEXT]] = _whole(extra, {3: signed, 4: int})
        return found


def _whole(message: Message, fields: dict[int, Any]) -> Any:
    """The first of the number ``fields`` that is there, as its function gives it; None where none is."""
    for field, of in fields.items():
        if field in message:
            return of(number(message, field))
    return None


def plain_value(text: str) -> Any:
    """What ``text`` says where it is a JSON list or object (shapes are written so), else the text itself."""
    if text[:1] in {"[", "{"} and len(text) <= MAX_TEXT and depth_of(text.encode()) <= MAX_DEPTH:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            return text
    return text
