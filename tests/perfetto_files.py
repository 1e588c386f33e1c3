"""Writes small Perfetto traces for tests, with a protobuf writer of its own."""

import struct
from pathlib import Path

from tracescope.core.raw import RawTrace
from tracescope.io import reader_for

Value = int | float | str | bytes | dict[int, "Value | list[Value]"]
Fields = dict[int, Value | list[Value]]


def varint(value: int) -> bytes:
    """``value`` (an int64 or uint64) as protobuf stores it."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


class Fixed(int):
    """A number that is stored in eight bytes."""


def message(fields: Fields) -> bytes:
    """A message: ints as varints, floats as doubles, texts and messages with their length; lists are repeated."""
    found = b""
    for field, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, Fixed):
                found += varint(field << 3 | 1) + struct.pack("<Q", value)
            elif isinstance(value, int):
                found += varint(field << 3) + varint(value)
            elif isinstance(value, float):
                found += varint(field << 3 | 1) + struct.pack("<d", value)
            else:
                data = (
                    value.encode() if isinstance(value, str) else message(value) if isinstance(value, dict) else value
                )
                found += varint(field << 3 | 2) + varint(len(data)) + data
    return found


def trace(*packets: Fields) -> bytes:
    """A trace of ``packets``."""
    return b"".join(message({1: packet}) for packet in packets)


def begin(time: int, track: int, name: str, category: str = "work", **more: Value | list[Value]) -> Fields:
    """A packet that begins a slice; ``more`` are fields of its event, called ``_47`` for field 47."""
    extra = {int(field[1:]): value for field, value in more.items()}
    return {8: time, 10: 1, 11: {9: 1, 11: track, 22: category, 23: name, **extra}}


def end(time: int, track: int) -> Fields:
    """A packet that ends one."""
    return {8: time, 10: 1, 11: {9: 2, 11: track}}


def read_bytes(folder: Path, data: bytes, name: str = "t.pftrace") -> RawTrace:
    """Write ``data`` and read it through the reader that recognises it."""
    path = folder / name
    path.write_bytes(data)
    raw = reader_for(path).read(path)
    assert raw.seen == raw.imported + sum(raw.dropped.values())
    return raw


def slices(raw: RawTrace) -> list[tuple[str, int, int]]:
    """(name, start, duration) of every event."""
    events = raw.events
    names = [raw.names[code] for code in events.name.tolist()]
    return list(zip(names, events.start.tolist(), events.duration.tolist(), strict=True))
