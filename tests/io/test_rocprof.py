"""What the reader of rocprofiler-sdk JSON does with kernels, copies, calls, markers and damage: own small files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.raw import rows
from tests.kit.rocprof import (
    GPU_AGENT_1,
    HIP,
    MARKER,
    call,
    copy,
    document,
    everything,
    handle,
    kernel,
    process,
    read_json,
)
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory
from tracescope.io import reader_for
from tracescope.load import import_file


def test_every_kind_of_record(tmp_path: Path) -> None:
    raw = read_json(tmp_path, everything())
    assert sorted(rows(raw), key=lambda one: one[1]) == [
        ("hipMemcpyAsync", 1, 1),
        ("hsa_init", 10, 10),
        ("Memcpy HtoD", 50, 30),
        ("Memcpy DtoH", 80, 10),
        ("decode_step", 85, 125),
        ("hipLaunchKernel", 90, 5),
        ("hipGraphLaunch", 96, 1),
        ("gemm", 100, 60),
        ("Cijk_Ailk", 160, 40),
    ]
    assert (raw.seen, raw.imported, raw.dropped) == (10, 9, {"pc_sample": 1})
    kinds = [RawCategory.KERNEL, RawCategory.COPY, RawCategory.RUNTIME, RawCategory.ANNOTATION, RawCategory.OTHER]
    assert [int(raw.of(kind).sum()) for kind in kinds] == [2, 2, 3, 1, 1]
    assert raw.full_names[raw.names.index("gemm")] == "void gemm<float>(float*)"
    assert not raw.has_absolute_clock


def test_launch_and_kernel_share_a_correlation(tmp_path: Path) -> None:
    raw = read_json(tmp_path, everything())
    by_name = {name: c for (name, _, _), c in zip(rows(raw), raw.events.correlation.tolist(), strict=True)}
    assert by_name["gemm"] == by_name["hipLaunchKernel"] == 21
    assert by_name["Cijk_Ailk"] == -1


def test_tracks_are_streams_where_known_else_queues(tmp_path: Path) -> None:
    raw = read_json(tmp_path, everything())
    shown = {(t.pid, t.tid, t.thread, t.is_device, t.device) for t in raw.tracks}
    assert shown == {
        ("0", "1", "stream 1", True, 0),
        ("0", "queue 3", "queue 3", True, 0),
        ("0", "copies", "copies", True, 0),
        ("4242", "4243", "thread 4243", False, -1),
    }
    assert {t.process for t in raw.tracks} == {"GPU 0 · AMD Instinct MI300X", "serve (4242)"}


def test_devices_are_those_that_did_something(tmp_path: Path) -> None:
    raw = read_json(
        tmp_path, document(process(kernel_dispatch=[kernel(1, 2, agent=GPU_AGENT_1), kernel(2, 3, agent=5)]))
    )
    assert [(d.device, d.name, d.memory_bytes) for d in raw.devices] == [(1, "AMD Instinct MI300X", 192 << 30)]
    assert [track.device for track in raw.tracks] == [1, -1]


def test_arguments(tmp_path: Path) -> None:
    linked = copy(1, 2, correlation_id={"internal": 1, "external": 77})
    graph = kernel(3, 4, graph_exec_id=5, graph_node_id=6)
    raw = read_json(tmp_path, document(process(memory_copy=[linked], kernel_dispatch=[graph])))
    assert [json.loads(raw.details[code]) for code in raw.events.detail.tolist()] == [
        {"bytes": 4096, "target_device": 0, "external correlation": 77},
        {"grid": [4, 2, 1], "block": [256, 1, 1], "shared memory": 512, "graph_id": 5, "graph_node_id": 6},
    ]


def test_names_that_are_renamed_or_unknown(tmp_path: Path) -> None:
    records = [kernel(1, 2, kernel_rename_val=9), kernel(2, 3, 0), kernel(3, 4, 99)]
    raw = read_json(tmp_path, document(process(kernel_dispatch=records, marker_api=[call(5, 5, MARKER, 0, 51)])))
    assert [name for name, _, _ in rows(raw)] == ["renamed", "(unnamed)", "(unnamed)", "roctxMarkA"]
    assert raw.flagged["unknown_name"] == 2


def test_processes_of_one_file_keep_their_correlations_apart(tmp_path: Path) -> None:
    one = process(kernel_dispatch=[kernel(1, 2, internal=4)], hip_api=[call(0, 1, HIP, 1, 4)])
    raw = read_json(tmp_path, document(one, {**one, "metadata": {"pid": 5000}}))
    assert len(set(raw.events.correlation[raw.of(RawCategory.KERNEL)].tolist())) == 2
    assert {t.tid for t in raw.tracks if t.is_device} == {"queue 3", "queue 3 (process 5000)"}
    assert raw.dropped == {"invalid_timestamp": 2}  # the profiler writes 0 where it has no time


def test_impossible_times_and_records_of_another_shape_are_counted(tmp_path: Path) -> None:
    records: list[Any] = [kernel(5, 4), kernel(1 << 63, 1 << 64), kernel(-1, 4), {"kind": 1}, 7, None, kernel(8, 9)]
    raw = read_json(tmp_path, document(process(kernel_dispatch=records)))
    assert rows(raw) == [("gemm", 8, 1)]
    assert raw.dropped == {"negative_duration": 1, "invalid_timestamp": 2, "unreadable_record": 3}


def test_counters_of_kernels_are_counted_as_left_out(tmp_path: Path) -> None:
    one = process(kernel_dispatch=[kernel(1, 2)])
    one["callback_records"] = {"counter_collection": [{"records": []}, {"records": []}]}
    raw = read_json(tmp_path, document(one))
    assert raw.dropped == {"counter_collection": 2}


def test_numbers_as_text_older_keys_and_no_metadata(tmp_path: Path) -> None:
    record = {"start_timestamp": "10", "end_timestamp": "30", "dispatch_info": {"kernel_id": "1"}}
    raw = read_json(
        tmp_path, {"rocprofiler-sdk-tool": {"buffer_records": {"kernel_dispatches": [record]}, "agents": 5}}
    )
    assert rows(raw) == [("(unnamed)", 10, 20)]
    assert raw.flagged["unreadable_metadata"] == 1


def test_bytes_in_names_that_are_no_text(tmp_path: Path) -> None:
    data = json.dumps(everything()).encode().replace(b"Cijk_Ailk", b"Cijk\x8dAilk")
    raw = read_json(tmp_path, data)
    assert "Cijk\ufffdAilk" in raw.names
    assert raw.flagged["text_repaired"] == 1


def test_gzip_reads_the_same(tmp_path: Path) -> None:
    raw = read_json(tmp_path, gzip.compress(json.dumps(everything()).encode()))
    assert rows(raw) == rows(read_json(tmp_path, everything()))


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(everything()).encode()[:-40],
        b'{"rocprofiler-sdk-tool": 5}',
        b'{"rocprofiler-sdk-tool": []}',
        b'{"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": []}}]}',
        b'{"rocprofiler-sdk-tool": [{"buffer_records": ' + b"[" * 5000,
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(TraceError) as refused:
        reader_for(path).read(path)
    assert refused.value.lines()[0].startswith("x.json: ")
    assert len(refused.value.lines()) <= 2


def test_import_knows_the_machine_and_tells_device_from_host(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    records = [kernel(1000 + 10 * i, 1006 + 10 * i, stream_id=handle(1)) for i in range(20)]
    path.write_text(json.dumps(document(process(kernel_dispatch=records, hip_api=[call(900, 950, HIP, 1)]))))
    trace = import_file(path)
    assert len(trace.events) == 21
    assert sorted(track.name for track in trace.tracks) == ["stream 1", "thread 4243"]
    assert trace.meta.hardware is not None
    assert trace.meta.hardware.name == "mi300x"
