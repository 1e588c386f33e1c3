"""Which lanes count as the device where a trace has no accelerator."""

import numpy as np

from tracescope.core.category import TrackKind
from tracescope.core.trace import EventTable, Lanes, StepTable, Trace, TraceMeta, Track

OPERATORS = Track(TrackKind.HOST_THREAD, "thread 1")
FRAMES = Track(TrackKind.HOST_THREAD, "thread 1 · Python")


def trace_with(step_of_operators: int) -> Trace:
    zero = np.zeros(3, np.int64)
    events = EventTable(
        [0, 0, 1], [10, 10, 2], zero, zero, zero, zero, zero - 1, [step_of_operators, -1, -1], zero, zero, zero
    )
    one = np.zeros(1, np.int64)
    steps = StepTable(one, one, one, one + 10, one, one, one, one, one, one, one == 1, one == 1)
    lanes = Lanes([0, 1, 1], [0, 0, 1], [0, 1, 2, 3])
    return Trace(TraceMeta(), (OPERATORS, FRAMES), lanes, events, ("x",), steps=steps)


def test_interpreter_frames_are_not_the_device_where_operators_run_steps() -> None:
    assert trace_with(0).on_device.tolist() == [True, False, False]


def test_without_steps_every_host_thread_counts() -> None:
    assert trace_with(-1).on_device.tolist() == [True, True, True]
