"""Requests from CSV: Azure 2023 and 2024, BurstGPT and vidur, told apart and read by the names of their columns."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tracescope.core.errors import TraceError
from tracescope.io.requests.rows import SECONDS, BadCellError, RequestRows, datetime_ns, number_ns, tokens

_HEADER_WITHIN: Final = 30
"""Lines of preamble that are looked through for the column names."""
_DELIMITERS: Final = (",", ";", "\t")
_DECIMAL_COMMA: Final = re.compile(r"\s*\d+,\d+\s*")


def _seconds(text: str) -> tuple[int, bool]:
    return number_ns(text, SECONDS)


@dataclass(frozen=True, slots=True)
class Layout:
    """One kind of file: the columns (letters and digits of their names, lower case) and how its times are written."""

    name: str
    time: str
    prompt: str
    output: str
    read_time: Callable[[str], tuple[int, bool]]

    @property
    def columns(self) -> tuple[str, str, str]:
        """The three columns that must be there."""
        return self.time, self.prompt, self.output


LAYOUTS: Final = (
    Layout("Azure columns", "timestamp", "contexttokens", "generatedtokens", datetime_ns),
    Layout("BurstGPT columns", "timestamp", "requesttokens", "responsetokens", _seconds),
    Layout("vidur columns", "arrivedat", "numprefilltokens", "numdecodetokens", _seconds),
)
"""Every kind of CSV that is known; a new one is one entry here."""

EXPECTED: Final = (
    "expected columns TIMESTAMP,ContextTokens,GeneratedTokens, or Timestamp,Request tokens,Response tokens, "
    "or arrived_at,num_prefill_tokens,num_decode_tokens"
)


@dataclass(frozen=True, slots=True)
class _Header:
    layout: Layout
    delimiter: str
    width: int
    place: tuple[int, int, int]
    line: int


def collect_csv(name: str, text: str) -> tuple[RequestRows, str]:
    """The requests of one CSV text and the name of its layout. Raises TraceError where it is none that is known."""
    lines = io.StringIO(text, newline="").readlines()
    header = _find_header(name, lines)
    made = RequestRows()
    rows = list(_rows(name, lines[header.line + 1 :], header))
    time, prompt, output = header.place
    comma = header.delimiter != "," and any(_DECIMAL_COMMA.fullmatch(r[time]) for r in rows if len(r) == header.width)
    for row in rows:
        if len(row) != header.width:
            made.drop("ragged_row")
            continue
        try:
            at = header.layout.read_time(_point(row[time]) if comma else row[time])
            made.add(at, tokens(row[prompt]), tokens(row[output]))
        except BadCellError as reason:
            made.drop(str(reason))
    return made, header.layout.name


def _point(cell: str) -> str:
    """A cell of a file with decimal commas, with a point for the comma; a point that it has is not guessed at."""
    if "." in cell:
        raise BadCellError("bad_time")
    return cell.replace(",", ".")


def _find_header(name: str, lines: list[str]) -> _Header:
    first = ""
    for number, line in enumerate(lines[:_HEADER_WITHIN]):
        if not line.strip():
            continue
        first = first or line.strip()
        for delimiter in _DELIMITERS:
            cells = _split(line, delimiter)
            for layout in LAYOUTS:
                if set(layout.columns) <= set(cells):
                    place = (cells.index(layout.time), cells.index(layout.prompt), cells.index(layout.output))
                    return _Header(layout, delimiter, len(cells), place, number)
            if {"numprefilltokens", "numdecodetokens"} <= set(cells):
                raise TraceError(f"{name}: has lengths of requests but no arrival times", action=EXPECTED)
    shown = first if len(first) <= 80 else first[:79] + "…"
    raise TraceError(f"{name}: not a file of requests that is known; it begins '{shown}'", action=EXPECTED)


def _split(line: str, delimiter: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [re.sub(r"[^a-z0-9]", "", cell.lower()) for cell in cells]


def _rows(name: str, lines: list[str], header: _Header) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=header.delimiter)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield row
    except csv.Error as error:
        line = header.line + 1 + reader.line_num
        raise TraceError(f"{name}: line {line:,} cannot be read as CSV: {error}", action="Check the quotes.") from error
