"""Capacity, bandwidth and dependence of a step, by the same functions as the listings."""

import pytest

from tests.kit.traces import BASIS, Ev, St, make_trace
from tracescope.analysis.constraints import three_constraints
from tracescope.analysis.step_workload import workload_of_step
from tracescope.analysis.steps import step_series
from tracescope.core.category import Category, Op
from tracescope.core.hardware import Basis
from tracescope.core.model import Workload
from tracescope.core.trace import Trace
from tracescope.floor.step_ops import stored_bytes
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize


def llama(batch: int = 16, context: int = 4096, profile: str = "ideal", ranks: int = 1) -> tuple[Trace, Basis]:
    basis = make_basis(load_hardware("h100-sxm"))
    workload = Workload(batch, context, tensor_parallel=ranks)
    return synthesize(load_model("llama-3-8b"), basis, workload, steps=3, profile=profile), basis


def test_a_llama_step_on_h100_in_three_parts() -> None:
    trace, basis = llama(profile="realistic")
    found = three_constraints(trace, basis, 1)
    series = step_series(trace, basis)
    assert found.capacity is not None
    assert (found.capacity.fits, found.capacity.stored_bytes) == (True, 16_060_522_496)
    assert (found.capacity.blocks_used, found.capacity.blocks_total) == (16 * 257, 29_205)
    memory = found.memory
    assert memory.streamed_bytes == series.streamed_bytes[1] == 15_009_849_344 + 16 * 4097 * 131_072 + 2_097_152
    assert memory.mbu == series.mbu[1]
    assert memory.floor_weight_ns + memory.floor_kv_ns == memory.floor_memory_ns == series.floor_memory_ns[1]
    assert found.dependence.ops_in_series == found.dependence.events == 326
    assert found.dependence.tokens_per_s == pytest.approx(16e9 / int(trace.steps.duration[1]))
    assert found.dependence.acceptance == "all generated tokens accepted"
    assert found.dependence.period_ns == series.period[1]
    assert found.verdict is not None
    assert found.verdict.binds == "weights"
    assert found.crossovers is not None
    assert found.missing == ()


def test_every_step_has_the_numbers_of_its_row_in_the_listing() -> None:
    trace, _ = llama(profile="realistic")
    for bandwidth in ("3.35TB/s", "1.7TB/s", "0.333TB/s", "864GB/s"):
        basis = make_basis(load_hardware("h100-sxm"), bandwidth)
        series = step_series(trace, basis)
        for step in range(len(series)):
            memory = three_constraints(trace, basis, step).memory
            assert memory.mbu == series.mbu[step]
            assert memory.floor_weight_ns == series.floor_weight_ns[step]
            assert memory.floor_memory_ns == series.floor_memory_ns[step]
            assert memory.floor_ops_ns == series.floor_ops_ns[step]


def test_the_lessons_case_at_batch_one_and_four_shares_one_pass() -> None:
    basis = make_basis(load_hardware("lesson-1tbs"))
    one, four = (
        three_constraints(synthesize(load_model("lesson-20gb"), basis, Workload(batch), steps=2), basis, 0)
        for batch in (1, 4)
    )
    assert one.memory.weight_read_bytes == four.memory.weight_read_bytes == 20_000_000_000
    assert one.memory.floor_weight_ns == four.memory.floor_weight_ns == 20_000_000
    assert (one.dependence.generated_tokens, four.dependence.generated_tokens) == (1, 4)
    assert one.dependence.tokens_per_s == pytest.approx(50, rel=0.01)
    assert four.dependence.tokens_per_s_per_request == pytest.approx(50, rel=0.01)
    assert four.dependence.requests_per_s(100) == pytest.approx(2, rel=0.01)


def test_a_split_model_is_seen_as_one_rank() -> None:
    trace, basis = llama(ranks=4)
    found = three_constraints(trace, basis, 0)
    assert found.workload == Workload(16, 4096, tensor_parallel=4)
    assert found.capacity is not None
    assert found.capacity.stored_bytes == stored_bytes(load_model("llama-3-8b"), 4)


def test_without_a_model_or_bytes_only_what_was_measured_is_known() -> None:
    events = [
        Ev(0, 10, op=Op.QKV, layer=0, category=Category.WEIGHT_READ, unknown=True),
        Ev(10, 10, op=Op.QKV, layer=0, category=Category.COMPUTE),
        Ev(20, 10),
        Ev(30, 10),
    ]
    trace = make_trace(events, [St(0, 50, batch=-1, generated=-1, accepted=False)])
    found = three_constraints(trace, Basis(), 0)
    assert found.missing == ("model", "machine", "batch and context", "bandwidth")
    assert (found.capacity, found.verdict, found.crossovers, found.workload) == (None, None, None, None)
    assert (found.memory.streamed_bytes, found.memory.mbu, found.memory.achieved_bytes_per_s) == (-1, None, None)
    assert (found.memory.floor_ops_ns, found.memory.floor_kv_ns) == (-1, -1)
    assert (found.dependence.ops_in_series, found.dependence.events) == (3, 4)
    assert (found.dependence.tokens_per_s, found.dependence.acceptance) == (None, None)


def test_the_context_of_a_request_is_the_mean_rounded_up() -> None:
    trace = make_trace([Ev(0, 5)], [St(0, 5, batch=32, context=32_785)])
    assert workload_of_step(trace, 0) == Workload(32, 1025)
    assert three_constraints(trace, BASIS, 0).context_tokens == 32_785
