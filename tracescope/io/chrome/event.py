"""One event of the file as it is decoded: typed where the type matters, raw text where exactness matters."""

from typing import Final

import msgspec

Ident = int | str | float | None
ABSENT: Final = msgspec.Raw()


class Event(msgspec.Struct, gc=False):
    """An element of ``traceEvents``. Numbers stay text (``Raw``) until parsed exactly; unknown keys are skipped."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Ident = None
    tid: Ident = None
    ts: msgspec.Raw = ABSENT
    dur: msgspec.Raw = ABSENT
    id: msgspec.Raw = ABSENT
    id2: msgspec.Raw = ABSENT
    args: msgspec.Raw = ABSENT


EVENTS: Final = msgspec.json.Decoder(list[Event])
EVENT: Final = msgspec.json.Decoder(Event)
LOOSE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])

UNREADABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What decoding hostile text may raise: RecursionError for values nested a thousand deep."""


def decode_events(piece: bytes) -> list[Event]:
    """The events of ``piece``, a comma-separated run of objects; raises one of UNREADABLE.

    Text inside ``args`` stays raw and would slip through unchecked, so the encoding is checked here.
    """
    if not piece.isascii():
        piece.decode("utf-8")
    return EVENTS.decode(b"[" + piece + b"]")
