"""The tables of a Nsight Systems export that are read, the columns each must have, and its small reference tables."""

from dataclasses import dataclass
from typing import Final

from tracescope.core.errors import TraceError
from tracescope.core.raw import RawDevice
from tracescope.io.database import MISSING, Database, Row, Table

CUDA: Final = "CUPTI_ACTIVITY_KIND_"
KERNEL: Final = CUDA + "KERNEL"
MEMCPY: Final = CUDA + "MEMCPY"
MEMSET: Final = CUDA + "MEMSET"
GRAPH_TRACE: Final = CUDA + "GRAPH_TRACE"
SYNCHRONIZATION: Final = CUDA + "SYNCHRONIZATION"
RUNTIME: Final = CUDA + "RUNTIME"
NVTX: Final = "NVTX_EVENTS"
GPU_METRICS: Final = "GPU_METRICS"

REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    KERNEL: ("start", "end", "deviceId", "streamId"),
    MEMCPY: ("start", "end", "deviceId", "streamId"),
    MEMSET: ("start", "end", "deviceId", "streamId"),
    GRAPH_TRACE: ("start", "end", "deviceId", "streamId"),
    SYNCHRONIZATION: ("start", "end"),
    RUNTIME: ("start", "end", "nameId"),
    NVTX: ("start", "end", "eventType"),
    GPU_METRICS: ("timestamp", "metricId", "value"),
}
"""Columns without which a table cannot be read; every other column may be absent, and then nothing is known of it."""

NO_EVENTS: Final = frozenset(
    {"analysis_details", "target_info_session_start_time", "diagnostic_event", "target_info_gpu_metrics"}
)
"""Tables with a time in them that describe the recording, not the program."""

COPY_KINDS: Final = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "HtoD (unified)",
    12: "DtoH (unified)",
    13: "DtoD (unified)",
}
"""ENUM_CUDA_MEMCPY_OPER, as the kinds are called in kernel names."""
MEMORY_KINDS: Final = {
    0: "Pageable",
    1: "Pinned",
    2: "Device",
    3: "Array",
    4: "Managed",
    5: "Device Static",
    6: "Managed Static",
}
"""ENUM_CUDA_MEM_KIND."""
SYNCHRONIZATIONS: Final = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
"""ENUM_CUPTI_SYNC_TYPE."""

NVTX_MARKS: Final = frozenset({34, 65})
NVTX_RANGES: Final = frozenset({59, 60, 70, 71})
"""Push/pop and start/end ranges, of the program and of imported text files."""
NVTX_LABELS: Final = frozenset({33, 39, 64, 72, 73, 74, 75, 76, 97, 98, 99})
"""Names of categories, threads, domains, devices and streams: not events of the program."""
NVTX_DOMAIN: Final = 75

MASK_24: Final = 0xFF_FFFF


@dataclass(frozen=True, slots=True)
class Head:
    """What the small tables of an export say."""

    schema: str
    product: str
    graph_mode: str
    epoch_ns: int
    strings: dict[int, str]
    has_strings: bool
    devices: tuple[RawDevice, ...]
    gpu_of: dict[tuple[int, int], int]
    """(process id, CUDA device number in it) to the GPU's id in the file."""
    processes: dict[int, str]
    """globalPid to name."""
    threads: dict[int, str]
    """globalTid to name."""


def read_head(database: Database) -> Head:
    """The small tables; TraceError where the database is no export or lacks a column that is needed."""
    exported = _pairs(database, "META_DATA_EXPORT")
    captured = _pairs(database, "META_DATA_CAPTURE")
    schema = exported.get("EXPORT_SCHEMA_VERSION", "")
    _check(database, schema)
    table = database.table("StringIds")
    strings: dict[int, str] = {}
    for rows in database.rows(table, ("id",), ("value",)) if table else ():
        strings.update((row[0], row[1]) for row in rows if row[1] is not None)
    epoch = [row[0] for row in _rows(database, "TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))]
    return Head(
        schema=schema,
        product=exported.get("EXPORT_PRODUCT_VERSION", ""),
        graph_mode=captured.get("CUDA_GRAPH_TRACE_OPTIONS:MODE", ""),
        epoch_ns=epoch[0] if epoch and 0 < epoch[0] < 1 << 62 else 0,
        strings=strings,
        has_strings=table is not None,
        devices=_devices(database),
        gpu_of={
            (pid, cuda): gpu
            for gpu, cuda, pid in _rows(database, "TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"))
            if MISSING not in {gpu, cuda, pid} and gpu >= 0
        },
        processes={
            # Of a program's path only its name: the folders may hold a user's.
            row[0]: row[1].replace("\\", "/").rsplit("/", 1)[-1]
            for row in _rows(database, "PROCESSES", ("globalPid",), ("name",))
            if row[1]
        },
        threads={
            row[0]: strings[row[1]]
            for row in _rows(database, "ThreadNames", ("globalTid", "nameId"))
            if strings.get(row[1])
        },
    )


def _check(database: Database, schema: str) -> None:
    """Refuse what is no export, what has no CUDA activity, and tables without the columns they are read by."""
    name, shown = database.path.name, f"schema {schema}" if schema else "schema version not given"
    if database.table("META_DATA_EXPORT") is None and not any(map(database.table, REQUIRED)):
        raise TraceError(
            f"{name}: a SQLite database, but not a Nsight Systems export (it has no META_DATA_EXPORT table)",
            action="Export the report with: nsys export --type sqlite REPORT.nsys-rep",
        )
    viewed = [t for t in (KERNEL, MEMCPY, MEMSET, GRAPH_TRACE, RUNTIME) if t.lower() in database.views]
    if viewed and database.table(KERNEL) is None and not database.table(RUNTIME):
        raise TraceError(
            f"{name}: {viewed[0]} is a view, not a table: views are not read",
            action="Export the report again, or copy what the view shows into a table of that name.",
        )
    if not any(database.table(t) for t in (KERNEL, MEMCPY, MEMSET, GRAPH_TRACE, RUNTIME)):
        raise TraceError(
            f"{name}: has no CUDA activity: none of the {CUDA}* tables exists ({shown})",
            action="Record with nsys profile --trace=cuda,nvtx, while the GPU works, and export again.",
        )
    for required, columns in REQUIRED.items():
        table = database.table(required)
        lacking = [column for column in columns if table is not None and not table.has(column)]
        if lacking:
            raise TraceError(
                f"{name}: table {required} has no column {lacking[0]} ({shown}; read are 3.16 to 3.25)",
                action="Export the report with a newer Nsight Systems.",
            )


def _devices(database: Database) -> tuple[RawDevice, ...]:
    devices: dict[int, RawDevice] = {}
    columns = ("id", "totalMemory", "memoryBandwidth")
    for number, memory, bandwidth, name in _rows(database, "TARGET_INFO_GPU", columns, ("name",)):
        if number != MISSING:
            devices.setdefault(
                number,
                RawDevice(number, name or "", memory if memory > 0 else None, bandwidth if bandwidth > 0 else None),
            )
    return tuple(devices.values())


def _pairs(database: Database, table: str) -> dict[str, str]:
    return {row[0]: row[1] for row in _rows(database, table, (), ("name", "value")) if row[0] and row[1]}


def _rows(database: Database, name: str, integers: tuple[str, ...], texts: tuple[str, ...] = ()) -> list[Row]:
    table = database.table(name)
    return [row for rows in database.rows(table, integers, texts) for row in rows] if table else []


def host_tables(database: Database) -> list[Table]:
    """Tables of calls on host threads, whatever library they are of: those with start, end, thread and name."""
    wanted = ("start", "end", "globalTid", "nameId")
    return [t for t in database.tables.values() if all(map(t.has, wanted)) or t.name.upper() == RUNTIME]


def unread_tables(database: Database, read: set[str]) -> list[Table]:
    """Tables with times in them that no reader takes: their rows are left out, and counted."""
    return [
        table
        for name, table in sorted(database.tables.items())
        if name not in read and name not in NO_EVENTS and (table.has("start") or table.has("timestamp"))
    ]
