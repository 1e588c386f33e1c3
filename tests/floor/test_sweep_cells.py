"""The sweep against single steps: every cell is what the arithmetic of one step says."""

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet

from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import Workload
from tracescope.floor.deadline import deadline_check
from tracescope.floor.step_floor import StepFloor, step_floor
from tracescope.floor.step_ops import StepTotals
from tracescope.floor.sweep import NEVER, Sweep, first_batches, sweep
from tracescope.models import load_hardware, load_model, make_basis

BATCHES = [1, 6, 300]
CONTEXTS = [200, 5000]
WORKLOADS = {
    "plain": Workload(),
    "ranks": Workload(tensor_parallel=4),
    "pinned": Workload(pinned_bytes=10**8, reserve_bytes=10**9, utilization=0.8, block=32),
    "prefix": Workload(prefix=150, prefix_group=4),
    "prefix read once": Workload(prefix=150, prefix_group=4, prefix_aware=True),
}
MODELS = ("llama-3-8b", "gpt2-xl", "gemma-2-9b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b")
CLOSE = {"rel": 1e-9, "abs": 1e-15}
"""Expected experts and pinned shares are whole bytes in a step and unrounded ones in a sweep's floors."""


def each_model_and_workload() -> list[ParameterSet]:
    """Pinned weights are counted matrix by matrix, which takes seconds: one model of them is in the fast lane."""
    found = []
    for name, (title, workload) in product(MODELS, WORKLOADS.items()):
        slow = name == "deepseek-v3" or (title == "pinned" and name != "llama-3-8b")
        found.append(pytest.param(name, workload, id=f"{name}-{title}", marks=[pytest.mark.slow] if slow else []))
    return found


def h100() -> Basis:
    return make_basis(load_hardware("h100-sxm"))


def assert_same(found: StepFloor, expected: StepFloor) -> None:
    rounded = {"floor_ops_s", "energy", "energy_split", "dependence", "moves", "verdict"}
    for field in fields(StepFloor):
        if field.name not in rounded:
            assert getattr(found, field.name) == getattr(expected, field.name), field.name
    assert found.floor_ops_s == pytest.approx(expected.floor_ops_s, **CLOSE)
    assert found.energy is not None
    assert expected.energy is not None
    assert found.energy.mid == pytest.approx(expected.energy.mid, **CLOSE)
    assert found.verdict is not None
    assert expected.verdict is not None
    assert found.verdict.binds == expected.verdict.binds
    assert found.dependence is not None
    assert expected.dependence is not None
    assert found.dependence.factor == pytest.approx(expected.dependence.factor, **CLOSE)


@pytest.mark.parametrize(("name", "workload"), each_model_and_workload())
def test_every_cell_is_a_step(name: str, workload: Workload) -> None:
    model, basis = load_model(name), h100()
    if model.heads % workload.tensor_parallel:
        workload = replace(workload, tensor_parallel=5)
    swept = sweep(model, workload, basis, BATCHES, CONTEXTS, deadline_s=0.03)
    assert swept.shares_s is not None
    assert swept.floor_ops_s is not None
    np.testing.assert_allclose(swept.shares_s.sum(axis=-1), swept.floor_ops_s, rtol=1e-12)
    for row, column in np.ndindex(*swept.shape):
        expected = step_floor(model, swept.workload_at(row, column), basis)
        assert_same(swept.cell(row, column), expected)
        assert expected.verdict is not None
        assert swept.binding(row, column) == expected.verdict.binds
        assert_arrays(swept, row, column, expected)
    check_deadlines(swept)


def assert_arrays(swept: Sweep, row: int, column: int, expected: StepFloor) -> None:
    for field in fields(StepTotals):
        assert getattr(swept, field.name)[row, column] == getattr(expected.totals, field.name), field.name
    assert expected.capacity is not None
    assert swept.fits is not None
    assert swept.fits[row, column] == expected.capacity.fits
    assert swept.max_batch[column] == expected.capacity.max_batch
    assert swept.energy_j is not None
    assert expected.energy is not None
    joules = (expected.energy.low, expected.energy.mid, expected.energy.high)
    np.testing.assert_allclose(swept.energy_j[:, row, column], joules, rtol=1e-9)


def check_deadlines(swept: Sweep) -> None:
    assert swept.deadline_batch is not None
    for column in range(len(swept.context)):
        expected = deadline_check(swept.model, swept.workload_at(0, column), swept.basis, 0.03)
        assert expected is not None
        assert swept.deadline_batch[column] == expected.largest_batch_by_deadline


def test_without_a_machine_bytes_are_known_and_times_are_not() -> None:
    swept = sweep(load_model("llama-3-8b"), Workload(), Basis(), [1, 4], [0, 512])
    assert (swept.floor_ops_s, swept.shares_s, swept.binds, swept.fits, swept.energy_j) == (None,) * 5
    assert swept.binding(0, 0) is None
    assert swept.max_batch.tolist() == [NEVER, NEVER]
    assert swept.kv_read.tolist() == [[0, 512 * 131_072], [0, 4 * 512 * 131_072]]
    assert swept.kv_passes_weights[0] == NEVER
    assert swept.cell(1, 1).floor_ops_s is None
    assert swept.cell(1, 1).verdict is None


def test_what_does_not_fit_binds_by_capacity() -> None:
    swept = sweep(load_model("llama-3-8b"), Workload(), h100(), [114, 115], [4096])
    assert [swept.binding(row, 0) for row in range(2)] == ["kv", "capacity"]


def test_a_larger_batch_never_shortens_a_step() -> None:
    swept = sweep(load_model("qwen3-8b"), Workload(), h100(), list(range(1, 65)), [0, 512, 9000])
    assert swept.floor_ops_s is not None
    assert (np.diff(swept.floor_ops_s, axis=0) >= 0).all()
    assert (np.diff(swept.floor_ops_s, axis=1) >= 0).all()


def test_compute_ten_times_faster_leaves_a_memory_bound_sweep_alone() -> None:
    basis = h100()
    faster = replace(basis, peak_flops_per_s=(basis.peak_flops_per_s or 0) * 10)
    slow, fast = (sweep(load_model("llama-3-8b"), Workload(), b, [1, 4, 16], [512, 4096]) for b in (basis, faster))
    assert slow.floor_ops_s is not None
    assert fast.floor_ops_s is not None
    np.testing.assert_allclose(slow.floor_ops_s, fast.floor_ops_s, rtol=0, atol=1e-9)


def test_first_batches() -> None:
    wanted = np.array([1, 2, 7, 1 << 20])
    assert first_batches(lambda batch: batch >= wanted, 4).tolist() == wanted.tolist()
    assert first_batches(lambda batch: batch < 0, 2).tolist() == [NEVER, NEVER]


@pytest.mark.parametrize(
    ("batches", "contexts", "words"),
    [
        ([], [1], "at least one"),
        ([0], [1], "batch"),
        ([1], [-1], "context"),
        (list(range(1, 2000)), list(range(2000)), "cells"),
        ([1 << 24], [1 << 30], r"2\^62"),
    ],
)
def test_refusals(batches: list[int], contexts: list[int], words: str) -> None:
    with pytest.raises(TraceError, match=words):
        sweep(load_model("llama-3-8b"), Workload(), h100(), batches, contexts)
