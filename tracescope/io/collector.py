"""What every reader of traces collects into: columns, numbered tables, and counts of what became no row."""

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracescope.core.category import EventFlag
from tracescope.core.columns import I64, U8, U32, Bool
from tracescope.core.raw import RawCategory, RawEvents, RawTrace, RawTrack
from tracescope.core.report import Source
from tracescope.io.pairing import Pairs, pair
from tracescope.io.words import category_of

MAX_TEXT: Final = 1 << 20
"""Characters kept of one name or one event's arguments."""
MAX_DETAILS_BYTES: Final = 256 << 20
"""Text kept of all arguments together; further distinct ones are left out and counted."""
MAX_TRACKS: Final = 100_000

NO_PROCESS: Final = "(no process)"
NO_THREAD: Final = "(no thread)"
UNNAMED: Final = "(unnamed)"

EPOCH_2001_NS: Final = 10**18
"""A time beyond it counts from 1970: nobody's uptime reaches 31 years."""

PER_EVENT_KEYS: Final = (
    "correlation",
    "External id",
    "external id",
    "Ev Idx",
    "Record function id",
    "Python id",
    "Python parent id",
    "Sequence number",
    "Fwd thread id",
    "Profiler Event Index",
    "external ts",
    "queued",
    "wait_on_cuda_event_record_corr_id",
    "wait_on_hip_event_record_corr_id",
)
"""Arguments that number single events: with them no two rows would share their details."""

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
"""Those of RawEvents; ``category`` is the number of the source's word until ``finish`` knows what it stands for."""

NEVER: Final = -(1 << 63)
"""An end that was not recorded."""
SPAN_LIMIT_NS: Final = 1 << 61
"""Times of spans lie within it on both sides, so that the difference of any two stays below 2^62."""

SECOND_NS: Final = 10**9
FAR: Final = 100

Key = TypeVar("Key", bound=Hashable)


class Numbering(dict[Key, int]):
    """Numbers distinct keys in order of first use; a dict, because nothing else looks up a million keys as fast."""

    def __missing__(self, key: Key) -> int:
        self[key] = number = len(self)
        return number

    def of(self, keys: Sequence[Key]) -> U32:
        """The number of each key; uint32[n]."""
        return np.fromiter(map(self.__getitem__, keys), np.uint32, len(keys))


class Rows:
    """Rows of whole numbers that come one at a time, kept as columns."""

    def __init__(self, *names: str) -> None:
        self._columns = {name: array("q") for name in names}
        self._appends = [column.append for column in self._columns.values()]

    def add(self, *row: int) -> None:
        """Add one row, its numbers in the order of the names."""
        for append, value in zip(self._appends, row, strict=True):
            append(value)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def arrays(self) -> dict[str, I64]:
        """Each column as int64[rows]."""
        return {name: np.array(column, np.int64) for name, column in self._columns.items()}


class Details:
    """Numbers distinct recorded arguments; 0 stands for none. ``texts`` are compact JSON without per-event ids."""

    def __init__(self, flagged: Counter[str]) -> None:
        self.texts = [""]
        self.spent = 0
        """Bytes that the limit on all arguments together has counted."""
        self._flagged = flagged
        self._by_text = {"": 0, "{}": 0}
        self._by_row: dict[object, dict[tuple[Any, ...], int]] = {}

    def of(self, arguments: dict[str, Any]) -> int:
        """The number of ``arguments``."""
        if not arguments:
            return 0
        return self.of_text(msgspec.json.encode(arguments).decode("utf-8", "replace"))

    def of_text(self, text: str, cost: int | None = None) -> int:
        """The number of one compact JSON text that took ``cost`` bytes; 0, and flagged, where there is no room."""
        code = self._by_text.get(text)
        if code is None:
            cost = len(text) if cost is None else cost
            if not self.has_room(cost):
                return 0
            code = self._by_text[text] = len(self.texts)
            self.texts.append(text)
            self.spent += cost
        return code

    def has_room(self, cost: int) -> bool:
        """Whether a text of ``cost`` bytes may be kept; flagged where not."""
        if cost > min(MAX_TEXT, MAX_DETAILS_BYTES - self.spent):
            self._flagged["details_too_long"] += 1
            return False
        return True

    def of_rows(self, describe: Callable[[tuple[Any, ...]], dict[str, Any]], values: list[tuple[Any, ...]]) -> U32:
        """The number of each row's arguments; ``describe`` is called once for each distinct tuple of values."""
        known = self._by_row.setdefault(describe, {})
        for row in dict.fromkeys(values):  # no set: the numbers must be the same in every run
            if row not in known:
                known[row] = self.of(describe(row))
        return np.fromiter(map(known.__getitem__, values), np.uint32, len(values))

    def absorb(self, texts: list[str], spent: int) -> U32:
        """The number of each of ``texts``, those of another table that had counted ``spent``; uint32[texts]."""
        self.spent += spent
        for text in texts:
            if self._by_text.setdefault(text, len(self.texts)) == len(self.texts):
                self.texts.append(text)
        return np.fromiter(map(self._by_text.__getitem__, texts), np.uint32, len(texts))


class Collector:
    """Everything that a reader has found so far; ``trace`` makes a RawTrace of it. ``seen`` must come to be
    ``imported`` and all that was dropped.

    ``names`` are texts, or pairs (shown, full) where the file has both.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.imported = 0
        self.dropped: Counter[str] = Counter()
        self.flagged: Counter[str] = Counter()
        self.names: Numbering[Any] = Numbering()
        self.words: Numbering[str | RawCategory] = Numbering()
        """What the source calls the kinds of its events, or what its reader knows them to be."""
        self.tracks: Numbering[Any] = Numbering()
        self.details = Details(self.flagged)
        self._parts: dict[str, list[NDArray[Any]]] = {column: [] for column in COLUMNS}

    def drop(self, reason: str, events: int = 1) -> None:
        """Count events as left out."""
        if events:
            self.dropped[reason] += events

    def flag(self, reason: str, events: int = 1) -> None:
        """Count events that are kept and worth knowing about."""
        if events:
            self.flagged[reason] += events

    def append(self, **columns: ArrayLike) -> None:
        """Take rows as they are: one array for each of COLUMNS."""
        for column, values in columns.items():
            self._parts[column].append(np.asarray(values, COLUMNS[column]))

    def add_spans(
        self,
        start: I64,
        end: I64,
        *,
        name: NDArray[Any],
        category: NDArray[Any] | int,
        track: NDArray[Any],
        detail: NDArray[Any] | int = 0,
        correlation: I64 | int = -1,
        open_ended: bool = True,
    ) -> None:
        """Take rows, not yet counted as seen. An end that is NEVER leaves the event open where ``open_ended``, else
        it lasts nothing; both are flagged unfinished. Impossible times are dropped and counted.
        """
        unfinished = end == NEVER
        sound = _in_range(start) & (unfinished | _in_range(end))
        backwards = sound & ~unfinished & (end < start)
        self.seen += len(start)
        self.drop("invalid_timestamp", int((~sound).sum()))
        self.drop("negative_duration", int(backwards.sum()))
        keep = sound & ~backwards
        self.imported += int(keep.sum())
        self.flag("unfinished", int((unfinished & keep).sum()))
        # -1 marks what is open until the end of the trace is known.
        duration = np.where(unfinished, -1 if open_ended else 0, end - start)
        columns: dict[str, Any] = {
            "start": start,
            "duration": duration,
            "name": name,
            "category": category,
            "track": track,
            "correlation": correlation,
            "detail": detail,
            "flags": np.where(unfinished, EventFlag.UNFINISHED, 0) | zero_flags(duration),
        }
        self.append(**{column: np.broadcast_to(values, start.shape)[keep] for column, values in columns.items()})

    def add_pairs(self, marks: dict[str, NDArray[Any]], until: int) -> Pairs:
        """Pair begins and ends (MARK_COLUMNS, in source order) and take what they make; open begins last ``until``."""
        pairs = pair(marks, until, self.dropped, self.flagged)
        more = {name: marks[name][pairs.marks] for name in ("start", "name", "category", "track", "correlation")}
        self.append(**more, duration=pairs.duration, flags=pairs.flags, detail=pairs.detail)
        return pairs

    def taken(self) -> dict[str, NDArray[Any]]:
        """All rows so far as columns, open ones ending with the last; they are kept here no longer."""
        columns = {column: joined(self._parts, column, dtype) for column, dtype in COLUMNS.items()}
        start, duration = columns["start"], columns["duration"]
        still_open = np.flatnonzero(duration < 0)
        if len(still_open):
            last = int((start + np.maximum(duration, 0)).max())
            duration[still_open] = last - start[still_open]
            columns["flags"][still_open] |= zero_flags(duration[still_open])
        return columns

    def events(
        self,
        columns: dict[str, NDArray[Any]],
        tracks: Sequence[RawTrack],
        *,
        base_time_ns: int = 0,
        summaries: Sequence[int] = (),
    ) -> RawEvents:
        """``columns`` as RawEvents. What ran on a device, and of which no more is known, is a kernel; ``summaries`` are
        tracks whose events show others again, so that they are annotations.
        """
        lookup = np.array([*map(category_of, self.words), RawCategory.OTHER], np.uint8)
        category: U8 = lookup[columns["category"]]
        on_device = np.array([*(t.is_device for t in tracks), False])
        vague = np.isin(lookup, (RawCategory.RUNTIME, RawCategory.OTHER))
        if on_device.any() and vague[:-1].any():
            category[vague[columns["category"]] & on_device[columns["track"]]] = RawCategory.KERNEL
        if len(summaries):
            category[np.isin(columns["track"], summaries)] = RawCategory.ANNOTATION
        suspect = _suspect_times(columns["start"], columns["duration"], base_time_ns)
        if suspect is not None:
            columns["flags"] = columns["flags"] | np.where(suspect, EventFlag.SUSPECT_TIME, 0).astype(np.uint8)
            self.flag("suspect_zero_time", int(suspect.sum()))
        return RawEvents(**(columns | {"category": category}))

    def trace(self, source: Source, events: RawEvents, tracks: tuple[RawTrack, ...], **more: Any) -> RawTrace:
        """The RawTrace of what was collected; ``more`` are its other fields."""
        names = [name if isinstance(name, tuple) else (name, "") for name in self.names]
        shown = tuple(text[:MAX_TEXT] or UNNAMED for text, _ in names)
        full = tuple(text or short for short, text in names) if any(text for _, text in names) else ()
        self.flag("text_shortened", sum(len(text) > MAX_TEXT for text, _ in names))
        return RawTrace(
            source=source,
            events=events,
            names=shown,
            full_names=full,
            tracks=tracks,
            details=tuple(self.details.texts),
            seen=self.seen,
            imported=self.imported,
            dropped=dict(+self.dropped),
            flagged=dict(+self.flagged),
            **more,
        )


def joined(parts: dict[str, list[NDArray[Any]]], name: str, dtype: Any) -> NDArray[Any]:
    """Join the parts of one column and let them go: two copies of one column at most live together."""
    pieces, parts[name] = parts[name], []
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)


def _in_range(times: I64) -> Bool:
    return (times > -SPAN_LIMIT_NS) & (times < SPAN_LIMIT_NS)


def _suspect_times(start: I64, duration: I64, base: int) -> Bool | None:
    """Which rows begin at 0 although all others lie far from it: their recorder had no time for them. None for none.

    Recorders count from 1970, from the machine's start or from the recording's: what begins at 0 while the rest lies a
    hundred times further away than it is long was not there. ``base``: the wall clock of the file's 0, 0 for none.
    """
    zero = -base if base and (start == -base).any() else 0
    at_zero = start == zero
    count = int(np.count_nonzero(at_zero))
    if not 0 < count < len(start) - count:
        return None
    rest = ~at_zero
    low, high = int(start[rest].min()), int((start[rest] + duration[rest]).max())
    return at_zero if low - zero > FAR * max(high - low, SECOND_NS) else None


def zero_flags(duration: I64) -> U8:
    """The flags of rows by their duration."""
    return np.where(duration == 0, EventFlag.ZERO_LENGTH, 0).astype(np.uint8)
