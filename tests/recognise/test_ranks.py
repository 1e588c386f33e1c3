"""Several ranks as one trace: ids apart, one clock, steps of each rank; collectives split into wait and transfer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kit.recordings import GEMM, Recording, decode_kernels
from tracescope.analysis.check import check
from tracescope.analysis.collective_waits import collectives_table
from tracescope.analysis.info import info_document
from tracescope.analysis.steps import steps_table
from tracescope.core.category import EdgeKind, TrackKind
from tracescope.core.collectives import match_collectives
from tracescope.core.errors import TraceError
from tracescope.core.trace import Trace
from tracescope.load import basis_of, import_files, open_trace, save_trace
from tracescope.recognise.ranks import MAX_RANKS, merge_ranks
from tracescope.recognise.recognise import recognise

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def rank_file(
    folder: Path, rank: int, *, late: int = 0, base: int = 10**18, name: str = "", header: bool = True, layers: int = 2
) -> Path:
    """Two steps of an engine with an all-reduce in each, as a profiler writes it; times in µs."""
    events: list[dict[str, Any]] = []
    for step in range(2):
        at = 100 + step * 100
        marker = {"cat": "user_annotation", "name": f"execute_context_0(0)_generation_4(4) {step}"}
        events.append({"ph": "X", "pid": 1, "tid": 1, "ts": at, "dur": 20, **marker})
        kernels = [*decode_kernels(layers), ALL_REDUCE]
        for k, kernel in enumerate(kernels):
            own = 1000 * step + k
            launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + k * 0.1, "dur": 0.05}
            events.append({"ph": "X", "pid": 1, "tid": 1, "args": {"correlation": own}, **launch})
            collective = kernel == ALL_REDUCE
            start = at + 30 + k + (late if collective else 0)
            event = {"cat": "kernel", "name": kernel, "ts": start, "dur": 20 - late if collective else 1}
            events.append({"ph": "X", "pid": 0, "tid": 7, "args": {"correlation": own, "stream": 7}, **event})
    document: dict[str, Any] = {"baseTimeNanoseconds": base, "traceEvents": events}
    if header:
        document |= {"distributedInfo": {"rank": rank}, "deviceProperties": [{"id": 0, "name": f"card {rank}"}]}
    path = folder / (name or f"run-{rank}.json")
    path.write_text(json.dumps(document))
    return path


def test_a_folder_of_eight_ranks_is_one_trace(tmp_path: Path) -> None:
    for rank in range(8):
        rank_file(tmp_path, rank, late=rank)
    (tmp_path / "README.txt").write_text("not a trace")
    opened = open_trace(tmp_path)
    trace = opened.trace
    alone = [open_trace(tmp_path / f"run-{rank}.json").trace for rank in range(8)]
    assert len(trace.events) == sum(len(t.events) for t in alone)
    assert sorted({t.rank for t in trace.tracks}) == list(range(8))
    assert len(trace.steps) == 16
    assert trace.steps.start.tolist() == sorted(trace.steps.start.tolist())
    report = trace.meta.report
    assert report.seen == report.imported == sum(t.meta.report.seen for t in alone)
    devices = info_document(trace, opened.basis)["devices"]
    assert [(d["rank"], d["name"]) for d in devices] == [(r, f"card {r}") for r in range(8)]
    assert any("README.txt" in note for note in trace.meta.notes)
    out = tmp_path / "merged.tscope.h5"
    save_trace(out, trace)
    again = open_trace(out).trace
    assert np.array_equal(again.events.start, trace.events.start)
    assert [t.rank for t in again.tracks] == [t.rank for t in trace.tracks]


def test_every_rank_keeps_its_own_events_steps_and_launches(tmp_path: Path) -> None:
    files = [rank_file(tmp_path, rank, late=rank) for rank in range(3)]
    merged = import_files(files)
    rank_of = np.array([t.rank for t in merged.tracks])[merged.lanes.track[merged.event_lane]]
    label = np.array([merged.names[n] for n in merged.steps.label.tolist()])
    for rank, file in enumerate(files):
        alone = open_trace(file).trace
        mine = rank_of == rank
        assert sorted(merged.events.start[mine]) == sorted(alone.events.start)
        steps = np.unique(merged.events.step[mine & (merged.events.step >= 0)])
        assert all(text.startswith(f"rank {rank} · ") for text in label[steps])
        assert len(steps) == len(alone.steps)
        assert int(mine[merged.dependencies.target].sum()) == len(alone.dependencies)
    d = merged.dependencies
    assert (rank_of[d.source] == rank_of[d.target]).all()
    assert int((d.kind == EdgeKind.LAUNCH).sum()) == 3 * 2 * len([*decode_kernels(2), ALL_REDUCE])
    kinds = [t.kind for t in merged.tracks]
    assert kinds == sorted(kinds, key=(TrackKind.DEVICE_STREAM, TrackKind.ANNOTATION, TrackKind.HOST_THREAD).index)


def test_steps_of_ranks_run_at_once_and_follow_their_own(tmp_path: Path) -> None:
    merged = import_files([rank_file(tmp_path, rank, late=rank) for rank in range(3)])
    assert sorted(merged.step_rank.tolist()) == [0, 0, 1, 1, 2, 2]
    for step, following in enumerate(merged.next_step.tolist()):
        if following >= 0:
            assert merged.step_rank[following] == merged.step_rank[step]
            assert merged.steps.start[following] > merged.steps.start[step]
    periods = steps_table(merged, basis_of(merged.meta)).column("period_ns")
    assert [periods.cell(i) for i in range(6)] == [100_000] * 3 + [None] * 3
    found = {f.rule for f in check(merged, basis_of(merged.meta)).findings}
    assert "steps_overlap" not in found


def test_a_collective_is_wait_and_transfer(tmp_path: Path) -> None:
    trace = import_files([rank_file(tmp_path, rank, late=rank) for rank in range(3)])
    found = match_collectives(trace)
    assert found.unmatched == 0
    assert found.rank.tolist() == [0, 1, 2] * 2
    assert found.wait.tolist() == [2000, 1000, 0] * 2
    assert found.transfer.tolist() == [18_000] * 6
    assert found.skews() == [(1, 0, 2), (2, 0, 2)]
    table = collectives_table(trace)
    assert table.row(0) == {
        "rank": 0, "collectives": 2, "wait_ns": 4000, "transfer_ns": 36_000, "arrived_last": 0,
    }  # fmt: skip
    assert table.column("arrived_last").cell(2) == 2
    assert table.summary == {"collectives": 2, "unmatched_events": 0}


def test_one_rank_has_no_collective_to_wait_in(tmp_path: Path) -> None:
    table = collectives_table(open_trace(rank_file(tmp_path, 0)).trace)
    assert (len(table), table.summary["unmatched_events"]) == (0, 2)


def test_collectives_of_another_number_are_not_matched(tmp_path: Path) -> None:
    first, second = rank_file(tmp_path, 0), rank_file(tmp_path, 1)
    document = json.loads(second.read_text())
    last = max(i for i, e in enumerate(document["traceEvents"]) if e["name"] == ALL_REDUCE)
    del document["traceEvents"][last]
    second.write_text(json.dumps(document))
    found = match_collectives(import_files([first, second]))
    assert (len(found), found.unmatched) == (0, 3)


def test_clocks_that_are_apart_are_shown_apart_and_said(tmp_path: Path) -> None:
    files = [rank_file(tmp_path, 0), rank_file(tmp_path, 1, base=10**18 + 7_000)]
    trace = import_files(files)
    assert match_collectives(trace).skews() == [(1, 7_000, 2)]
    said = [i.what for i in trace.meta.report.inferred if i.rule == "clock offset by collectives"]
    assert said[0].startswith("rank 1: its collectives end +7.0 µs against rank 0")


def starts_of(trace: Trace) -> list[int]:
    rank_of = np.array([t.rank for t in trace.tracks])[trace.lanes.track[trace.event_lane]]
    return [int(trace.events.start[rank_of == rank].min()) for rank in (0, 1)]


def test_recordings_on_no_wall_clock_that_do_not_overlap_begin_together(tmp_path: Path) -> None:
    trace = import_files([rank_file(tmp_path, 0, base=0), rank_file(tmp_path, 1, base=10**17)])
    assert starts_of(trace) == [0, 0]
    assert any("no rank has a wall clock" in i.what for i in trace.meta.report.inferred)


def test_recordings_on_the_wall_clock_stay_on_it_where_they_do_not_overlap(tmp_path: Path) -> None:
    base = 1_767_225_600 * 10**9
    trace = import_files([rank_file(tmp_path, 0, base=base), rank_file(tmp_path, 1, base=base + 10**9)])
    first, second = starts_of(trace)
    assert second - first == 10**9
    assert trace.meta.base_ns + first >= base
    assert any("do not overlap on it" in i.what for i in trace.meta.report.inferred)


def test_a_rank_without_a_clock_is_drawn_behind_the_others(tmp_path: Path) -> None:
    trace = import_files([rank_file(tmp_path, 0, base=1_767_225_600 * 10**9), rank_file(tmp_path, 1, base=0)])
    rank_of = np.array([t.rank for t in trace.tracks])[trace.lanes.track[trace.event_lane]]
    assert starts_of(trace)[1] == int(trace.events.end[rank_of == 0].max())
    assert any(i.what.startswith("no clock in rank 1") for i in trace.meta.report.inferred)


def test_recordings_years_apart_are_of_several_runs(tmp_path: Path) -> None:
    base = 1_767_225_600 * 10**9
    files = [rank_file(tmp_path, 0, base=base), rank_file(tmp_path, 1, base=base + 400 * 86_400 * 10**9)]
    with pytest.raises(TraceError, match=r"not ranks of one run: .* was recorded 399 days after"):
        import_files(files)


def test_files_of_different_depth_are_doubted_before_anything_else_is_said(tmp_path: Path) -> None:
    trace = import_files([rank_file(tmp_path, 0, layers=2), rank_file(tmp_path, 1, layers=6)])
    first = trace.meta.report.inferred[0]
    assert first.what.startswith("these may be no ranks of one run: they have other numbers of layers")


@pytest.mark.parametrize(
    ("names", "ranks", "note"),
    [
        (("a-TP-1.json", "a-TP-0.json"), [1, 0], "names of the files"),
        (("x.json", "y.json"), [0, 1], "order of the files"),
    ],
)
def test_a_rank_that_the_file_does_not_say(tmp_path: Path, names: tuple[str, str], ranks: list[int], note: str) -> None:
    trace = import_files([rank_file(tmp_path, 0, name=name, header=False) for name in names])
    assert list(dict.fromkeys(t.rank for t in trace.tracks)) == ranks
    assert note in trace.meta.notes[0]


def test_two_files_of_one_rank_are_told_apart(tmp_path: Path) -> None:
    trace = import_files([rank_file(tmp_path, 0, name="x.json"), rank_file(tmp_path, 0, name="y.json")])
    assert sorted({t.rank for t in trace.tracks}) == [0, 1]


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no trace is in this folder"):
        open_trace(tmp_path)
    (tmp_path / "x.json").write_text("[1, 2]")
    with pytest.raises(TraceError, match="no trace is in this folder"):
        open_trace(tmp_path)
    with pytest.raises(TraceError):
        import_files([rank_file(tmp_path, 0), tmp_path / "x.json"])
    one = recognise(Recording().raw())
    with pytest.raises(TraceError, match="merged"):
        merge_ranks([one] * (MAX_RANKS + 1))
    assert merge_ranks([one]) is one


def test_ranks_that_a_tool_merged_into_one_file_keep_their_launches_apart(tmp_path: Path) -> None:
    events = []
    for rank in (0, 1):
        for pid, tid, extra in (
            ("[TP0{}-DP00] 0", 7, {"cat": "kernel", "name": GEMM, "ts": 50}),
            ("[TP0{}-DP00] 99", 1, {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10 + rank}),
        ):
            own = {"ph": "X", "pid": pid.format(rank), "tid": tid, "dur": 5, "args": {"correlation": 12}}
            events.append(own | extra)
    path = tmp_path / "merged.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = open_trace(path).trace
    assert sorted({t.rank for t in trace.tracks}) == [0, 1]
    rank_of = np.array([t.rank for t in trace.tracks])[trace.lanes.track[trace.event_lane]]
    d = trace.dependencies
    assert len(d) == 2
    assert (rank_of[d.source] == rank_of[d.target]).all()


def test_case_27_same_ids_on_every_rank(shared: Callable[[str], Path]) -> None:
    folder = shared("cases/27-same-pid-on-every-rank")
    want = json.loads((folder / "expected.json").read_text())["expected"]
    opened = open_trace(folder)
    trace = opened.trace
    assert (len(trace.tracks), len(trace.events)) == (want["opened_together"]["tracks"], 6)
    shown = " ".join(t.process for t in trace.tracks)
    assert all(text in shown for text in want["opened_together"]["labels_contain"])
    assert len(trace.dependencies) == want["opened_together"]["correlation_12_links_across_ranks"]
    busy = {f"rank{d['rank']}": d["busy_ns"] for d in info_document(trace, opened.basis)["devices"]}
    assert busy == want["busy_ns"]
