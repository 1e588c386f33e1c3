"""Moving through a document: every key and gesture as a function from one view to the next. No Qt here."""

from collections.abc import Callable
from typing import Final

import numpy as np

from tracescope.core.columns import I64
from tracescope.core.timerange import TimeRange
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

Move = Callable[[Document, ViewState], ViewState]

MARGIN: Final = 0.02
"""How much more than a step or a trace is shown on both sides of it."""
LAYER_MARGIN: Final = 0.35
"""Share of a layer that stays visible of its neighbours when it is shown."""


def bounds(document: Document) -> TimeRange:
    """How far a view may go: the whole trace and a little around it."""
    return document.whole_range.padded(MARGIN)


# The visible range


def shown(document: Document, view: ViewState, visible: TimeRange) -> ViewState:
    """Another visible range, kept inside the trace; the current step follows where it leaves sight."""
    visible = visible.clamp(bounds(document))
    view = view.with_(visible=visible)
    if view.step < 0 or document.step_range(view.step).overlaps(visible.start, visible.end):
        return view
    middle = (visible.start + visible.end) // 2
    step = max(0, int(np.searchsorted(document.trace.steps.start, middle, side="right")) - 1)
    return view if step == view.step else view.with_(step=step, layer=-1, event=-1)


def zoomed(document: Document, view: ViewState, anchor: int | None, factor: float) -> ViewState:
    """Zoom by ``factor`` (below 1: in) about ``anchor`` ns, the middle where None; 1 ns to the whole trace."""
    middle = (view.visible.start + view.visible.end) // 2
    factor = min(factor, bounds(document).duration / view.visible.duration)
    return shown(document, view, view.visible.zoomed_about(middle if anchor is None else anchor, factor))


def panned(document: Document, view: ViewState, delta: int) -> ViewState:
    """Pan by ``delta`` ns."""
    return shown(document, view, view.visible.panned(delta))


def panned_by(document: Document, view: ViewState, share: float) -> ViewState:
    """Pan by a share of the visible width, at least 1 ns."""
    return panned(document, view, round(view.visible.duration * share) or (1 if share > 0 else -1))


def revealed(document: Document, view: ViewState, span: TimeRange) -> ViewState:
    """Move as little as needed so that ``span`` is in sight; the view gets wider only where it must."""
    visible = view.visible
    margin = visible.duration // 10
    if span.start >= visible.start and span.end <= visible.end:
        return view
    if span.duration > visible.duration - 2 * margin:
        return view.with_(visible=span.padded(0.1).clamp(bounds(document)))
    late = span.start < visible.start
    shift = span.start - margin - visible.start if late else span.end + margin - visible.end
    return view.with_(visible=visible.panned(shift).clamp(bounds(document)))


def fit_all(document: Document, view: ViewState) -> ViewState:
    """The whole trace."""
    return view.with_(visible=bounds(document))


def fit_step(document: Document, view: ViewState) -> ViewState:
    """The whole current step; the whole trace where there is none."""
    if view.step < 0:
        return fit_all(document, view)
    return view.with_(visible=document.step_range(view.step).padded(MARGIN).clamp(bounds(document)))


def selected_range(document: Document, view: ViewState) -> TimeRange | None:
    """The time of what is selected: a dragged range, else the event, else the layer; None where nothing is."""
    if view.selection is not None:
        return view.selection
    if view.event >= 0:
        return _time_of(document, view.event)
    if view.layer >= 0 and view.step >= 0:
        for span in document.layer_spans(view.step):
            if span.layer == view.layer:
                return TimeRange(span.start, span.end)
    return None


def fit_selection(document: Document, view: ViewState) -> ViewState:
    """Centre what is selected; where it is centred already, or too wide for the view, fill the view with it."""
    target = selected_range(document, view)
    if target is None:
        return view
    width = view.visible.duration
    start = (target.start + target.end) // 2 - width // 2
    centred = TimeRange(start, start + width).clamp(bounds(document))
    if centred == view.visible or target.duration > width:
        return shown(document, view, target.padded(0.1))
    return shown(document, view, centred)


# Events


def select_event(document: Document, view: ViewState, event: int) -> ViewState:
    """Select an event and bring it into sight, its step and layer current; -1 selects nothing."""
    if event < 0:
        return view.with_(event=-1)
    events = document.trace.events
    step = int(events.step[event])
    chosen = view.with_(event=event, layer=int(events.layer[event]), step=step if step >= 0 else view.step)
    return revealed(document, chosen, _time_of(document, event))


def fit_event(document: Document, view: ViewState, event: int) -> ViewState:
    """Select an event and show it with as much again on both sides."""
    return shown(document, select_event(document, view, event), _time_of(document, event).padded(0.5))


def next_event(document: Document, view: ViewState, delta: int) -> ViewState:
    """The next (+1) or previous (-1) event on the lane of the selected one; without one, the first in sight."""
    if view.event < 0:
        return next_on_path(document, view, delta)
    lanes = document.trace.lanes
    lane = lanes.of_event(view.event)
    target = view.event + delta
    inside = int(lanes.offset[lane]) <= target < int(lanes.offset[lane + 1])
    return select_event(document, view, target) if inside else view


def next_on_path(document: Document, view: ViewState, delta: int) -> ViewState:
    """The next or previous event that owns a part of the step's time, into the neighbouring step at an end."""
    if view.step < 0:
        count = len(document.trace.events)
        if view.event >= 0 or not count:
            return view
        return select_event(document, view, 0 if delta > 0 else count - 1)
    taken = document.breakdown(view.step)
    owners = np.flatnonzero(taken.exposed_ns > 0)
    here = taken.row_of(view.event)
    if here < 0:
        return _first_in_sight(document, view, taken.events[owners], delta)
    found = np.searchsorted(owners, here, side="right") if delta > 0 else np.searchsorted(owners, here) - 1
    if 0 <= found < len(owners):
        return select_event(document, view, int(taken.events[owners[found]]))
    step = view.step + (1 if delta > 0 else -1)
    if not 0 <= step < len(document.trace.steps):
        return view
    taken = document.breakdown(step)
    path = taken.events[taken.exposed_ns > 0]
    return select_event(document, view, int(path[0 if delta > 0 else -1])) if len(path) else view.with_(step=step)


def _first_in_sight(document: Document, view: ViewState, path: I64, delta: int) -> ViewState:
    """Nothing was selected: the first event of ``path`` that starts in sight (the last one, going backwards)."""
    if not len(path):
        return view
    start = document.trace.events.start[path]
    if delta > 0:
        row = int(np.searchsorted(start, view.visible.start, side="left"))
    else:
        row = int(np.searchsorted(start, view.visible.end, side="left")) - 1
    return select_event(document, view, int(path[min(max(row, 0), len(path) - 1)]))


def _time_of(document: Document, event: int) -> TimeRange:
    events = document.trace.events
    start = int(events.start[event])
    return TimeRange(start, start + int(events.duration[event]))


# Steps and layers


def to_step(document: Document, view: ViewState, step: int) -> ViewState:
    """Another step at the same zoom and the same place in it; the same op stays selected where there is one."""
    if not 0 <= step < len(document.trace.steps) or step == view.step:
        return view
    new = document.step_range(step)
    if view.step < 0:
        return view.with_(step=step, visible=new.padded(MARGIN).clamp(bounds(document)), event=-1, layer=-1)
    visible = view.visible.panned(new.start - document.step_range(view.step).start).clamp(bounds(document))
    if not new.overlaps(visible.start, visible.end):
        visible = new.padded(MARGIN).clamp(bounds(document))
    return view.with_(step=step, visible=visible, event=_same_event(document, view, step))


def _same_event(document: Document, view: ViewState, step: int) -> int:
    if view.event < 0:
        return -1
    here, there = document.trace.step_events(view.step), document.trace.step_events(step)
    at = np.flatnonzero(here == view.event)
    return int(there[at[0]]) if len(at) and len(here) == len(there) else -1


def step_by_layer(document: Document, view: ViewState, delta: int) -> ViewState:
    """The next or previous layer of the current step fills the view; the op that was selected stays selected."""
    spans = document.layer_spans(view.step) if view.step >= 0 else ()
    if not spans:
        return view
    numbers = [span.layer for span in spans]
    if view.layer in numbers:
        index = numbers.index(view.layer) + delta
    else:
        middle = (view.visible.start + view.visible.end) // 2
        index = sum(span.start <= middle for span in spans) - 1
    return show_layer(document, view, numbers[min(max(index, 0), len(numbers) - 1)])


def show_layer(document: Document, view: ViewState, layer: int) -> ViewState:
    """Fill the view with one layer of the current step, the op that was selected selected in it."""
    span = next((s for s in document.layer_spans(view.step) if s.layer == layer), None)
    if span is None:
        return view
    event = -1
    if view.event >= 0:
        events = document.trace.events
        ids = document.breakdown(view.step).events
        alike = ids[(events.layer[ids] == layer) & (events.op[ids] == events.op[view.event])]
        event = int(alike[0]) if len(alike) else -1
    moved = view.with_(layer=layer, event=event, selection=None)
    return shown(document, moved, TimeRange(span.start, span.end).padded(LAYER_MARGIN)).with_(layer=layer)
