"""Begin and end events become rows: paired by a stack per thread, or per id for asynchronous ones."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import EventFlag
from tracescope.core.columns import I64, U8

BEGINS: Final = frozenset("BbS")
ENDS: Final = frozenset("EeF")

MARK_COLUMNS: Final[dict[str, Any]] = {
    "start": np.int64,
    "key": np.int64,
    "name": np.int64,
    "category": np.uint32,
    "track": np.uint32,
    "correlation": np.int64,
    "detail": np.uint32,
    "ends": np.bool_,
}
"""One begin or end a row, times in ns. ``key`` is what pairs (a track, or an id); ``name`` is -1 for a nameless end."""

_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows made from begins, by time: which marks they are, their duration (ns), flags and details.

    ``matched`` counts the ends that found their begin.
    """

    marks: I64
    duration: I64
    flags: U8
    detail: NDArray[np.uint32]
    matched: int


def pair(marks: dict[str, NDArray[Any]], trace_end: int, dropped: Counter[str], flagged: Counter[str]) -> Pairs:
    """Pair ``marks`` (MARK_COLUMNS, in file order). An open begin ends at ``trace_end`` and is flagged unfinished.

    Files need not be in time order, so marks are taken by time, file order breaking ties. A named end closes the
    innermost open begin of its name; a nameless one the innermost of all. Order within one instant is the writer's
    accident: an end whose begin follows at the same time closes that begin. A stray one is dropped.
    """
    start, ends = marks["start"], marks["ends"]
    order = np.argsort(start, kind="stable")
    end_mark = np.full(len(start), -1)
    open_marks: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    early: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    """Ends that have met no begin yet, by what pairs, their name and their time."""
    for mark, key, name, is_end, time in _rows(order, marks["key"], marks["name"], ends, start):
        stack = open_marks[key]
        if not is_end:
            waiting = early.get((key, name, time))
            if waiting:
                end_mark[mark] = waiting.pop()
            else:
                stack.append((mark, name))
            continue
        place = _matching(stack, name)
        if place is None:
            early[key, name, time].append(mark)
        else:
            end_mark[stack.pop(place)[0]] = mark
    strays = sum(map(len, early.values()))
    if strays:
        dropped["misplaced_end"] += strays
    begins = order[~ends[order]]
    closed_by = end_mark[begins]
    unfinished = closed_by < 0
    if unfinished.any():
        flagged["unfinished"] += int(unfinished.sum())
    duration = np.where(unfinished, trace_end, start[closed_by]) - start[begins]
    flags = np.where(unfinished, EventFlag.UNFINISHED, 0) | np.where(duration == 0, EventFlag.ZERO_LENGTH, 0)
    own, other = marks["detail"][begins], marks["detail"][closed_by]
    detail = np.where((own == 0) & ~unfinished, other, own).astype(np.uint32)
    return Pairs(begins, duration, flags.astype(np.uint8), detail, int((~unfinished).sum()))


def _rows(order: I64, *columns: NDArray[Any]) -> Iterator[tuple[int, int, int, bool, int]]:
    """The rows of ``columns`` in ``order``, the row number first; Python objects of a few thousand at a time."""
    for low in range(0, len(order), _AT_ONCE):
        piece = order[low : low + _AT_ONCE]
        yield from zip(piece.tolist(), *(column[piece].tolist() for column in columns), strict=True)


def _matching(stack: list[tuple[int, int]], name: int) -> int | None:
    """The place in ``stack`` of the begin that an end called ``name`` (-1: nameless) closes."""
    if not stack:
        return None
    if name < 0 or stack[-1][1] == name:
        return len(stack) - 1
    return next((place for place in range(len(stack) - 1, -1, -1) if stack[place][1] == name), None)
