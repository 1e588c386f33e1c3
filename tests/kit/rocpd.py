"""Builds small rocpd databases by the schema (version 3) that rocprofv3 writes, for tests."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SUFFIX = "_0000c0de_51ab_7f3c_9d10_8a6b5e4f3c2d"
_TEXT = {"tag", "value", "string", "machine_id", "hostname", "command", "name", "type", "model_name", "product_name",
         "kernel_name", "display_name", "extdata", "level", "guid"}  # fmt: skip
_GRID = ("workgroup_size_x", "workgroup_size_y", "workgroup_size_z", "grid_size_x", "grid_size_y", "grid_size_z")
SCHEMA: dict[str, tuple[str, ...]] = {
    "metadata": ("tag", "value"),
    "string": ("guid", "string"),
    "info_node": ("guid", "hash", "machine_id", "hostname"),
    "info_process": ("guid", "nid", "ppid", "pid", "command"),
    "info_thread": ("guid", "nid", "pid", "tid", "name"),
    "info_agent": ("guid", "nid", "pid", "type", "absolute_index", "logical_index", "type_index", "name", "model_name",
                   "product_name"),
    "info_queue": ("guid", "nid", "pid", "name"),
    "info_stream": ("guid", "nid", "pid", "name"),
    "info_kernel_symbol": ("guid", "nid", "pid", "code_object_id", "kernel_name", "display_name"),
    "event": ("guid", "category_id", "stack_id", "parent_stack_id", "correlation_id", "extdata"),
    "arg": ("guid", "event_id", "position", "type", "name", "value"),
    "pmc_event": ("guid", "event_id", "pmc_id", "value"),
    "region": ("guid", "nid", "pid", "tid", "start", "end", "name_id", "event_id"),
    "sample": ("guid", "track_id", "timestamp", "event_id"),
    "kernel_dispatch": ("guid", "nid", "pid", "tid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id",
                        "start", "end", "private_segment_size", "group_segment_size", *_GRID, "event_id"),
    "memory_copy": ("guid", "nid", "pid", "tid", "start", "end", "name_id", "dst_agent_id", "src_agent_id", "size",
                    "queue_id", "stream_id", "event_id"),
    "memory_allocate": ("guid", "nid", "pid", "tid", "agent_id", "type", "level", "start", "end", "size", "event_id"),
}  # fmt: skip
"""Columns of each table beside its ``id``; those of type TEXT are in _TEXT, all others are whole numbers."""

LAYER = [
    ("void fused_add_rms_norm_kernel<bf16>", 3_000),
    ("Cijk_Alik_Bljk_BBS_BH_qkv", 21_000),
    ("void rotary_embedding_kernel<bf16>", 2_000),
    ("void reshape_and_cache_kernel<bf16>", 2_500),
    ("void paged_attention_ll4mi_QKV_mfma16_kernel<bf16>", 40_000),
    ("Cijk_Alik_Bljk_BBS_BH_o", 17_000),
    ("Cijk_Alik_Bljk_BBS_BH_gate_up", 66_000),
    ("void act_and_mul_kernel<bf16>", 3_000),
    ("Cijk_Alik_Bljk_BBS_BH_down", 41_000),
]
"""Kernels of one decoder layer as vLLM launches them on ROCm, with the ns that each takes."""
SAMPLER = ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>", 6_000)


class RocpdFile:
    """Collects rows, numbers them as the writer does, and writes the database."""

    def __init__(self, *, process: int = 4242, device: int = 0, suffix: str = SUFFIX) -> None:
        self.suffix = suffix
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMA}
        self._strings: dict[str, int] = {}
        self._symbols: dict[str, int] = {}
        self._stack = 0
        self.add("metadata", tag="schema_version", value="3")
        self.add("info_node", hash=1, machine_id="m", hostname="somebody")
        self.process = self.add("info_process", nid=1, pid=process, command="/home/somebody/python serve.py")
        self.thread = self.add("info_thread", nid=1, pid=self.process, tid=process + 1, name="")
        self.add("info_agent", nid=1, type="CPU", type_index=0, name="EPYC")
        self.gpu = self.add(
            "info_agent", nid=1, type="GPU", absolute_index=device + 1, logical_index=device + 1, type_index=device,
            name="gfx942", product_name="AMD Instinct MI300X",
        )  # fmt: skip
        self.queue = self.add("info_queue", nid=1, pid=self.process, name="Queue 1")
        self.stream = self.add("info_stream", nid=1, pid=self.process, name="Stream 0")

    def add(self, table: str, **values: Any) -> int:
        """One row; its id."""
        self.rows[table].append(values)
        return len(self.rows[table])

    def string(self, text: str) -> int:
        """The id of a text."""
        if text not in self._strings:
            self._strings[text] = self.add("string", string=text)
        return self._strings[text]

    def event(self, category: str, stack: int = 0, parent: int = 0, **extra: Any) -> int:
        """The event behind a row; ``stack`` is shared by a call and what it launched."""
        return self.add(
            "event", category_id=self.string(category), stack_id=stack, parent_stack_id=parent, correlation_id=0,
            extdata=json.dumps(extra),
        )  # fmt: skip

    def call(self, name: str, start: int, end: int, category: str = "HIP_RUNTIME_API_EXT") -> int:
        """A call on the host; its place in the stack of calls."""
        self._stack += 1
        self.add(
            "region", pid=self.process, tid=self.thread, start=start, end=end, name_id=self.string(name),
            event_id=self.event(category, self._stack),
        )  # fmt: skip
        return self._stack

    def mark(self, text: str, start: int, end: int) -> None:
        """A range that the program marked."""
        self._stack += 1
        event = self.event("MARKER_CORE_RANGE_API", self._stack, message=text)
        name = self.string("roctxThreadRangeA")
        self.add("region", pid=self.process, tid=self.thread, start=start, end=end, name_id=name, event_id=event)

    def kernel(self, name: str, start: int, end: int, stack: int, **more: Any) -> None:
        """A kernel, launched by the call at ``stack``."""
        if name not in self._symbols:
            plain = "".join(c if c.isalnum() else "_" for c in name)
            self._symbols[name] = self.add(
                "info_kernel_symbol", code_object_id=1, kernel_name=f"_ZN{plain}.kd", display_name=name
            )
        row = {
            "pid": self.process, "tid": self.thread, "agent_id": self.gpu, "kernel_id": self._symbols[name],
            "dispatch_id": len(self.rows["kernel_dispatch"]) + 1, "queue_id": self.queue, "stream_id": self.stream,
            "start": start, "end": end, "group_segment_size": 512, "private_segment_size": 0,
            "workgroup_size_x": 256, "workgroup_size_y": 1, "workgroup_size_z": 1,
            "grid_size_x": 1000, "grid_size_y": 2, "grid_size_z": 1,
        }  # fmt: skip
        event = self.event("KERNEL_DISPATCH", stack)
        self.add("kernel_dispatch", **(row | {"event_id": event} | more))

    def copy(self, name: str, start: int, end: int, size: int, parent: int) -> None:
        """A copy to the GPU; its own place in the stack is that of a call below HIP that was not recorded."""
        self._stack += 1
        self.add(
            "memory_copy", pid=self.process, tid=self.thread, start=start, end=end, size=size,
            name_id=self.string(name), dst_agent_id=self.gpu, src_agent_id=1, stream_id=self.stream,
            queue_id=self.queue, event_id=self.event("MEMORY_COPY", self._stack, parent),
        )  # fmt: skip

    def decode(self, steps: int, layers: int, at: int = 1_000_000) -> int:
        """Decode steps of a dense model, one launch a kernel; the time at which the last one ends."""
        clock = at
        for _ in range(steps):
            host = clock
            for name, lasts in [*LAYER * layers, ("Cijk_Alik_Bljk_BBS_BH_lm_head", 90_000), SAMPLER]:
                stack = self.call("hipLaunchKernel", host, host + 500)
                host += 1_000
                clock = max(clock, host) + 1_000
                self.kernel(name, clock, clock + lasts, stack)
                clock += lasts
            self.mark("execute_context_0(0)_generation_4(4)", host - 1_000 * (len(LAYER) * layers + 2) - 10, host)
            clock += 20_000
        return clock

    def build(self, path: Path, without: Sequence[str] = ()) -> Path:
        """Write the database; ``without`` names columns (``table.column``) that the schema shall lack."""
        connection = sqlite3.connect(path)
        for table, columns in SCHEMA.items():
            kept = [c for c in columns if f"{table}.{c}" not in without]
            typed = ", ".join(f'"{column}" {_type(table, column)}' for column in kept)
            name = f"rocpd_{table}{self.suffix}"
            connection.execute(f'CREATE TABLE "{name}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, {typed})')
            connection.execute(f'CREATE VIEW IF NOT EXISTS "rocpd_{table}" AS SELECT * FROM "{name}"')
            for row in self.rows[table]:
                given = [c for c in kept if c in row]
                quoted, marks = ", ".join(f'"{c}"' for c in given), ", ".join("?" * len(given))
                connection.execute(f'INSERT INTO "{name}" ({quoted}) VALUES ({marks})', [row[c] for c in given])
        connection.commit()
        connection.close()
        return path


def _type(table: str, column: str) -> str:
    if column in _TEXT:
        return "TEXT"
    return "REAL" if table == "pmc_event" else "BIGINT"
