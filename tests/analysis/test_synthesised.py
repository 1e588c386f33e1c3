"""Traces that this project makes itself: on the floor they have no gap at all, above it every gap is explained."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracescope.analysis.breakdown import break_down
from tracescope.analysis.check import check
from tracescope.analysis.gap_causes import gap_causes
from tracescope.analysis.layers import layers_table
from tracescope.analysis.steps import step_series, steps_table
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import Trace
from tracescope.synth.decode import synthesize

LLAMA = ModelSpec("llama-3-8b", "test", 4096, 32, 32, 8, 128, 14336, 128256, tied=False)
H100 = Basis(bandwidth_bytes_per_s=3_350_000_000_000, bandwidth_source="user", peak_flops_per_s=989 * 10**12)


def made(profile: str, steps: int = 8, ranks: int = 1, basis: Basis = H100) -> Trace:
    return synthesize(LLAMA, basis, Workload(16, 4096, tensor_parallel=ranks), steps=steps, profile=profile, seed=5)


def test_an_ideal_step_takes_its_floor_and_kv_grows_by_one_token_a_request() -> None:
    trace = made("ideal", steps=128)
    series = step_series(trace, H100)
    assert np.abs(series.duration - series.floor_ops_ns).max() <= 1
    assert series.weight_read.tolist() == [15_009_849_344] * 128
    assert series.kv_append.tolist() == [2_097_152] * 128
    assert series.kv_read[0] == 8_589_934_592
    assert set(np.diff(series.kv_read).tolist()) == {16 * 131_072}
    assert series.idle_ns.max() == 0
    assert series.ops_without_floor.max() == 0
    assert series.flops[0] == pytest.approx(274.5e9, rel=1e-3)
    assert series.floor_weight_ns[0] == 4_480_552
    assert series.floor_memory_ns[0] == pytest.approx(7_045_300, abs=600)


def test_an_ideal_trace_has_no_gap_in_any_row_and_nothing_to_complain_about() -> None:
    trace = made("ideal")
    assert {r["gap_ns"] for r in layers_table(trace, H100).rows()} == {0}
    assert gap_causes(trace, break_down(trace, H100, 3)) == ()
    assert check(trace, H100).findings == ()


@pytest.mark.parametrize("ranks", [1, 4])
def test_realistic_gaps_add_up_and_the_bytes_are_the_models(ranks: int) -> None:
    basis = Basis(bandwidth_bytes_per_s=3_350_000_000_000, link_bytes_per_s=450_000_000_000, bandwidth_source="user")
    trace = made("realistic", ranks=ranks, basis=basis)
    result = check(trace, basis)
    assert result.ok
    assert not [f for f in result.findings if f.rule.endswith("_bytes")]
    for step in range(len(trace.steps)):
        broken = break_down(trace, basis, step)
        assert broken.gap_ns.sum() + broken.idle_ns == broken.duration_ns - broken.floor_ops_ns
        assert sum(c.ns for c in gap_causes(trace, broken)) == broken.step_gap_ns > 0
        assert broken.idle_ns > 0
        assert broken.idle_spans[1].sum() <= broken.idle_ns


def test_repricing_moves_the_floor_and_not_the_trace() -> None:
    trace = made("ideal")
    slower = Basis(bandwidth_bytes_per_s=1_000_000_000_000, bandwidth_source="user")
    at_home, elsewhere = step_series(trace, H100), step_series(trace, slower)
    assert at_home.duration.tolist() == elsewhere.duration.tolist()
    assert elsewhere.floor_weight_ns[0] == 15_009_849
    assert not check(trace, slower).ok  # it ran faster than this machine could


def test_the_steps_listing_has_the_contracts_names() -> None:
    table = steps_table(made("ideal"), H100)
    assert " ".join(c.key for c in table.columns) == (
        "step rank label kind start_ns duration_ns period_ns host_wait_ns batch padded_batch context_tokens "
        "generated_tokens acceptance weight_read_bytes kv_read_bytes kv_append_bytes flops floor_weight_ns "
        "floor_memory_ns floor_ops_ns gap_ns unknown_ns ops_without_floor mbu idle_ns queue_depth warm_up energy_j "
        "energy_rank_j"
    )
    row = table.row(7)
    assert row["context_tokens"] == 16 * (4096 + 7)
    assert row["period_ns"] is None
    assert row["energy_j"] is None
    assert row["acceptance"] == "all generated tokens accepted"
    assert row["mbu"] == pytest.approx(1, abs=1e-4)


def test_a_deadline_marks_the_steps_that_miss_it() -> None:
    trace = made("ideal", steps=3)
    table = steps_table(trace, H100, deadline_ns=int(trace.steps.duration[1]))
    assert [r["late"] for r in table.rows()] == [False, False, True]
    assert table.summary["late_steps"] == 1


@settings(max_examples=40, deadline=None)
@given(
    hidden=st.integers(1, 40).map(lambda n: 64 * n),
    layers=st.integers(1, 3),
    bandwidth=st.integers(10**9, 10**13),
    peak=st.one_of(st.none(), st.integers(10**11, 10**15)),
    batch=st.integers(1, 64),
    context=st.integers(0, 5_000),
)
def test_whatever_the_model_and_machine_an_ideal_trace_is_on_its_floor(
    *, hidden: int, layers: int, bandwidth: int, peak: int | None, batch: int, context: int
) -> None:
    model = ModelSpec("any", "test", hidden, layers, hidden // 64, 1, 64, 3 * hidden + 1, 1_003, tied=True)
    basis = Basis(bandwidth_bytes_per_s=bandwidth, bandwidth_source="user", peak_flops_per_s=peak)
    trace = synthesize(model, basis, Workload(batch, context), steps=2)
    series = step_series(trace, basis)
    assert np.abs(series.duration - series.floor_ops_ns).max() <= 1
    assert (series.floor_memory_ns <= series.duration + 1).all()
    assert check(trace, basis).findings == ()
