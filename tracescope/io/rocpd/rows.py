"""The rows of one capture of a rocpd database become events."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tracescope.core.arguments import recorded_arguments
from tracescope.core.raw import RawCategory, RawTrack
from tracescope.io.collector import MAX_TEXT, NO_PROCESS, NO_THREAD, SPAN_LIMIT_NS, UNNAMED, Collector
from tracescope.io.database import MISSING, Database, Row, Table
from tracescope.io.rocpd.schema import ALLOCATIONS, COPIES, EVENTS, KERNELS, REGIONS, Agent, Capture
from tracescope.io.rocprof.process import COPY_NAMES, MAX_CORRELATION

DEVICE: Final = 0
HOST: Final = 1
"""First element of a track's key: (DEVICE, capture, GPU, process, stream, queue), (HOST, capture, process, thread)."""

_GRID: Final = tuple(f"{what}_size_{axis}" for what in ("grid", "workgroup") for axis in "xyz")
_MARKER: Final = "MARKER"
_NOBODY: Final = Agent(-1, "")


class CaptureReader:
    """Reads the tables of one capture; ``number`` is its place in the file."""

    def __init__(
        self, database: Database, collector: Collector, capture: Capture, number: int, report: Callable[[int], None]
    ) -> None:
        self.capture = capture
        self._database = database
        self._collector = collector
        self._number = number
        self._report = report
        self._categories, self._stacks, self._messages = self._read_events()
        self._calls: set[int] = set()
        """Correlations of calls on the host."""
        used = {row[0] for rows in self._pieces(KERNELS, ("stream_id",), silent=True) for row in rows}
        self._by_queue = len(used) < 2
        """Everything on one stream says that streams were not recorded: queues tell more then."""

    def read(self) -> None:
        """Calls first, so that what they launched finds them."""
        self._read_regions()
        self._read_kernels()
        self._read_copies()
        self._read_allocations()

    def _table(self, what: str) -> Table | None:
        return self.capture.tables.get(what)

    def _pieces(
        self, what: str, integers: tuple[str, ...], texts: tuple[str, ...] = (), *, silent: bool = False
    ) -> Any:
        table = self._table(what)
        for rows in self._database.rows(table, integers, texts) if table else ():
            yield rows
            if not silent:
                self._report(len(rows))

    def _read_events(self) -> tuple[dict[int, str], dict[int, tuple[int, int]], dict[int, str]]:
        """Of each event its category, its own and its caller's place in the stack of calls, and its message."""
        categories: dict[int, str] = {}
        stacks: dict[int, tuple[int, int]] = {}
        messages: dict[int, str] = {}
        for rows in self._pieces(
            EVENTS, ("id", "category_id", "stack_id", "parent_stack_id"), ("extdata",), silent=True
        ):
            for key, category, stack, parent, data in rows:
                categories[key] = self.capture.strings.get(category, "")
                stacks[key] = (stack, parent)
                if data and '"message"' in data:
                    messages[key] = _message(data)
        return categories, stacks, messages

    def _correlation(self, event: int, *, launches: bool = False) -> int:
        """What a call and what it launched share; -1 where nothing is known."""
        own, parent = self._stacks.get(event, (MISSING, MISSING))
        found = own if launches or own in self._calls or parent not in self._calls else parent
        return found + self._number * MAX_CORRELATION if 0 < found < MAX_CORRELATION else -1

    def _add(
        self, rows: list[Row], names: list[tuple[str, str]], kinds: list[RawCategory], tracks: list[Any], **more: Any
    ) -> None:
        """Rows that begin with start and end."""
        collector = self._collector
        collector.flag("unknown_name", sum(shown == UNNAMED for shown, _ in names))
        times = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
        collector.add_spans(
            np.where(times[:, 0] > 0, times[:, 0], SPAN_LIMIT_NS),  # 0 stands for a time that was not taken
            np.where(times[:, 1] > 0, times[:, 1], SPAN_LIMIT_NS),
            name=collector.names.of(names),
            category=collector.words.of(kinds),
            track=collector.tracks.of(tracks),
            **more,
        )

    def _read_regions(self) -> None:
        """Calls of HIP, HSA and RCCL, and ranges that the program marked."""
        for rows in self._pieces(REGIONS, ("start", "end", "pid", "tid", "name_id", "event_id")):
            words = [self._categories.get(row[5], "").upper() for row in rows]
            marks = [_MARKER in word for word in words]
            self._calls.update(self._stacks.get(row[5], (0, 0))[0] for row in rows)
            self._add(
                rows,
                [
                    ((mark and self._messages.get(row[5])) or self.capture.strings.get(row[4]) or UNNAMED, "")
                    for row, mark in zip(rows, marks, strict=True)
                ],
                [_kind(word, mark=mark) for word, mark in zip(words, marks, strict=True)],
                [self._thread(*row[2:4]) for row in rows],
                correlation=np.array(
                    [
                        -1 if mark else self._correlation(row[5], launches=True)
                        for row, mark in zip(rows, marks, strict=True)
                    ],
                    np.int64,
                ),
            )

    def _read_kernels(self) -> None:
        columns = ("start", "end", "pid", "agent_id", "stream_id", "queue_id", "kernel_id", "event_id")
        more = (*_GRID, "group_segment_size", "private_segment_size", "dispatch_id")
        for rows in self._pieces(KERNELS, (*columns, *more)):
            self._add(
                rows,
                [self.capture.symbols.get(row[6], (UNNAMED, "")) for row in rows],
                [RawCategory.KERNEL] * len(rows),
                [self._stream(*row[2:6]) for row in rows],
                detail=self._collector.details.of_rows(_kernel_arguments, [row[8:16] for row in rows]),
                correlation=np.array([self._correlation(row[7]) for row in rows], np.int64),
                open_ended=False,
            )

    def _read_copies(self) -> None:
        columns = ("start", "end", "pid", "dst_agent_id", "src_agent_id", "stream_id", "queue_id", "name_id")
        for rows in self._pieces(COPIES, (*columns, "event_id", "size")):
            self._add(
                rows,
                [(self._copy_name(row[7]), "") for row in rows],
                [RawCategory.COPY] * len(rows),
                [self._stream(row[2], self._gpu_of(*row[3:5]), *row[5:7]) for row in rows],
                detail=self._collector.details.of_rows(_copy_arguments, [row[9:] for row in rows]),
                correlation=np.array([self._correlation(row[8]) for row in rows], np.int64),
                open_ended=False,
            )

    def _read_allocations(self) -> None:
        for rows in self._pieces(ALLOCATIONS, ("start", "end", "pid", "tid", "size"), ("type", "level")):
            self._add(
                rows,
                [(f"memory {(row[5] or 'allocation').lower()}", "") for row in rows],
                [RawCategory.OTHER] * len(rows),
                [self._thread(*row[2:4]) for row in rows],
                detail=self._collector.details.of_rows(_copy_arguments, [row[4:5] for row in rows]),
            )

    def _copy_name(self, name: int) -> str:
        text = self.capture.strings.get(name, "").upper().removeprefix("MEMORY_COPY_")
        return COPY_NAMES.get(text) or self.capture.strings.get(name) or "Memcpy"

    def _gpu_of(self, target: int, source: int) -> int:
        gpus = (key for key in (target, source) if self.capture.agents.get(key, _NOBODY).number >= 0)
        return next(gpus, target)

    # --- tracks ---

    def _thread(self, process: int, thread: int) -> tuple[int, ...]:
        return HOST, self._number, process, thread

    def _stream(self, process: int, agent: int, stream: int, queue: int) -> tuple[int, ...]:
        device = self.capture.agents.get(agent, _NOBODY).number
        return (DEVICE, self._number, device, process, MISSING, queue) if self._by_queue else (
            DEVICE, self._number, device, process, stream, MISSING,
        )  # fmt: skip

    def track(self, key: tuple[int, ...], *, several: bool) -> RawTrack:
        """The track with ``key``, which is of this capture; ``several``: the file holds other processes too."""
        if key[0] == HOST:
            return self._host_track(*key[2:])
        device, process, stream, queue = key[2:]
        pid = self.capture.processes.get(process, (MISSING, ""))[0]
        if stream != MISSING:
            label = self.capture.streams.get(stream, "") or f"stream {stream}"
        else:
            label = self.capture.queues.get(queue, "") or (f"queue {queue}" if queue != MISSING else "copies")
        label += f" (process {pid})" if several and pid != MISSING else ""
        name = next((a.name for a in self.capture.agents.values() if a.number == device and device >= 0), "")
        shown = "GPU" if device < 0 else f"GPU {device}"
        return RawTrack(
            pid=str(device) if device >= 0 else NO_PROCESS,
            tid=label,
            process=f"{shown} · {name}" if name else shown,
            thread=label,
            is_device=True,
            device=device,
        )

    def _host_track(self, process: int, thread: int) -> RawTrack:
        pid, command = self.capture.processes.get(process, (process, ""))
        tid, label = self.capture.threads.get(thread, (thread, ""))
        number = str(tid) if tid != MISSING else NO_THREAD
        return RawTrack(
            pid=str(pid) if pid != MISSING else NO_PROCESS,
            tid=number,
            process=f"{command} ({pid})" if command else f"process {pid}",
            thread=f"{label} ({number})" if label else f"thread {number}",
        )


def _kind(word: str, *, mark: bool) -> RawCategory:
    if mark:
        return RawCategory.ANNOTATION
    return RawCategory.RUNTIME if "API" in word else RawCategory.OTHER


def _message(text: str) -> str:
    message = (recorded_arguments(text) or {}).get("message")
    return message[:MAX_TEXT] if isinstance(message, str) else ""


def _kernel_arguments(row: Row) -> dict[str, Any]:
    items, block = row[:3], row[3:6]
    found: dict[str, Any] = {}
    if MISSING not in row[:6] and min(block) > 0:
        # The file counts work-items; a grid is counted in groups of them everywhere else.
        found["grid"] = [-(-i // b) for i, b in zip(items, block, strict=True)]
        found["block"] = list(block)
    for name, value in zip(("shared memory", "private memory"), row[6:8], strict=True):
        if value not in {MISSING, 0}:
            found[name] = value
    return found


def _copy_arguments(row: Row) -> dict[str, Any]:
    return {"bytes": row[0]} if row[0] != MISSING else {}
