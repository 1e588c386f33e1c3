"""The tables and columns that grow while packets are read."""

from array import array
from collections import Counter
from typing import Any, Final

import msgspec
import numpy as np

from tracescope.io.chrome.repair import MAX_DEPTH, depth_of
from tracescope.io.chrome.tables import MAX_DETAILS_BYTES, MAX_TEXT, PER_EVENT_KEYS

MAX_CATEGORIES: Final = 256
_PER_EVENT: Final = frozenset(PER_EVENT_KEYS) | {"begin_ns", "end_ns", "delta_ns", "corr_id", "correlation_id"}


class Columns:
    """Rows of whole numbers, kept as columns."""

    def __init__(self, *names: str) -> None:
        self._columns = {name: array("q") for name in names}
        self._appends = [column.append for column in self._columns.values()]

    def add(self, *row: int) -> None:
        """Add one row, its numbers in the order of the names."""
        for append, value in zip(self._appends, row, strict=True):
            append(value)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def arrays(self) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
        """Each column as int64[rows]."""
        return {name: np.array(column, np.int64) for name, column in self._columns.items()}


class Words:
    """Numbers texts in order of first use; ``limit`` of them, the last of which then stands for all others."""

    def __init__(self, limit: int = 1 << 32) -> None:
        self.codes: dict[str, int] = {}
        self.merged = 0
        self._limit = limit

    def of(self, word: str) -> int:
        """The number of ``word``."""
        code = self.codes.get(word)
        if code is None:
            if len(self.codes) >= self._limit - 1:
                self.merged += 1
                word = "(other)"
            code = self.codes.setdefault(word[:MAX_TEXT], len(self.codes))
        return code


class Details:
    """Numbers distinct argument objects; 0 stands for none. ``texts`` are compact JSON without per-event ids."""

    def __init__(self, flagged: Counter[str]) -> None:
        self.texts = [""]
        self._codes = {"{}": 0}
        self._room = MAX_DETAILS_BYTES
        self._flagged = flagged

    def of(self, arguments: dict[str, Any]) -> int:
        """The number of ``arguments``."""
        kept = {name: value for name, value in arguments.items() if name not in _PER_EVENT}
        if not kept:
            return 0
        text = msgspec.json.encode(kept).decode("utf-8", "replace")
        code = self._codes.get(text)
        if code is None:
            if len(text) > min(MAX_TEXT, self._room):
                self._flagged["details_too_long"] += 1
                return 0
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
            self._room -= len(text)
        return code


def plain_value(text: str) -> Any:
    """What ``text`` says where it is a JSON list or object (shapes are written so), else the text itself."""
    if text[:1] in {"[", "{"} and len(text) <= MAX_TEXT and depth_of(text.encode()) <= MAX_DEPTH:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            return text
    return text
