"""Reads a plain table of events: a name, a start, a duration or an end, and a track, with units in the header."""

import codecs
import csv
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from tracescope.core.errors import TraceError, printable
from tracescope.core.raw import RawTrace, RawTrack
from tracescope.core.report import Source
from tracescope.io.collector import EPOCH_2001_NS, MAX_TRACKS, NO_PROCESS, UNNAMED, Collector, Rows, zero_flags
from tracescope.io.csv_numbers import LIMIT_NS, Numbers, has_decimal_comma
from tracescope.io.importer import Importer, Progress

DELIMITERS: Final = (",", ";", "\t", "|")
UNITS: Final = {"ns": 0, "us": 3, "µs": 3, "μs": 3, "ms": 6, "s": 9, "sec": 9}
"""Decimal digits from each unit down to the nanosecond."""
WORDS: Final = {
    "name": ("name", "event", "kernel", "operation"),
    "start": ("start", "begin", "ts", "timestamp", "start time"),
    "duration": ("duration", "dur"),
    "end": ("end", "stop", "end time"),
    "track": ("track", "strm", "stream", "thread", "tid", "lane"),
    "device": ("device", "gpu", "process", "pid"),
    "category": ("category", "cat"),
}
"""What each column may be called, in lower case, without its unit."""
HEADER_LINES: Final = 50
"""Lines among which the header must be: tools print a few of their own before it."""
ROWS_AT_ONCE: Final = 1 << 14

_UNIT: Final = re.compile(r"(?P<name>.*?)(?:\s*[(\[]\s*(?P<a>[a-zµμ]+)\s*[)\]]|_(?P<b>[a-zµμ]+))", re.DOTALL)
_ON_DEVICE: Final = re.compile(r"\b(gpu|cuda|hip|device|stream|strm)\b|^(gpu|cuda|hip|device|stream)[ :_-]?\d", re.I)
_STREAM: Final = re.compile(r"str(ea)?m", re.I)
_NUMBER_AT_END: Final = re.compile(r"(\d{1,4})\)?$")
_DEVICE_NUMBER: Final = re.compile(r"(?<![a-z])(?:gpu|cuda|hip|device|dev|npu|xpu|tpu)[ :_#-]*(\d{1,4})(?!\d)", re.I)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_BINARY: Final = re.compile(rb"[\x01-\x08\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class Header:
    """Where the header is and what it says: the column of each thing (-1: none), and of times their unit's digits."""

    line: int
    delimiter: str
    width: int
    columns: dict[str, int]
    digits: dict[str, int]
    unused: tuple[str, ...]
    has_streams: bool
    has_gpus: bool


def sniff(head: bytes, path: Path) -> bool:
    """Whether the first lines hold a header of events, or by its name it should: then ``read`` says why it does not."""
    if _BINARY.search(head[:4096]):
        return False
    return _find_header(_LINE_END.split(_text(head))) is not None or CSV.named(path)


def read(path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace:
    """The events in ``path``. A row that does not fit the header is left out and counted, so a cut last line is too,
    whatever ``allow_truncated`` says. TraceError where no line is a header that names start and duration with units.
    """
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
            header = _find_header(_LINE_END.split(_text(head)))
            if header is None:
                raise TraceError(
                    f"{path.name}: no line is a header of events",
                    action="A header such as name,track,start_ns,duration_ns is expected (units ns, us, ms or s).",
                )
            file.seek(0)
            source = _Hashed(file, path.stat().st_size, progress)
            table = _Table(path, header)
            text = io.TextIOWrapper(io.BufferedReader(source, 1 << 20), _encoding(head), errors="replace", newline="")
            with text:
                for rows in _pieces(text, header, table):
                    table.add(rows)
            return table.finish(Source(path.name, source.sha256, source.done, "csv"))
    except OSError as error:
        raise TraceError(f"{path.name}: cannot be read: {error.strerror or error}") from error


CSV: Final = Importer(
    "events CSV or TSV",
    (".csv", ".tsv"),
    "columns `name` `start_ns` and `duration_ns` or `end_ns`; `track` `device` `category` if you have them; "
    "units `ns us ms s`",
    sniff,
    read,
)


class _Hashed(io.RawIOBase):
    """A file whose bytes are hashed and counted on the way."""

    def __init__(self, file: BinaryIO, size: int, progress: Progress | None) -> None:
        self._file, self._size, self._progress = file, size, progress
        self._digest = hashlib.sha256()
        self.done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        buffer[: len(piece)] = piece
        self._digest.update(piece)
        self.done += len(piece)
        if self._progress is not None and piece:
            self._progress(min(self.done, self._size), self._size)
        return len(piece)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = head[:512]
    if len(sample) >= 8 and sample[1::2].count(0) > len(sample) // 3:
        return "utf-16-le"
    if len(sample) >= 8 and sample[::2].count(0) > len(sample) // 3:
        return "utf-16-be"
    return "utf-8-sig"


def _text(head: bytes) -> str:
    return head.decode(_encoding(head), "replace")


# --- the header ---


def _find_header(lines: Sequence[str]) -> Header | None:
    for number, line in enumerate(lines[:HEADER_LINES]):
        for delimiter in sorted(DELIMITERS, key=line.count, reverse=True):
            header = _read_header(number, line, delimiter) if delimiter in line else None
            if header is not None:
                return header
    return None


def _read_header(number: int, line: str, delimiter: str) -> Header | None:
    try:
        cells = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None
    columns = dict.fromkeys(WORDS, -1)
    digits: dict[str, int] = {}
    unused = []
    for at, cell in enumerate(cells):
        word, unit = _split_unit(cell.strip().lower())
        kind = next((kind for kind, words in WORDS.items() if word in words and columns[kind] < 0), None)
        is_time = kind in {"start", "duration", "end"}
        if kind is None or is_time != (unit is not None):
            unused.append(cell.strip())
            continue
        columns[kind] = at
        if unit is not None:
            digits[kind] = unit
    if columns["start"] < 0 or (columns["duration"] < 0 and columns["end"] < 0):
        return None
    track, device = (cells[columns[kind]].strip().lower() if columns[kind] >= 0 else "" for kind in ("track", "device"))
    streams, gpus = track in {"strm", "stream"}, device in {"device", "gpu"}
    return Header(number, delimiter, len(cells), columns, digits, tuple(unused), streams, gpus)


def _split_unit(cell: str) -> tuple[str, int | None]:
    """``start_ns``, ``Start (ns)`` and ``start[ns]`` in lower case as (name, digits of the unit or None)."""
    found = _UNIT.fullmatch(cell)
    unit = (found["a"] or found["b"]) if found else None
    if found is None or unit not in UNITS:
        return cell.replace("_", " "), None
    return found["name"].strip().replace("_", " "), UNITS[unit]


# --- the rows ---


def _pieces(text: io.TextIOWrapper, header: Header, table: "_Table") -> Iterator[list[list[str]]]:
    """Rows after the header, some thousands at a time, without blank ones. Unreadable ones are dropped and counted."""
    for _ in range(header.line + 1):
        text.readline()
    reader = csv.reader(text, delimiter=header.delimiter, strict=True)
    rows: list[list[str]] = []
    line = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            # A quote that is never closed swallows all lines up to the end.
            unclosed = "end of data" in str(error)
            table.drop("unclosed_quote" if unclosed else "unreadable_row", reader.line_num - line)
            line = reader.line_num
            if unclosed:
                break
            continue
        line = reader.line_num
        if any(row):
            rows.append(row)
        if len(rows) >= ROWS_AT_ONCE:
            yield rows
            rows = []
    yield rows


class _Table(Collector):
    """The rows so far; a name in ``tracks`` is (device, track)."""

    def __init__(self, path: Path, header: Header) -> None:
        super().__init__()
        self.path = path
        self.header = header
        self._decimal_comma: bool | None = None

    def drop(self, reason: str, events: int = 1) -> None:
        """Count rows that were seen and left out."""
        self.seen += events
        super().drop(reason, events)

    def add(self, rows: list[list[str]]) -> None:
        """Take rows as the file has them."""
        header, columns = self.header, self.header.columns
        whole = [row for row in rows if len(row) == header.width]
        if len(whole) < len(rows):
            self.drop("wrong_number_of_fields", len(rows) - len(whole))
        if self._decimal_comma is None and header.delimiter != ",":
            # Where commas do not separate fields they may stand before decimals: what most rows do, all must.
            times = [columns[kind] for kind in ("start", "duration", "end") if columns[kind] >= 0]
            self._decimal_comma = has_decimal_comma(row[at] for row in whole for at in times)
        numbers = Numbers(decimal_comma=bool(self._decimal_comma))
        taken = Rows("start", "duration", "name", "category", "track")
        for row in whole:
            times_of = self._times(row, numbers)
            if times_of is None:
                continue
            name, category, track, device = (
                row[columns[kind]].strip() if columns[kind] >= 0 else ""
                for kind in ("name", "category", "track", "device")
            )
            where = self.tracks[device, track]
            taken.add(*times_of, self.names[name or UNNAMED], self.words[category.lower()], where)
        if len(self.tracks) > MAX_TRACKS:
            raise TraceError(f"{self.path.name}: has more than {MAX_TRACKS:,} tracks")
        self.seen += len(taken)
        self.imported += len(taken)
        found = taken.arrays()
        none = np.zeros(len(taken), np.int64)
        self.append(**found, correlation=none - 1, detail=none, flags=zero_flags(found["duration"]))
        self.flag("sub_nanosecond", numbers.finer)

    def _times(self, row: list[str], numbers: Numbers) -> tuple[int, int] | None:
        """(start, duration) of a row in ns; None where they are none, and then it is counted."""
        columns, digits = self.header.columns, self.header.digits
        until = "duration" if columns["duration"] >= 0 else "end"
        start = numbers.nanoseconds(row[columns["start"]], digits["start"])
        duration = numbers.nanoseconds(row[columns[until]], digits[until])
        if start is None or abs(start) > LIMIT_NS:
            self.drop("invalid_timestamp", 1)
            return None
        if duration is not None and until == "end":
            duration -= start
        if duration is None or duration > LIMIT_NS:
            self.drop("invalid_duration", 1)
            return None
        if duration < 0:
            self.drop("negative_duration", 1)
            return None
        return start, duration

    def finish(self, source: Source) -> RawTrace:
        """Everything as a RawTrace."""
        tracks = self._raw_tracks()
        events = self.events(self.taken(), tracks)
        step = 10 ** self.header.digits["start"]
        coarse = len(events) and not (events.start % step).any() and not (events.duration % step).any()
        self.flag("text_repaired", sum("\ufffd" in text for text in self.names))
        unused = [printable(cell)[:40] for cell in self.header.unused if cell][:12]
        return self.trace(
            source,
            events,
            tracks,
            resolution_ns=step if coarse else 1,
            has_absolute_clock=events.first_start > EPOCH_2001_NS,
            notes=(f"columns not used: {', '.join(unused)}",) if unused else (),
        )

    def _raw_tracks(self) -> tuple[RawTrack, ...]:
        tracks = []
        for device, track in self.tracks:
            on_device = (
                self.header.has_streams
                or (self.header.has_gpus and bool(device))
                or bool(_ON_DEVICE.search(track) or _ON_DEVICE.search(device))
            )
            tracks.append(
                RawTrack(
                    pid=device or NO_PROCESS,
                    tid=track or "(no track)",
                    process=device,
                    thread=track,
                    is_device=on_device,
                    device=self._device_of(device, track) if on_device else -1,
                )
            )
        return tuple(tracks)

    def _device_of(self, device: str, track: str) -> int:
        """The number of a track's device: that of the words that say so ("gpu0/stream7"), else the one that ends what
        is no stream ("NVIDIA H100 (0)"); a stream alone is of the only device, and what says neither is of none.
        """
        named = _DEVICE_NUMBER.search(device) or _DEVICE_NUMBER.search(track)
        if named:
            return int(named[1])
        at_end = _NUMBER_AT_END.search(device or ("" if self.header.has_streams or _STREAM.search(track) else track))
        if at_end:
            return int(at_end[1])
        alone = not device and (self.header.has_streams or bool(_STREAM.match(track)))
        return 0 if alone or not (device or _STREAM.search(track)) else -1
