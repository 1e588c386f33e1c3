"""Turns decoded events into columns, piece by piece, counting everything that becomes no row."""

from collections import defaultdict
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracescope.core.category import EventFlag
from tracescope.io.chrome.counted import SampleParcel, Samples
from tracescope.io.chrome.event import LOOSE, UNREADABLE, Event
from tracescope.io.chrome.flows import FlowParcel, Flows
from tracescope.io.chrome.tables import ArgumentTexts, Threads, ident_text
from tracescope.io.chrome.times import LIMIT_NS, nanoseconds
from tracescope.io.collector import (
    COLUMNS,
    MAX_DETAILS_BYTES,
    MAX_TEXT,
    NO_PROCESS,
    NO_THREAD,
    Collector,
    Numbering,
    joined,
    zero_flags,
)
from tracescope.io.pairing import BEGINS, ENDS, MARK_COLUMNS
from tracescope.io.words import INSTANT

INSTANTS: Final = frozenset("iIRnTp")
FLOWS: Final = frozenset("stf")
DROPPED_PHASES: Final = {
    "": "no_phase",
    "O": "object_event",
    "N": "object_event",
    "D": "object_event",
    "P": "sample_event",
    **dict.fromkeys(("v", "V", "c", "=", "(", ")", ",", "r"), "unsupported_phase"),
}
"""Phases that say nothing a timeline can show, and the reason they are counted under."""

LABELS: Final = {"process_name": "name", "process_labels": "labels", "thread_name": "name"}

LIMITED: Final = frozenset({"details_too_long", "too_deep"})
"""Flags that are counted once a distinct text: two processes may both have counted one."""

_NAME: Final = attrgetter("name")
_CATEGORY: Final = attrgetter("cat")


class Parcel(msgspec.Struct):
    """What one collector found, on its way to another in the process that reads what comes before.

    ``columns`` are those of COLUMNS, ``rows`` long, and not part of the encoded parcel.
    """

    seen: int
    imported: int
    dropped: dict[str, int]
    flagged: dict[str, int]
    fractional: bool
    names: list[str]
    words: list[str]
    tracks: list[tuple[str, str]]
    details: list[str]
    details_spent: int
    labels: list[tuple[str, str, str, str]]
    flows: FlowParcel
    samples: SampleParcel
    metadata: dict[str, Any]
    rows: int
    columns: dict[str, Any] = {}


class JsonEvents(Collector):
    """Columns of complete events, marks waiting for their pair, flows and metadata; then ``finish``."""

    def __init__(self) -> None:
        super().__init__()
        self.tracks: Threads = Threads()
        self.details: ArgumentTexts = ArgumentTexts(self.flagged)
        self.samples = Samples()
        self.labels: dict[tuple[str, str, str], str] = {}
        """(metadata event's name, pid, tid or "") to text."""
        self.fractional = False
        self._marks: dict[str, list[NDArray[Any]]] = {column: [] for column in MARK_COLUMNS}
        self._flows = Flows()
        self._async_keys: Numbering[str] = Numbering()

    @property
    def has_marks(self) -> bool:
        """Whether a begin or an end waits for its pair."""
        return bool(self._marks["start"])

    def parcel(self, metadata: dict[str, Any]) -> "Parcel":
        """Everything that was collected, for ``absorb`` of a collector of what comes before. Call once, last."""
        columns = self.taken()
        return Parcel(
            seen=self.seen,
            imported=self.imported,
            dropped=self.dropped,
            flagged=self.flagged,
            fractional=self.fractional,
            names=list(self.names),
            words=[str(word) for word in self.words],
            tracks=list(self.tracks),
            details=self.details.texts,
            details_spent=self.details.spent,
            labels=[(*key, text) for key, text in self.labels.items()],
            flows=self._flows.parcel(),
            samples=self.samples.parcel(),
            metadata=metadata,
            rows=len(columns["start"]),
            columns=columns,
        )

    def absorb(self, more: "Parcel") -> bool:
        """Add what follows these events, collected by another process, as if it had been added here.

        False, and nothing is changed, where the two together are not what one would have collected: where begins and
        ends are to be paired, or the limit on arguments is near.
        """
        spent = self.details.spent + more.details_spent
        if self.has_marks or spent > MAX_DETAILS_BYTES or more.flagged.keys() & LIMITED:
            return False
        self.seen += more.seen
        self.imported += more.imported
        self.dropped.update(more.dropped)
        self.flagged.update(more.flagged)
        self.fractional |= more.fractional
        codes = {
            "name": self.names.of(more.names),
            "category": self.words.of(more.words),
            "track": self.tracks.of(more.tracks),
            "detail": self.details.absorb(more.details, more.details_spent),
        }
        self.labels |= {(event, pid, tid): text for event, pid, tid, text in more.labels}
        self._flows.absorb(more.flows)
        self.samples.absorb(more.samples)
        given = more.columns
        self.append(**{c: codes[c][given.pop(c)] if c in codes else given.pop(c) for c in COLUMNS})
        return True

    def add(self, events: list[Event]) -> None:
        """Take the next events of the file."""
        self.seen += len(events)
        complete = [e for e in events if e.ph == "X"]
        if complete:
            self._add_complete(complete)
        if len(complete) == len(events):
            return
        rest = [e for e in events if e.ph != "X"]
        by_phase: defaultdict[str, list[Event]] = defaultdict(list)
        for event in rest:
            by_phase[event.ph].append(event)
        if by_phase.keys() & (BEGINS | ENDS):
            self._add_marks([e for e in rest if e.ph in BEGINS or e.ph in ENDS])
        for phase, group in by_phase.items():
            self._add_others(phase, group)

    def _add_others(self, phase: str, group: list[Event]) -> None:
        if phase in BEGINS or phase in ENDS:
            return
        if phase == "M":
            self._add_labels(group)
            self.imported += len(group)
        elif phase in FLOWS:
            self._flows.add(phase, group)
            self.imported += len(group)
        elif phase in INSTANTS or phase == "C":
            self._add_moments(group, counts=phase == "C")
        else:
            self.drop(DROPPED_PHASES.get(phase, "unknown_phase"), len(group))

    def _add_moments(self, group: list[Event], *, counts: bool) -> None:
        """Samples of counters, or instants: what has a time and no length."""
        times = nanoseconds([e.ts for e in group])
        self.flag("sub_nanosecond", times.finer)
        self.drop("invalid_timestamp", int((~times.valid).sum()))
        start = times.ns[times.valid]
        events = [e for e, valid in zip(group, times.valid.tolist(), strict=True) if valid]
        if counts:
            lost = self.samples.add(events, start)
            self.drop("invalid_value", lost)
            self.imported += len(events) - lost
            return
        detail, correlation = self.details.take(events)
        self.append(
            start=start,
            duration=np.zeros(len(events)),
            name=self.names.of([event.name for event in events]),
            category=np.full(len(events), self.words[INSTANT]),
            track=self.tracks.codes(events),
            correlation=correlation,
            detail=detail,
            flags=np.full(len(events), EventFlag.INSTANT),
        )
        self.imported += len(events)

    def _add_complete(self, events: list[Event]) -> None:
        times = nanoseconds([e.ts for e in events])
        spans = nanoseconds([e.dur for e in events])
        self.fractional |= times.fractional or spans.fractional
        start, duration = times.ns, spans.ns
        bad_span = ~(spans.valid | spans.missing)
        far = np.abs(start + duration) > LIMIT_NS
        keep = times.valid & ~bad_span & (duration >= 0) & ~far
        if not keep.all():
            self.drop("invalid_timestamp", int((~times.valid).sum()))
            self.drop("invalid_duration", int((times.valid & (bad_span | (far & (duration >= 0)))).sum()))
            self.drop("negative_duration", int((times.valid & ~bad_span & (duration < 0)).sum()))
            events = [e for e, kept in zip(events, keep.tolist(), strict=True) if kept]
            start, duration = start[keep], duration[keep]
        self.flag("sub_nanosecond", times.finer + spans.finer)
        self.flag("missing_duration", int((spans.missing & keep).sum()))
        detail, correlation = self.details.take(events)
        self.append(
            start=start,
            duration=duration,
            name=np.fromiter(map(self.names.__getitem__, map(_NAME, events)), np.uint32, len(events)),
            category=np.fromiter(map(self.words.__getitem__, map(_CATEGORY, events)), np.uint32, len(events)),
            track=self.tracks.codes(events),
            correlation=correlation,
            detail=detail,
            flags=zero_flags(duration),
        )
        self.imported += len(events)

    def _add_marks(self, events: list[Event]) -> None:
        times = nanoseconds([e.ts for e in events])
        self.fractional |= times.fractional
        self.flag("sub_nanosecond", times.finer)
        self.drop("invalid_timestamp", int((~times.valid).sum()))
        events = [e for e, valid in zip(events, times.valid.tolist(), strict=True) if valid]
        detail, correlation = self.details.take(events)
        ends = [event.ph in ENDS for event in events]
        keys, tracks = self._pairing_keys(events)
        columns: dict[str, ArrayLike] = {
            "start": times.ns[times.valid],
            "key": keys,
            "name": [
                self.names[event.name] if event.name or not is_end else -1
                for event, is_end in zip(events, ends, strict=True)
            ],
            "category": [self.words[event.cat] for event in events],
            "track": tracks,
            "correlation": correlation,
            "detail": detail,
            "ends": ends,
        }
        for column, values in columns.items():
            self._marks[column].append(np.asarray(values, MARK_COLUMNS[column]))

    def _pairing_keys(self, events: list[Event]) -> tuple[list[int], list[int]]:
        """(what pairs, track) of each begin or end: even keys are threads, odd ones asynchronous ids."""
        keys, tracks = [], []
        for event in events:
            if event.ph in "BE":
                track = int(self.tracks.codes([event])[0])
                keys.append(track * 2)
            else:
                pid = ident_text(event.pid, NO_PROCESS)
                track = self.tracks[pid, f"async {event.cat or event.name}"]
                keys.append(self._async_keys[f"{pid}\0{event.cat}\0{_id_text(event)}"] * 2 + 1)
            tracks.append(track)
        return keys, tracks

    def _add_labels(self, events: list[Event]) -> None:
        for event in events:
            argument = LABELS.get(event.name)
            if argument is None:
                continue
            tid = ident_text(event.tid, NO_THREAD) if event.name == "thread_name" else ""
            try:
                raw = LOOSE.decode(bytes(event.args)).get(argument)
            except UNREADABLE:
                continue
            if raw is not None:
                key = (event.name, ident_text(event.pid, NO_PROCESS), tid)
                text = msgspec.json.decode(bytes(raw).decode("utf-8", "replace"))
                self.labels[key] = str(text).strip()[:MAX_TEXT]

    def finish(self) -> dict[str, NDArray[Any]]:
        """All rows as columns: complete events in file order, then paired ones by their begin. Call once."""
        self.flag("lone_flow_end", self._flows.lone_ends())
        marks = {name: joined(self._marks, name, dtype) for name, dtype in MARK_COLUMNS.items()}
        columns = self.taken()
        if len(marks["start"]):
            slices = columns["flags"] != EventFlag.INSTANT
            ends = (columns["start"] + columns["duration"])[slices]
            self.append(**columns)
            pairs = self.add_pairs(marks, int(np.concatenate([marks["start"], ends]).max()))
            self.imported += len(pairs.marks) + pairs.matched
            columns = self.taken()
        return columns


def _id_text(event: Event) -> str:
    return (bytes(event.id) or bytes(event.id2)).strip(b'"').decode("utf-8", "replace")
