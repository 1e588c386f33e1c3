"""Writes small Perfetto traces for tests."""

from pathlib import Path

from tests.kit.protobuf import Fields, Value, message
from tests.kit.raw import read_text
from tracescope.core.raw import RawTrace


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
    return read_text(folder, data, name)
