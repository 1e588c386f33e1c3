"""Begin and end events become rows: paired by a stack per thread, or per id for asynchronous ones."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final

from tracescope.core.category import EventFlag

BEGINS: Final = frozenset("BbS")
ENDS: Final = frozenset("EeF")


@dataclass(slots=True)
class Mark:
    """One begin or end. ``key`` is what pairs: a track, or an id; ``name`` is -1 where an end has none."""

    start: int
    key: int
    track: int
    name: int
    category: int
    detail: int
    correlation: int
    ends: bool


@dataclass(slots=True)
class Pairs:
    """Rows made from begins, in order of their begin; ``matched`` counts ends that found theirs."""

    begins: list[Mark] = field(default_factory=list)
    durations: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    matched: int = 0


def pair(marks: list[Mark], trace_end: int, dropped: Counter[str], flagged: Counter[str]) -> Pairs:
    """Pair ``marks`` (in file order; times in ns). An open begin ends at ``trace_end`` and is flagged unfinished.

    Files need not be in time order, so marks are sorted by time first, file order breaking ties. A named end closes
    the innermost open begin of its name; a nameless one the innermost of all; a stray one is dropped.
    """
    result = Pairs()
    open_rows: defaultdict[int, list[int]] = defaultdict(list)
    for mark in sorted(marks, key=lambda m: m.start):
        stack = open_rows[mark.key]
        if not mark.ends:
            stack.append(len(result.begins))
            result.begins.append(mark)
            result.durations.append(-1)
            result.flags.append(0)
            continue
        place = _matching(stack, mark.name, result.begins)
        if place is None:
            dropped["misplaced_end"] += 1
            continue
        row = stack.pop(place)
        begin = result.begins[row]
        result.durations[row] = mark.start - begin.start
        begin.detail = begin.detail or mark.detail
        result.matched += 1
    for row, duration in enumerate(result.durations):
        if duration < 0:
            result.durations[row] = max(trace_end - result.begins[row].start, 0)
            result.flags[row] |= EventFlag.UNFINISHED
            flagged["unfinished"] += 1
        if result.durations[row] == 0:
            result.flags[row] |= EventFlag.ZERO_LENGTH
    return result


def _matching(stack: list[int], name: int, begins: list[Mark]) -> int | None:
    """The place in ``stack`` of the begin that an end called ``name`` (-1: nameless) closes."""
    if not stack:
        return None
    if name < 0 or begins[stack[-1]].name == name:
        return len(stack) - 1
    return next((i for i in range(len(stack) - 1, -1, -1) if begins[stack[i]].name == name), None)
