"""A table as lines that fit the terminal: amounts in the units that suit them, long names shortened in the middle."""

import shutil
import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from tracescope.analysis.table import Cell, Column, Table
from tracescope.core import units
from tracescope.core.errors import printable

WIDEST: Final = 200
"""No row is wider than this, nor than the terminal where there is one."""
GIVES_WAY: Final = (
    "track", "FLOPs", "FLOP", "KV append", "FLOP/B", "start", "exposed", "no floor", "queue", "host wait", "generated",
    "floor W", "warm-up", "period", "events", "structure", "KV a token", "weights", "KV read", "category",
)  # fmt: skip
"""Titles of columns in the order in which they are left out where even short names leave no room for all."""
_NARROWEST: Final = 12
"""A text is shortened to no less than this while a column is left that may give way."""
_GAP: Final = "  "

_AMOUNTS: Final[dict[str, Callable[[float], str]]] = {
    "ns": units.duration,
    "s": units.seconds,
    "B": units.size,
    "FLOP": units.flops,
    "J": units.energy,
}
"""Units that a cell carries itself, scaled to its size; every other one stands in the heading."""


@dataclass(slots=True)
class _Shown:
    """One column as text: its heading and cells, how wide it would be, is now, and must be at least."""

    title: str
    heading: str
    cells: list[str]
    left: bool
    prose: bool
    natural: int
    width: int
    least: int

    @classmethod
    def of(cls, column: Column, rows: int) -> "_Shown":
        cells = [column.cell(i) for i in range(rows)]
        left = any(isinstance(cell, str) for cell in cells[:50])
        text = _text_of(column)
        texts = [text(cell) for cell in cells]
        own = column.unit in _AMOUNTS and not column.exact
        heading = column.title if own else f"{column.title} {column.unit}".strip()
        inside = max(map(width_of, texts), default=0)
        longest_word = max(map(len, heading.split()), default=0)
        least = max(longest_word, min(inside, _NARROWEST) if left else inside)
        natural = max(len(heading), inside)
        return cls(column.title, heading, texts, left, column.prose, natural, natural, least)

    @property
    def says_nothing(self) -> bool:
        """Whether no cell of it is known."""
        return bool(self.cells) and all(text == units.MISSING for text in self.cells)

    def head(self) -> list[str]:
        """The heading, on several lines where the column is narrower."""
        return textwrap.wrap(self.heading, self.width, break_on_hyphens=False)

    def lines(self, row: int) -> list[str]:
        """The cell of one row, on several lines where it is prose."""
        text = self.cells[row]
        if width_of(text) <= self.width:
            return [text]
        return textwrap.wrap(text, self.width, break_on_hyphens=False) if self.prose else [shortened(text, self.width)]

    def placed(self, text: str) -> str:
        """``text`` filled up to the width."""
        room = " " * (self.width - width_of(text))
        return text + room if self.left else room + text


def terminal_width() -> int:
    """Characters that fit into a row here: those of the terminal, at most 200, which it is without one."""
    return min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)


def table_lines(table: Table, limit: int | None, width: int) -> Iterator[str]:
    """The titled columns of ``table`` as aligned lines of at most ``width``; at most ``limit`` rows.

    What is left out, rows or columns, is said underneath.
    """
    rows = len(table) if limit is None else min(limit, len(table))
    columns = [_Shown.of(column, rows) for column in table.columns if column.title]
    left_out = _fit(columns, width)
    yield from _block([c.head() for c in columns], columns, from_below=True)
    for row in range(rows):
        yield from _block([c.lines(row) for c in columns], columns)
    if rows < len(table):
        yield f"({units.plural(len(table) - rows, 'more row')}; --json lists them all)"
    if left_out:
        yield from textwrap.wrap(f"(no room here for: {', '.join(left_out)}; --json has every column)", max(width, 20))


def width_of(text: str) -> int:
    """Places that ``text`` takes in a terminal: letters of East Asia take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shortened(text: str, width: int) -> str:
    """``text`` in at most ``width`` places: where it is longer, its beginning and its end with … between."""
    if width_of(text) <= width:
        return text
    start, end = "", ""
    for i in range(len(text)):
        head, tail = text[: i + 1], text[len(text) - i :] if i else ""
        if width_of(head) + width_of(tail) + 1 > width:
            break
        start, end = head, tail
        longer = text[len(text) - i - 1 :]
        if width_of(head) + width_of(longer) + 1 > width:
            break
        end = longer
    return f"{start}…{end}"


def _text_of(column: Column) -> Callable[[Cell], str]:
    amount = None if column.exact else _AMOUNTS.get(column.unit)

    def text(cell: Cell) -> str:
        if amount is not None and isinstance(cell, int | float) and not isinstance(cell, bool):
            return amount(cell)
        return cell_text(cell)

    return text


def cell_text(cell: Cell) -> str:
    """A cell without a unit of its own."""
    if cell is None:
        return units.MISSING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return units.significant(cell)
    return printable(cell if isinstance(cell, str) else str(cell))


def _fit(columns: list[_Shown], width: int) -> list[str]:
    """Make ``columns`` fit into ``width``, as many as can; the titles of those that were taken out."""
    left_out: list[str] = []
    if _over(columns, width) > 0:  # before a name loses a letter, what says nothing goes
        left_out = [c.title for c in columns if c.says_nothing]
        columns[:] = [c for c in columns if not c.says_nothing]
    while _too_wide(columns, width):
        if len(columns) == 1:
            columns[0].width = max(4, width)
            break
        gone = next((c for title in GIVES_WAY for c in columns if c.title == title), columns[-1])
        columns.remove(gone)
        left_out.append(gone.title)
    return left_out


def _over(columns: list[_Shown], width: int) -> int:
    """By how much ``columns`` are wider than ``width`` as they are."""
    return sum(c.width for c in columns) + len(_GAP) * (len(columns) - 1) - width


def _too_wide(columns: list[_Shown], width: int) -> bool:
    """Narrow ``columns``: headings first, then the widest texts; whether they are wider than ``width`` even so."""
    for column in columns:
        column.width = column.natural
    over = _over(columns, width)
    for column in columns:
        if over > 0:
            inside = max(map(width_of, column.cells), default=0)
            to = min(column.width, max(column.least, inside, column.width - over))
            over -= column.width - to
            column.width = to
    while over > 0:
        widest = max((c for c in columns if c.left and c.width > c.least), key=lambda c: c.width, default=None)
        if widest is None:
            break
        second = max((c.width for c in columns if c.left and c is not widest), default=0)
        to = max(widest.least, min(second, widest.width - 1), widest.width - over)
        over -= widest.width - to
        widest.width = to
    return over > 0


def _block(cells: list[list[str]], columns: list[_Shown], *, from_below: bool = False) -> Iterator[str]:
    """One row of cells of several lines each, side by side; a heading stands on its last line."""
    turned = zip_longest(*(reversed(c) if from_below else c for c in cells), fillvalue="")
    lines = [_GAP.join(c.placed(text) for c, text in zip(columns, line, strict=True)).rstrip() for line in turned]
    return iter(reversed(lines) if from_below else lines)
