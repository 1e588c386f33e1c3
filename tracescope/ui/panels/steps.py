"""Every step as a table row: what it took, its floors and what it moved."""

from typing import Any

from PySide6.QtWidgets import QVBoxLayout

from tracescope.analysis.steps import steps_table
from tracescope.analysis.table import Table
from tracescope.core.units import MISSING, count, micros, millis, percent, size
from tracescope.ui.panels.panel import NO_STEPS, PanelWidget
from tracescope.ui.panels.table_model import Draw, ScreenColumn, plain
from tracescope.ui.panels.table_view import PanelTable
from tracescope.ui.session import Session
from tracescope.ui.theme import Theme
from tracescope.view import navigation

_WIDE_ONLY = ("idle", "host wait", "unknown")
"""Columns that a small window leaves out."""


def steps_columns(table: Table, *, narrow: bool = False) -> tuple[ScreenColumn, ...]:
    """The columns on screen; their cells are those of the ``steps`` listing. ``narrow``: those that fit 1280 px."""

    def cells(key: str) -> Any:
        return table.column(key).cell

    columns = (
        ScreenColumn("step", cells("step"), plain, width=48),
        ScreenColumn("kind", cells("kind"), plain, draw=Draw.TEXT, width=64),
        ScreenColumn("batch", cells("batch"), count, width=54),
        ScreenColumn("context", cells("context_tokens"), count, "tokens", width=104),
        ScreenColumn("took", cells("duration_ns"), millis, "ms", width=70),
        ScreenColumn("floor", cells("floor_ops_ns"), _or_none, "ms", width=70),
        ScreenColumn("gap", cells("gap_ns"), millis, "ms", Draw.STRONG, width=70),
        ScreenColumn("MBU", cells("mbu"), lambda v: percent(v, 1), width=60),
        ScreenColumn("weights", cells("weight_read_bytes"), size, width=76),
        ScreenColumn("KV read", cells("kv_read_bytes"), size, width=76),
        ScreenColumn("idle", cells("idle_ns"), micros, "µs", width=66),
        ScreenColumn("host wait", cells("host_wait_ns"), millis, "ms", width=92),
        ScreenColumn("unknown", cells("unknown_ns"), millis, "ms", width=84),
        ScreenColumn("no floor", cells("ops_without_floor"), count, "ops", width=84),
        ScreenColumn("label", cells("label"), lambda v: MISSING if v is None else plain(v), draw=Draw.TEXT, width=120),
    )
    return tuple(c for c in columns if not narrow or c.title not in _WIDE_ONLY)


def _or_none(ns: float | None) -> str:
    return "none" if ns is None else millis(ns)


class StepsPanel(PanelWidget):
    """The table; choosing a row goes to that step."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.table = PanelTable("Steps")
        self.table.says_empty = NO_STEPS
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.table)
        self.table.row_chosen.connect(self._choose)
        session.document_changed.connect(self.refresh)
        session.view_changed.connect(self._mark)
        self._shown: object = None
        self._narrow = False

    def refresh(self) -> None:
        """Show the open trace; worked out when the panel is first looked at."""
        document = self.session.document
        if not self.isVisible() or document is self._shown:
            return
        self._shown = document
        if document is None or not document.has_steps:
            self.table.rows.show_rows((), 0)
            return
        table = document.remembered("steps_table", 0, lambda: steps_table(document.trace, document.basis))
        self.table.rows.show_rows(steps_columns(table, narrow=self._narrow), len(table))
        self.table.lay_out()
        self._mark()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.table.set_theme(theme)

    def set_narrow(self, narrow: bool) -> None:
        if narrow != self._narrow:
            self._narrow = narrow
            self._shown = None
            self.refresh()

    def copied_text(self) -> str:
        return self.table.copied_text()

    def _mark(self) -> None:
        view = self.session.view
        if view is not None and self.isVisible():
            self.table.select_source(view.step)

    def _choose(self, row: int) -> None:
        document, view = self.session.document, self.session.view
        if document is not None and view is not None:
            self.session.look(navigation.to_step(document, view, row))

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self.refresh()
        self._mark()
