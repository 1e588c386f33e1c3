"""The records of one process become rows: kernels, copies, API calls and markers."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Final

import msgspec
import numpy as np

from tracescope.core.columns import I64
from tracescope.core.raw import RawCategory, RawDevice, RawTrack
from tracescope.io.collector import MAX_TEXT, SPAN_LIMIT_NS, UNNAMED, Collector
from tracescope.io.rocprof.layout import (
    UNREADABLE,
    Agent,
    Decoded,
    Dispatch,
    Metadata,
    Process,
    Record,
    Strings,
    Symbol,
    count_items,
    decode_list,
)

KERNELS: Final = ("kernel_dispatch", "kernel_dispatches")
COPIES: Final = ("memory_copy", "memory_copies")
MARKERS: Final = "marker_api"
COPY_NAMES: Final = {
    "HOST_TO_DEVICE": "Memcpy HtoD",
    "DEVICE_TO_HOST": "Memcpy DtoH",
    "DEVICE_TO_DEVICE": "Memcpy DtoD",
    "HOST_TO_HOST": "Memcpy HtoH",
}
GPU: Final = 2
"""The type of agents that are GPUs; 1 is a CPU."""
FRAME_BUFFERS: Final = frozenset({1, 2})
"""Heap types of memory banks that are the GPU's own memory."""
MAX_CORRELATION: Final = 1 << 48
"""Ids of one process; those of the n-th of a file are kept apart above n times it."""
DEVICE: Final = 0
_HOST: Final = 1
_STREAM: Final = 0
_QUEUE: Final = 1
_COPY: Final = 2
"""What the last two numbers of a device track's key are: (DEVICE, process, device, of what, which)."""


class ProcessReader:
    """The records of one process; ``number`` is its place in the file."""

    def __init__(self, collector: Collector, process: Process, number: int) -> None:
        self.collector = collector
        self.number = number
        self._process = process
        self._metadata = self._part(process.metadata, Metadata, Metadata())
        agents = self._items(process.agents, Agent)
        self._strings = self._part(process.strings, Strings, Strings())
        symbols = self._items(process.kernel_symbols, Symbol)
        self._symbols = {symbol.kernel_id: symbol.names for symbol in symbols}
        self._messages = {text.key: text.value[:MAX_TEXT] for text in self._strings.marker_api}
        self._renamed = {text.key: text.value[:MAX_TEXT] for text in self._strings.correlation_id.external}
        gpus = [agent for agent in agents if agent.type == GPU]
        self._gpu_of: dict[int, int] = {}
        self.devices: list[RawDevice] = []
        for place, agent in enumerate(gpus):
            device = agent.logical_node_type_id if 0 <= agent.logical_node_type_id < 1 << 16 else place
            self._gpu_of[agent.id.handle] = device
            memory = sum(bank.size_in_bytes for bank in agent.mem_banks if bank.heap_type in FRAME_BUFFERS)
            self.devices.append(RawDevice(device, agent.shown, memory if 0 < memory < 1 << 60 else None))

    def _part(self, raw: msgspec.Raw, kind: type[Decoded], absent: Decoded) -> Decoded:
        try:
            return msgspec.json.decode(raw, type=kind, strict=False)
        except UNREADABLE:
            self.collector.flag("unreadable_metadata", 1)
            return absent

    def _items(self, raw: msgspec.Raw, kind: type[Decoded]) -> list[Decoded]:
        """The items of a small list; those that are none are left out, and flagged."""
        found, lost = decode_list(raw, kind)
        self.collector.flag("unreadable_metadata", lost)
        return found

    def read_all(self) -> None:
        """Read every list of records; those without times are dropped and counted."""
        for name, raw in self._process.buffer_records.items():
            records, lost = decode_list(raw, Record)
            self.collector.seen += lost
            self.collector.drop("pc_sample" if name.startswith("pc_sample") else "unreadable_record", lost)
            if name in KERNELS:
                self._add(records, RawCategory.KERNEL, self._kernel_name, self._kernel_track, self._kernel_detail)
            elif name in COPIES:
                self._add(records, RawCategory.COPY, self._copy_name, self._copy_track, self._copy_detail)
            elif name == MARKERS:
                self._add(records, RawCategory.ANNOTATION, self._marker_name, self._thread, self._call_detail)
            else:
                word = RawCategory.RUNTIME if name.endswith("_api") else RawCategory.OTHER
                self._add(records, word, self._operation, self._thread, self._call_detail)
        for name, raw in self._process.callback_records.items():
            count = count_items(raw)
            self.collector.seen += count
            self.collector.drop("counter_collection" if name == "counter_collection" else "callback_record", count)

    def _add(
        self,
        records: Sequence[Record],
        category: RawCategory,
        name: Callable[[Record], tuple[str, str]],
        track: Callable[[Record], tuple[int, ...]],
        detail: Callable[..., dict[str, Any]],
    ) -> None:
        if not records:
            return
        collector = self.collector
        names = [name(record) for record in records]
        collector.flag("unknown_name", sum(shown == UNNAMED for shown, _ in names))
        collector.add_spans(
            _times([record.start_timestamp for record in records]),
            _times([record.end_timestamp for record in records]),
            name=collector.names.of(names),
            category=collector.words[category],
            track=collector.tracks.of([track(record) for record in records]),
            detail=collector.details.of_rows(_as_is, [_pairs(detail(record), record) for record in records]),
            correlation=np.fromiter((self._correlation(record) for record in records), np.int64, len(records)),
        )

    def _correlation(self, record: Record) -> int:
        found = record.correlation_id.internal
        return found + self.number * MAX_CORRELATION if 0 < found < MAX_CORRELATION else -1

    # --- names ---

    def _operation(self, record: Record) -> tuple[str, str]:
        kinds = self._strings.buffer_records
        if 0 <= record.kind < len(kinds):
            operations = kinds[record.kind].operations
            if 0 <= record.operation < len(operations):
                return operations[record.operation][:MAX_TEXT] or UNNAMED, ""
        return UNNAMED, ""

    def _kernel_name(self, record: Record) -> tuple[str, str]:
        renamed = self._renamed.get(record.kernel_rename_val, "") if record.kernel_rename_val else ""
        shown, full = self._symbols.get((record.dispatch_info or Dispatch()).kernel_id, ("", ""))
        return renamed or shown or UNNAMED, full

    def _copy_name(self, record: Record) -> tuple[str, str]:
        operation = self._operation(record)[0].removeprefix("MEMORY_COPY_")
        return COPY_NAMES.get(operation, "Memcpy" if operation == UNNAMED else operation), ""

    def _marker_name(self, record: Record) -> tuple[str, str]:
        message = self._messages.get(record.correlation_id.internal, "")
        return (message, "") if message else self._operation(record)

    # --- tracks ---

    def _kernel_track(self, record: Record) -> tuple[int, ...]:
        dispatch = record.dispatch_info or Dispatch()
        device = self._gpu_of.get(dispatch.agent_id.handle, -1)
        if record.stream_id is not None:
            return DEVICE, self.number, device, _STREAM, record.stream_id.handle
        return DEVICE, self.number, device, _QUEUE, dispatch.queue_id.handle

    def _copy_track(self, record: Record) -> tuple[int, ...]:
        ends = (record.dst_agent_id.handle, record.src_agent_id.handle)
        device = next((self._gpu_of[handle] for handle in ends if handle in self._gpu_of), -1)
        if record.stream_id is not None:
            return DEVICE, self.number, device, _STREAM, record.stream_id.handle
        return DEVICE, self.number, device, _COPY, 0

    def _thread(self, record: Record) -> tuple[int, ...]:
        return _HOST, self.number, record.thread_id

    def track(self, key: tuple[int, ...]) -> RawTrack:
        """The track with ``key``, which is of this process."""
        pid = self._metadata.pid
        if key[0] == _HOST:
            # Of a program's path only its name: the folders may hold a user's.
            command = PurePath(self._metadata.command[0]).name[:MAX_TEXT] if self._metadata.command else ""
            return RawTrack(
                pid=str(pid),
                tid=str(key[2]),
                process=f"{command} ({pid})" if command else f"process {pid}",
                thread=f"thread {key[2]}",
            )
        device, of, which = key[2:]
        tid = {_STREAM: str(which), _QUEUE: f"queue {which}", _COPY: "copies"}[of]
        if self.number:
            tid += f" (process {pid})"
        name = next((d.name for d in self.devices if d.device == device), "")
        process = "GPU" if device < 0 else f"GPU {device}"
        return RawTrack(
            pid=str(device) if device >= 0 else "(no process)",
            tid=tid,
            process=f"{process} · {name}" if name else process,
            thread=f"stream {tid}" if of == _STREAM else tid,
            is_device=True,
            device=device,
        )

    # --- recorded arguments ---

    def _kernel_detail(self, record: Record) -> dict[str, Any]:
        dispatch = record.dispatch_info or Dispatch()
        found: dict[str, Any] = {}
        block, items = dispatch.workgroup_size, dispatch.grid_size
        if block is not None and items is not None and min(block.x, block.y, block.z) > 0:
            # The file counts work-items; a grid is counted in groups of them everywhere else.
            found["grid"] = [-(-items.x // block.x), -(-items.y // block.y), -(-items.z // block.z)]
            found["block"] = [block.x, block.y, block.z]
        if dispatch.group_segment_size:
            found["shared memory"] = dispatch.group_segment_size
        if dispatch.private_segment_size:
            found["private memory"] = dispatch.private_segment_size
        found |= {"graph_id": record.graph_exec_id} if record.graph_exec_id else {}
        return found | ({"graph_node_id": record.graph_node_id} if record.graph_node_id else {})

    def _copy_detail(self, record: Record) -> dict[str, Any]:
        found: dict[str, Any] = {"bytes": record.bytes} if record.bytes >= 0 else {}
        for key, handle in (("source_device", record.src_agent_id), ("target_device", record.dst_agent_id)):
            if handle.handle in self._gpu_of:
                found[key] = self._gpu_of[handle.handle]
        return found

    def _call_detail(self, record: Record) -> dict[str, Any]:
        return {"bytes": record.allocation_size} if record.allocation_size >= 0 else {}


def _pairs(arguments: dict[str, Any], record: Record) -> tuple[Any, ...]:
    external = record.correlation_id.external
    if external:
        arguments["external correlation"] = external
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in arguments.items())


def _as_is(pairs: tuple[Any, ...]) -> dict[str, Any]:
    return {key: value if not isinstance(value, int) or abs(value) < 1 << 63 else str(value) for key, value in pairs}


def _times(times: list[int]) -> I64:
    """int64[n]; what is no time (the profiler writes 0 where it has none) is past the limit, so that it is dropped."""
    return np.array([time if 0 < time < SPAN_LIMIT_NS else SPAN_LIMIT_NS for time in times], np.int64)
