"""A protobuf writer for tests, with no code of the product."""

import struct

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
