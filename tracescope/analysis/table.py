"""A table as columns with a key, a title, a unit and values: one definition for JSON, CSV, clipboard and Qt models."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula, or steps over to find one."""

Cell = int | float | str | bool | None | list[str] | dict[str, float | str | None]


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """One column. ``key`` is the JSON name, ``title`` the heading on screen, ``unit`` goes into headings once.

    ``values`` is a numpy array or a list of cells, one a row. ``known`` marks the rows whose value is known (bool, one
    a row; None: all of them). An unknown cell is null in JSON and ``none`` on screen, never 0. A column without a
    title is not shown on screen. ``exact`` numbers are shown to the last digit, whatever their unit: an instant is no
    amount. ``prose`` may go on over several lines; any other text is shortened where there is no room.
    """

    key: str
    values: Sequence[Cell] | np.ndarray[Any, Any]
    title: str = ""
    unit: str = ""
    known: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    exact: bool = False
    prose: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def cell(self, row: int) -> Cell:
        """The value of one row as a plain Python object; None where it is not known."""
        if self.known is not None and not self.known[row]:
            return None
        value = self.values[row]
        return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Columns of one length, and the scalars that belong to the table as a whole (``summary``, JSON names)."""

    columns: tuple[Column, ...]
    summary: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len({len(c) for c in self.columns}) > 1:
            raise ValueError("columns of different lengths: " + ", ".join(f"{c.key} {len(c)}" for c in self.columns))

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def column(self, key: str) -> Column:
        """The column named ``key``; KeyError where there is none."""
        for column in self.columns:
            if column.key == key:
                return column
        raise KeyError(key)

    def row(self, index: int) -> dict[str, Cell]:
        """One row by JSON name."""
        return {c.key: c.cell(index) for c in self.columns}

    def rows(self) -> Iterator[dict[str, Cell]]:
        """Every row by JSON name, in order."""
        return (self.row(i) for i in range(len(self)))

    def document(self) -> dict[str, Any]:
        """The JSON document of this table: ``rows`` and the summary beside it."""
        return {"rows": list(self.rows()), **self.summary}


def inert(text: str) -> str:
    """``text`` as a cell that no spreadsheet runs: whoever opens a table need not trust who named the kernels."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def known_column(key: str, values: np.ndarray[Any, Any], title: str = "", unit: str = "") -> Column:
    """A column of quantities in which -1 stands for "not known"."""
    return Column(key, values, title, unit, known=values != -1)
