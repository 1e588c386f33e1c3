"""The tables that events point into: names, tracks, and recorded arguments without per-event ids."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Final

import msgspec
import numpy as np

from tracescope.core.columns import I64
from tracescope.io.chrome.event import Event, Ident
from tracescope.io.chrome.repair import MAX_DEPTH, depth_of

MAX_TEXT: Final = 1 << 20
"""Characters kept of one name or one event's arguments."""
MAX_DETAILS_BYTES: Final = 256 << 20
"""Text kept of all arguments together; further distinct ones are left out and counted."""

NO_PROCESS: Final = "(no process)"
NO_THREAD: Final = "(no thread)"
UNNAMED: Final = "(unnamed)"

PER_EVENT_KEYS: Final = (
    "External id",
    "external id",
    "Ev Idx",
    "Record function id",
    "Python id",
    "Python parent id",
    "Sequence number",
    "Fwd thread id",
    "queued",
    "cbid_correlation",
    "wait_on_cuda_event_record_corr_id",
    "wait_on_hip_event_record_corr_id",
)
"""Arguments that number single events: with them no two rows would share their details."""

_NO_CORRELATION: Final = msgspec.Raw(b"-1")
_MAX_DIGITS: Final = 18


def new_numbering() -> defaultdict[str, int]:
    """A dict that numbers its keys in order of first use."""
    return defaultdict(count().__next__)


class Tracks:
    """Numbers (pid, tid) pairs. Identity is the text as written: 7, 7.0 and "7" are one track, -7 another."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, str]] = []
        self._by_text: dict[tuple[str, str], int] = {}
        self._by_ident: dict[tuple[Ident, Ident], int] = {}

    def codes(self, events: Iterable[Event]) -> list[int]:
        """The track of each event."""
        known = self._by_ident
        return [known.get((e.pid, e.tid), -1) if (e.pid, e.tid) in known else self._add(e.pid, e.tid) for e in events]

    def of_text(self, pid: str, tid: str) -> int:
        """The number of one track given by its texts."""
        code = self._by_text.setdefault((pid, tid), len(self.keys))
        if code == len(self.keys):
            self.keys.append((pid, tid))
        return code

    def _add(self, pid: Ident, tid: Ident) -> int:
        code = self.of_text(ident_text(pid, NO_PROCESS), ident_text(tid, NO_THREAD))
        self._by_ident[pid, tid] = code
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
        self._by_bytes: dict[bytes, int] = {b"{}": 0}
        self._by_text: dict[str, int] = {"": 0}
        self._room = MAX_DETAILS_BYTES

    def take(self, events: Iterable[Event]) -> tuple[list[int], I64]:
        """(detail of each event, int64 correlation of each event: -1 where none). Empties the events' ``args``."""
        codes: list[int] = []
        correlations: list[msgspec.Raw] = []
        encode = msgspec.json.Encoder().encode
        known = self._by_bytes
        for event in events:
            args = event.args
            if not args:
                codes.append(0)
                correlations.append(_NO_CORRELATION)
                continue
            correlations.append(args.pop("correlation", _NO_CORRELATION))
            for key in PER_EVENT_KEYS:
                args.pop(key, None)
            key_bytes = encode(args)
            code = known.get(key_bytes)
            codes.append(self._add(key_bytes) if code is None else code)
        return codes, _integers(correlations)

    def _add(self, text: bytes) -> int:
        if depth_of(text) > MAX_DEPTH:
            self._flagged["too_deep"] += 1
            return 0
        if len(text) > MAX_TEXT or len(text) > self._room:
            self._flagged["details_too_long"] += 1
            return 0
        compact = msgspec.json.format(text, indent=-1).decode("utf-8", "replace")
        code = self._by_text.setdefault(compact, len(self.texts))
        if code == len(self.texts):
            self.texts.append(compact)
            self._room -= len(text)
        self._by_bytes[text] = code
        return code


def _integers(texts: list[msgspec.Raw]) -> I64:
    """int64[n] of JSON integers; -1 where the text is something else."""
    joined = b",".join(texts)
    parts = joined.split(b",")
    if len(parts) == len(texts) and not joined.translate(None, b"0123456789,-"):
        try:
            return np.array([int(part) for part in parts], np.int64)
        except (ValueError, OverflowError):
            pass
    return np.array([_integer(bytes(text)) for text in texts], np.int64)


def _integer(text: bytes) -> int:
    digits = text.strip(b'"')
    return int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else -1
