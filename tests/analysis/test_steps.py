"""Series over all steps: sums, unknowns, periods and speed."""

import numpy as np

from tests.kit.traces import BASIS, NO_BASIS, SECOND_STREAM, STREAM, Ev, St, make_trace
from tracescope.analysis.breakdown import break_down
from tracescope.analysis.layers import layers_table
from tracescope.analysis.steps import step_series, steps_table
from tracescope.core.category import Category, Op

WEIGHTS, KV, APPEND = Category.WEIGHT_READ, Category.KV_READ, Category.KV_APPEND


def test_bytes_and_floors_of_each_step_are_the_sums_over_its_events() -> None:
    events = [
        Ev(0, 100, category=WEIGHTS, weight_read=80, flops=10_000),
        Ev(100, 30, category=KV, kv_read=25, flops=3_000),
        Ev(130, 5, category=APPEND, kv_append=1),
        Ev(200, 100, step=1, category=WEIGHTS, weight_read=80, flops=200_000),
    ]
    series = step_series(make_trace(events, [St(0, 150), St(200, 110)]), BASIS)
    assert series.weight_read.tolist() == [80, 80]
    assert series.kv_read.tolist() == [25, 0]
    assert series.kv_append.tolist() == [1, 0]
    assert series.flops.tolist() == [13_000, 200_000]
    assert series.floor_weight_ns.tolist() == [80, 80]
    assert series.floor_memory_ns.tolist() == [106, 80]
    assert series.floor_ops_ns.tolist() == [106, 200]  # the second step is bound by its FLOPs
    assert series.idle_ns.tolist() == [15, 10]
    assert series.period.tolist() == [200, -1]
    assert series.mbu.tolist() == [106 / 150, 80 / 110]


def test_bytes_are_unknown_where_an_op_known_to_move_them_lacks_them() -> None:
    events = [
        Ev(0, 10, category=WEIGHTS, weight_read=5),
        Ev(10, 10, category=WEIGHTS, unknown=True),
        Ev(20, 10, category=KV, kv_read=7),
        Ev(30, 10, unknown=True),
    ]
    series = step_series(make_trace(events, [St(0, 40)]), BASIS)
    assert series.weight_read.tolist() == [-1]
    assert series.kv_read.tolist() == [7]
    assert series.floor_memory_ns.tolist() == [-1]
    assert np.isnan(series.mbu[0])
    assert (series.floor_ops_ns.tolist(), series.ops_without_floor.tolist()) == ([12], [2])


def test_a_step_of_which_nothing_is_known_has_no_bytes_rather_than_none() -> None:
    series = step_series(make_trace([Ev(0, 10, unknown=True)], [St(0, 40)]), BASIS)
    assert series.weight_read.tolist() == series.kv_read.tolist() == series.kv_append.tolist() == [-1]


def test_a_sum_over_no_op_that_is_priced_is_no_floor() -> None:
    events = [
        Ev(0, 10, unknown=True),
        Ev(10, 20, category=Category.COMPUTE),
        Ev(50, 10, step=1, category=Category.COMPUTE),
        Ev(100, 10, step=2, unknown=True),
        Ev(110, 10, step=2, category=WEIGHTS, weight_read=4),
    ]
    trace = make_trace(events, [St(0, 40), St(50, 20), St(100, 20)])
    series = step_series(trace, BASIS)
    assert series.floor_ops_ns.tolist() == [-1, 0, 4]  # nothing known; known to need nothing; the sum of what is known
    assert series.ops_without_floor.tolist() == [1, 0, 1]
    assert steps_table(trace, BASIS).column("floor_ops_ns").cell(0) is None
    nothing = break_down(trace, BASIS, 0)
    assert (nothing.floor_ops_ns, nothing.step_gap_ns, nothing.unknown_ns) == (-1, 30, 10)
    assert nothing.gap_ns.sum() + nothing.idle_ns == nothing.step_gap_ns
    assert [layers_table(trace, BASIS, step).summary["floor_ops_ns"] for step in range(3)] == [None, 0, 4]


def test_a_series_of_chosen_steps_is_a_part_of_the_whole() -> None:
    events = [Ev(50 * s, 9, s, category=WEIGHTS, weight_read=3 * s) for s in range(5)]
    trace = make_trace(events, [St(50 * s, 20 + s) for s in range(5)])
    whole, part = step_series(trace, BASIS), step_series(trace, BASIS, np.array([3, 1]))
    for name in ("start", "duration", "period", "weight_read", "floor_memory_ns", "floor_ops_ns", "idle_ns"):
        assert getattr(part, name).tolist() == getattr(whole, name)[[3, 1]].tolist()


def test_without_a_bandwidth_there_are_bytes_but_no_floors() -> None:
    series = step_series(make_trace([Ev(0, 10, category=WEIGHTS, weight_read=5)], [St(0, 40)]), NO_BASIS)
    assert series.weight_read.tolist() == [5]
    assert series.floor_weight_ns.tolist() == series.floor_ops_ns.tolist() == [-1]
    assert series.ops_without_floor.tolist() == [1]


def test_the_series_agrees_with_every_step_taken_apart() -> None:
    rng = np.random.default_rng(3)
    events = [
        Ev(int(50 * s + rng.integers(0, 45)), int(rng.integers(0, 12)), s, int(rng.integers(0, 2)), Op.QKV,
           category=WEIGHTS, weight_read=int(rng.integers(0, 9)))
        for s in range(20) for _ in range(8)
    ]  # fmt: skip
    basis = BASIS.__class__(bandwidth_bytes_per_s=1_700_000_000, bandwidth_source="user")
    trace = make_trace(events, [St(50 * s, 48) for s in range(20)], (STREAM, SECOND_STREAM))
    series = step_series(trace, basis)
    for step in range(20):
        broken = break_down(trace, basis, step)
        assert series.floor_ops_ns[step] == broken.floor_ops_ns
        assert series.idle_ns[step] == broken.idle_ns
        assert abs(broken.floor_ops_ns - series.weight_read[step] / 1.7) <= 0.501


def test_a_sum_beyond_anything_real_is_not_known_instead_of_wrapping_around() -> None:
    events = [Ev(10 * i, 10, weight_read=1 << 61, roles=Category.WEIGHT_READ.role) for i in range(5)]
    row = steps_table(make_trace(events, [St(0, 50)]), NO_BASIS).row(0)
    assert row["weight_read_bytes"] is None
    assert row["kv_read_bytes"] == 0
