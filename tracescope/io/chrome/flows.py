"""Flow arrows: not kept, but a flow that ends without having started is worth a count."""

from collections import defaultdict
from itertools import count
from typing import Final

import msgspec
import numpy as np

from tracescope.core.columns import I64
from tracescope.io.chrome.event import Event

_MAX_DIGITS: Final = 18


class FlowParcel(msgspec.Struct):
    """Flows on their way to another process: int64 ids of starts and ends by category; -1 - i is ``texts[i]``."""

    starts: dict[str, bytes]
    ends: dict[str, bytes]
    texts: list[bytes]


class Flows:
    """Ids of flow starts and ends by category; 8 bytes a flow, since files hold as many flows as kernels."""

    def __init__(self) -> None:
        self._texts: defaultdict[bytes, int] = defaultdict(count(1).__next__)
        self._starts: defaultdict[str, list[I64]] = defaultdict(list)
        self._ends: defaultdict[str, list[I64]] = defaultdict(list)

    def add(self, phase: str, events: list[Event]) -> None:
        """Take events of phase ``s`` or ``f``; steps between the two (``t``) say nothing more."""
        if phase == "t":
            return
        kept = self._starts if phase == "s" else self._ends
        by_category: defaultdict[str, list[Event]] = defaultdict(list)
        if len({event.cat for event in events}) == 1:  # as nearly always
            by_category[events[0].cat] = events
        else:
            for event in events:
                by_category[event.cat].append(event)
        for category, group in by_category.items():
            kept[category].append(self._ids(group))

    def parcel(self) -> FlowParcel:
        """What these flows are, for ``absorb`` of those that were read before them."""
        starts, ends = (
            {category: np.concatenate(ids).tobytes() for category, ids in side.items()}
            for side in (self._starts, self._ends)
        )
        return FlowParcel(starts, ends, list(self._texts))

    def absorb(self, more: FlowParcel) -> None:
        """Add flows that were read after these ones, by another process."""
        number = np.array([0, *(-self._texts[text] for text in more.texts)], np.int64)
        for mine, theirs in ((self._starts, more.starts), (self._ends, more.ends)):
            for category, data in theirs.items():
                ids = np.frombuffer(data, np.int64)
                mine[category].append(np.where(ids < 0, number[np.where(ids < 0, -ids, 0)], ids))

    def lone_ends(self) -> int:
        """How many ends have no start of their category and id."""
        return sum(
            int((~np.isin(np.concatenate(ends), np.concatenate(self._starts.get(category, [_NONE])))).sum())
            for category, ends in self._ends.items()
        )

    def _ids(self, events: list[Event]) -> I64:
        """Ids as int64[n]: whole numbers as they are, any other text as a negative number of its own."""
        texts = [event.id for event in events]
        joined = b",".join(texts)
        lengths = set(map(len, texts))
        if 0 not in lengths and max(lengths) <= _MAX_DIGITS and not joined.translate(None, b"0123456789,"):
            ids = np.fromstring(joined, np.int64, sep=",")
            if len(ids) == len(texts):
                return ids
        return np.array([self._id(bytes(event.id) or bytes(event.id2)) for event in events], np.int64)

    def _id(self, text: bytes) -> int:
        plain = text.strip(b'"')
        return int(plain) if plain.isdigit() and len(plain) <= _MAX_DIGITS else -self._texts[plain]


_NONE: Final = np.empty(0, np.int64)
