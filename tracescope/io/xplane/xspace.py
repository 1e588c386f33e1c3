"""The messages of an XSpace: planes of lines of events, whose names and arguments stand in tables of the plane.

Field numbers are those of ``xplane.proto`` of TensorFlow's and XLA's profiler.
"""

from dataclasses import dataclass
from typing import Any, Final

from tracescope.io.collector import MAX_TEXT
from tracescope.io.perfetto.wire import Message, messages, number, parse, real, signed, text

PLANES: Final = 1
_PLANE_NAME, _LINES, _EVENT_NAMES, _STAT_NAMES = 2, 3, 4, 5
_LINE_ID, _LINE_NAME, _LINE_START_NS, _EVENTS, _DISPLAY_NAME = 1, 2, 3, 4, 11
_METADATA, _OFFSET_PS, _LASTS_PS, _STATS = 1, 2, 3, 4
_KEPT: Final = frozenset(
    {"bytes_accessed", "raw_bytes_accessed", "flops", "model_flops", "hlo_category", "hlo_op", "hlo_module", "tf_op",
     "kernel_details", "memcpy_details", "correlation_id", "run_id", "program_id", "group_id", "step_num", "queue_id"}
)  # fmt: skip
"""Statistics that are kept; others are of the profiler itself, or whole programs."""


@dataclass(frozen=True, slots=True)
class Named:
    """What an event of one kind is called, and what is said of all of them."""

    name: str
    said: dict[str, Any]


class Plane:
    """One plane: a device, the host, or what the profiler says of itself."""

    def __init__(self, data: bytes) -> None:
        plane = parse(data)
        self.name = text(plane, _PLANE_NAME)[:MAX_TEXT]
        self.lines = [value for value in plane.get(_LINES, ()) if isinstance(value, bytes)]
        self._stats = {
            number(entry, 1): text(one, 2) for entry in messages(plane, _STAT_NAMES) for one in messages(entry, 2)
        }
        self._names: dict[int, Named] = {}
        for entry in messages(plane, _EVENT_NAMES):
            for one in messages(entry, 2):
                self._names[number(entry, 1)] = Named(_name(one), self.said(one, 5))

    def named(self, event: Message) -> Named:
        """What ``event`` is."""
        return self._names.get(number(event, _METADATA)) or Named("", {})

    def said(self, message: Message, field: int = _STATS) -> dict[str, Any]:
        """The statistics of an event, or of what it is an event of, that are kept."""
        found: dict[str, Any] = {}
        for stat in messages(message, field):
            name = self._stats.get(number(stat, 1), "")
            if name in _KEPT:
                found[name] = self._value(stat)
        return found

    def _value(self, stat: Message) -> Any:
        if 2 in stat:
            return real(stat, 2)
        if 3 in stat:
            return number(stat, 3)
        if 4 in stat:
            return signed(number(stat, 4))
        return self._stats.get(number(stat, 7), "") if 7 in stat else text(stat, 5)[:MAX_TEXT]


class Line:
    """One line of a plane: a stream, a thread, or a row that the profiler derived."""

    def __init__(self, data: bytes) -> None:
        line = parse(data)
        self.number = signed(number(line, _LINE_ID))
        self.name = (text(line, _DISPLAY_NAME) or text(line, _LINE_NAME))[:MAX_TEXT]
        self.start_ns = signed(number(line, _LINE_START_NS))
        self.events = [value for value in line.get(_EVENTS, ()) if isinstance(value, bytes)]


def times_of(event: Message) -> tuple[int, int]:
    """(offset from the line's start, length) of an event in ps."""
    return signed(number(event, _OFFSET_PS)), signed(number(event, _LASTS_PS))


def _name(metadata: Message) -> str:
    """What a kind of event is called: the name of an instruction, not its whole text with all its operands."""
    shown = text(metadata, 4) or text(metadata, 2)
    return shown.split(" = ")[0].lstrip("%")[:MAX_TEXT]
