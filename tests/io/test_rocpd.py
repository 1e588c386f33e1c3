"""rocpd databases: what each table becomes, by the schema that rocprofv3 writes."""

import json
from pathlib import Path

import pytest

from tests.kit.raw import rows
from tests.kit.rocpd import LAYER, SUFFIX, RocpdFile
from tracescope.core.category import Category, StepKind
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory, RawTrace
from tracescope.io import reader_for
from tracescope.load import open_trace


def read(path: Path) -> RawTrace:
    raw = reader_for(path).read(path)
    assert raw.seen == raw.imported + sum(raw.dropped.values())
    return raw


def everything() -> RocpdFile:
    file = RocpdFile()
    stack = file.call("hipLaunchKernel", 100, 110)
    file.kernel("gemm", 200, 260, stack)
    file.copy("MEMORY_COPY_HOST_TO_DEVICE", 300, 340, 4096, file.call("hipMemcpyAsync", 280, 290))
    file.mark("decode_step", 90, 400)
    file.call("hsa_queue_create", 50, 60, "HSA_CORE_API")
    file.call("MPI_Send", 70, 75, "MPI")
    file.add("memory_allocate", pid=1, tid=1, agent_id=2, type="ALLOC", level="REAL", start=10, end=12, size=1 << 20)
    file.add("pmc_event", event_id=2, pmc_id=1, value=7.0)
    file.add("sample", track_id=1, timestamp=5)
    file.kernel("never timed", 0, 0, 0)
    return file


def test_every_table(tmp_path: Path) -> None:
    raw = read(everything().build(tmp_path / "1_results.db"))
    assert rows(raw, RawCategory.KERNEL) == [("gemm", 200, 60)]
    assert rows(raw, RawCategory.COPY) == [("Memcpy HtoD", 300, 40)]
    assert rows(raw, RawCategory.ANNOTATION) == [("decode_step", 90, 310)]
    assert rows(raw, RawCategory.RUNTIME) == [
        ("hipLaunchKernel", 100, 10),
        ("hipMemcpyAsync", 280, 10),
        ("hsa_queue_create", 50, 10),
    ]
    assert rows(raw, RawCategory.OTHER) == [("MPI_Send", 70, 5), ("memory alloc", 10, 2)]
    assert raw.dropped == {"invalid_timestamp": 1, "counter_collection": 1, "sample": 1}
    assert [(d.device, d.name) for d in raw.devices] == [(0, "AMD Instinct MI300X")]
    assert raw.full_names[raw.names.index("gemm")] == "_ZNgemm"
    assert {json.loads(t).get("bytes") for t in raw.details[1:]} == {None, 4096, 1 << 20}
    assert json.loads(raw.details[1]) == {"grid": [4, 2, 1], "block": [256, 1, 1], "shared memory": 512}
    assert "somebody" not in repr(raw)
    assert {(t.pid, t.tid, t.process) for t in raw.tracks if not t.is_device} == {("4242", "4243", "python (4242)")}


def test_what_a_call_launched_shares_its_correlation(tmp_path: Path) -> None:
    """A kernel has the call's place in the stack, a copy that of the call's callee."""
    raw = read(everything().build(tmp_path / "1_results.db"))
    of = dict(zip([raw.names[n] for n in raw.events.name.tolist()], raw.events.correlation.tolist(), strict=True))
    assert of["gemm"] == of["hipLaunchKernel"] > 0
    assert of["Memcpy HtoD"] == of["hipMemcpyAsync"] > 0
    assert of["decode_step"] == -1


def test_streams_where_they_were_recorded_else_queues(tmp_path: Path) -> None:
    file = RocpdFile()
    second = file.add("info_queue", nid=1, pid=1, name="Queue 2")
    file.kernel("a", 10, 20, 0)
    file.kernel("b", 12, 22, 0, queue_id=second)
    assert [t.thread for t in read(file.build(tmp_path / "queues.db")).tracks] == ["Queue 1", "Queue 2"]
    file.kernel("c", 30, 40, 0, stream_id=file.add("info_stream", nid=1, pid=1, name="Stream 5"))
    assert [t.thread for t in read(file.build(tmp_path / "streams.db")).tracks] == ["Stream 0", "Stream 5"]


def test_a_decode_recording_opens_with_steps_and_layers(tmp_path: Path) -> None:
    file = RocpdFile()
    file.decode(steps=3, layers=2)
    opened = open_trace(file.build(tmp_path / "1_results.db"))
    trace = opened.trace
    assert [StepKind(k) for k in trace.steps.kind.tolist()] == [StepKind.DECODE] * 3
    assert trace.steps.batch.tolist() == [4, 4, 4]
    assert set(trace.events.layer.tolist()) >= {0, 1}
    device = trace.on_device[trace.event_lane]
    counts = {c: int((trace.events.category[device] == c).sum()) for c in Category}
    assert int(device.sum()) == 3 * (2 * len(LAYER) + 2)
    assert counts[Category.WEIGHT_READ] == 3 * (2 * 4 + 1)
    assert counts[Category.KV_READ] == counts[Category.KV_APPEND] == 3 * 2
    assert counts[Category.TOKEN_SELECTION] == 3
    assert trace.meta.report.unclassified_ns == 0
    assert opened.basis.hardware is not None
    assert opened.basis.hardware.name == "mi300x"


def test_several_processes_in_one_database_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "merged.db"
    for process, device in ((4242, 0), (5000, 1)):
        file = RocpdFile(process=process, device=device, suffix=f"{SUFFIX}{device}")
        file.kernel("gemm", 100, 160, file.call("hipLaunchKernel", 10, 20))
        file.build(path)
    raw = read(path)
    assert [(t.device, t.thread) for t in raw.tracks if t.is_device] == [
        (0, "Queue 1 (process 4242)"),
        (1, "Queue 1 (process 5000)"),
    ]
    assert len(set(raw.events.correlation[raw.of(RawCategory.KERNEL)].tolist())) == 2


def test_a_schema_without_what_is_needed_is_named(tmp_path: Path) -> None:
    path = everything().build(tmp_path / "new.db", without=["kernel_dispatch.start"])
    with pytest.raises(TraceError, match=r"table rocpd_kernel_dispatch has no column start \(schema 3; read is 3\)"):
        read(path)


def test_a_schema_without_what_is_not_needed_is_read(tmp_path: Path) -> None:
    gone = ["kernel_dispatch.stream_id", "kernel_dispatch.queue_id", "info_agent.type_index", "event.extdata"]
    raw = read(everything().build(tmp_path / "old.db", without=gone))
    assert rows(raw, RawCategory.KERNEL) == [("gemm", 200, 60)]
    assert rows(raw, RawCategory.ANNOTATION) == [("roctxThreadRangeA", 90, 310)]
