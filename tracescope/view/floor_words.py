"""What is said of a floor: its share of a time, or why there is none. Every panel asks here. No Qt here."""

from typing import Final

from tracescope.core.units import MISSING, micros, percent
from tracescope.core.work_table import UNKNOWN
from tracescope.view.document import Document

NO_FLOOR: Final = "none"
"""A floor that is not known is a word, not an em dash: it says that there is no floor."""
_LEAST_SHOWN_NS: Final = 50


def share_of_floor(floor_ns: int | None, took_ns: int) -> float | None:
    """Floor over time. None where the floor is not known, and where it is 0: what moves nothing has no speed."""
    return floor_ns / took_ns if floor_ns and took_ns > 0 else None


def share_text(share: float | None) -> str:
    """A share of floor speed in whole percent, ``<1 %`` where that would read as nothing, an em dash for None."""
    return "<1 %" if share is not None and 0 < share < 0.005 else percent(share)


def floor_micros(floor_ns: int | None) -> str:
    """A floor in µs for a column: ``none`` where it is not known, ``<0.1`` where rounding would hide it."""
    if floor_ns is None:
        return NO_FLOOR
    return "<0.1" if 0 < floor_ns < _LEAST_SHOWN_NS else micros(floor_ns)


def event_floor(document: Document, event: int) -> int | None:
    """The floor of one event in ns; None where it is not known, or it is not a device event of a step."""
    step = int(document.trace.events.step[event])
    if step < 0 or not document.has_floor:
        return None
    taken = document.breakdown(step)
    row = taken.row_of(event)
    return int(taken.floor_ns[row]) if row >= 0 and taken.floor_known[row] else None


def why_no_floor(document: Document, event: int) -> str:
    """Why an event has no floor: what it moved, or how fast that could go, is not known; or no step was there."""
    trace = document.trace
    work = trace.events.work[event]
    floor_bytes = (trace.work.weight_read, trace.work.embedding_gather, trace.work.kv_read, trace.work.kv_append)
    missing = []
    if any(column[work] == UNKNOWN for column in (*floor_bytes, trace.work.link)):
        missing.append("bytes")
    if not document.has_floor:
        missing.append("bandwidth")
    elif trace.work.link[work] > 0 and document.basis.link_bytes_per_s is None:
        missing.append("link bandwidth")
    if not missing:
        return "not an operation of a step on the device"
    return f"{' and '.join(missing)} unknown"


def gap_micros(gap_ns: int | None) -> str:
    """A gap in µs, an em dash where it is not known because there is no floor."""
    return MISSING if gap_ns is None else micros(gap_ns)
