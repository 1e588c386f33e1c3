"""The ``?`` overlay: every key and gesture, searchable, from the ACTIONS table."""

from PySide6.QtCore import QSortFilterProxyModel, Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QAbstractItemView, QDialog, QHeaderView, QLineEdit, QTableView, QVBoxLayout, QWidget

from tracescope.ui.actions import ACTIONS, MOUSE


def key_rows() -> list[tuple[str, str]]:
    """What is listed: keys (or gesture) and what they do."""
    keys = [(", ".join(row.keys), row.title.rstrip("…")) for row in ACTIONS if row.keys]
    return keys + list(MOUSE)


class KeyOverlay(QDialog):
    """A window over the main one; typing filters, Esc closes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("keyOverlay")
        self.setWindowTitle("Keys")
        self.resize(560, 620)
        model = QStandardItemModel(0, 2, self)
        model.setHorizontalHeaderLabels(["key or gesture", "what it does"])
        for keys, title in key_rows():
            items = [QStandardItem(keys), QStandardItem(title)]
            for item in items:
                item.setEditable(False)
            model.appendRow(items)
        self.rows = QSortFilterProxyModel(self)
        self.rows.setSourceModel(model)
        self.rows.setFilterKeyColumn(-1)
        self.rows.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.search = QLineEdit()
        self.search.setPlaceholderText("Find a key or a command")
        self.search.setAccessibleName("Find a key or a command")
        self.search.textChanged.connect(self.rows.setFilterFixedString)
        table = QTableView()
        table.setAccessibleName("Keys and gestures")
        table.setModel(self.rows)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(22)
        table.horizontalHeader().setStretchLastSection(True)
        table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        layout = QVBoxLayout(self)
        layout.addWidget(self.search)
        layout.addWidget(table)
        self.search.setFocus()
