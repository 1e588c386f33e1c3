"""The events listing: filters, absolute times, lists of names, nulls."""

import pytest

from tests.kit.traces import BASIS, STREAM, THREAD, Ev, St, make_trace
from tracescope.analysis.events import EventFilter, events_table
from tracescope.core.category import Category, EventFlag, Op
from tracescope.core.errors import TraceError
from tracescope.core.trace import Trace

WEIGHTS, KV = Category.WEIGHT_READ, Category.KV_READ

KEYS = (
    "id track track_kind rank name op category roles flags layer step start_ns duration_ns exposed_ns depth "
    "weight_read_bytes kv_read_bytes kv_append_bytes flops recorded_bytes bytes_from floor_ns"
)


def made(base_ns: int = 1_000) -> Trace:
    events = [
        Ev(5, 30, step=-1, track=1, category=Category.HOST, name="launch"),
        Ev(10, 20, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=10, name="gemm",
           roles=WEIGHTS.role | Category.COMPUTE.role),
        Ev(25, 20, op=Op.ATTENTION, layer=1, category=KV, unknown=True, flags=int(EventFlag.UNFINISHED)),
        Ev(90, 4, step=-1, category=WEIGHTS, weight_read=3),
    ]  # fmt: skip
    return make_trace(events, [St(10, 40)], (STREAM, THREAD), base_ns=base_ns)


def test_rows_come_in_order_of_time_with_the_contracts_names() -> None:
    table = events_table(made(), BASIS)
    assert " ".join(c.key for c in table.columns) == KEYS
    assert [r["start_ns"] for r in table.rows()] == [1005, 1010, 1025, 1090]


def test_one_row_says_everything_about_an_event() -> None:
    row = events_table(made(), BASIS, EventFilter(step=0, layer=0)).row(0)
    assert row == {
        "id": 0, "track": "stream 7", "track_kind": "device_stream", "rank": 0, "name": "gemm", "op": "qkv",
        "category": "weight_read", "roles": ["weight_read", "compute"], "flags": [], "layer": 0, "step": 0,
        "start_ns": 1010, "duration_ns": 20, "exposed_ns": 20, "depth": 0, "weight_read_bytes": 10,
        "kv_read_bytes": 0, "kv_append_bytes": 0, "flops": 0, "recorded_bytes": None,
        "bytes_from": "shape", "floor_ns": 10,
    }  # fmt: skip


def test_what_is_not_known_is_null_and_overlap_is_not_counted_twice() -> None:
    row = events_table(made(), BASIS, EventFilter(category="kv_read")).row(0)
    assert (row["exposed_ns"], row["duration_ns"], row["depth"]) == (15, 20, 1)
    assert row["flags"] == ["unfinished", "overlapping"]
    assert row["bytes_from"] == "none"
    for key in ("weight_read_bytes", "kv_read_bytes", "flops", "floor_ns"):
        assert row[key] is None


def test_events_outside_a_step_have_a_floor_but_no_share_of_one() -> None:
    rows = {r["start_ns"]: r for r in events_table(made(), BASIS).rows()}
    assert (rows[1090]["exposed_ns"], rows[1090]["floor_ns"], rows[1090]["step"]) == (None, 3, None)
    host = rows[1005]
    assert (host["exposed_ns"], host["floor_ns"], host["rank"], host["layer"]) == (None, None, None, None)


def test_filters_and_the_limit() -> None:
    assert len(events_table(made(), BASIS, EventFilter(limit=2))) == 2
    assert len(events_table(made(), BASIS, EventFilter(step=0))) == 2
    assert len(events_table(made(), BASIS, EventFilter(category="host"))) == 1
    with pytest.raises(TraceError, match="no category 'kernels'") as refusal:
        events_table(made(), BASIS, EventFilter(category="kernels"))
    assert "kv_read" in refusal.value.action


def test_floors_of_a_step_add_up_to_its_floor_whichever_events_are_listed() -> None:
    events = [Ev(10 * i, 9, op=Op.QKV, category=WEIGHTS, weight_read=1) for i in range(30)]
    basis = BASIS.__class__(bandwidth_bytes_per_s=1_500_000_000)
    trace = make_trace(events, [St(0, 300)])
    assert sum(r["floor_ns"] for r in events_table(trace, basis).rows()) == 20
    assert sum(r["floor_ns"] for r in events_table(trace, basis, EventFilter(limit=15)).rows()) == 10
