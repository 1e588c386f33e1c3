"""What an event moves or does: categories, the letters they carry on screen, ops, flags and where bytes come from."""

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final


class Category(IntEnum):
    """The kind of work an event is counted under. Values are stored in files: append, never renumber."""

    WEIGHT_READ = 0
    KV_READ = 1
    KV_APPEND = 2
    COMPUTE = 3
    COMMUNICATION = 4
    TOKEN_SELECTION = 5
    HOST = 6
    COPY = 7
    OTHER = 8

    @property
    def label(self) -> str:
        """The name used in JSON and on the command line, such as ``kv_read``."""
        return self.name.lower()

    @property
    def role(self) -> int:
        """This category as one bit of the ``roles`` bitmask."""
        return 1 << self.value


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the six kinds on screen: a letter, a colour (by letter, in ``ui.theme``) and a title."""

    letter: str
    title: str


WEIGHTS: Final = Kind("W", "weight read")
KV: Final = Kind("K", "KV read")
APPEND: Final = Kind("A", "KV append")
COMPUTE: Final = Kind("C", "compute")
COMMUNICATION: Final = Kind("X", "communication")
SELECTION: Final = Kind("S", "token selection")
KINDS: Final = (WEIGHTS, KV, APPEND, COMPUTE, COMMUNICATION, SELECTION)

KIND_OF_CATEGORY: Final[dict[Category, Kind]] = {
    Category.WEIGHT_READ: WEIGHTS,
    Category.KV_READ: KV,
    Category.KV_APPEND: APPEND,
    Category.COMPUTE: COMPUTE,
    Category.COMMUNICATION: COMMUNICATION,
    Category.TOKEN_SELECTION: SELECTION,
    Category.HOST: SELECTION,
    Category.COPY: COMMUNICATION,
    Category.OTHER: COMPUTE,
}
"""Copies between two devices also carry the communication role; every other copy, and ``other``, is drawn muted."""

MUTED_CATEGORIES: Final = frozenset({Category.COPY, Category.OTHER})


class Op(IntEnum):
    """The logical operation inside a decode step. Values are stored in files: append, never renumber."""

    NONE = 0
    EMBED = 1
    BLOCK_TABLE = 2
    NORM = 3
    QKV = 4
    ROPE = 5
    KV_APPEND = 6
    ATTENTION = 7
    O = 8  # noqa: E741  the field's name for the attention output projection
    GATE_UP = 9
    ACT = 10
    DOWN = 11
    ROUTER = 12
    EXPERTS = 13
    LM_HEAD = 14
    ALL_REDUCE = 15
    SAMPLE = 16
    LAUNCH = 17
    Q = 18
    K = 19
    V = 20
    GATE = 21
    UP = 22
    OTHER = 23
    STATE = 24
    """The recurrence of a layer with a state: reads it, writes it."""
    INDEXER = 25
    """What selects the tokens that sparse attention reads."""

    @property
    def label(self) -> str | None:
        """The name used in JSON and on screen; None where no op is known."""
        return None if self is Op.NONE else self.name.lower()


class EventFlag(IntFlag):
    """Facts about one event that no column of its own carries."""

    UNFINISHED = 1
    """Its end was never recorded; it is drawn to the end of its track."""
    ZERO_LENGTH = 2
    WARM_UP = 4
    OVERLAPPING = 8
    """It partly overlaps an earlier event of its track and lies on a sub-lane; it is not that event's child."""
    ALLOCATED_KV = 16
    """Its shapes show the allocated cache, not the used part."""
    INSTANT = 32
    """A moment that the source recorded as one, not a slice: it has no length and is no work."""
    SUSPECT_TIME = 64
    """Its recorder wrote 0 where it had no time: it counts for no range and is no work."""

    def labels(self) -> list[str]:
        """Names of the flags that are set, in the order of their bits."""
        return [flag.name.lower() for flag in EventFlag if flag in self and flag.name]


class BytesFrom(IntEnum):
    """How the bytes of a work row are known. Values are stored in files: append, never renumber."""

    NONE = 0
    SHAPE = 1
    MODEL = 2
    MARKER = 3
    USER = 4

    @property
    def label(self) -> str:
        """The name used in JSON."""
        return self.name.lower()


class TrackKind(IntEnum):
    """What a track's events stand for. Values are stored in files: append, never renumber."""

    DEVICE_STREAM = 0
    ENGINE = 1
    """A synthesised memory, compute, link or host-launch track."""
    HOST_THREAD = 2
    ANNOTATION = 3
    COUNTER = 4

    @property
    def label(self) -> str:
        """The name used in JSON."""
        return self.name.lower()


class StepKind(IntEnum):
    """What a step computed. Values are stored in files: append, never renumber."""

    DECODE = 0
    PREFILL = 1
    MIXED = 2
    VERIFY = 3
    OTHER = 4

    @property
    def label(self) -> str:
        """The name used in JSON."""
        return self.name.lower()


class EdgeKind(IntEnum):
    """Why one event waits for another. Values are stored in files: append, never renumber."""

    DATA = 0
    RESOURCE = 1
    LAUNCH = 2
    PREVIOUS_TOKEN = 3
    COLLECTIVE = 4
    """All ranks leave a collective together: none before the last has arrived."""
    SYNC = 5
    """The host, or another stream, waited for it explicitly."""

    @property
    def label(self) -> str:
        """The name used in JSON."""
        return self.name.lower()
