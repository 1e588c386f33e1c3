"""The ``layers`` listing: op by layer, summed over the decode steps or for the current one."""

from typing import Any

import numpy as np
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout

from tracescope.analysis.layers import layers_table
from tracescope.analysis.table import Table
from tracescope.core.category import Category, Op
from tracescope.core.units import MISSING, count, micros, plural, size
from tracescope.ui.messages import plain_label
from tracescope.ui.panels.panel import NO_STEPS, PanelWidget
from tracescope.ui.panels.table_model import Draw, ScreenColumn, plain
from tracescope.ui.panels.table_view import PanelTable
from tracescope.ui.session import Session
from tracescope.ui.theme import Theme
from tracescope.view import navigation
from tracescope.view.floor_words import floor_micros, gap_micros, share_of_floor, share_text

_CATEGORY_OF_LABEL = {category.label: category for category in Category}


def layers_columns(table: Table) -> tuple[ScreenColumn, ...]:
    """The columns on screen; their cells are those of the ``layers`` listing."""

    def cells(key: str) -> Any:
        return table.column(key).cell

    def named(i: int) -> Any:
        return cells("op")(i) or cells("category")(i)

    def intensity(value: float | None) -> str:
        return MISSING if value is None else f"{value:,.1f}"

    def floor(i: int) -> int | None:
        return None if table.summary["floor_ops_ns"] is None else cells("floor_ns")(i)

    def gap(i: int) -> int | None:
        return None if floor(i) is None else cells("gap_ns")(i)

    def share(i: int) -> float | None:
        return share_of_floor(floor(i), cells("exposed_ns")(i) - cells("unknown_ns")(i))

    return (
        ScreenColumn("op", named, plain, draw=Draw.CHIP, width=130),
        ScreenColumn("layer", cells("layer"), lambda v: MISSING if v is None else str(v), width=48),
        ScreenColumn("events", cells("events"), count, width=60),
        ScreenColumn("took", cells("exposed_ns"), micros, "µs", width=86),
        ScreenColumn("floor", floor, floor_micros, "µs", width=86),
        ScreenColumn("gap", gap, gap_micros, "µs", Draw.STRONG, width=76),
        ScreenColumn("", lambda i: max(0, gap(i) or 0), plain, draw=Draw.BAR),
        ScreenColumn("of floor", share, share_text, width=66),
        ScreenColumn("weights", cells("weight_read_bytes"), size, width=76),
        ScreenColumn("KV read", cells("kv_read_bytes"), size, width=76),
        ScreenColumn("intensity", cells("intensity"), intensity, "FLOP/B", width=110),
    )


class LayersPanel(PanelWidget):
    """The table and a switch between the current step and all decode steps; choosing a row goes to that layer."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.table = PanelTable("Operations by layer")
        self.table.says_empty = NO_STEPS
        self.one_step = QCheckBox("current step only")
        self.one_step.toggled.connect(self.refresh)
        self._summary = plain_label()
        self._summary.setProperty("role", "text2")
        head = QHBoxLayout()
        head.setContentsMargins(8, 2, 12, 0)
        head.addWidget(self.one_step)
        head.addStretch(1)
        head.addWidget(self._summary)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(self.table)
        self.table.row_chosen.connect(self._choose)
        session.document_changed.connect(self.refresh)
        session.view_changed.connect(self.refresh)
        self._shown: tuple[object, int | None] | None = None
        self._table: Table | None = None

    def refresh(self) -> None:
        """Show the trace or the step; worked out when the panel is looked at."""
        document, view = self.session.document, self.session.view
        if not self.isVisible():
            return
        step = view.step if self.one_step.isChecked() and view is not None and view.step >= 0 else None
        if (document, step) == self._shown:
            self._mark()
            return
        self._shown = (document, step)
        self._table = None
        self._summary.setText("")
        if document is None or not document.has_steps:
            self.table.rows.show_rows((), 0)
            return
        table = document.remembered("layers_table", step, lambda: layers_table(document.trace, document.basis, step))
        self._table = table
        counted = table.summary["steps_counted"]
        scope = f"step {step}" if step is not None else f"{plural(counted, 'decode step')} together"
        self._summary.setText(f"{plural(len(table), 'row')} · {scope} · idle {micros(table.summary['idle_ns'])} µs")
        labels = np.asarray(table.column("category").values)
        self.table.rows.show_rows(layers_columns(table), len(table), lambda i: _CATEGORY_OF_LABEL[str(labels[i])])
        self.table.lay_out()
        self._mark()

    def _mark(self) -> None:
        """Select the row of the selected event, as the other tables do."""
        view = self.session.view
        self.table.select_source(-1 if view is None else self._row_of(view.event))

    def _row_of(self, event: int) -> int:
        document, table = self.session.document, self._table
        if event < 0 or document is None or table is None:
            return -1
        events = document.trace.events
        layer = int(events.layer[event])
        wanted = (
            None if layer < 0 else layer,
            Op(int(events.op[event])).label,
            Category(int(events.category[event])).label,
        )
        layers, ops, categories = (table.column(name).cell for name in ("layer", "op", "category"))
        return next((i for i in range(len(table)) if (layers(i), ops(i), categories(i)) == wanted), -1)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.table.set_theme(theme)

    def copied_text(self) -> str:
        return self.table.copied_text()

    def _choose(self, row: int) -> None:
        document, view, table = self.session.document, self.session.view, self._table
        if document is None or view is None or table is None or view.step < 0:
            return
        cells = table.row(row)
        layer = cells["layer"]
        key = -1 if layer is None else layer, cells["op"], cells["category"]
        for entry in document.off_the_floor(view.step):
            if (entry.layer, entry.op.label, entry.category.label) == key:
                self.session.look(navigation.select_event(document, view, entry.event))
                return
        if isinstance(layer, int):
            self.session.look(navigation.show_layer(document, view, layer))

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self.refresh()
