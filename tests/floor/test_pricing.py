"""Floors of work rows and ops: one formula, unknown stays unknown, rounding that adds up."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracescope.core.category import BytesFrom, Op
from tracescope.core.hardware import Basis
from tracescope.core.model import Workload
from tracescope.core.work_table import WorkTable
from tracescope.floor.pricing import ops_floor_s, round_cumulatively, work_floor_ns
from tracescope.floor.step_ops import step_ops
from tracescope.models import load_hardware, load_model, make_basis

H100 = make_basis(load_hardware("h100-sxm"))
COLUMNS = ("weight_read", "embedding_gather", "kv_read", "kv_append", "activation", "link", "link_reduced", "flops")


def table(*rows: dict[str, int]) -> WorkTable:
    """A work table of ``rows``, every column that is not given 0."""
    columns = {name: np.array([row.get(name, 0) for row in rows], np.int64) for name in COLUMNS}
    return WorkTable.of(**columns, bytes_from=np.full(len(rows), BytesFrom.MODEL, np.uint8))


def test_bytes_over_bandwidth_or_flops_over_peak_whichever_is_longer() -> None:
    floors, known = work_floor_ns(table({"weight_read": 3_350_000}, {"kv_read": 3350, "flops": 989_000_000_000}), H100)
    assert known.all()
    assert floors.tolist() == pytest.approx([1000.0, 1_000_000.0])


def test_each_missing_amount_of_bytes_makes_the_floor_unknown() -> None:
    kinds = ("weight_read", "embedding_gather", "kv_read", "kv_append", "link")
    floors, known = work_floor_ns(table(*({"weight_read": 10**9, kind: -1} for kind in kinds)), H100)
    assert not known.any()
    assert not floors.any()


def test_row_zero_is_unknown_and_missing_flops_are_not_missed() -> None:
    assert work_floor_ns(WorkTable.unknown(), H100)[1].tolist() == [False]
    floors, known = work_floor_ns(table({"kv_read": 3350, "flops": -1, "activation": -1}), H100)
    assert known.all()
    assert floors[0] == pytest.approx(1.0)


def test_no_bytes_need_no_bandwidth() -> None:
    floors, known = work_floor_ns(table({}, {"kv_append": 1}), Basis())
    assert known.tolist() == [True, False]
    assert floors.tolist() == [0.0, 0.0]


def test_the_link_costs_its_bytes_over_its_rate_and_no_latency() -> None:
    floors, known = work_floor_ns(
        table({"link": 1, "link_reduced": 1}, {"link": 450_000_000, "link_reduced": 450_000_000}), H100
    )
    assert known.all()
    assert floors.tolist() == pytest.approx([1 / 450, 1e6])
    unpriced = replace(H100, link_bytes_per_s=None)
    assert work_floor_ns(table({"link": 1, "link_reduced": 1}), unpriced)[1].tolist() == [False]


def test_a_switch_that_adds_up_gets_each_message_once() -> None:
    rows = table({"link": 1750, "link_reduced": 1000})
    alone = replace(H100, switch_reduces=False)
    assert work_floor_ns(rows, H100)[0][0] * 1.75 == pytest.approx(work_floor_ns(rows, alone)[0][0])


def test_ops_and_work_rows_have_one_formula() -> None:
    ops = step_ops(load_model("llama-3-8b"), Workload(16, 4096, tensor_parallel=2))
    rows = table(*({name: getattr(op, name) for name in COLUMNS} for op in ops))
    by_row, _ = work_floor_ns(rows, H100)
    by_op, known = ops_floor_s(ops, H100)
    assert known.all()
    assert (by_row == by_op * 1e9).all()


def test_an_op_that_cannot_be_priced_is_unknown() -> None:
    ops = step_ops(load_model("llama-3-8b"), Workload(1, 1, tensor_parallel=2))
    reduce = next(op for op in ops if op.op is Op.ALL_REDUCE)
    assert ops_floor_s((reduce,), make_basis(None, "1TB/s"))[1].tolist() == [False]
    assert ops_floor_s((ops[-2],), Basis())[1].tolist() == [False]


def test_ten_times_the_compute_leaves_a_memory_bound_step_alone() -> None:
    ops = step_ops(load_model("llama-3-8b"), Workload(16, 4096))
    faster = replace(H100, peak_flops_per_s=(H100.peak_flops_per_s or 0) * 10)
    assert ops_floor_s(ops, H100)[0].sum() == pytest.approx(ops_floor_s(ops, faster)[0].sum(), abs=1e-9)


@given(st.lists(st.floats(0, 1e9), max_size=200))
def test_rounding_adds_up(floors: list[float]) -> None:
    given_floors = np.array(floors, np.float64)
    rounded = round_cumulatively(given_floors)
    assert rounded.dtype == np.int64
    assert len(rounded) == len(floors)
    if floors:
        assert rounded.sum() == np.rint(np.cumsum(given_floors)[-1])
        assert rounded.min() >= 0
        assert np.abs(rounded - given_floors).max() <= 1 + 1e-6


def test_the_memory_bytes_of_a_row_are_all_kinds_or_unknown() -> None:
    rows = table(
        {"weight_read": 1, "embedding_gather": 2, "kv_read": 4, "kv_append": 8, "link": 16, "activation": 32},
        {"weight_read": 1, "embedding_gather": -1},
        {"kv_append": -1},
        {"flops": -1, "link": -1},
    )
    assert rows.memory_bytes.tolist() == [15, -1, -1, 0]
    assert not rows.memory_bytes.flags.writeable
