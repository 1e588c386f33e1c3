"""Builds small files of rocprofiler-sdk JSON by its documented layout (rocprofv3's output schema) for tests."""

import json
from pathlib import Path
from typing import Any

from tests.kit.raw import read
from tracescope.core.raw import RawTrace
from tracescope.io import reader_for

CPU_AGENT, GPU_AGENT, GPU_AGENT_1 = 11, 7001, 7002
KINDS = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API", "operations": ["NONE", "hipLaunchKernel", "hipMemcpyAsync", "hipGraphLaunch"]},
    {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA", "roctxGetThreadId"]},
    {"kind": "KERNEL_DISPATCH", "operations": ["NONE", "ENQUEUE", "COMPLETE"]},
    {"kind": "MEMORY_COPY", "operations": ["NONE", "HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE", "DEVICE_TO_HOST"]},
    {"kind": "HSA_CORE_API", "operations": ["hsa_init", "hsa_queue_create"]},
]
HIP, MARKER, DISPATCH, COPY, HSA = range(1, 6)


def handle(value: int) -> dict[str, int]:
    """An id as the file writes ids."""
    return {"handle": value}


def call(start: int, end: int, kind: int, operation: int, internal: int = 0, **more: Any) -> dict[str, Any]:
    """A record of any kind."""
    return {
        "size": 64,
        "kind": kind,
        "operation": operation,
        "correlation_id": {"internal": internal, "external": 0},
        "start_timestamp": start,
        "end_timestamp": end,
        "thread_id": 4243,
        **more,
    }


def kernel(
    start: int, end: int, kernel_id: int = 1, internal: int = 0, agent: int = GPU_AGENT, **more: Any
) -> dict[str, Any]:
    """A kernel dispatch, on queue 3."""
    dispatch = {
        "size": 72,
        "agent_id": handle(agent),
        "queue_id": handle(3),
        "kernel_id": kernel_id,
        "dispatch_id": 1,
        "private_segment_size": 0,
        "group_segment_size": 512,
        "workgroup_size": {"x": 256, "y": 1, "z": 1},
        "grid_size": {"x": 1000, "y": 2, "z": 1},
    }
    return call(start, end, DISPATCH, 2, internal, dispatch_info=dispatch, **more)


def copy(start: int, end: int, operation: int = 2, **more: Any) -> dict[str, Any]:
    """A copy from the host to the first GPU."""
    ends = {"src_agent_id": handle(CPU_AGENT), "dst_agent_id": handle(GPU_AGENT), "bytes": 4096}
    return call(start, end, COPY, operation, 0, **{**ends, **more})


def process(**records: list[Any]) -> dict[str, Any]:
    """A process with two GPUs, two kernel symbols and ``records``."""
    gpu = {"type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X", "vendor_name": "AMD"}
    banks = [{"heap_type": 1, "size_in_bytes": 192 << 30, "width": 8192, "mem_clk_max": 1300, "flags": {}}]
    return {
        "metadata": {
            "pid": 4242,
            "init_time": 1,
            "fini_time": 2,
            "command": ["/home/someone/bin/serve", "--x"],
            "config": {},
        },
        "agents": [
            {"id": handle(CPU_AGENT), "type": 1, "name": "EPYC", "logical_node_type_id": 0, "mem_banks": []},
            {"id": handle(GPU_AGENT), **gpu, "logical_node_type_id": 0, "mem_banks": banks},
            {"id": handle(GPU_AGENT_1), **gpu, "logical_node_type_id": 1, "mem_banks": banks},
        ],
        "strings": {
            "buffer_records": KINDS,
            "callback_records": [],
            "marker_api": [{"key": 50, "value": "decode_step"}],
            "correlation_id": {"external": [{"key": 9, "value": "renamed"}]},
        },
        "kernel_symbols": [
            {"kernel_id": 0, "kernel_name": "", "formatted_kernel_name": "", "truncated_kernel_name": ""},
            {
                "kernel_id": 1,
                "kernel_name": "_Z4gemmPf.kd",
                "formatted_kernel_name": "void gemm<float>(float*)",
                "truncated_kernel_name": "gemm",
            },
            {"kernel_id": 2, "kernel_name": "Cijk_Ailk.kd"},
        ],
        "callback_records": {"counter_collection": []},
        "buffer_records": records,
    }


def document(*processes: Any) -> dict[str, Any]:
    """A whole file."""
    return {"rocprofiler-sdk-tool": list(processes)}


def everything() -> dict[str, Any]:
    """A file with every kind of record that is read, and some that are not."""
    return document(
        process(
            kernel_dispatch=[kernel(100, 160, 1, 21, stream_id=handle(1), kernel_rename_val=0), kernel(160, 200, 2)],
            memory_copy=[copy(50, 80, stream_id=handle(1)), copy(80, 90, 3)],
            hip_api=[call(90, 95, HIP, 1, 21), call(96, 97, HIP, 3)],
            hsa_api=[call(10, 20, HSA, 0)],
            marker_api=[call(85, 210, MARKER, 0, 50)],
            memory_allocation=[call(1, 2, HIP, 2, allocation_size=64, agent_id=handle(GPU_AGENT), address="0x0")],
            pc_sample_host_trap=[{"timestamp": 5}],
        )
    )


def read_json(folder: Path, content: Any) -> RawTrace:
    """Write ``content`` as JSON (bytes as they are) and read it through the reader that recognises it."""
    path = folder / "1234_results.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content, indent=1).encode())
    assert reader_for(path).name == "rocprofiler-sdk JSON"
    return read(path)
