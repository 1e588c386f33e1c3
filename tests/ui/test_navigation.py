"""Moves from one view to the next: in device time, and only along it."""

from tests.kit.pictures import document_of, llama
from tests.kit.traces import SECOND_STREAM, STREAM, St, kernel, make_trace
from tracescope.view.document import Document
from tracescope.view.inspection import inspect_event
from tracescope.view.navigation import next_event, next_on_path, panned_by, select_event, zoomed


def two_streams() -> Document:
    """Two steps; on the second stream events that run wholly under others (20, 130), and one that reaches past one."""
    made = [
        kernel(0, 50, step=0), kernel(50, 30, step=0), kernel(100, 60, step=1),
        kernel(20, 10, step=0, track=1), kernel(70, 20, step=0, track=1), kernel(130, 10, step=1, track=1),
    ]  # fmt: skip
    return document_of(make_trace(made, [St(0, 90), St(100, 60)], (STREAM, SECOND_STREAM)))


def starting(document: Document, start: int) -> int:
    return document.trace.events.start.tolist().index(start)


def walked(document: Document, start: int, delta: int) -> list[int]:
    """The starts of the events that repeated moves along the path come to."""
    view = select_event(document, document.initial_view(), starting(document, start))
    found = []
    for _ in range(8):
        after = next_on_path(document, view, delta)
        if after.event == view.event:
            break
        found.append(int(document.trace.events.start[after.event]))
        view = after
    return found


def test_the_path_goes_over_events_that_own_time_and_into_the_next_step() -> None:
    document = two_streams()
    assert walked(document, 0, 1) == [50, 70, 100]
    assert walked(document, 100, -1) == [70, 50, 0]


def test_from_an_event_under_another_the_path_goes_on_from_its_place_in_time() -> None:
    document = two_streams()
    assert walked(document, 20, 1)[0] == 50
    assert walked(document, 20, -1)[0] == 0
    assert walked(document, 130, 1) == []


def test_only_an_event_that_owns_time_is_said_to_be_on_the_path() -> None:
    document = two_streams()
    words = {start: inspect_event(document, starting(document, start)).subtitle for start in (0, 20, 70, 130)}
    assert {start: "in device time" in said for start, said in words.items()} == {
        0: True, 20: False, 70: True, 130: False,
    }  # fmt: skip


def test_events_of_a_lane_end_at_its_ends() -> None:
    document = two_streams()
    view = select_event(document, document.initial_view(), starting(document, 20))
    for expected in (70, 130, 130):
        view = next_event(document, view, 1)
        assert document.trace.events.start[view.event] == expected
    view = next_event(document, view.with_(event=-1, step=0, visible=document.step_range(0)), 1)
    assert document.trace.events.start[view.event] == 0


def test_zooming_out_stops_at_the_whole_trace_and_panning_stays_in_it() -> None:
    document = llama()
    view = document.initial_view()
    for _ in range(40):
        view = zoomed(document, view, None, 2.0)
    widest = view.visible
    assert widest.start < document.whole_range.start
    assert widest.end > document.whole_range.end
    assert panned_by(document, view, 0.5).visible == widest
    assert zoomed(document, view, None, 3.0).visible == widest
