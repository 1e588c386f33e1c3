"""Moves of keys and gestures over a document, on top of ``navigation``: fit, pan by time, by layer. No Qt here."""

from collections.abc import Callable

from tracescope.core.timerange import TimeRange
from tracescope.ui import navigation
from tracescope.ui.document import Document
from tracescope.ui.view_state import ViewState

Move = Callable[[Document, ViewState], ViewState]
LAYER_MARGIN = 0.35
"""Share of a layer that stays visible of its neighbours when it is shown."""


def shown(document: Document, view: ViewState, visible: TimeRange) -> ViewState:
    """Another visible range, kept inside the trace; the current step follows."""
    return navigation.shown(document.trace, view, visible)


def zoomed(document: Document, view: ViewState, anchor: int | None, factor: float) -> ViewState:
    """Zoom by ``factor`` (below 1: in) about ``anchor`` ns, the middle where None."""
    middle = (view.visible.start + view.visible.end) // 2
    return navigation.zoomed(document.trace, view, middle if anchor is None else anchor, factor)


def panned(document: Document, view: ViewState, delta: int) -> ViewState:
    """Pan by ``delta`` ns."""
    return shown(document, view, view.visible.panned(delta))


def panned_by(document: Document, view: ViewState, share: float) -> ViewState:
    """Pan by a share of the visible width, at least 1 ns."""
    return navigation.panned(document.trace, view, share)


def select_event(document: Document, view: ViewState, event: int) -> ViewState:
    """Select an event and bring it into sight; -1 selects nothing."""
    return navigation.select_event(document.trace, view, event)


def fit_event(document: Document, view: ViewState, event: int) -> ViewState:
    """Select an event and show it with as much again on both sides."""
    events = document.trace.events
    span = TimeRange(int(events.start[event]), int(events.end[event]))
    return shown(document, select_event(document, view, event), span.padded(0.5))


def fit_all(document: Document, view: ViewState) -> ViewState:
    """The whole trace."""
    return view.with_(visible=navigation.bounds(document.trace))


def fit_step(document: Document, view: ViewState) -> ViewState:
    """The whole current step; the whole trace where there is none."""
    if view.step < 0:
        return fit_all(document, view)
    span = document.step_range(view.step).padded(navigation.MARGIN)
    return view.with_(visible=span.clamp(navigation.bounds(document.trace)))


def to_step(document: Document, view: ViewState, step: int) -> ViewState:
    """Another step, at the same zoom and the same place in it."""
    return navigation.to_step(document.trace, view, step)


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


def selected_range(document: Document, view: ViewState) -> TimeRange | None:
    """The time of what is selected: a dragged range, else the event, else the layer; None where nothing is."""
    if view.selection is not None:
        return view.selection
    if view.event >= 0:
        events = document.trace.events
        return TimeRange(int(events.start[view.event]), int(events.end[view.event]))
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
    centred = TimeRange(start, start + width).clamp(navigation.bounds(document.trace))
    if centred == view.visible or target.duration > width:
        return shown(document, view, target.padded(0.1))
    return shown(document, view, centred)
