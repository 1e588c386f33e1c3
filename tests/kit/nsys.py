"""Builds small exports of Nsight Systems for tests: any schema, any damage."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CUDA = "CUPTI_ACTIVITY_KIND_"
KERNEL_COLUMNS = (
    "start INTEGER NOT NULL",
    "end INTEGER NOT NULL",
    "deviceId INTEGER NOT NULL",
    "contextId INTEGER",
    "streamId INTEGER NOT NULL",
    "correlationId INTEGER",
    "globalPid INTEGER",
    "demangledName INTEGER",
    "shortName INTEGER",
    "registersPerThread INTEGER",
    "gridX INTEGER",
    "gridY INTEGER",
    "gridZ INTEGER",
    "blockX INTEGER",
    "blockY INTEGER",
    "blockZ INTEGER",
    "staticSharedMemory INTEGER",
    "dynamicSharedMemory INTEGER",
    "graphNodeId INTEGER",
    "graphId INTEGER",
)
SCHEMA: dict[str, tuple[str, ...]] = {
    "StringIds": ("id INTEGER PRIMARY KEY", "value TEXT NOT NULL"),
    "META_DATA_EXPORT": ("name TEXT", "value TEXT"),
    "META_DATA_CAPTURE": ("name TEXT", "value TEXT"),
    "PROCESSES": ("globalPid INTEGER", "pid INTEGER", "name TEXT"),
    "ThreadNames": ("nameId INTEGER", "priority INTEGER", "globalTid INTEGER"),
    "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs INTEGER",),
    "TARGET_INFO_GPU": ("id INTEGER", "name TEXT", "totalMemory INTEGER", "memoryBandwidth INTEGER"),
    "TARGET_INFO_CUDA_DEVICE": ("gpuId INTEGER", "cudaId INTEGER", "pid INTEGER"),
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL",
        "end INTEGER",
        "eventType INTEGER NOT NULL",
        "text TEXT",
        "textId INTEGER",
        "globalTid INTEGER",
        "domainId INTEGER",
        "int64Value INTEGER",
        "jsonText TEXT",
    ),
    f"{CUDA}KERNEL": KERNEL_COLUMNS,
    f"{CUDA}MEMCPY": (
        *KERNEL_COLUMNS[:7],
        "bytes INTEGER",
        "copyKind INTEGER",
        "srcKind INTEGER",
        "dstKind INTEGER",
        "copyCount INTEGER",
    ),
    f"{CUDA}MEMSET": (*KERNEL_COLUMNS[:7], "value INTEGER", "bytes INTEGER", "memKind INTEGER"),
    f"{CUDA}GRAPH_TRACE": (*KERNEL_COLUMNS[:7], "graphId INTEGER", "graphExecId INTEGER"),
    f"{CUDA}SYNCHRONIZATION": (*KERNEL_COLUMNS[:7], "syncType INTEGER"),
    f"{CUDA}RUNTIME": (
        "start INTEGER NOT NULL",
        "end INTEGER",
        "eventClass INTEGER",
        "globalTid INTEGER",
        "correlationId INTEGER",
        "nameId INTEGER",
        "returnValue INTEGER",
    ),
    "TARGET_INFO_GPU_METRICS": ("typeId INTEGER", "metricId INTEGER", "metricName TEXT"),
    "GPU_METRICS": ("timestamp INTEGER", "typeId INTEGER", "metricId INTEGER", "value"),
    "OSRT_API": ("start INTEGER", "end INTEGER", "globalTid INTEGER", "nameId INTEGER", "correlationId INTEGER"),
    "SCHED_EVENTS": ("start INTEGER", "cpu INTEGER", "globalTid INTEGER"),
    "WDDM_EVENTS": ("start INTEGER", "context INTEGER"),
    "DIAGNOSTIC_EVENT": ("timestamp INTEGER", "text TEXT"),
}

STRINGS = {
    1: "cudaLaunchKernel_v7000",
    2: "gemm",
    3: "void gemm<float>(float*)",
    4: "cudaGraphLaunch_v10000",
    5: "decode_step",
    6: "python3",
    7: "device_kernel",
    8: "void cutlass::device_kernel<flash::FlashAttnFwdSm90<>>(T1)",
    9: "read",
}


def thread(process: int, number: int) -> int:
    """A globalTid."""
    return 1 << 48 | process << 24 | number


def process(number: int) -> int:
    """A globalPid."""
    return 1 << 48 | number << 24


def build(
    path: Path, tables: dict[str, Sequence[dict[str, Any]]], *, strings: bool = True, schema: str = "3.25.0"
) -> Path:
    """An export at ``path`` with ``tables``, each a list of rows; tables that are not given do not exist."""
    connection = sqlite3.connect(path)
    filled: dict[str, Sequence[dict[str, Any]]] = {
        "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": schema}],
        **({"StringIds": [{"id": k, "value": v} for k, v in STRINGS.items()]} if strings else {}),
        **tables,
    }
    for table, rows in filled.items():
        connection.execute(f"CREATE TABLE {table} ({', '.join(SCHEMA[table])})")
        for row in rows:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    connection.commit()
    connection.close()
    return path


def kernel(start: int, end: int, **more: Any) -> dict[str, Any]:
    """A kernel row on stream 7 of device 0."""
    return {"start": start, "end": end, "deviceId": 0, "streamId": 7, "shortName": 2, "demangledName": 3, **more}


def everything() -> dict[str, Sequence[dict[str, Any]]]:
    """Rows for every table that is read."""
    place = {"deviceId": 0, "streamId": 7, "contextId": 1, "globalPid": process(42)}
    host = {"globalTid": thread(42, 43)}
    return {
        "META_DATA_CAPTURE": [{"name": "CUDA_GRAPH_TRACE_OPTIONS:MODE", "value": "Graph"}],
        "PROCESSES": [{"globalPid": process(42), "pid": 42, "name": "/home/someone/bin/python3"}],
        "ThreadNames": [{"nameId": 6, "globalTid": thread(42, 43)}],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_000}],
        "TARGET_INFO_GPU": [{"id": 0, "name": "Test GPU", "totalMemory": 1 << 30, "memoryBandwidth": 10**12}],
        "NVTX_EVENTS": [
            {"start": 0, "end": 900, "eventType": 59, "text": "decode", "domainId": 0, **host},
            {"start": 100, "end": 300, "eventType": 59, "textId": 5, "domainId": 1, "int64Value": 12, **host},
            {"start": 0, "end": None, "eventType": 75, "text": "NCCL", "domainId": 1, **host},
            {"start": 350, "end": None, "eventType": 34, "text": "mark", "domainId": 0, "jsonText": "{}", **host},
        ],
        f"{CUDA}KERNEL": [
            kernel(
                200, 260, correlationId=1, registersPerThread=32, gridX=8, gridY=2, gridZ=1, blockX=128, blockY=1,
                blockZ=1, staticSharedMemory=100, dynamicSharedMemory=28, contextId=1, globalPid=process(42),
            )
        ],
        f"{CUDA}MEMCPY": [
            {"start": 300, "end": 310, "correlationId": 2, **place, "bytes": 4096, "copyKind": 1, "srcKind": 1,
             "dstKind": 2, "copyCount": 1}
        ],
        f"{CUDA}MEMSET": [{"start": 320, "end": 325, **place, "value": 0, "bytes": 64, "memKind": 2}],
        f"{CUDA}GRAPH_TRACE": [{"start": 400, "end": 800, "correlationId": 3, **place, "graphId": 12}],
        f"{CUDA}SYNCHRONIZATION": [{"start": 410, "end": 805, "correlationId": 4, **place, "syncType": 3}],
        f"{CUDA}RUNTIME": [
            {"start": 110, "end": 120, "eventClass": 0, "correlationId": 1, "nameId": 1, "returnValue": 0, **host},
            {"start": 130, "end": 140, "eventClass": 1, "correlationId": 2, "nameId": 1, "returnValue": 700, **host},
            {"start": 360, "end": 370, "eventClass": 0, "correlationId": 3, "nameId": 4, "returnValue": 0, **host},
        ],
        "OSRT_API": [{"start": 500, "end": 600, "nameId": 9, "correlationId": 1, **host}],
    }  # fmt: skip
