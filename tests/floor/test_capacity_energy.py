"""Capacity, energy and verdict against worked numbers."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracescope.core.hardware import EnergyModel
from tracescope.core.model import Workload
from tracescope.floor.capacity import capacity, kv_stored_after
from tracescope.floor.deadline import deadline_check
from tracescope.floor.dependence import dependence_cost
from tracescope.floor.energy import energy_j, energy_split
from tracescope.floor.step_floor import step_floor
from tracescope.floor.step_ops import step_totals
from tracescope.floor.verdict import crossovers, ridge_batch, verdict
from tracescope.models import load_hardware, load_model, make_basis

LLAMA, H100 = load_model("llama-3-8b"), load_hardware("h100-sxm")


def test_the_blocks_of_a_public_start_up_log() -> None:
    machine = replace(H100, capacity_bytes=round(39.5 * 2**30))
    found = capacity(LLAMA, machine, Workload(1, 8192, reserve_bytes=round(9.47 * 2**30)))
    assert abs(found.blocks_total - 5691) <= 3
    assert found.block_bytes == 16 * 131_072
    assert found.blocks_total * 16 / 8192 == pytest.approx(11.1, abs=0.05)
    assert found.max_batch == 11


@pytest.mark.parametrize(("context", "largest"), [(4096, 114), (32_768, 14)])
def test_the_largest_batch_fits_and_one_more_does_not(context: int, largest: int) -> None:
    fitting, too_large = (capacity(LLAMA, H100, Workload(batch, context)) for batch in (largest, largest + 1))
    assert fitting.max_batch == too_large.max_batch == largest
    assert fitting.fits
    assert not too_large.fits
    assert fitting.headroom_bytes >= 0 > too_large.headroom_bytes


@pytest.mark.parametrize("name", ["Llama-2-7B", "Llama-3-8B", "Llama-3-70B"])
def test_golden_batches(name: str, shared: Callable[[str], Path]) -> None:
    golden = json.loads(shared("reference/golden.json").read_text())[name]["max_batch"]
    sizes = {"80e9": 80 * 10**9, "80GiB": 80 * 2**30, "141e9": 141 * 10**9}
    for key, expected in golden.items():
        size, share, context = key.split("_")
        machine = replace(H100, capacity_bytes=sizes[size])
        workload = Workload(1, int(context[1:]), block=1, utilization=float(share[1:]))
        assert capacity(load_model(name.lower()), machine, workload).max_batch == expected, key


def test_a_model_that_does_not_fit_has_no_batch() -> None:
    found = capacity(load_model("llama-3-70b"), H100, Workload(1, 0))
    assert (found.max_batch, found.blocks_total, found.fits) == (0, 0, False)
    assert found.headroom_bytes < 0


def test_a_block_is_counted_whole() -> None:
    before = capacity(LLAMA, H100, Workload(2, 17, block=16))
    assert before.kv_stored_bytes == 2 * 32 * 131_072
    assert kv_stored_after(LLAMA, Workload(2, 16, block=16)) == 2 * 32 * 131_072
    assert kv_stored_after(LLAMA, Workload(2, 15, block=16)) == 2 * 16 * 131_072


def test_a_window_bounds_what_is_stored() -> None:
    """Gemma 3: 40 layers keep 1,024 tokens, 8 keep everything; blocks are counted by layer."""
    model, token = load_model("gemma-3-12b"), 2 * 8 * 256 * 2
    found = capacity(model, H100, Workload(2, 5000, block=16))
    assert found.kv_stored_bytes == 2 * (40 * 1024 + 8 * 5008) * token
    assert found.waste_bytes == 2 * 8 * 8 * token
    assert found.block_bytes == 16 * token
    assert found.request_blocks == 40 * 64 + 8 * 313
    room = found.usable_bytes - found.stored_bytes
    assert found.max_batch == room // ((40 * 1024 + 8 * 5008) * token)
    for batch, fits in ((found.max_batch, True), (found.max_batch + 1, False)):
        assert capacity(model, H100, Workload(batch, 5000)).fits is fits
    # Once the window is full, a step appends nothing more to it.
    assert kv_stored_after(model, Workload(1, 5007)) - kv_stored_after(model, Workload(1, 5000)) == 0
    assert kv_stored_after(model, Workload(1, 5008)) - kv_stored_after(model, Workload(1, 5000)) == 8 * 16 * token
    mistral = capacity(load_model("mistral-7b"), H100, Workload(1, 32_768))
    assert mistral.kv_stored_bytes == 4096 * 131_072


def test_a_block_is_wasted_by_no_more_than_its_last_tokens() -> None:
    for context in range(0, 70, 7):
        found = capacity(LLAMA, H100, Workload(3, context, block=16))
        assert 0 <= found.waste_bytes <= 3 * 15 * 131_072
        assert found.waste_bytes == 3 * (-context % 16) * 131_072


def test_a_shared_prefix_is_stored_once_a_group() -> None:
    """Of 1,000 tokens 600 are shared by 4: 37 whole blocks; each request keeps the other 26 of its 63."""
    workload = Workload(10, 1000, prefix=600, prefix_group=4)
    found = capacity(LLAMA, H100, workload)
    assert found.blocks_used == 3 * 37 + 10 * 26
    assert found.max_batch > capacity(LLAMA, H100, Workload(10, 1000)).max_batch
    for batch, fits in ((found.max_batch, True), (found.max_batch + 1, False)):
        at = capacity(LLAMA, H100, replace(workload, batch=batch))
        assert at.fits is fits
        assert (at.headroom_bytes >= 0) is fits
    # Shared blocks that no request fills alone are still blocks of this group only.
    assert capacity(LLAMA, H100, replace(workload, prefix_group=1)).blocks_used == 10 * 63


def test_experts_are_stored_all_of_them() -> None:
    found = capacity(load_model("mixtral-8x7b"), load_hardware("h200-sxm"), Workload(1, 4096))
    assert found.stored_bytes == 93_405_585_408
    assert not capacity(load_model("mixtral-8x7b"), H100, Workload(1, 4096)).fits


def test_worked_energy() -> None:
    fit = H100.energy
    assert fit is not None
    found = energy_j(15_370_000_000, 120_000_000_000, 0, 7.46e-3, fit)
    assert found.mid == pytest.approx(1.70 + 0.25 + 1.49, abs=0.01)
    assert found.mid / 8 == pytest.approx(0.431, rel=0.01)
    assert found.low <= found.mid <= found.high
    split = energy_split(15_000_000_000, 370_000_000, 120_000_000_000, 0, 7.46e-3, fit)
    assert split.total == pytest.approx(found.mid)
    assert split.compute == pytest.approx(0.25, abs=0.005)
    assert split.static == pytest.approx(1.49, abs=0.005)


def test_link_energy_only_where_a_value_is_known() -> None:
    fit = EnergyModel((1, 1, 1), (0, 0, 0), (0, 0, 0), "board", "test")
    assert energy_split(0, 0, 0, 10**12, 1.0, fit).link is None
    assert energy_j(0, 0, 10**12, 1.0, fit).mid == 0
    assert energy_j(0, 0, 10**12, 1.0, replace(fit, link_pj_per_bit=2.0)).mid == pytest.approx(16)


@pytest.mark.parametrize(("machine", "ridge"), [("a100-80gb-sxm", 153.0), ("h100-sxm", 295.2), ("h200-sxm", 206.0)])
def test_ridge_batches(machine: str, ridge: float) -> None:
    assert ridge_batch(LLAMA, make_basis(load_hardware(machine))) == pytest.approx(ridge, abs=0.05)


@pytest.mark.parametrize(
    ("model", "tokens"), [("llama-2-7b", 25_205), ("llama-3-8b", 114_516), ("llama-3-70b", 424_213)]
)
def test_kv_reads_pass_the_weights(model: str, tokens: int) -> None:
    found = crossovers(load_model(model), Workload(1, 1), make_basis(None), None)
    assert found.kv_passes_weights_batch == pytest.approx(tokens, abs=1)


def test_what_binds() -> None:
    basis = make_basis(H100)

    def binds(workload: Workload, *, fitting: bool = True) -> str:
        found = verdict(LLAMA, workload, basis, capacity(LLAMA, H100, workload) if fitting else None)
        assert found is not None
        return found.binds

    assert binds(Workload(1, 1024)) == "weights"
    assert binds(Workload(28, 4096)) == "kv"
    assert binds(Workload(26, 4096)) == "weights"
    assert binds(Workload(115, 4096)) == "capacity"
    assert binds(Workload(400, 0), fitting=False) == "compute"
    slow = replace(basis, link_bytes_per_s=10**9)
    sending = verdict(LLAMA, Workload(64, 0, tensor_parallel=8), slow, None)
    assert sending is not None
    assert sending.binds == "communication"
    assert "latency" not in sending.why
    assert verdict(LLAMA, Workload(1, 0), make_basis(None), None) is None


def test_the_first_batch_that_compute_binds() -> None:
    basis = make_basis(H100)
    first = crossovers(LLAMA, Workload(1, 0), basis, None).compute_binds_batch
    assert first == 296
    for batch, expected in ((first, True), (first - 1, False)):
        found = verdict(LLAMA, Workload(batch, 0), basis, None)
        assert found is not None
        assert (found.binds == "compute") is expected
    assert crossovers(LLAMA, Workload(1, 4096), basis, None).compute_binds_batch is None
    assert crossovers(LLAMA, Workload(1, 0), make_basis(None, "1TB/s"), None).compute_binds_batch is None


def test_four_requests_share_the_lesson_s_pass() -> None:
    model, machine = load_model("lesson-20gb"), load_hardware("lesson-1tbs")
    one, four = (step_floor(model, Workload(batch, 1000), make_basis(machine)) for batch in (1, 4))
    assert one.floor_weight_s == four.floor_weight_s == 0.02
    assert one.steps_per_s_max == four.steps_per_s_max == 50
    assert one.verdict is not None
    assert four.verdict is not None
    assert "it fits, and still waits for its weights: 20.00 GB ÷ 1.00 TB/s = 20.000 ms" in one.verdict.why
    assert "one pass serves all 4 requests" in four.verdict.why
    assert one.energy is not None
    assert four.energy is not None
    assert four.energy.mid / 4 < one.energy.mid


def test_floor_order_from_loosest_to_tightest() -> None:
    for batch, context in ((1, 0), (16, 4096), (512, 100)):
        floor = step_floor(LLAMA, Workload(batch, context), make_basis(H100))
        floors = (floor.floor_weight_s, floor.floor_memory_s, floor.floor_roofline_s, floor.floor_ops_s)
        assert all(value is not None for value in floors)
        assert list(floors) == sorted(value for value in floors if value is not None)


def test_the_lesson_s_own_questions() -> None:
    """Batch × 4: the weights are reused four times as often, the cache is asked for four times as much."""
    model, machine = load_model("lesson-20gb"), load_hardware("lesson-1tbs")
    one, four = (step_floor(model, Workload(batch, 1000), make_basis(machine)) for batch in (1, 4))
    assert four.totals.weight_read == one.totals.weight_read == 20_000_000_000
    assert four.totals.kv_read == 4 * one.totals.kv_read
    assert four.totals.kv_append == 4 * one.totals.kv_append
    assert one.generated_tokens_per_s_max is not None
    assert one.floor_ops_s is not None
    assert four.floor_ops_s is not None
    assert four.generated_tokens_per_s_max == pytest.approx(4 / four.floor_ops_s)
    assert one.verdict is not None
    assert four.verdict is not None
    assert one.verdict.binds == four.verdict.binds == "weights"
    assert "4 generated tokens a step and 4 × the KV bytes of one for the same weight bytes" in four.verdict.why
    # Ten times the compute moves nothing, to the nanosecond, and the words say so.
    basis = make_basis(H100)
    faster = replace(basis, peak_flops_per_s=10 * (basis.peak_flops_per_s or 0))
    slow, fast = (step_floor(LLAMA, Workload(16, 4096), b) for b in (basis, faster))
    assert slow.floor_ops_s == pytest.approx(fast.floor_ops_s, abs=1e-9)
    assert "10 × the peak FLOPS alone moves nothing: still 7.045 ms" in slow.moves
    bound = step_floor(LLAMA, Workload(400, 0), basis)
    assert any(text.startswith("10 × the peak FLOPS alone: ") for text in bound.moves)


def test_what_one_change_would_move() -> None:
    floor = step_floor(LLAMA, Workload(16, 4096), make_basis(H100))
    for words in (
        "batch 115 is the first that does not fit",
        "KV reads pass the weights from batch 28",
        "compute never passes memory",
        "twice the bandwidth alone: 7.045 ms becomes 3.523 ms",
        "100 tokens of each request take at least 100 × 7.045 ms = 704.5",
    ):
        assert any(words in text for text in floor.moves), words
    short = step_floor(LLAMA, Workload(16, 0), make_basis(H100))
    assert any("the compute floor passes the memory floor from batch 296" in text for text in short.moves)
    assert any("ops bound by FLOPs make most of the op floor from batch 296" in text for text in short.moves)
    for batch, passed in ((295, False), (296, True)):
        at = step_floor(LLAMA, Workload(batch, 0), make_basis(H100))
        assert ((at.floor_compute_s or 0) > (at.floor_memory_s or 0)) is passed
    assert step_floor(LLAMA, Workload(1, 0), make_basis(None)).moves == ()


def test_dependence_costs_the_weights_again_for_every_token() -> None:
    """All tokens at once would read weights and cache once; FLOPs and appends stay."""
    basis, workload = make_basis(H100), Workload(2, 1000)
    cost = dependence_cost(LLAMA, workload, basis, tokens=10)
    floor = step_floor(LLAMA, workload, basis)
    assert cost is not None
    assert floor.floor_ops_s is not None
    assert cost.serial_s == pytest.approx(10 * floor.floor_ops_s)
    total = floor.totals
    once = total.weight_read + total.kv_read + 10 * (total.kv_append + total.embedding_gather)
    assert cost.at_once_s == pytest.approx(once / 3.35e12)
    many = dependence_cost(LLAMA, workload, basis, tokens=10_000)
    assert many is not None
    assert many.at_once_s == pytest.approx(10_000 * total.flops / 989e12, rel=0.003)  # appends take longer
    assert dependence_cost(LLAMA, workload, make_basis(None)) is None


@settings(max_examples=200)
@given(
    model=st.sampled_from(("llama-3-8b", "llama-3-70b", "mixtral-8x7b", "gemma-2-9b", "deepseek-v3", "gpt2-xl")),
    machine=st.sampled_from(("h100-sxm", "a100-80gb-sxm", "mi300x", "l4")),
    batch=st.integers(1, 4096),
    context=st.integers(0, 200_000),
    ranks=st.sampled_from((1, 2, 4, 8)),
    tokens=st.integers(1, 5000),
)
def test_dependence_never_costs_more_than_its_tokens(  # noqa: PLR0917
    model: str, machine: str, batch: int, context: int, ranks: int, tokens: int
) -> None:
    basis = make_basis(load_hardware(machine))
    cost = dependence_cost(load_model(model), Workload(batch, context, tensor_parallel=ranks), basis, tokens)
    assert cost is not None
    assert 1 - 1e-9 <= cost.factor <= tokens * (1 + 1e-9)


def test_a_deadline_bounds_the_batch() -> None:
    basis = make_basis(H100)
    found = deadline_check(LLAMA, Workload(16, 4096), basis, 0.010)
    assert found is not None
    assert found.met
    assert found.largest_batch_by_capacity == capacity(LLAMA, H100, Workload(16, 4096)).max_batch
    assert found.largest_batch == min(found.largest_batch_by_deadline, found.largest_batch_by_capacity)
    unfit = deadline_check(LLAMA, Workload(16, 4096), basis, 1.0)
    assert unfit is not None
    assert unfit.largest_batch == unfit.largest_batch_by_capacity
    assert unfit.largest_batch < unfit.largest_batch_by_deadline
    for batch, kept in ((found.largest_batch_by_deadline, True), (found.largest_batch_by_deadline + 1, False)):
        floor = step_floor(LLAMA, Workload(batch, 4096), basis).floor_ops_s
        assert floor is not None
        assert (floor <= 0.010) is kept
    late = deadline_check(LLAMA, Workload(1, 0), basis, 0.004)
    assert late is not None
    assert (late.met, late.largest_batch) == (False, 0)
    assert deadline_check(LLAMA, Workload(), make_basis(None), 1.0) is None


def test_kv_passes_the_expected_experts() -> None:
    model, workload = load_model("mixtral-8x7b"), Workload(1, 4096)
    first = crossovers(model, workload, make_basis(None), None).kv_passes_weights_batch
    assert first is not None
    for batch, passed in ((first, True), (first - 1, False)):
        total = step_totals(model, Workload(batch, 4096))
        assert (total.kv_read >= total.weight_read) is passed


def test_low_mid_and_high_of_the_worked_step() -> None:
    """Llama 3.1 8B at batch 8, about 346 tokens of context, in a measured 7.46 ms."""
    fit = H100.energy
    assert fit is not None
    total = step_totals(LLAMA, Workload(8, 343))
    assert total.streamed_bytes == pytest.approx(15.37e9, rel=1e-3)
    found = energy_j(total.streamed_bytes, total.flops, 0, 7.46e-3, fit)
    assert found.mid / 8 == pytest.approx(0.431, rel=0.01)
    assert found.low <= found.mid <= found.high
    for name in ("a100-80gb-sxm", "b200-sxm", "h200-sxm", "rtx-4090", "m2-ultra", "lesson-1tbs"):
        energy = load_hardware(name).energy
        assert energy is not None
        for seconds in (0.0, 1e-3, 1.0):
            spent = energy_j(total.streamed_bytes, total.flops, 0, seconds, energy)
            assert spent.low <= spent.mid <= spent.high
