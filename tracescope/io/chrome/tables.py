"""The tables that events point into: names, tracks, and recorded arguments without per-event ids."""

import re
from collections import Counter, defaultdict
from itertools import count
from operator import attrgetter
from typing import Final

import msgspec
import numpy as np

from tracescope.core.columns import I64, U32
from tracescope.io.chrome.event import ABSENT, LOOSE, UNREADABLE, Event, Ident
from tracescope.io.chrome.repair import MAX_DEPTH, depth_of

MAX_TEXT: Final = 1 << 20
"""Characters kept of one name or one event's arguments."""
MAX_DETAILS_BYTES: Final = 256 << 20
"""Text kept of all arguments together; further distinct ones are left out and counted."""

NO_PROCESS: Final = "(no process)"
NO_THREAD: Final = "(no thread)"
UNNAMED: Final = "(unnamed)"

PER_EVENT_KEYS: Final = (
    "correlation",
    "External id",
    "external id",
    "Ev Idx",
    "Record function id",
    "Python id",
    "Python parent id",
    "Sequence number",
    "Fwd thread id",
    "Profiler Event Index",
    "external ts",
    "queued",
    "wait_on_cuda_event_record_corr_id",
    "wait_on_hip_event_record_corr_id",
)
"""Arguments that number single events: with them no two rows would share their details."""

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


def new_numbering() -> defaultdict[str, int]:
    """A dict that numbers its keys in order of first use."""
    return defaultdict(count().__next__)


class Tracks:
    """Numbers (pid, tid) pairs. Identity is the text as written: 7, 7.0 and "7" are one track, -7 another."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, str]] = []
        self._by_text: dict[tuple[str, str], int] = {}
        self._by_ident: dict[tuple[Ident, Ident], int] = {}

    def codes(self, events: list[Event]) -> U32:
        """The track of each event; uint32[n]."""
        idents = [(event.pid, event.tid) for event in events]
        new = set(idents) - self._by_ident.keys()
        if new:
            for pid, tid in dict.fromkeys(ident for ident in idents if ident in new):
                self._by_ident[pid, tid] = self.of_text(ident_text(pid, NO_PROCESS), ident_text(tid, NO_THREAD))
        return np.fromiter(map(self._by_ident.__getitem__, idents), np.uint32, len(idents))

    def of_text(self, pid: str, tid: str) -> int:
        """The number of one track given by its texts."""
        code = self._by_text.setdefault((pid, tid), len(self.keys))
        if code == len(self.keys):
            self.keys.append((pid, tid))
        return code


def ident_text(ident: Ident, absent: str) -> str:
    """A pid or tid as text; a whole number reads the same however it was written."""
    if ident is None:
        return absent
    if isinstance(ident, float) and ident.is_integer():
        return str(int(ident))
    return str(ident)[:MAX_TEXT]


class Details:
    """Numbers distinct argument objects; 0 stands for none. ``texts`` are compact JSON."""

    def __init__(self, flagged: Counter[str]) -> None:
        self.texts: list[str] = [""]
        self._flagged = flagged
        self._by_stripped: dict[bytes, int] = {b"": 0, b"{}": 0, b"null": 0}
        self._by_text: dict[str, int] = {"": 0, "{}": 0}
        self._room = MAX_DETAILS_BYTES

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

    @property
    def spent(self) -> int:
        """Bytes of text that the limit on all arguments together has counted."""
        return MAX_DETAILS_BYTES - self._room

    def codes_of(self, texts: list[str], spent: int) -> U32:
        """The code of each of ``texts``, those of another table that had counted ``spent``; uint32[texts]."""
        self._room -= spent
        for text in texts:
            if self._by_text.setdefault(text, len(self.texts)) == len(self.texts):
                self.texts.append(text)
        return np.fromiter(map(self._by_text.__getitem__, texts), np.uint32, len(texts))

    def _add(self, stripped: bytes, text: bytes) -> int:
        code = self._by_stripped[stripped] = self._code_of(text)
        return code

    def _code_of(self, text: bytes) -> int:
        if depth_of(text) > MAX_DEPTH:
            self._flagged["too_deep"] += 1
            return 0
        if len(text) > MAX_TEXT or len(text) > self._room:
            self._flagged["details_too_long"] += 1
            return 0
        args = LOOSE.decode(text) if text.startswith(b"{") else {"args": msgspec.Raw(text)}
        for key in PER_EVENT_KEYS:
            args.pop(key, None)
        compact = msgspec.json.format(msgspec.json.encode(args), indent=-1).decode("utf-8", "replace")
        code = self._by_text.setdefault(compact, len(self.texts))
        if code == len(self.texts):
            self.texts.append(compact)
            self._room -= len(text)
        return code


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
