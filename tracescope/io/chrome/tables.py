"""The tables that events point into: names, tracks, and recorded arguments without per-event ids."""

import re
from collections import Counter
from operator import attrgetter
from typing import Final

import msgspec
import numpy as np

from tracescope.core.columns import I64, U32
from tracescope.io.chrome.event import ABSENT, LOOSE, UNREADABLE, Event, Ident
from tracescope.io.chrome.repair import MAX_DEPTH, depth_of
from tracescope.io.collector import MAX_TEXT, NO_PROCESS, NO_THREAD, PER_EVENT_KEYS, Details, Numbering

_PER_EVENT: Final = re.compile(
    b'"(?:' + b"|".join(key.encode() for key in PER_EVENT_KEYS) + rb')"\s*:\s*(?:-?\d+|"[^"\\]*")'
)
_MAX_DIGITS: Final = 18


class _Launch(msgspec.Struct, gc=False):
    """The one argument every row keeps for itself."""

    correlation: int = -1


_CORRELATION: Final = attrgetter("correlation")
_NO_ARGUMENTS: Final = msgspec.Raw(b"{}")
_LAUNCHES: Final = msgspec.json.Decoder(list[_Launch])


class Threads(Numbering[tuple[str, str]]):
    """Numbers (pid, tid) pairs. Identity is the text as written: 7, 7.0 and "7" are one track, -7 another."""

    def __init__(self) -> None:
        super().__init__()
        self._by_ident: dict[tuple[Ident, Ident], int] = {}

    def codes(self, events: list[Event]) -> U32:
        """The track of each event; uint32[n]."""
        idents = [(event.pid, event.tid) for event in events]
        new = set(idents) - self._by_ident.keys()
        if new:
            for pid, tid in dict.fromkeys(ident for ident in idents if ident in new):
                self._by_ident[pid, tid] = self[ident_text(pid, NO_PROCESS), ident_text(tid, NO_THREAD)]
        return np.fromiter(map(self._by_ident.__getitem__, idents), np.uint32, len(idents))


def ident_text(ident: Ident, absent: str) -> str:
    """A pid or tid as text; a whole number reads the same however it was written."""
    if ident is None:
        return absent
    if isinstance(ident, float) and ident.is_integer():
        return str(int(ident))
    return str(ident)[:MAX_TEXT]


class ArgumentTexts(Details):
    """Recorded arguments as the file writes them: looked up by their text, parsed only where it was not met before."""

    def __init__(self, flagged: Counter[str]) -> None:
        super().__init__(flagged)
        self._by_stripped: dict[bytes, int] = {b"": 0, b"{}": 0, b"null": 0}

    def take(self, events: list[Event]) -> tuple[U32, I64]:
        """(detail of each event, uint32[n]; correlation of each event, int64[n], -1 where none).

        Arguments are looked up by their text with the per-event keys cut out; only text not met before is parsed.
        """
        if not events:
            return np.empty(0, np.uint32), np.empty(0, np.int64)
        texts = [event.args for event in events]
        joined = b"\0".join(texts)  # no valid JSON holds a NUL byte
        known = self._by_stripped
        all_stripped = _PER_EVENT.sub(b"", joined).split(b"\0")
        codes = list(map(known.get, all_stripped))
        if None in codes:
            for row, stripped in enumerate(all_stripped):
                if codes[row] is None:
                    code = known.get(stripped)
                    codes[row] = self._add(stripped, bytes(texts[row])) if code is None else code
        if b'"correlation"' not in joined:
            return np.array(codes, np.uint32), np.full(len(texts), -1)
        return np.array(codes, np.uint32), _correlations([text or _NO_ARGUMENTS for text in texts])

    def _add(self, stripped: bytes, text: bytes) -> int:
        code = self._by_stripped[stripped] = self._code_of(text)
        return code

    def _code_of(self, text: bytes) -> int:
        if depth_of(text) > MAX_DEPTH:
            self._flagged["too_deep"] += 1
            return 0
        if not self.has_room(len(text)):
            return 0
        args = LOOSE.decode(text) if text.startswith(b"{") else {"args": msgspec.Raw(text)}
        for key in PER_EVENT_KEYS:
            args.pop(key, None)
        compact = msgspec.json.format(msgspec.json.encode(args), indent=-1).decode("utf-8", "replace")
        return self.of_text(compact, len(text))


def _correlations(texts: list[msgspec.Raw]) -> I64:
    """int64[n]: the correlation in each argument object, -1 where it has none that is a number."""
    try:
        launches = _LAUNCHES.decode(b"[" + b",".join(texts) + b"]")
        return np.fromiter(map(_CORRELATION, launches), np.int64, len(launches))
    except (msgspec.DecodeError, OverflowError):
        return np.fromiter(map(_correlation, texts), np.int64, len(texts))


def _correlation(text: msgspec.Raw) -> int:
    try:
        digits = bytes(LOOSE.decode(text).get("correlation", ABSENT)).strip(b'"')
    except UNREADABLE:
        return -1
    return int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else -1
