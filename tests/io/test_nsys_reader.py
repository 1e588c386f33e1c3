"""SQLite exports of Nsight Systems: every table becomes events, and what a schema lacks is unknown, not wrong."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kit.nsys import CUDA, SCHEMA, build, everything, kernel, process, thread
from tests.kit.raw import read, rows
from tracescope.core.category import EdgeKind, EventFlag, TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory, RawTrace
from tracescope.load import open_trace, save_trace

Shared = Callable[[str], Path]
REAL = {
    # file: kernels, copies and fills, calls, NVTX ranges and syncs, overheads
    "h100_2gpu_1s": (3442, 904 + 22, 5796, 16782 + 244, 198),
    "healthy_1pct": (400, 0, 400, 0, 0),
    "mock": (2, 1, 9, 1, 31),
}


def detail(raw: RawTrace, name: str) -> object:
    row = raw.events.name.tolist().index(raw.names.index(name))
    return json.loads(raw.details[raw.events.detail[row]])


@pytest.mark.parametrize("name", REAL)
def test_real_exports_open_with_what_each_has(shared: Shared, name: str) -> None:
    raw = read(shared(f"traces/nsys_sqlite/{name}.sqlite"))
    kinds = (
        RawCategory.KERNEL,
        RawCategory.COPY,
        RawCategory.RUNTIME,
        RawCategory.ANNOTATION,
        RawCategory.OTHER,
    )
    assert tuple(int(raw.of(kind).sum()) for kind in kinds) == REAL[name]
    assert raw.seen == raw.imported == len(raw.events) == sum(REAL[name])
    assert not raw.dropped
    assert not raw.flagged


@pytest.mark.parametrize("name", REAL)
def test_real_exports_hold_what_sqlite_itself_says(shared: Shared, name: str) -> None:
    """Names, times and launches against plain SQL that shares no code with the reader."""
    path = shared(f"traces/nsys_sqlite/{name}.sqlite")
    raw = read(path)
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    wanted = connection.execute(
        f"SELECT s.value, k.start, k.end - k.start FROM {CUDA}KERNEL k JOIN StringIds s ON s.id = k.shortName"
    ).fetchall()
    assert rows(raw, RawCategory.KERNEL) == wanted
    linked = connection.execute(
        f"SELECT count(*) FROM {CUDA}KERNEL k WHERE EXISTS "
        f"(SELECT 1 FROM {CUDA}RUNTIME r WHERE r.correlationId = k.correlationId)"
    ).fetchone()[0]
    connection.close()
    trace = open_trace(path).trace
    edges = trace.dependencies
    sources = trace.events.category[edges.target[edges.recorded & (edges.kind == EdgeKind.LAUNCH)]]
    assert linked == (1643 if name == "h100_2gpu_1s" else len(wanted))
    assert len(sources) >= linked


def test_two_gpus_are_two_devices(shared: Shared) -> None:
    trace = open_trace(shared("traces/nsys_sqlite/h100_2gpu_1s.sqlite")).trace
    assert [d.device for d in trace.meta.devices] == [0, 1]
    streams = [t for t in trace.tracks if t.kind is TrackKind.DEVICE_STREAM]
    assert {t.device for t in streams} == {0, 1}


def test_the_file_gives_the_machine_its_bandwidth(shared: Shared) -> None:
    opened = open_trace(shared("traces/nsys_sqlite/mock.sqlite"))
    assert opened.basis.bandwidth_bytes_per_s == 760_080_000_000
    assert opened.basis.bandwidth_source == "file"


def test_every_table_becomes_events(tmp_path: Path) -> None:
    raw = read(build(tmp_path / "all.sqlite", everything()))
    assert rows(raw, RawCategory.KERNEL) == [("gemm", 200, 60), ("CUDA graph 12", 400, 400)]
    assert rows(raw, RawCategory.COPY) == [("Memcpy HtoD (Pinned -> Device)", 300, 10), ("Memset (Device)", 320, 5)]
    assert ("cudaLaunchKernel_v7000", 130, 10) in rows(raw, RawCategory.RUNTIME)
    assert rows(raw, RawCategory.OTHER) == [("read", 500, 100)]
    assert rows(raw, RawCategory.ANNOTATION) == [
        ("Stream Sync", 410, 395),
        ("decode", 0, 900),
        ("decode_step", 100, 200),
        ("mark", 350, 0),
    ]
    assert detail(raw, "gemm") == {
        "grid": [8, 2, 1],
        "block": [128, 1, 1],
        "registers per thread": 32,
        "shared memory": 128,
    }
    assert detail(raw, "Memcpy HtoD (Pinned -> Device)") == {"bytes": 4096}
    assert detail(raw, "Memset (Device)") == {"bytes": 64, "value": 0}
    assert detail(raw, "CUDA graph 12") == {"graph id": 12}
    assert '{"return value":700}' in raw.details
    assert [json.loads(t) for t in raw.details[1:] if "domain" in t] == [{"domain": "NCCL", "payload": 12}]
    assert raw.base_time_ns == 1_700_000_000_000_000_000
    assert raw.has_absolute_clock
    assert raw.metadata == {"schema_version": "3.25.0", "cuda_graph_trace": "Graph"}
    assert raw.seen == raw.imported == len(raw.events) + 1  # the domain's name
    assert "1 CUDA graph launches are recorded as wholes" in raw.notes[0]
    kinds = [(t.is_device, t.device, t.process, t.thread) for t in raw.tracks]
    assert kinds == [
        (True, 0, "GPU 0 · Test GPU", "stream 7"),
        (False, -1, "python3 (42)", "python3 (43)"),
    ]
    assert "someone" not in repr(raw)


def test_calls_of_other_libraries_launch_nothing(tmp_path: Path) -> None:
    raw = read(build(tmp_path / "all.sqlite", everything()))
    assert set(raw.events.correlation[raw.of(RawCategory.OTHER, RawCategory.ANNOTATION)].tolist()) == {-1}


def test_kernels_are_classified_by_their_full_name(tmp_path: Path) -> None:
    flash = kernel(0, 10, shortName=7, demangledName=8)
    path = build(tmp_path / "flash.sqlite", {f"{CUDA}KERNEL": [flash, kernel(20, 30)]})
    assert [name for name, _, _ in rows(read(path))] == ["device_kernel", "gemm"]
    trace = open_trace(path).trace
    assert [trace.names[n] for n in trace.events.name] == ["device_kernel", "gemm"]
    assert trace.events.category[0] != trace.events.category[1]
    assert trace.meta.report.unclassified_ns == 0


def test_a_graph_recorded_whole_is_busy_time_and_launched(tmp_path: Path) -> None:
    path = build(tmp_path / "all.sqlite", everything())
    trace = open_trace(path).trace
    graph = [i for i, n in enumerate(trace.events.name.tolist()) if trace.names[n] == "CUDA graph 12"]
    assert trace.tracks[trace.lanes.track[trace.lanes.of_event(graph[0])]].kind is TrackKind.DEVICE_STREAM
    edges = trace.dependencies
    into = [int(s) for s, t in zip(edges.source, edges.target, strict=True) if int(t) == graph[0]]
    assert [trace.names[trace.events.name[s]] for s in into] == ["cudaGraphLaunch_v10000"]


def test_a_graph_whose_kernels_are_recorded_is_not_counted_twice(tmp_path: Path) -> None:
    whole = {"start": 400, "end": 800, "correlationId": 3, "deviceId": 0, "streamId": 7, "graphId": 1}
    parts = [kernel(400 + 200 * i, 600 + 200 * i, correlationId=3, graphNodeId=i) for i in range(2)]
    path = build(tmp_path / "both.sqlite", {f"{CUDA}KERNEL": parts, f"{CUDA}GRAPH_TRACE": [whole]})
    raw = read(path)
    assert ("CUDA graph 1", 400, 400) in rows(raw, RawCategory.ANNOTATION)
    assert "CUDA graph 1" not in [name for name, _, _ in rows(raw, RawCategory.KERNEL)]
    assert raw.notes == ()


def test_processes_count_their_correlations_each_for_itself(tmp_path: Path) -> None:
    calls = [
        {"start": 10 * p, "end": 10 * p + 5, "globalTid": thread(p, p), "correlationId": 1, "nameId": 1} for p in (1, 2)
    ]
    kernels = [kernel(100 * p, 100 * p + 50, globalPid=process(p), correlationId=1) for p in (1, 2)]
    path = build(tmp_path / "two.sqlite", {f"{CUDA}KERNEL": kernels, f"{CUDA}RUNTIME": calls})
    raw = read(path)
    device, host = raw.events.correlation[:2].tolist(), raw.events.correlation[2:].tolist()
    assert device == host
    assert len(set(device)) == 2
    assert sorted(t.tid for t in raw.tracks if t.is_device) == ["7 (process 1)", "7 (process 2)"]


def test_a_process_that_sees_one_gpu_numbers_it_zero(tmp_path: Path) -> None:
    kernels = [kernel(0, 10, globalPid=process(p)) for p in (1, 2)]
    path = build(
        tmp_path / "visible.sqlite",
        {
            f"{CUDA}KERNEL": kernels,
            "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 3, "cudaId": 0, "pid": 1}, {"gpuId": 5, "cudaId": 0, "pid": 2}],
            "TARGET_INFO_GPU": [{"id": i, "name": f"GPU{i}", "memoryBandwidth": 5} for i in range(8)],
        },
    )
    raw = read(path)
    assert [t.device for t in raw.tracks] == [3, 5]
    assert [t.tid for t in raw.tracks] == ["7", "7"]
    assert [d.name for d in raw.devices] == ["GPU3", "GPU5"]


def test_impossible_times_are_left_out_and_counted(tmp_path: Path) -> None:
    kernels = [
        kernel(0, 10),
        kernel(20, 15),
        kernel(1 << 62, (1 << 62) + 5),
        kernel((1 << 63) - 1, 5),
        {**kernel(0, 0), "start": "soon"},
        {**kernel(0, 0), "start": 1.5},
        {**kernel(30, 0), "end": "later"},
        kernel(-50, -40),
    ]
    raw = read(build(tmp_path / "times.sqlite", {f"{CUDA}KERNEL": kernels}))
    assert rows(raw) == [("gemm", 0, 10), ("gemm", 30, 0), ("gemm", -50, 10)]
    assert raw.dropped == {"invalid_timestamp": 4, "negative_duration": 1}
    assert raw.flagged == {"unfinished": 1}
    assert raw.events.flags.tolist() == [0, EventFlag.UNFINISHED | EventFlag.ZERO_LENGTH, 0]


def test_open_calls_and_ranges_last_until_the_end(tmp_path: Path) -> None:
    host = {"globalTid": thread(1, 1)}
    path = build(
        tmp_path / "open.sqlite",
        {
            f"{CUDA}KERNEL": [kernel(0, 1000)],
            f"{CUDA}RUNTIME": [{"start": 400, "end": None, "nameId": 1, **host}],
            "NVTX_EVENTS": [{"start": 1000, "end": None, "eventType": 60, "text": "late", **host}],
        },
    )
    raw = read(path)
    assert rows(raw) == [("gemm", 0, 1000), ("cudaLaunchKernel_v7000", 400, 600), ("late", 1000, 0)]
    assert raw.flagged == {"unfinished": 2}


def test_tables_that_are_not_read_are_counted(tmp_path: Path) -> None:
    path = build(
        tmp_path / "left.sqlite",
        {
            f"{CUDA}KERNEL": [kernel(0, 10)],
            "SCHED_EVENTS": [{"start": i, "cpu": 0} for i in range(5)],
            "WDDM_EVENTS": [{"start": i} for i in range(2)],
            "DIAGNOSTIC_EVENT": [{"timestamp": 0, "text": "Profiling has started."}],
            "NVTX_EVENTS": [{"start": 5, "end": 6, "eventType": 1}],
        },
    )
    raw = read(path)
    assert raw.dropped == {"cpu_scheduling": 5, "unsupported_table": 2, "unknown_nvtx_event": 1}
    assert raw.seen == 9


@pytest.mark.parametrize("gone", ["contextId", "correlationId", "globalPid", "shortName", "gridX", "graphNodeId"])
def test_a_schema_without_a_column_is_read_without_it(tmp_path: Path, gone: str) -> None:
    path = build(tmp_path / "old.sqlite", everything())
    connection = sqlite3.connect(path)
    connection.execute(f"ALTER TABLE {CUDA}KERNEL DROP COLUMN {gone}")
    connection.commit()
    connection.close()
    raw = read(path)
    (name, start, duration), _ = rows(raw, RawCategory.KERNEL)
    assert (start, duration) == (200, 60)
    assert name == ("void gemm<float>(float*)" if gone == "shortName" else "gemm")
    assert ("grid" in detail(raw, name)) == (gone != "gridX")


@pytest.mark.parametrize("gone", ["start", "deviceId"])
def test_a_schema_without_a_needed_column_is_refused_with_its_version(
    tmp_path: Path, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"{CUDA}KERNEL"
    monkeypatch.setitem(SCHEMA, table, tuple(c for c in SCHEMA[table] if not c.startswith(f"{gone} ")))
    path = build(tmp_path / "odd.sqlite", {table: []}, schema="9.1.0")
    with pytest.raises(TraceError, match=f"odd.sqlite: table {table} has no column {gone} .schema 9.1.0"):
        read(path)


def test_a_file_without_cuda_tables_says_so(tmp_path: Path) -> None:
    ranges = [{"start": 0, "end": 5, "eventType": 59, "text": "work"}]
    path = build(tmp_path / "cpu.sqlite", {"NVTX_EVENTS": ranges}, schema="3.16.1")
    with pytest.raises(TraceError, match=r"cpu.sqlite: has no CUDA activity: none of the .* exists .schema 3.16.1"):
        read(path)


def test_a_database_of_something_else_says_so(tmp_path: Path) -> None:
    path = tmp_path / "songs.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (start INTEGER, end INTEGER)")
    connection.commit()
    connection.close()
    with pytest.raises(TraceError, match="not a Nsight Systems export"):
        read(path)


def test_a_report_says_how_to_export_it(tmp_path: Path) -> None:
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(b"\x01\x02\x03")
    with pytest.raises(TraceError) as refused:
        read(path)
    assert "nsys export --type sqlite run.nsys-rep" in refused.value.action


def test_sampled_metrics_are_counters(tmp_path: Path) -> None:
    kind = 0x0200_0000_0001
    path = build(
        tmp_path / "metrics.sqlite",
        {
            f"{CUDA}KERNEL": [kernel(1000, 2000, deviceId=1)],
            "TARGET_INFO_GPU_METRICS": [
                {"typeId": kind, "metricId": 7, "metricName": "DRAM Read Bandwidth [Throughput %]"},
                {"typeId": kind, "metricId": 8, "metricName": "SMs Active [Throughput %]"},
            ],
            "GPU_METRICS": [
                {"timestamp": 1600, "typeId": kind, "metricId": 7, "value": 81},
                {"timestamp": 1100, "typeId": kind, "metricId": 7, "value": 80.5},
                {"timestamp": 1100, "typeId": kind, "metricId": 8, "value": 100},
                {"timestamp": 1100, "typeId": kind, "metricId": 9, "value": 1},
                {"timestamp": None, "typeId": kind, "metricId": 7, "value": 1},
                {"timestamp": 1200, "typeId": kind, "metricId": 7, "value": "high"},
            ],
        },
    )
    raw = read(path)
    assert (raw.seen, raw.imported, raw.dropped) == (7, 5, {"invalid_sample": 2})
    assert [(c.name, c.device, c.value.tolist()) for c in raw.counters] == [
        ("DRAM Read Bandwidth [Throughput %]", 1, [81.0, 80.5]),
        ("SMs Active [Throughput %]", 1, [100.0]),
        ("metric 9", 1, [1.0]),
    ]
    trace = open_trace(path).trace
    save_trace(tmp_path / "metrics.tscope.h5", trace)
    for held in (trace, open_trace(tmp_path / "metrics.tscope.h5").trace):
        [track] = [i for i, t in enumerate(held.tracks) if t.name.startswith("DRAM")]
        rows_of = held.samples.of_track(track)
        assert held.tracks[track].kind is TrackKind.COUNTER
        assert held.samples.time[rows_of].tolist() == [100, 600]
        assert held.samples.value[rows_of].tolist() == [80.5, 81.0]
        assert len(held.events) == 1


def test_invalid_text_is_repaired_and_counted(tmp_path: Path) -> None:
    path = build(tmp_path / "text.sqlite", {f"{CUDA}KERNEL": [kernel(0, 10)]})
    connection = sqlite3.connect(path)
    connection.execute("UPDATE StringIds SET value = CAST(x'67FF6D' AS TEXT) WHERE id = 2")
    connection.commit()
    connection.close()
    raw = read(path)
    assert rows(raw) == [("g\ufffdm", 0, 10)]
    assert raw.flagged == {"text_repaired": 1}


def test_saved_and_opened_again_it_is_the_same(tmp_path: Path) -> None:
    trace = open_trace(build(tmp_path / "all.sqlite", everything())).trace
    save_trace(tmp_path / "all.tscope.h5", trace)
    again = open_trace(tmp_path / "all.tscope.h5").trace
    assert again.names == trace.names
    assert (again.events.start == trace.events.start).all()
    assert again.meta.report == trace.meta.report


def test_progress_rises_to_the_size_of_the_file(tmp_path: Path) -> None:
    from tracescope.io.nsys.reader import NSYS

    path = build(tmp_path / "all.sqlite", everything())
    told: list[tuple[int, int]] = []
    NSYS.read(path, progress=lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert all(total == size for _, total in told)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == size


@pytest.mark.slow
def test_the_same_file_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    path = build(tmp_path / "all.sqlite", everything())
    for name, seed in (("a", "1"), ("b", "2")):
        subprocess.run(
            [sys.executable, "-m", "tracescope", "import", str(path), "-o", str(tmp_path / f"{name}.tscope.h5")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
    assert (tmp_path / "a.tscope.h5").read_bytes() == (tmp_path / "b.tscope.h5").read_bytes()


def test_processes_with_gpus_of_their_own_are_ranks(tmp_path: Path) -> None:
    """Both number their one GPU 0, and their correlations alike; the file says which GPUs they mean."""
    tables: dict[str, list[dict[str, Any]]] = {f"{CUDA}KERNEL": [], f"{CUDA}RUNTIME": [], "TARGET_INFO_CUDA_DEVICE": []}
    for pid, gpu in ((52, 0), (42, 1)):
        tables["TARGET_INFO_CUDA_DEVICE"].append({"gpuId": gpu, "cudaId": 0, "pid": pid})
        tables[f"{CUDA}KERNEL"].append(kernel(200, 260, correlationId=5, globalPid=process(pid)))
        tables[f"{CUDA}RUNTIME"].append(
            {"start": 100, "end": 110, "globalTid": thread(pid, pid), "correlationId": 5, "nameId": 4}
        )
    path = build(tmp_path / "two.sqlite", tables)
    raw = read(path)
    assert {(t.pid, t.rank) for t in raw.tracks} == {("0", 0), ("52", 0), ("1", 1), ("42", 1)}
    trace = open_trace(path).trace
    assert {(d.device, d.rank) for d in trace.meta.devices} == {(0, 0), (1, 1)}
    d = trace.dependencies
    rank_of = np.array([t.rank for t in trace.tracks])[trace.lanes.track[trace.event_lane]]
    assert len(d) == 2
    assert (rank_of[d.source] == rank_of[d.target]).all()


def test_processes_on_one_gpu_are_no_ranks(tmp_path: Path) -> None:
    kernels = [kernel(200, 260, globalPid=process(pid)) for pid in (42, 52)]
    assert {t.rank for t in read(build(tmp_path / "one.sqlite", {f"{CUDA}KERNEL": kernels})).tracks} == {-1}


def test_a_table_that_is_a_view_is_said_not_to_be_read(tmp_path: Path) -> None:
    path = build(tmp_path / "view.sqlite", everything())
    connection = sqlite3.connect(path)
    connection.execute(f"ALTER TABLE {CUDA}MEMCPY RENAME TO kept")
    connection.execute(f"CREATE VIEW {CUDA}MEMCPY AS SELECT * FROM kept")
    connection.commit()
    raw = read(path)
    assert raw.flagged["view_not_read"] == 1
    assert f"{CUDA}MEMCPY is a view, not a table: its rows are not read" in raw.notes
    connection.execute(f"ALTER TABLE {CUDA}KERNEL RENAME TO kept_too")
    connection.execute(f"CREATE VIEW {CUDA}KERNEL AS SELECT * FROM kept_too")
    connection.execute(f"DROP TABLE {CUDA}RUNTIME")
    connection.commit()
    connection.close()
    with pytest.raises(TraceError, match="KERNEL is a view, not a table"):
        read(path)
