"""What is in a trace, where a gap goes, and one op beside its twins."""

from tests.kit.traces import BASIS, NO_BASIS, SECOND_STREAM, STREAM, THREAD, Ev, St, make_trace
from tracescope.analysis.breakdown import break_down
from tracescope.analysis.check import check
from tracescope.analysis.gap_causes import gap_causes
from tracescope.analysis.info import info_document
from tracescope.analysis.layers import layers_table
from tracescope.analysis.same_op import same_op_in_layers
from tracescope.core.category import Category, Op
from tracescope.core.report import ImportReport, Inference, Source
from tracescope.core.trace import Device

WEIGHTS, KV, COMPUTE = Category.WEIGHT_READ, Category.KV_READ, Category.COMPUTE

INFO_KEYS = {
    "format_version", "created_by", "source", "model", "hardware", "events", "tracks", "steps", "decode_steps",
    "layers", "requests", "span_ns", "start_ns", "categories", "report", "devices", "assumptions",
}  # fmt: skip


def test_busy_time_is_the_union_over_all_streams_of_a_device() -> None:
    events = [
        Ev(0, 10, category=WEIGHTS, weight_read=7, layer=0),
        Ev(5, 10, track=1, category=KV, unknown=True, layer=1),
        Ev(40, 10, category=WEIGHTS, weight_read=7, step=-1),
        Ev(0, 200, track=2, step=-1, category=Category.HOST),
    ]
    report = ImportReport(9, 7, {"no_time": 2}, {"stray": 1}, None, (Inference("decode", "marker", 0.9),), 12)
    trace = make_trace(
        events, [St(0, 20)], (STREAM, SECOND_STREAM, THREAD), base_ns=10**18, report=report,
        source=Source("a.json", "ab" * 32, 77, "chrome"), devices=(Device(0, 0, "GPU"), Device(1, 0, "idle one")),
    )  # fmt: skip
    info = info_document(trace, BASIS, 1)
    assert set(info) >= INFO_KEYS
    assert info["devices"] == [{"device": 0, "rank": 0, "name": "GPU", "busy_ns": 25, "idle_ns": 25, "span_ns": 50}]
    assert info["categories"]["weight_read"] == {
        "events": 2, "busy_ns": 20, "weight_read_bytes": 14, "kv_read_bytes": 0, "kv_append_bytes": 0
    }  # fmt: skip
    assert info["categories"]["kv_read"]["kv_read_bytes"] is None
    assert info["categories"]["host"]["events"] == 0
    assert (info["events"], info["tracks"], info["steps"], info["decode_steps"], info["layers"]) == (4, 3, 1, 1, 2)
    assert (info["span_ns"], info["start_ns"]) == (200, 10**18)
    assert info["report"] == {
        "seen": 9, "imported": 7, "dropped": {"no_time": 2}, "flagged": {"stray": 1}, "truncated_at_byte": None,
        "inferred": [{"what": "decode", "rule": "marker", "confidence": 0.9}], "unclassified_ns": 12,
    }  # fmt: skip
    assert info["source"] == {"name": "a.json", "sha256": "ab" * 32, "bytes": 77, "importer": "chrome"}
    assert info["hardware"] == "test"


def test_of_a_cpu_run_only_operators_inside_steps_are_the_device() -> None:
    events = [Ev(0, 100, step=-1), Ev(10, 20), Ev(12, 5)]
    info = info_document(make_trace(events, [St(10, 20)], (THREAD,)), NO_BASIS)
    assert info["devices"] == [{"device": None, "rank": None, "name": None, "busy_ns": 20, "idle_ns": 0, "span_ns": 20}]
    assert info["source"]["name"] is None


def test_operators_of_a_cpu_run_count_once_however_they_nest() -> None:
    events = [
        Ev(0, 100, category=Category.OTHER, unknown=True, name="region"),
        Ev(10, 60, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=7, name="linear"),
        Ev(20, 40, op=Op.QKV, layer=0, category=WEIGHTS, name="addmm"),
        Ev(80, 10, category=COMPUTE, name="mul"),
        Ev(105, 5, category=COMPUTE, name="mul"),
    ]
    report = ImportReport(5, 5, {}, {}, None, (), 1)
    trace = make_trace(events, [St(0, 110)], (THREAD,), report=report)
    info = info_document(trace, NO_BASIS)
    busy = {name: found["busy_ns"] for name, found in info["categories"].items() if found["events"]}
    assert busy == {"weight_read": 60, "compute": 15, "other": 30}
    assert sum(busy.values()) == info["devices"][0]["busy_ns"] == 105
    rows = {r["op"]: r["duration_ns"] for r in layers_table(trace, NO_BASIS, 0).document()["rows"] if r["op"]}
    assert rows == {"qkv": 60}
    # 1 of 105 ns is more than half a percent; of the summed 215 it would not be.
    assert [f.rule for f in check(trace, NO_BASIS).findings if f.rule == "unclassified"] == ["unclassified"]


def test_what_no_rule_knows_is_not_known_to_move_nothing() -> None:
    events = [Ev(0, 10, category=WEIGHTS, weight_read=7), Ev(10, 10, unknown=True)]
    found = info_document(make_trace(events, [St(0, 20)]), NO_BASIS)["categories"]
    assert found["weight_read"]["weight_read_bytes"] == 7
    assert {found["other"][key] for key in ("weight_read_bytes", "kv_read_bytes", "kv_append_bytes")} == {None}
    assert found["copy"]["weight_read_bytes"] == 0


def test_an_empty_trace_has_an_info_too() -> None:
    info = info_document(make_trace([], []), NO_BASIS)
    assert (info["events"], info["span_ns"], info["start_ns"], info["devices"]) == (0, 0, None, [])


def test_the_causes_of_a_gap_add_up_to_it() -> None:
    events = [
        Ev(0, 20, op=Op.QKV, layer=0, category=WEIGHTS, weight_read=12),
        Ev(20, 50, op=Op.ATTENTION, layer=0, category=KV, kv_read=20),
        Ev(70, 10, op=Op.NORM, layer=0, category=COMPUTE),
        Ev(80, 4, op=Op.KV_APPEND, layer=0, category=Category.KV_APPEND, kv_append=1),
        Ev(84, 6, op=Op.EXPERTS, layer=0, category=WEIGHTS, unknown=True),
        Ev(95, 5, op=Op.SAMPLE, category=Category.TOKEN_SELECTION),
    ]
    trace = make_trace(events, [St(0, 100)])
    broken = break_down(trace, BASIS, 0)
    causes = gap_causes(trace, broken)
    assert [(c.title, c.category, c.ns, c.known) for c in causes] == [
        ("attention above KV floor", KV, 30, True),
        ("small kernels, no overlap", COMPUTE, 13, True),
        ("weight reads above floor", WEIGHTS, 8, True),
        ("bytes unknown", None, 6, False),
        ("host and token selection", Category.TOKEN_SELECTION, 5, True),
        ("launch gaps", None, 5, True),
    ]
    assert sum(c.ns for c in causes) == broken.step_gap_ns + broken.unknown_ns
    assert sum(c.ns for c in causes if c.known) == broken.step_gap_ns == 61
    assert broken.floor_ops_ns + broken.step_gap_ns + broken.unknown_ns == broken.duration_ns
    assert not broken.partly_known  # 6 of 95 ns


def test_a_floor_of_few_ops_is_no_floor_of_the_step() -> None:
    events = [
        Ev(0, 80, op=Op.QKV, category=WEIGHTS, weight_read=80),
        Ev(80, 9, op=Op.EXPERTS, category=WEIGHTS, unknown=True),
        Ev(90, 10, op=Op.EXPERTS, category=KV, unknown=True),
    ]
    broken = break_down(make_trace(events, [St(0, 100)]), BASIS, 0)
    assert (broken.unknown_ns, broken.step_gap_ns, broken.partly_known) == (19, 1, True)
    broken = break_down(make_trace(events[:2], [St(0, 100)]), BASIS, 0)
    assert (broken.unknown_ns, broken.step_gap_ns, broken.partly_known) == (9, 11, True)
    shorter = [events[0], Ev(80, 8, op=Op.EXPERTS, category=WEIGHTS, unknown=True)]
    assert not break_down(make_trace(shorter, [St(0, 100)]), BASIS, 0).partly_known


def test_an_op_is_compared_with_its_twins_in_other_layers() -> None:
    events = [
        Ev(30 * layer + 10 * part, 10 + layer * (1 - part), op=Op.QKV, layer=layer, category=WEIGHTS, weight_read=4)
        for layer in range(3) for part in range(2)
    ] + [Ev(90, 5, op=Op.LM_HEAD, category=WEIGHTS, weight_read=4)]  # fmt: skip
    trace = make_trace(events, [St(0, 100)])
    broken = break_down(trace, BASIS, 0)
    ids = broken.events.tolist()
    twins = same_op_in_layers(trace, broken, ids[2])
    assert twins.layers.tolist() == [0, 1, 2]
    assert twins.exposed_ns.tolist() == [20, 20, 20]
    assert twins.floor_ns.tolist() == [8, 8, 8]
    assert twins.current == 1
    head = same_op_in_layers(trace, broken, ids[-1])
    assert (head.layers.tolist(), head.current) == ([], -1)
