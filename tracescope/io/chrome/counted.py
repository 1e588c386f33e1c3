"""Counter events: each argument that is a number is a sample of a counter of its own."""

import math
from array import array
from typing import Final

import msgspec
import numpy as np

from tracescope.core.columns import F64, I64
from tracescope.core.raw import RawCounter
from tracescope.io.chrome.event import LOOSE, UNREADABLE, Event
from tracescope.io.chrome.tables import ident_text
from tracescope.io.collector import MAX_TEXT, Numbering

MAX_COUNTERS: Final = 10_000
VALUE: Final = "value"
"""The argument of a counter that counts one thing: its own name says all."""

Series = tuple[str, str, str, str]
"""(pid, name, id, argument) of a counter."""


class SampleParcel(msgspec.Struct):
    """Samples on their way to another process: the counters, and int64 codes, int64 times and float64 values."""

    series: list[Series]
    code: bytes
    time: bytes
    value: bytes


class Samples:
    """Samples of all counters in the order of the file."""

    def __init__(self) -> None:
        self._series: Numbering[Series] = Numbering()
        self._code, self._time, self._value = array("q"), array("q"), array("d")

    def add(self, events: list[Event], times: I64) -> int:
        """Take counter events at ``times`` (ns); how many of them hold no number, or are of a counter too many."""
        lost = 0
        for event, time in zip(events, times.tolist(), strict=True):
            taken = 0
            own = (ident_text(event.pid, ""), event.name[:MAX_TEXT], _plain(event.id or event.id2))
            for argument, text in _arguments(event.args):
                value = _number(text)
                key = (*own, argument)
                if value is not None and (key in self._series or len(self._series) < MAX_COUNTERS):
                    self._code.append(self._series[key])
                    self._time.append(time)
                    self._value.append(value)
                    taken += 1
            lost += not taken
        return lost

    def parcel(self) -> SampleParcel:
        """What these samples are, for ``absorb`` of those that were read before them."""
        return SampleParcel(
            list(self._series), self._code.tobytes(), self._time.tobytes(), self._value.tobytes()
        )  # fmt: skip

    def absorb(self, more: SampleParcel) -> None:
        """Add samples that were read after these ones, by another process."""
        number = self._series.of(more.series).astype(np.int64)
        code = np.frombuffer(more.code, np.int64)
        self._code.frombytes(number[code].tobytes() if len(code) else b"")
        self._time.frombytes(more.time)
        self._value.frombytes(more.value)

    def counters(self, processes: dict[str, str], devices: dict[str, int]) -> tuple[RawCounter, ...]:
        """Every counter; ``processes`` and ``devices`` say by pid what a process is called and which device it is."""
        code: I64 = np.array(self._code, np.int64)
        time: I64 = np.array(self._time, np.int64)
        value: F64 = np.array(self._value, np.float64)
        order = np.argsort(code, kind="stable")
        bounds = np.searchsorted(code[order], np.arange(len(self._series) + 1))
        found = []
        for (pid, name, ident, argument), at in self._series.items():
            rows = order[bounds[at] : bounds[at + 1]]
            shown = " · ".join(part for part in (name, ident, "" if argument == VALUE else argument) if part)
            process = "" if pid in devices else processes.get(pid, pid)
            found.append(RawCounter(shown, devices.get(pid, -1), time[rows], value[rows], process))
        return tuple(found)


def _plain(raw: msgspec.Raw) -> str:
    return bytes(raw).strip(b'"').decode("utf-8", "replace")[:MAX_TEXT]


def _arguments(raw: msgspec.Raw) -> list[tuple[str, msgspec.Raw]]:
    try:
        return list(LOOSE.decode(raw).items())
    except UNREADABLE:
        return []


def _number(raw: msgspec.Raw) -> float | None:
    """A finite JSON number, or one in quotes; None for anything else."""
    try:
        value = float(bytes(raw).strip(b'"'))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
