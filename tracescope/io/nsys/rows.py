"""Turns the rows of each table of an export into events."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I64
from tracescope.core.raw import RawCategory
from tracescope.io.collector import UNNAMED, Collector
from tracescope.io.database import MISSING, Database, Row, Table
from tracescope.io.nsys.schema import (
    COPY_KINDS,
    GRAPH_TRACE,
    KERNEL,
    MEMCPY,
    MEMORY_KINDS,
    MEMSET,
    NVTX,
    NVTX_DOMAIN,
    NVTX_LABELS,
    NVTX_MARKS,
    NVTX_RANGES,
    RUNTIME,
    SYNCHRONIZATION,
    SYNCHRONIZATIONS,
    Head,
)
from tracescope.io.nsys.tracks import DEVICE, HOST

_START: Final = itemgetter(0)
_END: Final = itemgetter(1)
_PLACE: Final = ("deviceId", "streamId", "globalPid", "contextId")
_KERNEL_ARGUMENTS: Final = (
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "clusterX",
    "clusterY",
    "clusterZ",
    "registersPerThread",
    "staticSharedMemory",
    "dynamicSharedMemory",
    "localMemoryPerThread",
    "graphId",
    "graphNodeId",
)


class RowReader:
    """Reads the tables of one export into a collector. ``report`` is told after each piece how many rows it had."""

    def __init__(self, database: Database, head: Head, report: Callable[[int], None]) -> None:
        self.database = database
        self.head = head
        self.collector = Collector()
        self.unknown_strings = 0
        """Names that the file numbers and does not spell."""
        self._report = report
        self._processes = self._number_processes()
        self._kernel_launches: set[int] = set()
        """Correlations of kernels that belong to a graph: whole-graph rows with the same one show them again."""

    # --- names ---

    def string(self, number: int) -> str:
        """The text that ``number`` stands for; a dangling id says so."""
        if number == MISSING:
            return UNNAMED
        text = self.head.strings.get(number)
        if text is None:
            self.unknown_strings += 1
            return f"string #{number}"
        return text or UNNAMED

    # --- places ---

    def _number_processes(self) -> dict[int, int]:
        """globalPid to a small number, where every device row names its process; else nothing.

        Correlations are counted by each process for itself: with several processes they need its number.
        """
        found: set[int] = set()
        for name in (KERNEL, MEMCPY, MEMSET, GRAPH_TRACE):
            table = self.database.table(name)
            for rows in self.database.rows(table, ("globalPid",)) if table else ():
                found.update(row[0] for row in rows)
        return {} if MISSING in found else {pid: number for number, pid in enumerate(sorted(found))}

    def _correlations(self, correlation: list[int], global_pid: list[int]) -> I64:
        given = np.array(correlation, np.int64)
        if len(self._processes) < 2:
            return np.where(given < 0, -1, given)
        numbers = np.array([self._processes.get(pid, -1) for pid in global_pid], np.int64)
        sound = (given >= 0) & (given < 1 << 32) & (numbers >= 0) & (numbers < 1 << 20)
        return np.where(sound, given + (numbers << 32), -1)

    def _pieces(
        self, table: Table | None, integers: tuple[str, ...], texts: tuple[str, ...] = ()
    ) -> Iterator[list[Row]]:
        for rows in self.database.rows(table, integers, texts) if table else ():
            yield rows
            self._report(len(rows))

    # --- device ---

    def read_kernels(self) -> None:
        """Kernels: shown by their short name, classified by the demangled one."""
        table = self.database.table(KERNEL)
        if table is None:
            return
        columns = ("start", "end", "correlationId", *_PLACE, "shortName", "demangledName", "mangledName")
        width = len(columns)
        category = self.collector.words[RawCategory.KERNEL]
        names: dict[Row, tuple[str, str]] = {}
        for rows in self._pieces(table, (*columns, *_KERNEL_ARGUMENTS)):
            spelled = [row[7:10] for row in rows]
            for key in set(spelled) - names.keys():
                names[key] = self._kernel_name(*key)
            detail = self.collector.details.of_rows(_kernel_arguments, [row[width:] for row in rows])
            correlation = self._add_device(rows, [names[key] for key in spelled], category, detail)
            self.collector.flag("unknown_name", sum(MISSING in key[:1] for key in spelled))
            in_graph = np.array([row[-2] != MISSING or row[-1] != MISSING for row in rows])
            self._kernel_launches.update(correlation[in_graph & (correlation >= 0)].tolist())

    def _kernel_name(self, short: int, demangled: int, mangled: int) -> tuple[str, str]:
        full = next((self.head.strings[n] for n in (demangled, mangled) if self.head.strings.get(n)), "")
        shown = self.string(short) if short != MISSING else full or self.string(demangled)
        return shown, full if full != shown else ""

    def _add_device(self, rows: list[Row], names: Sequence[tuple[str, str]], category: Any, detail: Any) -> I64:
        """Rows that begin with start, end, correlation and _PLACE; returns their correlations."""
        launches = self._correlations([row[2] for row in rows], [row[5] for row in rows])
        self.collector.flag("missing_track_id", sum(MISSING in row[3:5] for row in rows))
        self.collector.add_spans(
            np.fromiter(map(_START, rows), np.int64, len(rows)),
            np.fromiter(map(_END, rows), np.int64, len(rows)),
            name=self.collector.names.of(names),
            category=category,
            track=self.collector.tracks.of([(DEVICE, *row[3:7]) for row in rows]),
            detail=detail,
            correlation=launches,
            open_ended=False,
        )
        return launches

    def read_copies(self) -> None:
        """Copies and fills of device memory, named as in kernel lists: ``Memcpy HtoD (Pinned -> Device)``."""
        table = self.database.table(MEMCPY)
        columns = ("start", "end", "correlationId", *_PLACE)
        more = ("copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "bytes", "copyCount", "graphNodeId")
        for rows in self._pieces(table, (*columns, *more)):
            names = [_copy_name(*row[7:10]) for row in rows]
            detail = self.collector.details.of_rows(_copy_arguments, [row[10:] for row in rows])
            self._add_device(rows, names, self.collector.words[RawCategory.COPY], detail)
        table = self.database.table(MEMSET)
        for rows in self._pieces(table, (*columns, "memKind", "bytes", "value", "graphNodeId")):
            kinds = [MEMORY_KINDS.get(row[7], "") for row in rows]
            names = [(f"Memset ({kind})", "") if kind else ("Memset", "") for kind in kinds]
            detail = self.collector.details.of_rows(_fill_arguments, [row[8:] for row in rows])
            self._add_device(rows, names, self.collector.words[RawCategory.COPY], detail)

    def read_graphs(self) -> int:
        """Whole replays of a CUDA graph, one row each; returns how many stand for kernels that are not recorded.

        A replay whose kernels are recorded too is an annotation of its stream.
        """
        table = self.database.table(GRAPH_TRACE)
        alone = 0
        whole, shown = self.collector.words[RawCategory.KERNEL], None
        for rows in self._pieces(table, ("start", "end", "correlationId", *_PLACE, "graphId", "graphExecId")):
            launches = self._correlations([row[2] for row in rows], [row[5] for row in rows])
            again = np.array([launch in self._kernel_launches for launch in launches.tolist()])
            if again.any() and shown is None:
                shown = self.collector.words[RawCategory.ANNOTATION]
            alone += int((~again).sum())
            names = [(f"CUDA graph {row[7]}" if row[7] != MISSING else "CUDA graph", "") for row in rows]
            detail = self.collector.details.of_rows(_graph_arguments, [row[7:] for row in rows])
            self._add_device(rows, names, np.where(again, shown or 0, whole), detail)
        return alone

    def read_synchronizations(self) -> None:
        """What the host waited for, as annotations of the stream it waited on."""
        table = self.database.table(SYNCHRONIZATION)
        for rows in self._pieces(table, ("start", "end", "correlationId", *_PLACE, "syncType")):
            names = [(SYNCHRONIZATIONS.get(row[7], "Sync"), "") for row in rows]
            unlinked = [(*row[:2], MISSING, *row[3:]) for row in rows]
            self._add_device(unlinked, names, self.collector.words[RawCategory.ANNOTATION], 0)

    # --- host ---

    def read_calls(self, table: Table) -> None:
        """Calls on host threads: CUDA's own carry the correlation by which they launched device work."""
        cuda = table.name.upper() == RUNTIME
        category = self.collector.words[RawCategory.RUNTIME if cuda else RawCategory.OTHER]
        columns = ("start", "end", "nameId", "globalTid", "correlationId", "returnValue")
        for rows in self._pieces(table, columns):
            threads = [row[3] for row in rows]
            pids = [thread & ~0xFF_FFFF if thread != MISSING else MISSING for thread in threads]
            failed = [row[5:] if row[5] not in {MISSING, 0} else () for row in rows]
            self.collector.flag("unknown_name", sum(row[2] == MISSING for row in rows))
            self.collector.add_spans(
                np.array([row[0] for row in rows], np.int64),
                np.array([row[1] for row in rows], np.int64),
                name=self.collector.names.of([(self.string(row[2]), "") for row in rows]),
                category=category,
                track=self._threads(threads),
                detail=self.collector.details.of_rows(_call_arguments, failed),
                correlation=self._correlations([row[4] for row in rows], pids) if cuda else -1,
            )

    def _threads(self, threads: list[int]) -> NDArray[np.uint32]:
        self.collector.flag("missing_track_id", threads.count(MISSING))
        return self.collector.tracks.of([(HOST, thread) for thread in threads])

    def read_ranges(self) -> None:
        """NVTX: ranges and marks become events; names of domains, categories and threads are taken as metadata."""
        table = self.database.table(NVTX)
        if table is None:
            return
        domains = self._domains(table)
        category = self.collector.words[RawCategory.ANNOTATION]
        columns = ("start", "end", "eventType", "globalTid", "textId", "domainId", "jsonTextId")
        values = ("uint64Value", "int64Value", "uint32Value", "int32Value")
        more = len(columns) + len(values)
        describe = _range_arguments(domains, self.head.strings)
        for rows in self._pieces(table, (*columns, *values), ("text", "jsonText")):
            labels = sum(row[2] in NVTX_LABELS for row in rows)
            shown = [row for row in rows if row[2] in NVTX_MARKS or row[2] in NVTX_RANGES]
            self.collector.seen += len(rows) - len(shown)
            self.collector.imported += labels
            self.collector.drop("unknown_nvtx_event", len(rows) - len(shown) - labels)
            if not shown:
                continue
            start = np.array([row[0] for row in shown], np.int64)
            is_mark = np.array([row[2] in NVTX_MARKS for row in shown])
            texts = [row[-2] or self.string(row[4]) for row in shown]
            self.collector.flag("unknown_name", sum(text == UNNAMED for text in texts))
            self.collector.add_spans(
                start,
                np.where(is_mark, start, np.array([row[1] for row in shown], np.int64)),
                name=self.collector.names.of([(text, "") for text in texts]),
                category=category,
                track=self._threads([row[3] for row in shown]),
                detail=self.collector.details.of_rows(describe, [(*row[5:more], row[-1]) for row in shown]),
            )

    def _domains(self, table: Table) -> dict[int, str]:
        found: dict[int, str] = {}
        for rows in self.database.rows(table, ("eventType", "domainId", "textId"), ("text",)):
            found.update((row[1], row[3] or self.string(row[2])) for row in rows if row[0] == NVTX_DOMAIN)
        return found


# --- recorded arguments ---


def _known(**values: int) -> dict[str, Any]:
    return {key.replace("_", " "): value for key, value in values.items() if value != MISSING}


def _triple(x: int, y: int, z: int) -> list[int]:
    return [value if value != MISSING else 1 for value in (x, y, z)]


def _kernel_arguments(row: Row) -> dict[str, Any]:
    registers, static, dynamic, local, graph, node = row[9:]
    found: dict[str, Any] = {}
    if row[0] != MISSING:
        found["grid"] = _triple(*row[:3])
    if row[3] != MISSING:
        found["block"] = _triple(*row[3:6])
    if row[6] not in {MISSING, 0}:
        found["cluster"] = _triple(*row[6:9])
    found |= _known(registers_per_thread=registers)
    if static != MISSING or dynamic != MISSING:
        found["shared memory"] = sum(value for value in (static, dynamic) if value != MISSING)
    if local not in {MISSING, 0}:
        found["local memory per thread"] = local
    return found | _known(graph_id=graph, graph_node_id=node)


def _copy_name(kind: int, source: int, target: int) -> tuple[str, str]:
    name = f"Memcpy {COPY_KINDS[kind]}" if kind in COPY_KINDS else "Memcpy"
    if source in MEMORY_KINDS and target in MEMORY_KINDS:
        name += f" ({MEMORY_KINDS[source]} -> {MEMORY_KINDS[target]})"
    return name, ""


def _copy_arguments(row: Row) -> dict[str, Any]:
    source, target, size, count, node = row
    found = _known(bytes=size, source_device=source, target_device=target, graph_node_id=node)
    return found | (_known(copies=count) if count not in {MISSING, 1} else {})


def _fill_arguments(row: Row) -> dict[str, Any]:
    size, value, node = row
    return _known(bytes=size, value=value, graph_node_id=node)


def _graph_arguments(row: Row) -> dict[str, Any]:
    graph, executable = row
    return _known(graph_id=graph, graph_exec_id=executable)


def _call_arguments(row: Row) -> dict[str, Any]:
    return {"return value": row[0]} if row else {}


def _range_arguments(domains: dict[int, str], strings: dict[int, str]) -> Callable[[Row], dict[str, Any]]:
    def describe(row: Row) -> dict[str, Any]:
        domain, json_id, *values, json = row
        found: dict[str, Any] = {}
        if domain not in {MISSING, 0}:
            found["domain"] = domains.get(domain, str(domain))
        payload = next((value for value in values if value != MISSING), None)
        if payload is not None:
            found["payload"] = payload
        text = json or strings.get(json_id)
        if text:
            found["json"] = text
        return found

    return describe
