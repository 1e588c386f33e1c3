"""Which lanes count as the device where a trace has no accelerator."""

from tests.kit.traces import THREAD, Ev, St, make_trace
from tracescope.core.category import TrackKind
from tracescope.core.trace import Trace, Track

FRAMES = Track(TrackKind.HOST_THREAD, "thread 1 · Python")


def trace_with(step_of_operators: int) -> Trace:
    """An operator on its thread, and two nested frames of the interpreter."""
    events = [Ev(0, 10, step=step_of_operators), Ev(0, 10, step=-1, track=1), Ev(1, 2, step=-1, track=1)]
    return make_trace(events, [St(0, 10)], (THREAD, FRAMES))


def test_interpreter_frames_are_not_the_device_where_operators_run_steps() -> None:
    assert trace_with(0).on_device.tolist() == [True, False, False]


def test_without_steps_every_host_thread_counts() -> None:
    assert trace_with(-1).on_device.tolist() == [True, True, True]
