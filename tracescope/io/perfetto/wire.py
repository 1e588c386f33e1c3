"""Protobuf's wire format, as much as is needed to read messages that nobody vouches for. Every length is checked."""

import struct
from typing import Final

MAX_VARINT_BYTES: Final = 10
MASK_64: Final = (1 << 64) - 1

VARINT: Final = 0
FIXED_64: Final = 1
BYTES: Final = 2
FIXED_32: Final = 5

Message = dict[int, list[int | bytes]]
"""What one message holds: field number to its values in order. Numbers are unsigned, as they are stored."""


class WireError(ValueError):
    """Bytes that are no message."""


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(the number at ``at``, unsigned and below 2^64; where it ends). WireError where it does not end by ``end``."""
    value = shift = 0
    for place in range(at, min(end, at + MAX_VARINT_BYTES)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & MASK_64, place + 1
        shift += 7
    raise WireError("a number does not end")


def parse(data: bytes) -> Message:
    """The fields of a message; what lies inside those of bytes is not looked at. WireError where it is none."""
    found: Message = {}
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = read_varint(data, at, end)
        kind = tag & 7
        value: int | bytes
        if kind == VARINT:
            if at < end and data[at] < 0x80:  # most numbers have one byte, and a call costs more than all the rest
                value, at = data[at], at + 1
            else:
                value, at = read_varint(data, at, end)
        elif kind == BYTES:
            if at < end and data[at] < 0x80:
                length, at = data[at], at + 1
            else:
                length, at = read_varint(data, at, end)
            if length > end - at:
                raise WireError("a field is longer than its message")
            value = data[at : at + length]
            at += length
        elif kind in {FIXED_64, FIXED_32}:
            width = 8 if kind == FIXED_64 else 4
            if width > end - at:
                raise WireError("a field is longer than its message")
            value = int.from_bytes(data[at : at + width], "little")
            at += width
        else:
            raise WireError("a field of an unknown kind")
        if tag < 8:
            raise WireError("a field without a number")
        found.setdefault(tag >> 3, []).append(value)
    return found


# --- values; a field of another kind than expected is as good as absent ---


def number(message: Message, field: int, absent: int = 0) -> int:
    """The unsigned number in ``field``, the last where it is repeated."""
    for value in reversed(message.get(field, ())):
        if isinstance(value, int):
            return value
    return absent


def signed(value: int) -> int:
    """An int64 from its unsigned form."""
    return value - (1 << 64) if value >> 63 else value


def real(message: Message, field: int) -> float | None:
    """The double in ``field``, None where absent."""
    value = number(message, field, -1)
    return None if value < 0 else float(struct.unpack("<d", value.to_bytes(8, "little"))[0])


def text(message: Message, field: int) -> str:
    """The text in ``field``; bytes that are no UTF-8 become U+FFFD."""
    for value in reversed(message.get(field, ())):
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
    return ""


def messages(message: Message, field: int) -> list[Message]:
    """The messages in ``field``; WireError where one is none."""
    if field not in message:
        return []
    return [parse(value) for value in message[field] if isinstance(value, bytes)]


def numbers(message: Message, field: int, *, fixed: bool = False) -> list[int]:
    """The unsigned numbers in ``field``, packed or not; ``fixed``: packed ones have eight bytes each."""
    found: list[int] = []
    for value in message.get(field, ()):
        if isinstance(value, int):
            found.append(value)
        elif fixed:
            found += struct.unpack(f"<{len(value) // 8}Q", value[: len(value) // 8 * 8])
        else:
            at = 0
            while at < len(value):
                one, at = read_varint(value, at, len(value))
                found.append(one)
    return found
