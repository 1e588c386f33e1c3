"""What packets of one writer share: interned texts, defaults and clocks. Times of any clock become the trace's."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final

from tracescope.io.perfetto.wire import Message, messages, number, parse, signed, text

# InternedData: the fields read, and where in each entry its text is.
CATEGORIES: Final = 1
NAMES: Final = 2
ARGUMENT_NAMES: Final = 3
CONTEXTS: Final = 23
STAGES: Final = 24
STRINGS: Final = 29
KERNELS: Final = 1000
KERNEL_ARGUMENT_NAMES: Final = 1001
INTERNED: Final = (CATEGORIES, NAMES, ARGUMENT_NAMES, CONTEXTS, STAGES, STRINGS, KERNELS, KERNEL_ARGUMENT_NAMES)

CLEARED: Final = 1
"""Bit of sequence_flags: what was interned before is void."""

REALTIME: Final = 1
BOOTTIME: Final = 6
FIRST_OWN_CLOCK: Final = 64
"""Ids below are the system's clocks, those to 127 a sequence's own, those from 128 on the whole trace's."""
FIRST_SHARED_CLOCK: Final = 128
LIMIT_NS: Final = 1 << 61


@dataclass(slots=True)
class Sequence:
    """The state of one writer, up to its last packet."""

    number: int
    interned: dict[int, dict[int, Message]] = field(default_factory=lambda: defaultdict(dict))
    clock: int = 0
    track: int = 0
    counted: dict[int, int] = field(default_factory=dict)
    """Where each clock stands that only says how much later it is than before."""

    def take(self, packet: Message) -> None:
        """Follow what ``packet`` changes, before its event is read."""
        if number(packet, 13) & CLEARED or number(packet, 41):
            self.interned.clear()
            self.clock = self.track = 0
        if 12 not in packet and 59 not in packet:
            return
        for defaults in messages(packet, 59):
            self.clock = number(defaults, 58, self.clock)
            for events in messages(defaults, 11):
                self.track = number(events, 11, self.track)
        for data in messages(packet, 12):
            for kind in INTERNED:
                for entry in messages(data, kind):
                    self.interned[kind][number(entry, 1)] = entry

    def text(self, kind: int, iid: int) -> str:
        """The text interned as ``iid``, empty where there is none."""
        entry = self.interned[kind].get(iid)
        return text(entry, 2) if entry else ""


@dataclass(frozen=True, slots=True)
class _Clock:
    """``time * unit + offset`` is the trace's time."""

    offset: int
    unit: int
    counts_up: bool


class Clocks:
    """The clocks of a trace, by its snapshots so far."""

    def __init__(self, flagged: Counter[str]) -> None:
        self._clocks: dict[tuple[int, int], _Clock] = {}
        self._main = 0
        self._flagged = flagged
        self.base_time_ns = 0
        """What the wall clock showed at the trace's 0; 0 where no snapshot says."""

    def take(self, snapshot: bytes, sequence: Sequence) -> None:
        """Follow one ClockSnapshot."""
        read = parse(snapshot)
        shown: dict[int, tuple[int, int, bool]] = {}
        for clock in messages(read, 1):
            unit = max(number(clock, 4, 1), 1)
            shown[number(clock, 1)] = number(clock, 2) * unit, unit, bool(number(clock, 3))
        if not self._main:
            wanted = number(read, 2)
            self._main = wanted if wanted in shown else BOOTTIME if BOOTTIME in shown else next(iter(shown), 0)
        if self._main not in shown:
            return
        now = shown[self._main][0]
        for identity, (time, unit, counts_up) in shown.items():
            self._clocks[_key(identity, sequence)] = _Clock(now - time, unit, counts_up)
            if counts_up:
                sequence.counted[identity] = time // unit
        if REALTIME in shown and not self.base_time_ns and 0 < shown[REALTIME][0] - now < LIMIT_NS:
            self.base_time_ns = shown[REALTIME][0] - now

    def time(self, packet: Message, sequence: Sequence) -> int | None:
        """The time of ``packet`` in ns, None where its clock is unknown; a system clock that no snapshot relates to
        the others is taken as it is, and flagged.
        """
        identity = number(packet, 58) or sequence.clock
        time = number(packet, 8)
        if identity in {0, self._main}:
            return time
        clock = self._clocks.get(_key(identity, sequence))
        if clock is None:
            if identity >= FIRST_OWN_CLOCK:
                return None
            self._flagged["clock_not_converted"] += 1
            return time
        if clock.counts_up:
            time = sequence.counted[identity] = sequence.counted.get(identity, 0) + signed(time)
        return time * clock.unit + clock.offset


def _key(identity: int, sequence: Sequence) -> tuple[int, int]:
    return identity, sequence.number if FIRST_OWN_CLOCK <= identity < FIRST_SHARED_CLOCK else 0
