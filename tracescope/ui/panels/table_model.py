"""A Qt model over columns of cells: sorted by any column, copied as tab-separated text with the unit in the heading."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from tracescope.analysis.table import Cell, inert
from tracescope.core.category import Category
from tracescope.core.errors import printable
from tracescope.ui.fonts import font
from tracescope.ui.messages import plain_tooltip

Index = QModelIndex | QPersistentModelIndex
CELL_ROLE: Final = Qt.ItemDataRole.UserRole
"""The cell itself, not its text."""
CATEGORY_ROLE: Final = Qt.ItemDataRole.UserRole + 1
"""The row's Category, for chips and bars; None where a row has none."""
SHARE_ROLE: Final = Qt.ItemDataRole.UserRole + 2
"""A bar cell's length as a share of the largest of its column, 0 to 1."""


class Draw(Enum):
    """How the cells of a column are drawn."""

    TEXT = "text"
    NUMBER = "number"
    STRONG = "strong number"
    CHIP = "chip and text"
    BAR = "bar"


@dataclass(frozen=True, slots=True)
class ScreenColumn:
    """One column on screen: a title, a unit (written once, in the heading), the cell of a row and its text."""

    title: str
    cell: Callable[[int], Cell]
    text: Callable[[Any], str]
    unit: str = ""
    draw: Draw = Draw.NUMBER
    width: int = 70

    @property
    def heading(self) -> str:
        """``took µs``."""
        return f"{self.title} {self.unit}".strip()


def plain(cell: Any) -> str:
    """The text of a cell that needs no formatting."""
    return printable(str(cell))


class TableModel(QAbstractTableModel):
    """Rows ``0 … count`` of some columns, in an order of its own. ``category`` gives a row's Category."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: tuple[ScreenColumn, ...] = ()
        self._count = 0
        self._order: list[int] = []
        self._rank: dict[int, int] = {}
        self._category: Callable[[int], Category | None] = lambda _row: None
        self._sorted: tuple[int, Qt.SortOrder] | None = None
        self._largest: dict[int, float] = {}

    def show_rows(
        self,
        columns: Sequence[ScreenColumn],
        count: int,
        category: Callable[[int], Category | None] = lambda _row: None,
    ) -> None:
        """Replace everything; the sort order stays where the columns stay."""
        self.beginResetModel()
        same = [c.title for c in columns] == [c.title for c in self.columns]
        self.columns = tuple(columns)
        self._count = count
        self._category = category
        self._largest.clear()
        if not same:
            self._sorted = None
        self._arrange()
        self.endResetModel()

    def row_of(self, source: int) -> int:
        """Where source row ``source`` stands now, -1 where it is not there."""
        return self._rank.get(source, -1)

    def source_of(self, row: int) -> int:
        """The source row at place ``row``."""
        return self._order[row]

    def copied(self, rows: Sequence[int]) -> str:
        """Headings with units and the cells of ``rows`` (places) as tab-separated lines.

        Numbers lose their commas; text stays, but for what a spreadsheet would run as a formula.
        """
        shown = [c for c in self.columns if c.draw is not Draw.BAR and c.title]
        lines = ["\t".join(c.heading for c in shown)]
        for row in rows:
            source = self._order[row]
            lines.append("\t".join(_copied(c, c.cell(source)) for c in shown))
        return "\n".join(lines) + "\n"

    def _arrange(self) -> None:
        self._order = list(range(self._count))
        if self._sorted is not None:
            column, order = self._sorted
            cell = self.columns[column].cell
            known = [i for i in self._order if cell(i) is not None]
            # Unknown cells stay at the end whichever way is up.
            known.sort(key=lambda i: _key(cell(i)), reverse=order == Qt.SortOrder.DescendingOrder)
            self._order = known + [i for i in self._order if cell(i) is None]
        self._rank = {source: place for place, source in enumerate(self._order)}

    def _share(self, column: int, source: int) -> float:
        if column not in self._largest:
            cells = (self.columns[column].cell(i) for i in range(self._count))
            self._largest[column] = max((float(c) for c in cells if isinstance(c, int | float)), default=0.0)
        cell = self.columns[column].cell(source)
        largest = self._largest[column]
        return float(cell) / largest if isinstance(cell, int | float) and largest > 0 else 0.0

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        column = self.columns[index.column()]
        source = self._order[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return "" if column.draw is Draw.BAR else column.text(column.cell(source))
        if role == Qt.ItemDataRole.ToolTipRole and column.draw in (Draw.TEXT, Draw.CHIP):
            return plain_tooltip(column.text(column.cell(source)))  # the cell may have room for its beginning only
        if role == Qt.ItemDataRole.TextAlignmentRole:
            left = column.draw in (Draw.TEXT, Draw.CHIP, Draw.BAR)
            side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.FontRole:
            return font(11, 600 if column.draw is Draw.STRONG else 400)
        if role == CELL_ROLE:
            return column.cell(source)
        if role == CATEGORY_ROLE:
            return self._category(source)
        if role == SHARE_ROLE:
            return self._share(index.column(), source)
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if not 0 <= column < len(self.columns):
            return
        self.layoutAboutToBeChanged.emit()
        old = self.persistentIndexList()
        sources = [self._order[index.row()] for index in old]
        self._sorted = (column, order)
        self._arrange()
        moved = [self.index(self._rank[s], i.column()) for s, i in zip(sources, old, strict=True)]
        self.changePersistentIndexList(old, moved)
        self.layoutChanged.emit()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own default
        return 0 if parent.isValid() else self._count

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own default
        return 0 if parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Vertical or section >= len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.heading
        if role == Qt.ItemDataRole.TextAlignmentRole:
            left = column.draw in (Draw.TEXT, Draw.CHIP, Draw.BAR)
            return (Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight) | Qt.AlignmentFlag.AlignVCenter
        return None


def _copied(column: ScreenColumn, cell: Cell) -> str:
    text = column.text(cell)
    return inert(text) if isinstance(cell, str) else text.replace(",", "")


def _key(cell: Cell) -> tuple[int, float, str]:
    if isinstance(cell, bool | int | float):
        return (0, float(cell), "")
    return (1, 0.0, str(cell))
