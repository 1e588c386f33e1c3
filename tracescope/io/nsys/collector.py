"""Collects rows of an export into the columns and tables of a RawTrace, and counts those that become none."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import EventFlag
from tracescope.core.columns import I64, U32
from tracescope.core.raw import RawEvents
from tracescope.io.nsys.database import MISSING, Row

LIMIT_NS: Final = 1 << 61
"""Times lie within it on both sides, so that the difference of any two stays below 2^62."""
MAX_DETAILS_BYTES: Final = 256 << 20
"""Text kept of all arguments together; further distinct ones are left out and counted."""

_COLUMNS: Final[dict[str, Any]] = {
    "start": np.int64,
    "duration": np.int64,
    "name": np.uint32,
    "category": np.uint8,
    "track": np.uint32,
    "correlation": np.int64,
    "detail": np.uint32,
    "flags": np.uint8,
}

Key = TypeVar("Key", bound=Hashable)


class Numbering(dict[Key, int]):
    """Numbers distinct keys in order of first use; a dict, because nothing else looks up a million keys as fast."""

    def __missing__(self, key: Key) -> int:
        self[key] = number = len(self)
        return number

    def of(self, keys: Sequence[Key]) -> U32:
        """The number of each key; uint32[n]."""
        return np.fromiter(map(self.__getitem__, keys), np.uint32, len(keys))


class Details:
    """Numbers distinct recorded arguments; 0 stands for none. ``texts`` are compact JSON."""

    def __init__(self, flagged: Counter[str]) -> None:
        self.texts = [""]
        self._codes: dict[str, int] = {"": 0, "{}": 0}
        self._by_row: dict[object, dict[Row, int]] = {}
        self._flagged = flagged
        self._room = MAX_DETAILS_BYTES

    def of(self, describe: Callable[[Row], dict[str, Any]], values: list[Row]) -> U32:
        """The detail of each row; ``describe`` is called once for each distinct tuple of values."""
        known = self._by_row.setdefault(describe, {})
        for row in dict.fromkeys(values):  # no set: the numbers must be the same in every run
            if row not in known:
                known[row] = self._code_of(describe(row))
        return np.fromiter(map(known.__getitem__, values), np.uint32, len(values))

    def _code_of(self, arguments: dict[str, Any]) -> int:
        text = msgspec.json.encode(arguments).decode()
        code = self._codes.get(text)
        if code is None:
            if len(text) > self._room:
                self._flagged["details_too_long"] += 1
                return 0
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
            self._room -= len(text)
        return code


class Collector:
    """Rows of all tables so far; ``finish`` gives the columns of a RawTrace."""

    def __init__(self) -> None:
        self.seen = 0
        self.imported = 0
        self.dropped: Counter[str] = Counter()
        self.flagged: Counter[str] = Counter()
        self.names: Numbering[tuple[str, str]] = Numbering()
        """(name shown, full name)."""
        self.categories: Numbering[str] = Numbering()
        self.tracks: Numbering[tuple[int, ...]] = Numbering()
        self.details = Details(self.flagged)
        self._parts: dict[str, list[NDArray[Any]]] = {column: [] for column in _COLUMNS}

    def drop(self, reason: str, rows: int) -> None:
        """Count ``rows`` as left out."""
        if rows:
            self.dropped[reason] += rows

    def flag(self, reason: str, rows: int) -> None:
        """Count ``rows`` that are kept and worth knowing about."""
        if rows:
            self.flagged[reason] += rows

    def add(
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
        """Take rows, not yet counted as seen. An end that is MISSING leaves the event open where ``open_ended``, else
        it lasts nothing; both are flagged unfinished. Impossible times are dropped and counted.
        """
        unfinished = end == MISSING
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
        flags = np.where(unfinished, EventFlag.UNFINISHED, 0) | np.where(duration == 0, EventFlag.ZERO_LENGTH, 0)
        columns: dict[str, Any] = {
            "start": start,
            "duration": duration,
            "name": name,
            "category": category,
            "track": track,
            "correlation": correlation,
            "detail": detail,
            "flags": flags,
        }
        for column, values in columns.items():
            spread = np.broadcast_to(np.asarray(values, _COLUMNS[column]), start.shape)
            self._parts[column].append(spread[keep])

    def finish(self) -> RawEvents:
        """All rows; open events end with the last of the trace."""
        columns = {
            name: np.concatenate(parts) if parts else np.empty(0, _COLUMNS[name]) for name, parts in self._parts.items()
        }
        start, duration = columns["start"], columns["duration"]
        still_open = duration < 0
        if still_open.any():
            last = int((start + np.maximum(duration, 0)).max())
            duration[still_open] = last - start[still_open]
            columns["flags"][still_open & (duration == 0)] |= np.uint8(EventFlag.ZERO_LENGTH)
        return RawEvents(**columns)


def _in_range(times: I64) -> NDArray[np.bool_]:
    return (times > -LIMIT_NS) & (times < LIMIT_NS)
