"""The op by layer listing: grouping, sorting, unknowns, and sums over the steps that count."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.traces import BASIS, NO_BASIS, SECOND_STREAM, STREAM, Ev, St, make_trace
from tracescope.analysis.layers import layers_table
from tracescope.core.category import Category, Op, StepKind
from tracescope.core.errors import TraceError
from tracescope.load import open_trace

WEIGHTS, KV, APPEND, COMPUTE = Category.WEIGHT_READ, Category.KV_READ, Category.KV_APPEND, Category.COMPUTE

KEYS = (
    "layer op category events duration_ns exposed_ns floor_ns gap_ns unknown_ns floor_fraction weight_read_bytes "
    "kv_read_bytes kv_append_bytes flops intensity energy_j energy_rank_j"
)


def one_step() -> list[Ev]:
    return [
        Ev(0, 20, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=10, flops=40),
        Ev(20, 50, op=Op.ATTENTION, layer=0, category=KV, kv_read=20, flops=100),
        Ev(70, 10, op=Op.ATTENTION, layer=0, category=COMPUTE),
        Ev(80, 15, op=Op.QKV, layer=1, category=WEIGHTS, weight_read=10, flops=40),
        Ev(95, 5, category=Category.OTHER, unknown=True),
        Ev(100, 3, category=Category.COPY, unknown=True),
    ]


def test_rows_are_grouped_by_op_and_layer_and_sorted_by_gap() -> None:
    table = layers_table(make_trace(one_step(), [St(0, 110)]), BASIS, 0)
    assert " ".join(c.key for c in table.columns) == KEYS
    rows = [(r["layer"], r["op"], r["category"], r["events"], r["gap_ns"]) for r in table.rows()]
    assert rows == [
        (0, "attention", "kv_read", 2, 40),
        (0, "qkv", "weight_read", 1, 10),
        (None, None, "other", 1, None),
        (1, "qkv", "weight_read", 1, 5),
        (None, None, "copy", 1, None),
    ]
    assert [r["unknown_ns"] for r in table.rows()] == [0, 0, 5, 0, 3]
    assert table.summary == {
        "gap_ns": 62, "unknown_ns": 8, "ranks": 1, "idle_ns": 7, "step_ns": 110, "floor_ops_ns": 40, "steps_counted": 1,
    }  # fmt: skip


def test_rows_by_op_or_by_category_are_sums_over_the_layers() -> None:
    trace = make_trace(one_step(), [St(0, 110)])
    by_op = [(r["layer"], r["op"], r["events"], r["gap_ns"]) for r in layers_table(trace, BASIS, 0, "op").rows()]
    assert by_op == [(None, "attention", 2, 40), (None, "qkv", 2, 15), (None, None, 1, None), (None, None, 1, None)]
    by_category = {r["category"]: (r["op"], r["exposed_ns"]) for r in layers_table(trace, BASIS, 0, "category").rows()}
    assert by_category == {
        "weight_read": (None, 35), "kv_read": (None, 50), "compute": (None, 10), "other": (None, 5), "copy": (None, 3),
    }  # fmt: skip


def test_a_row_of_events_with_and_without_a_floor_has_both() -> None:
    events = [Ev(0, 20, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=10),
              Ev(20, 7, op=Op.QKV, layer=0, category=WEIGHTS, unknown=True)]  # fmt: skip
    (row,) = layers_table(make_trace(events, [St(0, 30)]), BASIS, 0).rows()
    assert (row["exposed_ns"], row["floor_ns"], row["gap_ns"], row["unknown_ns"]) == (27, 10, 10, 7)
    assert row["floor_fraction"] == 0.5


def test_ratios_have_their_terms_and_unknown_cells_are_null() -> None:
    rows = list(layers_table(make_trace(one_step(), [St(0, 110)]), BASIS, 0).rows())
    attention, qkv, other = rows[0], rows[1], rows[2]
    assert attention["floor_fraction"] == 20 / 60
    assert attention["intensity"] == 5.0
    assert (qkv["weight_read_bytes"], qkv["kv_read_bytes"], qkv["flops"]) == (10, 0, 40)
    energy = qkv["energy_j"]
    assert isinstance(energy, dict)
    assert energy["mid"] == pytest.approx(10 * 8 * 10e-12 + 40 * 0.4e-12 + 200 * 20e-9)
    for key in ("floor_ns", "floor_fraction", "weight_read_bytes", "flops", "intensity", "energy_j"):
        assert other[key] is None


def test_without_a_bandwidth_floors_and_gaps_are_null() -> None:
    table = layers_table(make_trace(one_step()[:2], [St(0, 70)]), NO_BASIS, 0)
    rows = [(r["floor_ns"], r["gap_ns"], r["unknown_ns"]) for r in table.rows()]
    assert rows == [(None, None, 50), (None, None, 20)]
    assert (table.summary["floor_ops_ns"], table.summary["gap_ns"], table.summary["unknown_ns"]) == (None, None, 70)


def test_without_a_step_the_decode_steps_after_warm_up_are_summed() -> None:
    kinds = [(StepKind.PREFILL, False), (StepKind.DECODE, True), (StepKind.DECODE, False), (StepKind.MIXED, False)]
    events = [Ev(100 * s, 40 + s, s, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=30) for s in range(len(kinds))]
    steps = [St(100 * s, 60, kind, warm_up=warm) for s, (kind, warm) in enumerate(kinds)]
    table = layers_table(make_trace(events, steps), BASIS)
    (row,) = table.rows()
    assert (row["events"], row["exposed_ns"], row["floor_ns"], row["gap_ns"]) == (2, 85, 60, 25)
    assert table.summary == {
        "gap_ns": 60, "unknown_ns": 0, "ranks": 1, "idle_ns": 35, "step_ns": 120, "floor_ops_ns": 60,
        "steps_counted": 2,
    }  # fmt: skip


def test_a_trace_without_decode_steps_has_no_rows() -> None:
    table = layers_table(make_trace([Ev(0, 10, step=-1)], []), BASIS)
    assert len(table) == 0
    assert table.summary == {
        "gap_ns": 0, "unknown_ns": 0, "ranks": 1, "idle_ns": 0, "step_ns": 0, "floor_ops_ns": 0, "steps_counted": 0,
    }  # fmt: skip
    with pytest.raises(TraceError, match="no step at all"):
        layers_table(make_trace([Ev(0, 10, step=-1)], []), BASIS, 0)


some_events = st.lists(
    st.builds(
        Ev, start=st.integers(0, 60), duration=st.integers(0, 20), step=st.integers(0, 2), track=st.integers(0, 1),
        op=st.sampled_from([Op.NONE, Op.QKV, Op.ATTENTION, Op.OTHER]), layer=st.integers(-1, 2),
        category=st.sampled_from(list(Category)), weight_read=st.integers(0, 30), unknown=st.booleans(),
    ),
    max_size=20,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(some_events)
def test_gaps_and_idle_add_up_to_the_steps_less_their_floor(events: list[Ev]) -> None:
    trace = make_trace(events, [St(0, 30), St(20, 40), St(55, 30)], (STREAM, SECOND_STREAM))
    table = layers_table(trace, BASIS)
    total = sum(r["gap_ns"] or 0 for r in table.rows())
    s = table.summary
    assert total + s["unknown_ns"] + s["idle_ns"] == s["step_ns"] - (s["floor_ops_ns"] or 0)
    assert sum(r["floor_ns"] or 0 for r in table.rows()) == (s["floor_ops_ns"] or 0)
    assert sum(r["events"] for r in table.rows()) == len(events)
    gaps = [r["exposed_ns"] if r["gap_ns"] is None else r["gap_ns"] for r in table.rows()]
    assert gaps == sorted(gaps, reverse=True)


def test_a_floor_over_wrappers_without_bytes_and_an_unpriced_kernel_is_not_known(shared: Callable[[str], Path]) -> None:
    opened = open_trace(shared("traces/own/static_kv_decode16_eager.pt.trace.json.gz"))
    rows = [r for r in layers_table(opened.trace, opened.basis, 3).rows() if r["op"] == "gate_up"]
    assert rows
    assert all(r["floor_ns"] is None and r["floor_fraction"] is None for r in rows)


def test_an_event_that_no_instant_counts_for_has_no_share_of_its_floor() -> None:
    events = [Ev(0, 100, op=Op.ATTENTION, layer=0, category=KV, kv_read=10),
              Ev(10, 50, track=1, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=40)]  # fmt: skip
    rows = {
        r["op"]: r for r in layers_table(make_trace(events, [St(0, 100)], (STREAM, SECOND_STREAM)), BASIS, 0).rows()
    }
    hidden = rows["qkv"]
    assert (hidden["exposed_ns"], hidden["floor_ns"], hidden["gap_ns"]) == (0, 40, -40)
    assert hidden["floor_fraction"] is None
