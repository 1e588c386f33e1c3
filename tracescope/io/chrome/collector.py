"""Turns decoded events into columns, piece by piece, counting everything that becomes no row."""

from collections import Counter, defaultdict
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracescope.core.category import EventFlag
from tracescope.io.chrome.event import LOOSE, UNREADABLE, Event
from tracescope.io.chrome.flows import FlowParcel, Flows
from tracescope.io.chrome.pairing import BEGINS, ENDS, MARK_COLUMNS, pair
from tracescope.io.chrome.tables import (
    MAX_DETAILS_BYTES,
    MAX_TEXT,
    NO_PROCESS,
    NO_THREAD,
    Details,
    Tracks,
    ident_text,
    new_numbering,
)
from tracescope.io.chrome.times import LIMIT_NS, nanoseconds

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

COLUMNS: Final[dict[str, Any]] = {
    "start": np.int64,
    "duration": np.int64,
    "name": np.uint32,
    "category": np.uint32,
    "track": np.uint32,
    "correlation": np.int64,
    "detail": np.uint32,
    "flags": np.uint8,
}


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
    categories: list[str]
    tracks: list[tuple[str, str]]
    details: list[str]
    details_spent: int
    labels: list[tuple[str, str, str, str]]
    flows: FlowParcel
    metadata: dict[str, Any]
    rows: int
    columns: dict[str, Any] = {}


class Collector:
    """Columns of complete events, marks waiting for their pair, flows and metadata; then ``finish``."""

    def __init__(self) -> None:
        self.seen = 0
        self.imported = 0
        self.dropped: Counter[str] = Counter()
        self.flagged: Counter[str] = Counter()
        self.names = new_numbering()
        self.categories = new_numbering()
        self.tracks = Tracks()
        self.details = Details(self.flagged)
        self.labels: dict[tuple[str, str, str], str] = {}
        """(metadata event's name, pid, tid or "") to text."""
        self.fractional = False
        self._parts: dict[str, list[NDArray[Any]]] = {column: [] for column in COLUMNS}
        self._marks: dict[str, list[NDArray[Any]]] = {column: [] for column in MARK_COLUMNS}
        self._flows = Flows()
        self._async_keys = new_numbering()

    @property
    def has_marks(self) -> bool:
        """Whether a begin or an end waits for its pair."""
        return bool(self._marks["start"])

    def parcel(self, metadata: dict[str, Any]) -> "Parcel":
        """Everything that was collected, for ``absorb`` of a collector of what comes before. Call once, last."""
        columns = {column: _joined(self._parts, column, dtype) for column, dtype in COLUMNS.items()}
        return Parcel(
            seen=self.seen,
            imported=self.imported,
            dropped=self.dropped,
            flagged=self.flagged,
            fractional=self.fractional,
            names=list(self.names),
            categories=list(self.categories),
            tracks=self.tracks.keys,
            details=self.details.texts,
            details_spent=self.details.spent,
            labels=[(*key, text) for key, text in self.labels.items()],
            flows=self._flows.parcel(),
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
            "name": np.array([self.names[text] for text in more.names], np.uint32),
            "category": np.array([self.categories[text] for text in more.categories], np.uint32),
            "track": np.array([self.tracks.of_text(*key) for key in more.tracks], np.uint32),
            "detail": self.details.codes_of(more.details, more.details_spent),
        }
        self.labels |= {(event, pid, tid): text for event, pid, tid, text in more.labels}
        self._flows.absorb(more.flows)
        given = more.columns
        self._append(**{c: codes[c][given.pop(c)] if c in codes else given.pop(c) for c in COLUMNS})
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
            times = nanoseconds([e.ts for e in group])
            good = int(times.valid.sum())
            self.imported += good
            self._drop("invalid_timestamp", len(group) - good)
        else:
            self._drop(DROPPED_PHASES.get(phase, "unknown_phase"), len(group))

    def _drop(self, reason: str, events: int) -> None:
        if events:
            self.dropped[reason] += events

    def _add_complete(self, events: list[Event]) -> None:
        times = nanoseconds([e.ts for e in events])
        spans = nanoseconds([e.dur for e in events])
        self.fractional |= times.fractional or spans.fractional
        start, duration = times.ns, spans.ns
        bad_span = ~(spans.valid | spans.missing)
        far = np.abs(start + duration) > LIMIT_NS
        keep = times.valid & ~bad_span & (duration >= 0) & ~far
        if not keep.all():
            self._drop("invalid_timestamp", int((~times.valid).sum()))
            self._drop("invalid_duration", int((times.valid & (bad_span | (far & (duration >= 0)))).sum()))
            self._drop("negative_duration", int((times.valid & ~bad_span & (duration < 0)).sum()))
            events = [e for e, kept in zip(events, keep.tolist(), strict=True) if kept]
            start, duration = start[keep], duration[keep]
        for reason, number in (
            ("sub_nanosecond", times.finer + spans.finer),
            ("missing_duration", int((spans.missing & keep).sum())),
        ):
            if number:
                self.flagged[reason] += number
        detail, correlation = self.details.take(events)
        names, categories = self.names, self.categories
        self._append(
            start=start,
            duration=duration,
            name=np.fromiter(map(names.__getitem__, map(_NAME, events)), np.uint32, len(events)),
            category=np.fromiter(map(categories.__getitem__, map(_CATEGORY, events)), np.uint32, len(events)),
            track=self.tracks.codes(events),
            correlation=correlation,
            detail=detail,
            flags=np.where(duration == 0, EventFlag.ZERO_LENGTH, 0),
        )
        self.imported += len(events)

    def _append(self, **columns: ArrayLike) -> None:
        for column, values in columns.items():
            self._parts[column].append(np.asarray(values, COLUMNS[column]))

    def _add_marks(self, events: list[Event]) -> None:
        times = nanoseconds([e.ts for e in events])
        self.fractional |= times.fractional
        if times.finer:
            self.flagged["sub_nanosecond"] += times.finer
        self._drop("invalid_timestamp", int((~times.valid).sum()))
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
            "category": [self.categories[event.cat] for event in events],
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
                track = self.tracks.of_text(pid, f"async {event.cat or event.name}")
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
        """The columns of RawEvents: complete events in file order, then paired ones by their begin. Call once.

        ``category`` is uint32 and counts in ``categories``, whose words are as the file spells them.
        """
        lone = self._flows.lone_ends()
        if lone:
            self.flagged["lone_flow_end"] += lone
        columns = {name: _joined(self._parts, name, dtype) for name, dtype in COLUMNS.items()}
        if self._marks["start"]:
            columns = self._with_pairs(columns)
        return columns

    def _with_pairs(self, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        marks = {name: _joined(self._marks, name, dtype) for name, dtype in MARK_COLUMNS.items()}
        if not len(marks["start"]):
            return columns
        ends = columns["start"] + columns["duration"]
        last = int(np.concatenate([marks["start"], ends]).max())
        pairs = pair(marks, last, self.dropped, self.flagged)
        self.imported += len(pairs.marks) + pairs.matched
        more = {name: values[pairs.marks] for name, values in marks.items() if name in COLUMNS}
        more |= {"duration": pairs.duration, "flags": pairs.flags, "detail": pairs.detail}
        return {name: np.concatenate([columns[name], more[name].astype(dtype)]) for name, dtype in COLUMNS.items()}


def _joined(parts: dict[str, list[NDArray[Any]]], name: str, dtype: Any) -> NDArray[Any]:
    """Join the parts of one column and let them go: two copies of one column at most live together."""
    pieces, parts[name] = parts[name], []
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)


def _id_text(event: Event) -> str:
    return (bytes(event.id) or bytes(event.id2)).strip(b'"').decode("utf-8", "replace")
