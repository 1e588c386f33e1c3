"""Graphs: ranges around their launches are steps, and a node is one op in every replay."""

import numpy as np

from tests.kit.recordings import APPEND, ARGMAX, ATTENTION, Recording, decode_kernels
from tracescope.core.category import Op
from tracescope.core.columns import I32
from tracescope.recognise.ops.graph_nodes import same_node_same_op
from tracescope.recognise.ops.op_events import device_op_events
from tracescope.recognise.ops.reading import read_op_events
from tracescope.recognise.recognise import recognise
from tracescope.recognise.tracks.launches import find_launches
from tracescope.recognise.tracks.track_plan import plan_tracks


def replays(count: int, mark: str = "forward {}", around: bool = True) -> Recording:
    """Graph launches of one step each, in a range of unknown name that begins before and ends after them."""
    recording = Recording()
    for i in range(count):
        at = 1_000_000 + i * 100_000
        recording.clock = at + 50
        if around:
            recording.add(mark.format(i), "user_annotation", at - 100, 400)
        recording.launch(at, decode_kernels(5), durations=10)
        recording.launch(at + 200, [ARGMAX])
    return recording


def test_ranges_that_hold_a_graph_launch_each_are_steps() -> None:
    trace = recognise(replays(3).raw())
    assert [trace.names[n] for n in trace.steps.label.tolist()] == ["forward 0", "forward 1", "forward 2"]
    assert any(i.rule == "steps by ranges around graph launches" for i in trace.meta.report.inferred)
    assert np.bincount(trace.events.step[trace.events.step >= 0]).tolist() == [len(decode_kernels(5)) + 1] * 3


def test_one_range_around_all_launches_is_no_step() -> None:
    recording = replays(3, around=False)
    recording.add("run", "user_annotation", 900_000, 1_000_000)
    trace = recognise(recording.raw())
    assert not any("ranges around" in i.rule for i in trace.meta.report.inferred)
    assert len(trace.steps) == 3


def test_a_node_is_what_most_of_its_replays_are_read_as() -> None:
    """The second replay lost its attention, so that it reads otherwise; its nodes say what they are."""
    recording = Recording()
    kernels = decode_kernels(3)
    for replay in range(3):
        at = 1_000_000 + replay * 100_000
        recording.correlation += 1
        recording.add("cudaGraphLaunch", "cuda_runtime", at, 5, correlation=recording.correlation)
        for node, name in enumerate(kernels):
            if replay == 1 and name in (ATTENTION, APPEND):
                continue
            detail = {"graph id": 1, "graph node id": node + 1}
            recording.add(name, "kernel", at + 10 * node, 9, 1, correlation=recording.correlation, detail=detail)
    raw = recording.raw()
    plan = plan_tracks(raw)
    launches = find_launches(raw, plan)
    op_events = device_op_events(raw, plan, launches)
    step: I32 = (np.unique(launches.call[op_events.row], return_inverse=True)[1]).astype(np.int32)
    before = read_op_events(op_events, step, 3, None)
    after = same_node_same_op(raw, op_events, before, step)
    nodes = raw.events.detail[op_events.row]
    own = {n: set(before.op[nodes == n].tolist()) for n in np.unique(nodes).tolist()}
    assert any(len(ops) > 1 for ops in own.values())  # else the test would show nothing
    assert all(len(set(after.op[nodes == n].tolist())) == 1 for n in own)
    assert all(len(set(after.layer[nodes == n].tolist())) == 1 for n in own)
    assert (after.op[step == 0] == before.op[step == 0]).all()
    assert Op.QKV in after.op
    assert after.inferred[-1].rule == "same node, same op"
