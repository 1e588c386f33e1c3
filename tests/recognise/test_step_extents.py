"""From when to when a step ran, what it waited for, and which step is a warm-up."""

import numpy as np

from tracescope.core.category import StepKind
from tracescope.recognise.steps.step_extents import find_warm_up, step_extents


def extents(rows: list[tuple[int, int, int]], steps: int = 1, works: list[bool] | None = None) -> list[tuple[int, ...]]:
    step, start, duration = (np.array(c, np.int64) for c in zip(*rows, strict=True))
    part = np.array(works if works is not None else [False] * len(rows))
    found = step_extents(step.astype(np.int32), start, start + duration, part, steps)
    return list(zip(found.start.tolist(), found.end.tolist(), found.wait.tolist(), strict=True))


def test_a_leading_cluster_is_left_out_when_the_gap_is_longer_than_half_of_what_remains() -> None:
    assert extents([(0, 0, 4), (0, 104, 100), (0, 204, 50)]) == [(104, 254, 100)]
    assert extents([(0, 0, 4), (0, 54, 100), (0, 154, 50)]) == [(0, 204, -1)]


def test_a_copy_that_comes_late_does_not_push_the_step_aside() -> None:
    assert extents([(0, 0, 100), (0, 100, 50), (0, 400, 2)]) == [(0, 402, -1)]


def test_a_stall_inside_the_model_is_inside_the_step() -> None:
    assert extents([(0, 0, 4), (0, 104, 100)], works=[True, True]) == [(0, 204, -1)]


def test_overlapping_events_end_with_the_longest() -> None:
    assert extents([(0, 0, 100), (0, 10, 20), (0, 95, 10)]) == [(0, 105, -1)]


def test_the_wait_of_a_step_is_the_idle_time_since_the_one_before() -> None:
    rows = [(0, 0, 100), (1, 130, 50), (2, 170, 20)]
    assert extents(rows, 3) == [(0, 100, -1), (130, 180, 30), (170, 190, 0)]


def test_steps_without_events_have_no_extent_and_others_keep_theirs() -> None:
    assert extents([(1, 5, 5), (-1, 0, 3)], 3) == [(-1, -1, -1), (5, 10, -1), (-1, -1, -1)]


def test_the_first_decode_step_is_warm_up_only_with_three_more_to_compare() -> None:
    decode, prefill = StepKind.DECODE, StepKind.PREFILL
    slow_first = np.array([100, 10, 11, 10])
    assert find_warm_up(np.array([decode] * 4), slow_first) == 0
    assert find_warm_up(np.array([decode] * 3), slow_first[:3]) == -1
    assert find_warm_up(np.array([decode] * 4), np.array([20, 10, 11, 10])) == -1
    assert find_warm_up(np.array([prefill, *[decode] * 4]), np.array([500, 100, 10, 11, 10])) == 1
