"""A table as CSV: the one place where it becomes a file that spreadsheets open."""

import codecs
import csv
from pathlib import Path
from typing import BinaryIO

from tracescope.analysis.table import Cell, Column, Table, inert
from tracescope.io.atomic import write_atomically

_ENERGIES = ("energy_j", "energy_rank_j")
_ENERGY_PARTS = ("low", "mid", "high", "extrapolated")


def write_csv(path: Path, table: Table, *, raw: bool = False) -> None:
    """Every column of ``table``, shown or not, under its JSON name; empty where not known. Replaces the file whole.

    An energy is four columns, ``energy_low_j`` and so on; the entries of a list are joined by ``|``. Text that a
    spreadsheet would run as a formula gets a ``'`` before it, unless ``raw``; numbers stay numbers.
    """

    def write(file: BinaryIO) -> None:
        writer = csv.writer(_Lines(file))
        writer.writerow([name for column in table.columns for name in _names(column)])
        for row in table.rows():
            cells = [plain for key, cell in row.items() for plain in _plain(key, cell)]
            writer.writerow(cells if raw else [inert(cell) if isinstance(cell, str) else cell for cell in cells])

    write_atomically(path, write)


class _Lines:
    """Ends rows with LF that come with CR LF: for these the csv module quotes a cell that holds either."""

    def __init__(self, file: BinaryIO) -> None:
        self._text = codecs.getwriter("utf-8")(file, "replace")

    def write(self, row: str) -> None:
        self._text.write(row.removesuffix("\r\n") + "\n")


def _names(column: Column) -> tuple[str, ...]:
    if column.key not in _ENERGIES:
        return (column.key,)
    stem = column.key.removesuffix("_j")
    return (*(f"{stem}_{part}_j" for part in _ENERGY_PARTS[:3]), f"{stem}_{_ENERGY_PARTS[3]}")


def _plain(key: str, cell: Cell) -> tuple[Cell, ...]:
    """The cells of one value, as many as its column has names."""
    if key in _ENERGIES:
        return tuple("" if not isinstance(cell, dict) else _one(cell.get(part)) for part in _ENERGY_PARTS)
    if isinstance(cell, list):
        return ("|".join(cell),)
    return (_one(cell),)


def _one(cell: Cell) -> Cell:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None else cell
