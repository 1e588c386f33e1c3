"""RawTrace: what a reader hands over. Text and numbers as the file has them, no judgement."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from tracescope.core.category import EventFlag
from tracescope.core.columns import F64, I64, U8, U32, Bool, freeze_columns
from tracescope.core.report import Source


class RawCategory(IntEnum):
    """What kind of thing an event of a source is, whatever the source calls it: its reader says so."""

    KERNEL = 0
    """Work of an accelerator."""
    COPY = 1
    """A copy or a fill of an accelerator's memory."""
    OPERATOR = 2
    """An operator of the framework on a host thread."""
    ANNOTATION = 3
    """A range that someone named, on a host or on a device; it is no work itself."""
    RUNTIME = 4
    """A call of an accelerator's runtime or driver."""
    PYTHON = 5
    INSTANT = 6
    """A moment that the source recorded as one."""
    OTHER = 7


@dataclass(frozen=True, slots=True)
class RawTrack:
    """One (process, thread) of the source. ``pid`` and ``tid`` are the source's own text; ``device`` is -1 on hosts.

    ``is_device``: its events ran on an accelerator (kernels, copies), or are annotations on an accelerator's time.
    ``process`` and ``thread`` are display names. ``marks_steps``: each of its annotations is one step.
    """

    pid: str
    tid: str
    process: str = ""
    thread: str = ""
    is_device: bool = False
    device: int = -1
    rank: int = -1
    marks_steps: bool = False


@dataclass(frozen=True, eq=False)
class RawEvents:
    """Events in source order. ``start`` int64 ns exactly as the file counts (µs × 1000), ``duration`` int64 ns.

    ``name`` and ``detail`` index the RawTrace tables, ``track`` indexes ``RawTrace.tracks``; ``category`` is a
    RawCategory; ``correlation`` ties a device event to the runtime call that launched it, -1 where none; ``flags`` is
    an EventFlag.
    """

    start: I64
    duration: I64
    name: U32
    category: U8
    track: U32
    correlation: I64
    detail: U32
    flags: U8

    def __post_init__(self) -> None:
        freeze_columns(self)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def first_start(self) -> int:
        """The earliest start, ns, of those that have a time; 0 without events."""
        timed = self.start[(self.flags & EventFlag.SUSPECT_TIME) == 0]
        return int(timed.min()) if len(timed) else 0


@dataclass(frozen=True, slots=True)
class RawDevice:
    """One accelerator as the file's header describes it."""

    device: int
    name: str
    memory_bytes: int | None = None
    memory_bandwidth: int | None = None


@dataclass(frozen=True, eq=False)
class RawCounter:
    """Samples of one counter, as the file counts time. ``name`` says the unit; ``device`` is -1 where it is of none,
    and ``process`` then says what of, where the file does.

    ``time`` int64 ns in any order, ``value`` float64, finite.
    """

    name: str
    device: int
    time: I64
    value: F64
    process: str = ""

    def __post_init__(self) -> None:
        freeze_columns(self)


@dataclass(frozen=True, eq=False)
class RawTrace:
    """Everything a reader found in one file.

    ``details[0]`` is ``""``, the others are compact JSON objects of recorded arguments without per-event ids. Counts
    must add up:
    ``seen == imported + sum(dropped)``, where imported counts events, matched ends, instants, counters, flows and
    metadata that were used. ``metadata`` holds the file's top-level keys (plain JSON values).
    """

    source: Source
    events: RawEvents
    names: tuple[str, ...]
    tracks: tuple[RawTrack, ...]
    details: tuple[str, ...] = ("",)
    devices: tuple[RawDevice, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    seen: int = 0
    imported: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    flagged: dict[str, int] = field(default_factory=dict)
    truncated_at_byte: int | None = None
    resolution_ns: int = 1
    has_absolute_clock: bool = False
    base_time_ns: int = 0
    """``baseTimeNanoseconds`` of the file: absolute wall-clock time of its 0; not added to ``start``."""
    full_names: tuple[str, ...] = ()
    """What each of ``names`` is short for, where the file has both (kernels); empty: ``names`` are all there is."""
    notes: tuple[str, ...] = ()
    """Sentences about the whole file that its reader wants shown."""

    counters: tuple[RawCounter, ...] = ()

    @property
    def telling_names(self) -> tuple[str, ...]:
        """The names that kernels are classified by: the fullest text the file has."""
        return self.full_names or self.names

    def of(self, *kinds: RawCategory) -> Bool:
        """Which events are of one of ``kinds``; bool[events]."""
        return np.isin(self.events.category, kinds)
