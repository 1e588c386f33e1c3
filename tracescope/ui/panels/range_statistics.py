"""Statistics of a dragged time range: how long, how many events, how busy, by kind."""

import numpy as np

from tracescope.analysis.exposed_time import union_of
from tracescope.core.category import KIND_OF_CATEGORY, KINDS, Category
from tracescope.core.timerange import TimeRange
from tracescope.core.units import count, duration, percent
from tracescope.ui.document import Document
from tracescope.ui.panels.inspection import Inspection, Row


def inspect_range(document: Document, selected: TimeRange) -> Inspection:
    """The device events inside a range, their time clipped to it and summed by kind."""
    trace, events = document.trace, document.trace.events
    offset = trace.lanes.offset
    total = dict.fromkeys((kind.letter for kind in KINDS), 0)
    inside = 0
    pieces = []
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
        spent = np.bincount(events.category[first:last], weights=end - start, minlength=len(Category))
        for category in Category:
            total[KIND_OF_CATEGORY[category].letter] += int(spent[category])
    busy = union_of(*np.concatenate(pieces, axis=1)) if pieces else 0
    rows: list[Row] = [
        ("events", "on the device, in part or whole", count(inside)),
        ("busy", "anything ran", duration(busy)),
        ("idle", f"{duration(selected.duration)} − {duration(busy)}", duration(selected.duration - busy)),
    ]
    for kind in KINDS:
        spent_ns = total[kind.letter]
        if spent_ns:
            share = percent(spent_ns / selected.duration)
            rows.append((kind.letter, f"{kind.title}, {share} of the range", duration(spent_ns)))
    subtitle = "statistics of the time you dragged over"
    return Inspection("Selected range", subtitle, None, selected.duration, None, tuple(rows))
