"""Statistics of a dragged time range: how long, how many events, how busy, by kind."""

from collections.abc import Callable

import numpy as np

from tracescope.core.category import KIND_OF_CATEGORY, KINDS, Category
from tracescope.core.columns import I64, U8
from tracescope.core.ownership import owned_pieces, union_of
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.core.units import count, duration, micros, millis, percent, plural, size
from tracescope.floor.pricing import work_floor_ns
from tracescope.view.document import Document
from tracescope.view.inspection import Inspection, Row


def _in_unit_of(longest_ns: int) -> Callable[[float], str]:
    """Durations of one list in one unit, that of the longest: they are compared with each other."""
    if longest_ns < 1e3:
        return duration
    if longest_ns < 999_950:
        return lambda ns: f"{micros(ns)} µs"
    return (lambda ns: f"{millis(ns)} ms") if longest_ns < 999_999_500 else (lambda ns: f"{ns / 1e9:,.3f} s")


def _spent(trace: Trace, start: I64, end: I64, category: U8, lane: I64) -> I64:
    """Time of events by category, ns, one a category; of operators, which nest, only what the innermost took."""
    if not trace.nested:
        return np.bincount(category, weights=end - start, minlength=len(Category)).astype(np.int64)
    order = np.argsort(start, kind="stable")
    lane, category = lane[order], category[order]
    begin, stop, row = owned_pieces(start[order], end[order], trace.lanes.depth[lane], trace.lanes.track[lane])
    return np.bincount(category[row], weights=stop - begin, minlength=len(Category)).astype(np.int64)


def inspect_range(document: Document, selected: TimeRange) -> Inspection:
    """The device events inside a range, their time clipped to it and summed by kind."""
    trace, events = document.trace, document.trace.events
    floors, priced = work_floor_ns(trace.work, document.basis)
    if not document.has_floor:
        priced = np.zeros_like(priced)
    offset = trace.lanes.offset
    total = dict.fromkeys((kind.letter for kind in KINDS), 0)
    inside, moved, floor, unknown = 0, 0.0, 0.0, 0
    pieces, categories, lanes = [], [], []
    for lane in np.flatnonzero(trace.on_device).tolist():
        low, high = int(offset[lane]), int(offset[lane + 1])
        # Events of one lane neither overlap nor go back in time, so their ends ascend too.
        first = low + int(np.searchsorted(events.end[low:high], selected.start, side="right"))
        last = low + int(np.searchsorted(events.start[low:high], selected.end, side="left"))
        if last <= first:
            continue
        start = np.maximum(events.start[first:last], selected.start)
        end = np.minimum(events.end[first:last], selected.end)
        inside += last - first
        pieces.append(np.stack([start, end]))
        categories.append(events.category[first:last])
        lanes.append(np.full(last - first, lane))
        # An event that the range cuts counts with the share of its bytes and of its floor that lies inside.
        share = (end - start) / np.maximum(1, events.duration[first:last])
        rows_of_work = events.work[first:last]
        amounts, known = trace.work.memory_bytes[rows_of_work], priced[rows_of_work]
        moved += float((share * np.maximum(amounts, 0)).sum())
        floor += float((share * np.where(known, floors[rows_of_work], 0.0)).sum())
        unknown += int((~known).sum())
    busy = 0
    if pieces:
        start, end = np.concatenate(pieces, axis=1)
        busy = union_of(start, end)
        spent = _spent(trace, start, end, np.concatenate(categories), np.concatenate(lanes))
        for category in Category:
            total[KIND_OF_CATEGORY[category].letter] += int(spent[category])
    said = _in_unit_of(selected.duration)
    rows: list[Row] = [
        ("events", "on the device, in part or whole", count(inside)),
        ("busy", "anything ran", said(busy)),
        ("idle", f"{said(selected.duration)} − {said(busy)}", said(selected.duration - busy)),
    ]
    if moved > 0:
        rows.append(("bytes", "of the parts inside", size(moved)))
    if floor > 0:
        without = f"; {plural(unknown, 'event')} without" if unknown else ""
        rows.append(("floor", f"of the parts inside{without}", said(floor)))
    for kind in KINDS:
        spent_ns = total[kind.letter]
        if spent_ns:
            of_range = percent(spent_ns / selected.duration)
            rows.append((kind.letter, f"{kind.title}, {of_range} of the range", said(spent_ns)))
    subtitle = "statistics of the time you dragged over"
    # Of several lanes the floors may overlap in time: then their sum is no floor of the range.
    whole = round(floor) if floor > 0 and not unknown and len(pieces) == 1 else None
    return Inspection("Selected range", subtitle, None, selected.duration, whole, tuple(rows))
