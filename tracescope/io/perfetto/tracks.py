"""Which track an event belongs to: tracks have ids, names and parents; a thread, a process or a GPU may stand above."""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from tracescope.core.raw import RawTrack
from tracescope.io.collector import MAX_TEXT, NO_PROCESS, NO_THREAD
from tracescope.io.perfetto.wire import Message, messages, number, signed, text

MAX_PARENTS: Final = 64

_GPU: Final = re.compile(r"\b(?:agent|gpu|device)\b\s*\[?(\d{1,4})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counter counts: its unit, the factor of its values, and whether each adds to those before."""

    unit: str
    factor: int
    adds_up: bool


@dataclass(frozen=True, slots=True)
class Described:
    """One TrackDescriptor; pid and tid are empty where it is no process or thread."""

    parent: int
    name: str
    pid: str
    process: str
    tid: str
    counted: Counted | None


UNITS: Final = {1: "ns", 2: "count", 3: "bytes"}
_UNKNOWN: Final = Described(0, "", "", "", "", None)


class TrackTree:
    """Numbers tracks in order of first use: those of descriptors by uuid, those of GPU queues by GPU and queue."""

    def __init__(self) -> None:
        self._described: dict[int, Described] = {}
        self._codes: dict[int | tuple[int, int, str], int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def of(self, uuid: int) -> int:
        """The number of the track with ``uuid``."""
        return self._codes.setdefault(uuid, len(self._codes))

    def of_queue(self, *, gpu: int, queue: int, name: str) -> int:
        """The number of a GPU's queue."""
        return self._codes.setdefault((gpu, queue, name), len(self._codes))

    def describe(self, descriptor: Message) -> None:
        """Take a TrackDescriptor; what a later one of the same track does not repeat still holds."""
        uuid = number(descriptor, 1)
        known = self._described.get(uuid, _UNKNOWN)
        name = next(filter(None, (text(descriptor, field) for field in (2, 10, 13))), "")
        process = next(iter(messages(descriptor, 3)), None)
        thread = next(iter(messages(descriptor, 4)), None)
        pid = str(signed(number(thread or process or {}, 1))) if thread or process else known.pid
        tid = str(signed(number(thread, 2))) if thread else known.tid
        counter = next(iter(messages(descriptor, 8)), None)
        self._described[uuid] = Described(
            number(descriptor, 5, known.parent),
            (name or (text(thread, 5) if thread else "") or known.name)[:MAX_TEXT],
            pid,
            ((text(process, 6) if process else "") or known.process)[:MAX_TEXT],
            tid,
            known.counted if counter is None else _counted(counter),
        )

    def counted(self, uuid: int) -> Counted:
        """What the counter of a track counts."""
        return self._described.get(uuid, _UNKNOWN).counted or Counted("", 1, False)

    def name_of(self, uuid: int) -> str:
        """The name of one track."""
        return self._described.get(uuid, _UNKNOWN).name or f"track {uuid}"

    def finish(self, on_device: Container[int]) -> tuple[RawTrack, ...]:
        """All tracks by number; ``on_device``: the numbers of those whose events ran on an accelerator."""
        processes = {one.pid: one.process or one.name for one in self._described.values() if one.pid and not one.tid}
        return tuple(
            self._of_uuid(key, processes, on_device=code in on_device) if isinstance(key, int) else _queue(key)
            for key, code in self._codes.items()
        )

    def _of_uuid(self, uuid: int, processes: dict[str, str], *, on_device: bool) -> RawTrack:
        line = self._line(uuid)
        own = line[0]
        above = next((one for one in line if one.pid), _UNKNOWN)
        # Of a thread, another descriptor of the same pid names the process.
        named = above.process or processes.get(above.pid, "") or next((one.process for one in line if one.process), "")
        root = line[-1].name if len(line) > 1 and not above.pid else ""
        process = f"{named} ({above.pid})" if named and above.pid else named or root
        thread = own.name or (f"thread {own.tid}" if own.tid else f"track {uuid}" if uuid else NO_THREAD)
        number_in_name = _GPU.search(own.name)
        return RawTrack(
            pid=above.pid or root or NO_PROCESS,
            tid=own.tid or own.name or (f"track {uuid}" if uuid else NO_THREAD),
            process=process or (f"process {above.pid}" if above.pid else NO_PROCESS),
            thread=f"{thread} ({own.tid})" if own.tid and own.name else thread,
            is_device=on_device,
            device=(int(number_in_name[1]) if number_in_name else 0) if on_device else -1,
        )

    def _line(self, uuid: int) -> list[Described]:
        """A track, its parent and so on; a parent that stands below its child ends it."""
        line = [self._described.get(uuid, _UNKNOWN)]
        passed = {uuid}
        while len(line) < MAX_PARENTS and line[-1].parent and line[-1].parent not in passed:
            passed.add(line[-1].parent)
            line.append(self._described.get(line[-1].parent, _UNKNOWN))
        return line


def _queue(key: tuple[int, int, str]) -> RawTrack:
    gpu, queue, name = key
    label = name or f"queue {queue}"
    return RawTrack(pid=str(gpu), tid=label, process=f"GPU {gpu}", thread=label, is_device=True, device=max(gpu, 0))


def _counted(counter: Message) -> Counted:
    factor = signed(number(counter, 4, 1))
    return Counted(text(counter, 6)[:64] or UNITS.get(number(counter, 3), ""), factor or 1, bool(number(counter, 5)))
