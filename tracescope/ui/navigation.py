"""Moving through a trace: the next event, layer or step as a new view. No Qt here."""

from collections.abc import Callable
from typing import Final

import numpy as np

from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.ui.view_state import ViewState

Move = Callable[[Trace, ViewState], ViewState]

MARGIN: Final = 0.02
"""How much more than a step or an event is shown on both sides of it."""


def bounds(trace: Trace) -> TimeRange:
    """How far a view may go: the whole trace and a little around it."""
    return TimeRange(*trace.span).padded(MARGIN)


def step_range(trace: Trace, step: int) -> TimeRange:
    """The time of one step."""
    start = int(trace.steps.start[step])
    return TimeRange(start, start + int(trace.steps.duration[step]))


def shown(trace: Trace, view: ViewState, visible: TimeRange) -> ViewState:
    """The view with another visible range, kept within the trace; the current step follows where it leaves sight."""
    visible = visible.clamp(bounds(trace))
    view = view.with_(visible=visible)
    if view.step < 0 or step_range(trace, view.step).overlaps(visible.start, visible.end):
        return view
    middle = (visible.start + visible.end) // 2
    step = max(0, int(np.searchsorted(trace.steps.start, middle, side="right")) - 1)
    return view if step == view.step else view.with_(step=step, layer=-1, event=-1)


def zoomed(trace: Trace, view: ViewState, anchor: int, factor: float) -> ViewState:
    """The view scaled about the time ``anchor`` (below 1 zooms in); stops at 1 ns and at the whole trace."""
    factor = min(factor, bounds(trace).duration / view.visible.duration)
    return shown(trace, view, view.visible.zoomed_about(anchor, factor))


def panned(trace: Trace, view: ViewState, share: float) -> ViewState:
    """The view moved by a share of its width."""
    delta = round(view.visible.duration * share)
    return shown(trace, view, view.visible.panned(delta or (1 if share > 0 else -1)))


def revealed(trace: Trace, view: ViewState, start: int, end: int) -> ViewState:
    """The view moved as little as needed so that ``[start, end]`` is in sight, widened only where it must be."""
    visible = view.visible
    margin = visible.duration // 10
    if start >= visible.start and end <= visible.end:
        return view
    if end - start > visible.duration - 2 * margin:
        return view.with_(visible=TimeRange(start, end).padded(0.1).clamp(bounds(trace)))
    shift = start - margin - visible.start if start < visible.start else end + margin - visible.end
    return view.with_(visible=visible.panned(shift).clamp(bounds(trace)))


def select_event(trace: Trace, view: ViewState, event: int) -> ViewState:
    """The view with ``event`` selected and in sight, its step and layer current; -1 clears the selection."""
    if event < 0:
        return view.with_(event=-1)
    events = trace.events
    step = int(events.step[event])
    chosen = view.with_(event=event, layer=int(events.layer[event]), step=step if step >= 0 else view.step)
    start = int(events.start[event])
    return revealed(trace, chosen, start, start + int(events.duration[event]))


def fit_selection(trace: Trace, view: ViewState) -> ViewState:
    """Centre the selected event (or range), then, where it is centred already, fit it."""
    if view.selection is not None:
        return view.with_(visible=view.selection.padded(MARGIN).clamp(bounds(trace)))
    if view.event < 0:
        return view
    start, end = int(trace.events.start[view.event]), int(trace.events.end[view.event])
    middle = (start + end) // 2
    centred = view.visible.panned(middle - (view.visible.start + view.visible.end) // 2).clamp(bounds(trace))
    if centred != view.visible and end - start <= view.visible.duration:
        return view.with_(visible=centred)
    return view.with_(visible=TimeRange(start, end).padded(0.5).clamp(bounds(trace)))


def next_event(trace: Trace, view: ViewState, delta: int) -> ViewState:
    """The next (+1) or previous (-1) event on the lane of the selected one; without one, the first in sight."""
    if view.event < 0:
        return next_on_path(trace, view, delta)
    lane = trace.lanes.of_event(view.event)
    low, high = int(trace.lanes.offset[lane]), int(trace.lanes.offset[lane + 1])
    target = view.event + delta
    return select_event(trace, view, target) if low <= target < high else view


def next_on_path(trace: Trace, view: ViewState, delta: int) -> ViewState:
    """The next or previous device event in the order of time, into the neighbouring step at an end."""
    if view.step < 0:
        count = len(trace.events)
        if view.event >= 0 or not count:
            return view
        return select_event(trace, view, 0 if delta > 0 else count - 1)
    ids = trace.step_events(view.step)
    at = np.flatnonzero(ids == view.event)
    if not len(at):
        return _first_in_sight(trace, view, delta)
    target = int(at[0]) + delta
    if 0 <= target < len(ids):
        return select_event(trace, view, int(ids[target]))
    step = view.step + (1 if delta > 0 else -1)
    if not 0 <= step < len(trace.steps):
        return view
    ids = trace.step_events(step)
    return select_event(trace, view, int(ids[0 if delta > 0 else -1])) if len(ids) else view.with_(step=step)


def _first_in_sight(trace: Trace, view: ViewState, delta: int) -> ViewState:
    """Nothing was selected: the first device event that starts in sight (the last one, going backwards)."""
    ids = trace.step_events(view.step)
    if not len(ids):
        return view
    start = trace.events.start[ids]
    if delta > 0:
        row = int(np.searchsorted(start, view.visible.start, side="left"))
    else:
        row = int(np.searchsorted(start, view.visible.end, side="left")) - 1
    return select_event(trace, view, int(ids[min(max(row, 0), len(ids) - 1)]))


def to_layer(trace: Trace, view: ViewState, delta: int) -> ViewState:
    """The next or previous layer of the current step at the same zoom, its first event selected."""
    if view.step < 0:
        return view
    ids = trace.step_events(view.step)
    layer = trace.events.layer[ids]
    numbers, first = np.unique(layer, return_index=True)
    order = np.argsort(first[numbers >= 0], kind="stable")
    numbers, first = numbers[numbers >= 0][order], first[numbers >= 0][order]
    if not len(numbers):
        return view
    start = trace.events.start[ids[first]]
    if view.layer in numbers:
        index = int(np.flatnonzero(numbers == view.layer)[0]) + delta
    else:
        index = int(np.searchsorted(start, (view.visible.start + view.visible.end) // 2, side="right")) - 1
    if not 0 <= index < len(numbers):
        return view
    event = int(ids[first[index]])
    last = int(trace.events.end[ids[layer == numbers[index]]].max())
    width = view.visible.duration
    begin = int(start[index])
    begin -= max(0, (width - (last - begin)) // 2)
    visible = TimeRange(begin, begin + width).clamp(bounds(trace))
    return view.with_(layer=int(numbers[index]), visible=visible, event=event)


def to_step(trace: Trace, view: ViewState, step: int) -> ViewState:
    """Another step at the same zoom and the same place in it; the same op stays selected where there is one."""
    if not 0 <= step < len(trace.steps) or step == view.step:
        return view
    new = step_range(trace, step)
    if view.step < 0:
        return view.with_(step=step, visible=new.padded(MARGIN).clamp(bounds(trace)), event=-1, layer=-1)
    visible = view.visible.panned(new.start - step_range(trace, view.step).start).clamp(bounds(trace))
    if not new.overlaps(visible.start, visible.end):
        visible = new.padded(MARGIN).clamp(bounds(trace))
    return view.with_(step=step, visible=visible, event=_same_event(trace, view, step))


def _same_event(trace: Trace, view: ViewState, step: int) -> int:
    if view.event < 0:
        return -1
    here, there = trace.step_events(view.step), trace.step_events(step)
    at = np.flatnonzero(here == view.event)
    return int(there[at[0]]) if len(at) and len(here) == len(there) else -1
