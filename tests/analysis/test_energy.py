"""Energy of steps and events: one definition, whose parts add up."""

from dataclasses import replace

import numpy as np
import pytest

from tests.kit.traces import BASIS, ENERGY, SECOND_STREAM, STREAM, Ev, St, make_trace
from tracescope.analysis.board_power import drawn_over_time
from tracescope.analysis.layers import layer_rows, layers_table
from tracescope.analysis.steps import step_series, steps_table
from tracescope.analysis.work_energy import energy_columns, energy_of
from tracescope.core.category import Category, Op
from tracescope.core.hardware import Basis
from tracescope.core.model import Workload
from tracescope.core.trace import Trace
from tracescope.floor.step_floor import step_floor
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize

WEIGHTS, KV = Category.WEIGHT_READ, Category.KV_READ


def test_the_parts_of_a_step_add_up_to_what_the_listing_says() -> None:
    basis = make_basis(load_hardware("h100-sxm"))
    trace = synthesize(load_model("llama-3-8b"), basis, Workload(16, 4096), steps=2)
    series, listed = step_series(trace, basis), steps_table(trace, basis).column("energy_j")
    for step in (0, 1):
        found = energy_of(series, step, int(series.duration[step]), basis)
        assert found is not None
        energy, split = found
        assert split.total == pytest.approx(energy.mid, rel=1e-12)
        assert listed.cell(step) == {
            "low": energy.low,
            "mid": energy.mid,
            "high": energy.high,
            "level": "board",
            "extrapolated": False,
        }
        assert split.weights == pytest.approx(13.8e-12 * 8 * 15_009_849_344)


def test_the_rows_looked_up_in_the_embedding_are_in_no_energy() -> None:
    model, basis, workload = load_model("llama-3-8b"), make_basis(load_hardware("h100-sxm")), Workload(16, 4096)
    trace = synthesize(model, basis, workload, steps=1)
    embed = int(np.flatnonzero(trace.events.op == Op.EMBED)[0])
    assert trace.work.embedding_gather[trace.events.work[embed]] > 0
    found = energy_of(trace.work, int(trace.events.work[embed]), int(trace.events.duration[embed]), basis)
    assert found is not None
    assert found[1].weights == 0.0
    floor = step_floor(model, workload, basis)
    step = energy_of(step_series(trace, basis), 0, round(floor.floor_ops_s * 1e9), basis)
    assert step is not None
    assert floor.energy is not None
    assert step[0].mid == pytest.approx(floor.energy.mid, rel=1e-6)


def test_the_dynamic_energy_of_the_rows_is_that_of_the_step() -> None:
    basis = make_basis(load_hardware("h100-sxm"))
    trace = synthesize(load_model("llama-3-8b"), basis, Workload(4, 512), steps=1)
    rows, series = layer_rows(trace, basis, np.array([0])), step_series(trace, basis)
    by_row = [energy_of(rows.work, row, 0, basis) for row in range(len(rows))]
    whole = energy_of(series, 0, 0, basis)
    assert whole is not None
    assert sum(found[0].mid for found in by_row if found) == pytest.approx(whole[0].mid, rel=1e-9)


def test_energy_is_unknown_where_an_amount_that_counts_is() -> None:
    events = [Ev(0, 10, category=WEIGHTS, weight_read=5), Ev(10, 10, category=KV, unknown=True)]
    trace = make_trace(events, [St(0, 40)])
    series = step_series(trace, BASIS)
    assert energy_of(series, 0, 40, BASIS) is None
    assert energy_of(series, 0, 40, replace(BASIS, energy=None)) is None
    work = trace.events.work.tolist()
    assert [energy_of(trace.work, work[event], 10, BASIS) is None for event in (0, 1)] == [False, True]
    assert [column.cell(0) for column in energy_columns(series, series.duration, BASIS, 1)] == [None, None]


def test_energy_is_all_ranks_and_the_rank_s_own_stands_beside_it() -> None:
    trace = make_trace([Ev(0, 10, category=WEIGHTS, weight_read=5)], [St(0, 40)])
    series = step_series(trace, BASIS)
    group, own = (column.cell(0) for column in energy_columns(series, series.duration, BASIS, 4))
    assert isinstance(group, dict)
    assert isinstance(own, dict)
    assert (group["low"], group["mid"], group["high"]) == tuple(4 * float(own[key]) for key in ("low", "mid", "high"))


def test_link_bytes_count_only_with_a_coefficient() -> None:
    events = [Ev(0, 10, category=Category.COMMUNICATION, link=1000), Ev(10, 10, category=WEIGHTS, weight_read=5)]
    trace = make_trace(events, [St(0, 40)])
    series = step_series(trace, BASIS)
    without = energy_of(series, 0, 0, BASIS)
    priced = energy_of(series, 0, 0, replace(BASIS, energy=replace(ENERGY, link_pj_per_bit=2.0)))
    assert without is not None
    assert priced is not None
    assert without[1].link is None
    assert priced[0].mid - without[0].mid == pytest.approx(2e-12 * 8 * 1000)


def hot() -> Basis:
    """A machine whose fit draws more than its board may wherever bytes move at full rate: 80 mW of 0.1."""
    energy = replace(ENERGY, static_w=(0.05, 0.05, 0.05))
    assert BASIS.hardware is not None
    return replace(BASIS, energy=energy, hardware=replace(BASIS.hardware, tdp_w=0.1, energy=energy))


def two_steps() -> Trace:
    """A step that reads at full rate, one that reads half of the time, and 20 ns between them."""
    events = [
        Ev(0, 40, 0, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=40),
        Ev(40, 60, 0, op=Op.ATTENTION, layer=0, category=KV, kv_read=60),
        Ev(120, 50, 1, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=50),
    ]
    return make_trace(events, [St(0, 100), St(120, 100)])


def test_rows_add_up_to_a_step_that_the_board_caps() -> None:
    trace, basis = two_steps(), hot()
    for step, (said, joules) in enumerate([(130e-10, 100e-10), (90e-10, 90e-10)]):
        cell = steps_table(trace, basis).column("energy_j").cell(step)
        assert isinstance(cell, dict)
        assert cell["mid"] == pytest.approx(joules)
        assert energy_of(step_series(trace, basis), step, 100, replace(basis, hardware=None)) is not None
        rows = layers_table(trace, basis, step)
        found = [cell["mid"] for cell in rows.column("energy_j").values]
        idle = rows.summary["idle_ns"] * 1e-9 * 0.05
        assert sum(found) + idle == pytest.approx(joules)
        assert joules <= said


def test_the_cap_of_a_step_is_the_same_at_every_zoom() -> None:
    trace, basis = two_steps(), hot()
    over_time = drawn_over_time(trace.steps, step_series(trace, basis), basis)
    for columns in (1, 3, 100):
        shares = over_time.between(np.linspace(0, 100, columns + 1))
        np.testing.assert_allclose(shares.static, np.full(columns, 0.4))
        np.testing.assert_allclose(shares.moved, np.ones(columns))
    across = over_time.between(np.array([0.0, 100.0, 120.0, 220.0, 500.0]))
    np.testing.assert_allclose(across.static, [0.4, 1, 1, 1])
    cool = drawn_over_time(trace.steps, step_series(trace, BASIS), BASIS).between(np.array([0.0, 1.0]))
    assert (cool.moved, cool.static) == (1.0, 1.0)


def test_steps_of_two_ranks_at_once_are_capped_at_their_mean() -> None:
    events = [
        Ev(0, 100, 0, op=Op.QKV, category=WEIGHTS, weight_read=100),
        Ev(50, 50, 1, track=1, op=Op.QKV, category=WEIGHTS, weight_read=10),
    ]
    trace, basis = make_trace(events, [St(0, 100), St(50, 50)], (STREAM, SECOND_STREAM)), hot()
    shares = drawn_over_time(trace.steps, step_series(trace, basis), basis).between(np.array([0.0, 50.0, 100.0]))
    np.testing.assert_allclose(shares.static, [0.4, 0.7])
