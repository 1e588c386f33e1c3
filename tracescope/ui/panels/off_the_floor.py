"""Which operations of the step are farthest from their floor, and where the whole gap goes."""

from PySide6.QtWidgets import QHBoxLayout

from tracescope.analysis.gap_rows import GapRow
from tracescope.core.units import MISSING, count, micros, percent, size
from tracescope.ui.panels.panel import NO_STEPS, PanelWidget
from tracescope.ui.panels.table_model import Draw, ScreenColumn, plain
from tracescope.ui.panels.table_view import PanelTable
from tracescope.ui.panels.where_the_gap_goes import WhereTheGapGoes
from tracescope.ui.session import Session
from tracescope.ui.theme import Theme
from tracescope.view import navigation
from tracescope.view.document import clipped
from tracescope.view.floor_words import floor_micros, gap_micros, share_of_floor, share_text


def gap_columns(rows: tuple[GapRow, ...], known_gap: int, *, priced: bool) -> tuple[ScreenColumn, ...]:
    """The columns of the table over one step's rows, whose known gap is ``known_gap`` ns; ``priced``: with a bandwidth.

    A row without a floor has no gap on screen: its place among the others is that of its time.
    """

    def floor(i: int) -> int | None:
        return rows[i].floor_ns if priced else None

    def gap(i: int) -> int | None:
        return rows[i].gap_ns if priced else None

    def of_gap(i: int) -> float | None:
        known = gap(i)
        return None if known is None or not known_gap else known / known_gap

    def share(i: int) -> float | None:
        return share_of_floor(floor(i), rows[i].took_ns - rows[i].unknown_ns)

    return (
        ScreenColumn("op", lambda i: clipped(rows[i].name), plain, draw=Draw.CHIP, width=150),
        ScreenColumn("layer", lambda i: rows[i].layer if rows[i].layer >= 0 else None, _cell, width=48),
        ScreenColumn("events", lambda i: rows[i].events, count, width=58),
        ScreenColumn("took", lambda i: rows[i].took_ns, micros, "µs", width=72),
        ScreenColumn("floor", floor, floor_micros, "µs", width=66),
        ScreenColumn("gap", gap, gap_micros, "µs", Draw.STRONG, width=66),
        ScreenColumn("", lambda i: max(0, gap(i) or 0), plain, draw=Draw.BAR),
        ScreenColumn("of floor", share, share_text, width=66),
        ScreenColumn("bytes", lambda i: rows[i].memory_bytes, size, width=76),
        ScreenColumn("of step gap", of_gap, lambda s: percent(s, 1), width=84),
    )


def _cell(value: int | None) -> str:
    return MISSING if value is None else str(value)


class OffTheFloorPanel(PanelWidget):
    """The table, sorted by gap, and beside it the causes of the gap."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.table = PanelTable("Operations above their floor")
        self.table.says_empty = NO_STEPS
        self.causes = WhereTheGapGoes()
        self._rows: tuple[GapRow, ...] = ()
        self._narrow = False
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.table, 68)
        layout.addWidget(self.causes, 32)
        self.table.row_chosen.connect(self._choose)
        session.view_changed.connect(self.refresh)
        session.document_changed.connect(self.refresh)
        self._shown: tuple[object, int] = (None, -1)

    def refresh(self) -> None:
        """Show the current step."""
        document, view = self.session.document, self.session.view
        step = -1 if view is None else view.step
        if self._shown != (document, step):
            self._shown = (document, step)
            self._rows = document.off_the_floor(step) if document is not None and step >= 0 else ()
            rows = self._rows
            priced = document is not None and document.has_floor
            known_gap = document.breakdown(step).step_gap_ns if document is not None and rows else 0
            columns = gap_columns(rows, max(0, known_gap), priced=priced)
            self.table.rows.show_rows(columns, len(rows), lambda i: rows[i].category)
            self.table.lay_out()
            self.causes.show_step(document, step)
            self.causes.setVisible(step >= 0 and not self._narrow)
        if view is not None:
            self.table.select_source(self._row_of(view.event))

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.table.set_theme(theme)
        self.causes.set_theme(theme)

    def copied_text(self) -> str:
        return self.table.copied_text()

    def set_narrow(self, narrow: bool) -> None:
        self._narrow = narrow
        self.causes.setVisible(self._shown[1] >= 0 and not narrow)

    def _row_of(self, event: int) -> int:
        document = self.session.document
        if event < 0 or document is None:
            return -1
        for i, row in enumerate(self._rows):
            if row.event == event:
                return i
        events = document.trace.events
        key = int(events.layer[event]), int(events.op[event])
        alike = [i for i, row in enumerate(self._rows) if (row.layer, row.op) == key]
        # Without an op, a row holds the events of one category, which is the event's own.
        return next((i for i in alike if len(alike) == 1 or self._rows[i].category == events.category[event]), -1)

    def _choose(self, row: int) -> None:
        document, view = self.session.document, self.session.view
        if document is not None and view is not None and row < len(self._rows):
            self.session.look(navigation.select_event(document, view, self._rows[row].event))
