"""RawTrace: what a reader hands over. Text and numbers as the file has them, no judgement."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracescope.core.columns import F64, I64, U8, U32, freeze_columns
from tracescope.core.report import Source


@dataclass(frozen=True, slots=True)
class RawTrack:
    """One (process, thread) of the source. ``pid`` and ``tid`` are the source's own text; ``device`` is -1 on hosts.

    ``is_device``: its events ran on an accelerator (kernels, copies). ``process`` and ``thread`` are display names.
    """

    pid: str
    tid: str
    process: str = ""
    thread: str = ""
    is_device: bool = False
    device: int = -1
    rank: int = -1


@dataclass(frozen=True, eq=False)
class RawEvents:
    """Events in source order. ``start`` int64 ns exactly as the file counts (µs × 1000), ``duration`` int64 ns.

    ``name``, ``category`` (the source's own ``cat``) and ``detail`` index the RawTrace tables; ``track`` indexes
    ``RawTrace.tracks``; ``correlation`` ties a device event to the runtime call that launched it, -1 where none;
    ``flags`` is an EventFlag.
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


@dataclass(frozen=True, slots=True)
class RawDevice:
    """One accelerator as the file's header describes it."""

    device: int
    name: str
    memory_bytes: int | None = None
    memory_bandwidth: int | None = None


@dataclass(frozen=True, eq=False)
class RawCounter:
    """Samples of one hardware counter of one device, as the file counts time. ``name`` says the unit.

    ``time`` int64 ns in any order, ``value`` float64, finite.
    """

    name: str
    device: int
    time: I64
    value: F64

    def __post_init__(self) -> None:
        freeze_columns(self)


@dataclass(frozen=True, eq=False)
class RawTrace:
    """Everything a reader found in one file.

    ``categories`` are the source's own words (``kernel``, ``cpu_op`` ...), lower-cased; ``details[0]`` is ``""``, the
    others are compact JSON objects of recorded arguments without per-event ids. ``counts`` must add up:
    ``seen == imported + sum(dropped)``, where imported counts events, matched ends, instants, counters, flows and
    metadata that were used. ``metadata`` holds the file's top-level keys (plain JSON values).
    """

    source: Source
    events: RawEvents
    names: tuple[str, ...]
    categories: tuple[str, ...]
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

    def category_code(self, name: str) -> int:
        """The code of a source category, -1 where the file does not use it."""
        return self.categories.index(name) if name in self.categories else -1

    def in_categories(self, *names: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which events carry one of the source categories ``names``; bool[events]."""
        codes = [self.categories.index(n) for n in names if n in self.categories]
        return np.isin(self.events.category, codes)
