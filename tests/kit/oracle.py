"""An independent reading of a Chrome trace: the standard library's json with Decimal, and nothing of the product.

Slow and memory-hungry on purpose: it shares no code and no idea with the reader it checks.
"""

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path


@dataclass
class OracleTrace:
    """What a trace holds: ``rows`` are (name, pid, tid, start ns, duration ns) of complete and paired events."""

    elements: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    rows: Counter[tuple[str, str, str, int, int]] = field(default_factory=Counter)

    @property
    def events(self) -> int:
        return self.rows.total()

    @property
    def total_duration(self) -> int:
        return sum(row[4] * count for row, count in self.rows.items())

    @property
    def first_start(self) -> int | None:
        return min((row[3] for row in self.rows), default=None)


def load(path: Path) -> OracleTrace | None:
    """The trace in ``path``; None where the standard library does not read it or it holds no event list."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    try:
        document = json.loads(data, parse_float=Decimal)
    except ValueError:
        return None
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        return None
    return of_events(events)


def of_events(events: list[dict[str, object]]) -> OracleTrace:
    """Complete events and begin/end pairs of a list of parsed events (numbers int or Decimal)."""
    trace = OracleTrace(elements=len(events))
    marks: dict[tuple[str, str], list[tuple[int, dict[str, object]]]] = {}
    latest = 0
    for event in events:
        phase = str(event.get("ph", ""))
        trace.phases[phase] += 1
        start = ns(event.get("ts"))
        track = (identity(event.get("pid"), "(no process)"), identity(event.get("tid"), "(no thread)"))
        if phase == "X" and start is not None:
            duration = ns(event.get("dur", 0))
            if duration is not None and duration >= 0:
                trace.rows[(str(event.get("name") or "(unnamed)"), *track, start, duration)] += 1
                latest = max(latest, start + duration)
        elif phase in ("B", "E") and start is not None:
            marks.setdefault(track, []).append((start, event))
            latest = max(latest, start)
    for track, list_of_marks in marks.items():
        stack: list[tuple[int, str]] = []
        early: list[tuple[int, str]] = []
        for start, event in sorted(list_of_marks, key=lambda m: m[0]):
            name = str(event.get("name") or "")
            if event["ph"] == "B":
                if (start, name) in early:  # its end was written first, at the same instant
                    early.remove((start, name))
                    trace.rows[(name, *track, start, 0)] += 1
                else:
                    stack.append((start, name))
                continue
            for place in range(len(stack) - 1, -1, -1):
                if not name or stack[place][1] == name:
                    begin, begun = stack.pop(place)
                    trace.rows[(begun or "(unnamed)", *track, begin, start - begin)] += 1
                    break
            else:
                early += [(start, name)] if name else []
        for begin, begun in stack:
            trace.rows[(begun or "(unnamed)", *track, begin, latest - begin)] += 1
    return trace


def ns(value: object) -> int | None:
    """A time in µs (number or text) as whole nanoseconds; None where it is not one."""
    if value is None or isinstance(value, bool | list | dict):
        return None
    try:
        exact = Decimal(str(value)) * 1000
        return int(exact.to_integral_value(ROUND_HALF_EVEN)) if exact.is_finite() else None
    except ArithmeticError:
        return None


def identity(value: object, absent: str) -> str:
    """A pid or tid as text; a whole number reads the same with and without a decimal point."""
    if value is None:
        return absent
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return str(int(value))
    return str(value)
