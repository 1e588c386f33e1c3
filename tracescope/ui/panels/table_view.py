"""The table of every panel: rows of 20 px, chips and hatched bars in cells, selection shared with the timeline."""

from PySide6.QtCore import QEvent, QItemSelectionModel, QRect, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from tracescope.core.category import KIND_OF_CATEGORY, Category
from tracescope.ui.fonts import elided, font
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.hatch import GAP
from tracescope.ui.panels.table_model import CATEGORY_ROLE, SHARE_ROLE, Draw, Index, TableModel
from tracescope.ui.theme import LIGHT, Theme, colour

ROW = 20
HEAD = 22


class CellDelegate(QStyledItemDelegate):
    """Draws all cells: text in the theme's colours, chips with a letter, bars with the hatch of their kind."""

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self._draw = draw
        self.theme: Theme = LIGHT

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        t = self.theme
        selected = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.fillRect(rect, colour(t.selected if selected else t.band if index.row() % 2 else t.panel))
        if selected and index.column() == 0:
            painter.fillRect(QRect(rect.left(), rect.top(), 3, rect.height()), colour(t.accent))
        category: Category | None = index.data(CATEGORY_ROLE)
        if self._draw is Draw.BAR:
            self._bar(painter, rect, category, index.data(SHARE_ROLE))
        else:
            self._text(painter, rect, category, index, selected)
        painter.restore()

    def _text(self, painter: QPainter, rect: QRect, category: Category | None, index: Index, selected: bool) -> None:
        t = self.theme
        area = QRectF(rect).adjusted(6, 0, -6, 0)
        if self._draw is Draw.CHIP and category is not None:
            canvas = Canvas(painter, t, painter.device().devicePixelRatio())
            canvas.chip(area.left(), rect.center().y() - 6, KIND_OF_CATEGORY[category].letter, 13)
            area.setLeft(area.left() + 19)
        weight = 600 if self._draw is Draw.STRONG or selected else 400
        text = str(index.data(Qt.ItemDataRole.DisplayRole))
        unknown = text in ("—", "none")
        painter.setPen(colour(t.text2 if unknown and selected else t.muted if unknown else t.text))
        painter.setFont(font(11, weight))
        flags = index.data(Qt.ItemDataRole.TextAlignmentRole)
        painter.drawText(area, int(flags), elided(text, area.width(), 11, weight))

    def _bar(self, painter: QPainter, rect: QRect, category: Category | None, share: float) -> None:
        width = round((rect.width() - 12) * max(0.0, min(1.0, share)))
        if width < 1:
            return
        paint_gap_bar(
            Canvas(painter, self.theme, painter.device().devicePixelRatio()),
            QRectF(rect.left() + 6, rect.center().y() - 5, width, 11),
            category,
        )


def paint_gap_bar(canvas: Canvas, bar: QRectF, category: Category | None, pitch: int = 5) -> None:
    """A bar that is all above the floor: the hatch of a kind with its edge; None: nothing ran."""
    letter = GAP if category is None else KIND_OF_CATEGORY[category].letter
    canvas.begin()
    canvas.hatch(bar, letter, pitch)
    canvas.frame(bar, canvas.theme.ink if category is None else canvas.theme.kinds[letter].edge)


class PanelTable(QTableView):
    """A table over a TableModel. ``row_chosen`` carries the source row that a click or key selected."""

    row_chosen = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.rows = TableModel()
        self.setModel(self.rows)
        self.setAccessibleName(name)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setMinimumHeight(HEAD + ROW)
        self.verticalHeader().hide()
        self.verticalHeader().setMinimumSectionSize(ROW)
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head = self.horizontalHeader()
        head.setFixedHeight(HEAD)
        head.setHighlightSections(False)
        head.setSortIndicatorShown(True)
        head.setFont(font(11, 400))
        self.says_empty = ""
        """What stands in the table while it has no rows."""
        self._theme = LIGHT
        self._delegates: list[CellDelegate] = []
        self._laid_out: tuple[str, ...] = ()
        self.selectionModel().currentRowChanged.connect(self._chosen)
        self.setSortingEnabled(True)
        head.setSortIndicator(-1, Qt.SortOrder.DescendingOrder)

    def lay_out(self) -> None:
        """Give every column its delegate and width; called after the model got its columns."""
        titles = tuple(c.heading for c in self.rows.columns)
        if titles == self._laid_out:
            return
        self._laid_out = titles
        self._delegates = []
        head = self.horizontalHeader()
        for i, column in enumerate(self.rows.columns):
            delegate = CellDelegate(column.draw)
            delegate.theme = self._theme
            self._delegates.append(delegate)
            self.setItemDelegateForColumn(i, delegate)
            stretch = column.draw is Draw.BAR
            modes = QHeaderView.ResizeMode
            head.setSectionResizeMode(i, modes.Stretch if stretch else modes.Interactive)
            if not stretch:
                head.resizeSection(i, column.width)
        head.setMinimumSectionSize(24)
        head.setStretchLastSection(not any(c.draw is Draw.BAR for c in self.rows.columns))

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self._theme = theme
        for delegate in self._delegates:
            delegate.theme = theme
        self.viewport().update()

    def select_source(self, source: int) -> None:
        """Select a source row without saying that somebody chose it, and scroll to it; -1 selects nothing."""
        row = self.rows.row_of(source)
        if row < 0:
            with QSignalBlocker(self.selectionModel()):
                self.clearSelection()
                self.setCurrentIndex(self.rootIndex())
            self.viewport().update()
            return
        if self.currentIndex().row() == row:
            return
        with QSignalBlocker(self.selectionModel()):
            flags = QItemSelectionModel.SelectionFlag
            index = self.rows.index(row, 0)
            self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
        self.scrollTo(index)
        self.viewport().update()

    def copied_text(self) -> str:
        """The selected rows as tab-separated text with a heading; empty where none is selected."""
        places = sorted({index.row() for index in self.selectionModel().selectedRows()})
        return self.rows.copied(places) if places else ""

    def _chosen(self, current: Index, _previous: Index) -> None:
        if current.isValid():
            self.row_chosen.emit(self.rows.source_of(current.row()))

    def sizeHint(self) -> QSize:
        return QSize(400, HEAD + 8 * ROW)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.says_empty and not self.rows.rowCount():
            with QPainter(self.viewport()) as painter:
                painter.setPen(colour(self._theme.text2))
                painter.setFont(font(11))
                room = QRectF(self.viewport().rect()).adjusted(14, 10, -14, 0)
                painter.drawText(room, int(Qt.TextFlag.TextWordWrap), self.says_empty)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.viewport().setBackgroundRole(QPalette.ColorRole.Base)
