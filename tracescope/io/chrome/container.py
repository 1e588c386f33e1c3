"""The file around the events: finds the event array, splits it into pieces that parse, keeps the other keys."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from tracescope.core.errors import TraceError
from tracescope.io.chrome.event import UNREADABLE, Event, decode_events
from tracescope.io.chrome.repair import MAX_DEPTH, decode_tolerantly, repair_tokens
from tracescope.io.chrome.text import TextSource

MAX_VALUE_BYTES: Final = 16 << 20
"""A top-level value other than the events that is longer is not kept (source text embedded by viztracer)."""
MAX_EVENT_BYTES: Final = 16 << 20
REPAIRS_OFTEN: Final = 20
"""So many repairs in one piece foretell more of them in the next, which is then repaired as a whole first."""
ELEMENTS_AT_ONCE: Final = 20_000
"""Elements read one by one between two looks at the limits and at the fast path."""

_BETWEEN: Final = re.compile(rb'\}\s*,\s*\{\s*"(?:ph|name|cat|pid|ts|tid|args|dur|id|s|bp)"\s*:')
"""Where one event very likely ends and the next begins; believed only when the piece before it parses."""
_BETWEEN_BYTES: Final = 64
"""A boundary is shorter than this, indentation included."""
_LOOSELY_BETWEEN: Final = re.compile(rb"\}\s*,\s*\{")
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{}]', re.DOTALL)
_SPACE_OR_COMMA: Final = re.compile(rb"[\s,]*")
_ENDS_WELL: Final = re.compile(rb"\s*(?:,\s*\{|\]|,?\s*\Z)")
_SCALAR_END: Final = re.compile(rb"[,}\]]")


def first_boundary(text: bytes) -> int | None:
    """Where in ``text`` one event very likely ends and another follows, None where nothing looks like it."""
    match = _BETWEEN.search(text)
    return match.start() + 1 if match is not None else None


class Container:
    """Reads one JSON text. ``batches`` gives the events; then ``metadata``, ``flagged``, ``dropped`` are complete.

    ``truncated_at``: the length of the text where it ends too early, else None.
    """

    def __init__(self, source: TextSource) -> None:
        self.metadata: dict[str, Any] = {}
        self.flagged: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.has_events = False
        self.truncated_at: int | None = None
        self.split_at = -1
        """Length of the text up to which this container reads if ``hand_over`` then gives True; -1: read all."""
        self.hand_over: Callable[[], bool] = lambda: False
        self._source = source
        self._buffer = b""
        self._at = 0
        self._ended = False
        self._repairs_often = False
        self._boundary = self._tried = -1
        self._handed_over = False

    def batches(self) -> Iterator[list[Event]]:
        """The events in file order, some thousand at a time; raises TraceError where the text is no trace at all."""
        first = self._peek()
        if first == b"[":
            self._at += 1
            self.has_events = True
            yield from self._events(bare=True)
        elif first == b"{":
            self._at += 1
            yield from self._object()
        else:
            raise self._refusal("not a trace: not JSON")
        self._conclude()

    def resume(self, *, bare: bool) -> Iterator[list[Event]]:
        """As ``batches``, of a source that begins between two events; ``bare``: the array is the whole text."""
        self.has_events = True
        yield from self._events(bare=bare)
        if not bare and self.truncated_at is None:
            yield from self._object()
        self._conclude()

    def _conclude(self) -> None:
        if self.truncated_at is None and self._peek() and not self.flagged["damaged_metadata"]:
            self.flagged["trailing_text"] += 1
        if self._source.cut and self.truncated_at is None:
            if self.flagged["unterminated_array"]:
                self.truncated_at = self._source.text_bytes
            else:  # the text is whole, its checksum is not
                self.flagged["damaged_gzip"] += 1
        self.flagged = +self.flagged

    def _refusal(self, why: str, action: str = "") -> TraceError:
        at = self._source.text_bytes - len(self._buffer) + self._at
        return TraceError(f"{self._source.path.name}: {why} (byte {at})", action=action)

    def _more(self) -> bool:
        """Append the next piece of text to the buffer; False at the end."""
        if self._ended:
            return False
        piece = self._source.read()
        self._ended = not piece
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0
        self._boundary = self._tried = -1
        return not self._ended

    def _peek(self) -> bytes:
        """The next byte that is neither space nor comma; empty at the end."""
        while True:
            match = _SPACE_OR_COMMA.match(self._buffer, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._more():
                return b""

    def _object(self) -> Iterator[list[Event]]:
        while (first := self._peek()) != b"}":
            if not first:
                self.truncated_at = self._source.text_bytes
                return
            if first != b'"':
                if self.has_events:
                    self.flagged["damaged_metadata"] += 1
                    return
                raise self._refusal("not a trace: not JSON")
            key = self._value()
            if self._peek() != b":":
                self.truncated_at = self._source.text_bytes
                return
            self._at += 1
            if key == "traceEvents" and self._peek() == b"[":
                self._at += 1
                self.has_events = True
                yield from self._events(bare=False)
                if self.truncated_at is not None or self._handed_over:
                    return
            elif self._peek():
                value = self._value()
                if isinstance(key, str):
                    self.metadata[key] = value
        self._at += 1

    def _value(self) -> Any:
        """Consume one JSON value and return it; None where it is damaged, too long, or cut by the end of the text."""
        first = self._peek()
        end = self._scalar_end() if first not in (b"{", b"[", b'"') else self._nested_end()
        text = self._buffer[self._at : end]
        self._at = end
        try:
            return msgspec.json.decode(text.decode("utf-8", "replace"))
        except UNREADABLE:
            if not self._ended or self._at < len(self._buffer):
                self.flagged["damaged_metadata"] += 1
            return None

    def _scalar_end(self) -> int:
        while True:
            match = _SCALAR_END.search(self._buffer, self._at)
            if match is not None:
                return match.start()
            if not self._more():
                return len(self._buffer)

    def _nested_end(self) -> int:
        """Where the string, list or object at the current place ends. A value that is too long is skipped over."""
        depth, at = 0, self._at
        while True:
            match = _TOKEN.search(self._buffer, at)
            if match is None or match[1] == b"":
                if len(self._buffer) - self._at > MAX_VALUE_BYTES:  # keep only what is still undecided
                    self.flagged["metadata_too_long"] = 1
                    self._at = at if match is None else match.start()
                    if len(self._buffer) - self._at > MAX_VALUE_BYTES:
                        raise self._refusal(f"one string is longer than {MAX_VALUE_BYTES >> 20} MiB")
                at = (len(self._buffer) if match is None else match.start()) - self._at
                if not self._more():
                    return len(self._buffer)
                continue
            at = match.end()
            if match[0] in (b"[", b"{"):
                depth += 1
            elif match[0] in (b"]", b"}"):
                depth -= 1
            if depth > MAX_DEPTH:
                raise self._refusal(f"values nested deeper than {MAX_DEPTH} levels")
            if depth <= 0:
                return at

    def _events(self, *, bare: bool) -> Iterator[list[Event]]:
        """The elements of the array just entered, and its closing bracket."""
        while True:
            if self._source.text_bytes == self.split_at:
                self.split_at = -1
                whole = None if self.dropped or self.flagged.total() else self._quickly(len(self._buffer))
                if whole is not None:
                    yield whole
                    if self.hand_over():
                        self._handed_over = self._ended = True
                        return
            cut = self._last_boundary(_BETWEEN) or self._last_boundary(_LOOSELY_BETWEEN)
            if cut is None and len(self._buffer) - self._at < MAX_EVENT_BYTES and self._more():
                continue
            events = None if cut is None else self._quickly(cut)
            if events is not None:
                yield events
                self._more()
                continue
            before = self.flagged.total()
            events, over = self._slowly(bare=bare)
            self._repairs_often = self.flagged.total() - before > REPAIRS_OFTEN
            yield events
            if over:
                return

    def _may_grow(self) -> bool:
        """Whether one element may still be longer than the buffer; refuses where it is past any event's length."""
        if len(self._buffer) - self._at > MAX_EVENT_BYTES:
            raise self._refusal(f"one element is longer than {MAX_EVENT_BYTES >> 20} MiB")
        return True

    def _quickly(self, cut: int) -> list[Event] | None:
        """The events up to ``cut`` in one go; None where the piece does not parse."""
        piece = self._buffer[self._at : cut].lstrip(b" \t\r\n,")
        try:
            events = decode_events(piece)
        except UNREADABLE:
            if not self._repairs_often:
                return None
            counts: Counter[str] = Counter()
            try:
                events = decode_events(repair_tokens(piece, counts))
            except UNREADABLE:
                return None
            self.flagged.update(+counts)
        self._at = cut
        return events

    def _last_boundary(self, between: re.Pattern[bytes]) -> int | None:
        """The end of the last event that another one follows in the buffer."""
        window = 1 << 12
        while True:
            low = max(self._at, len(self._buffer) - window)
            found = None
            for match in between.finditer(self._buffer, low):
                found = match.start() + 1
            if found is not None or low == self._at:
                return found
            window *= 16

    def _slowly(self, *, bare: bool) -> tuple[list[Event], bool]:
        """The elements of the buffer one by one, and whether the array is over."""
        events: list[Event] = []
        for _ in range(ELEMENTS_AT_ONCE):
            first = self._peek_buffer()
            if first == b"]":
                self._at += 1
                return events, True
            end = self._element_end() if first else None
            if end is not None:
                event = self._element(end)
                if event is not None:
                    events.append(event)
            elif self._may_grow() and self._more():
                return events, False
            else:
                if first or not bare:
                    self.truncated_at = self._source.text_bytes
                else:
                    self.flagged["unterminated_array"] += 1
                return events, True
        return events, False

    def _peek_buffer(self) -> bytes:
        match = _SPACE_OR_COMMA.match(self._buffer, self._at)
        assert match is not None
        self._at = match.end()
        return self._buffer[self._at : self._at + 1]

    def _element_end(self) -> int | None:
        """Where the element at the current place ends by its brackets; None where the buffer ends first.

        A string that seems to hold the boundary of two events was not closed: the element ends there.
        """
        first = self._buffer[self._at : self._at + 1]
        if first not in b'{["':
            match = _SCALAR_END.search(self._buffer, self._at)
            if match is None:
                return len(self._buffer) if self._ended else None
            return max(match.start(), self._at + 1)  # a stray brace is an element of its own
        depth, at = 0, self._at
        for match in _TOKEN.finditer(self._buffer, self._at):
            token = match[0]
            if token in (b"[", b"{"):
                depth += 1
                if depth > MAX_DEPTH and first != b"{":
                    raise self._refusal(f"values nested deeper than {MAX_DEPTH} levels")
            elif token in (b"]", b"}"):
                depth -= 1
            elif match[1] == b"" or b"{" in token:
                broken = _BETWEEN.search(self._buffer, match.start(), match.end() + _BETWEEN_BYTES)
                if broken is not None and broken.start() < match.end():
                    return broken.start() + 1
                if match[1] == b"":
                    return None
            at = match.end()
            if depth <= 0:
                return at
        return None

    def _element(self, end: int) -> Event | None:
        """Consume the element that seems to end at ``end``; None (and counted) where it is no event.

        Where it does not parse, a quote inside a string may have hidden its true end: it is then taken to reach to
        the next boundary, and reading goes on there, unless what follows its brackets looks like another element.
        """
        start = self._at
        self._at = end
        if self._buffer[start : start + 1] != b"{":
            self.dropped["not_an_event"] += 1
            return None
        event = decode_tolerantly(self._buffer[start:end], self.flagged)
        if event is not None:
            return event
        boundary = self._next_boundary(start)
        if boundary not in (end, len(self._buffer)):
            if boundary != self._tried:  # once a boundary: what fails up to it fails from nearer, too
                self._tried = boundary
                event = decode_tolerantly(self._buffer[start:boundary], self.flagged)
            if event is not None or boundary < end or not _ENDS_WELL.match(self._buffer, end):
                self._at = boundary
        if event is None:
            self.dropped["unreadable_event"] += 1
        return event

    def _next_boundary(self, start: int) -> int:
        """The end of the first event from ``start`` on that another one follows; the buffer's length where none is.

        Remembered, so that a buffer full of damage is searched once and not once an element.
        """
        if self._boundary <= start:
            match = _BETWEEN.search(self._buffer, start)
            self._boundary = match.start() + 1 if match is not None else len(self._buffer)
        return self._boundary
