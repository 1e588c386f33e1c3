"""What the import saw, kept, left out and inferred: nothing is lost without a row here."""

from dataclasses import dataclass

from PySide6.QtWidgets import QVBoxLayout

from tracescope.core.report import ImportReport
from tracescope.core.report_words import in_words
from tracescope.core.trace import Trace
from tracescope.core.units import count, duration, percent
from tracescope.ui.panels.panel import PanelWidget
from tracescope.ui.panels.table_model import Draw, ScreenColumn, plain
from tracescope.ui.panels.table_view import PanelTable
from tracescope.ui.session import Session
from tracescope.ui.theme import Theme


@dataclass(frozen=True, slots=True)
class Finding:
    """One row: what sort of statement it is, the statement, and its number or reason."""

    sort: str
    what: str
    value: str


def findings(trace: Trace) -> tuple[Finding, ...]:
    """The import report of a trace as rows, in the order in which a reader doubts."""
    meta, report = trace.meta, trace.meta.report
    source = meta.source
    rows = []
    if source.name:
        rows.append(Finding("source", source.name, f"{count(source.bytes)} bytes, read as {source.importer}"))
        rows.append(Finding("source", "sha256", source.sha256))
        rows += _counters(report)
    else:
        rows.append(Finding("source", "synthesized", f"profile {meta.profile}, seed {meta.seed}"))
    if meta.resolution_ns > 1:
        rows.append(Finding("clock", "the source counts in steps of", duration(meta.resolution_ns)))
    for inference in report.inferred:
        rows.append(Finding("inferred", inference.what, f"{inference.rule} ({percent(inference.confidence)} sure)"))
    rows += [Finding("assumed", text, "") for text in meta.assumptions]
    rows += [Finding("note", text, "") for text in meta.notes]
    return tuple(rows)


def _counters(report: ImportReport) -> list[Finding]:
    rows = [
        Finding("count", "elements seen", count(report.seen)),
        Finding("count", "imported", count(report.imported)),
        Finding("count", "dropped", count(sum(report.dropped.values()))),
    ]
    rows += [Finding("dropped", in_words(reason), count(n)) for reason, n in report.dropped.items()]
    rows += [Finding("flagged", in_words(reason), count(n)) for reason, n in report.flagged.items()]
    if report.truncated_at_byte is not None:
        rows.append(Finding("dropped", "the file is cut short at byte", count(report.truncated_at_byte)))
    rows.append(Finding("count", "device time that no rule matched", duration(report.unclassified_ns)))
    return rows


class DataQualityPanel(PanelWidget):
    """The findings as a table."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.table = PanelTable("Data quality")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.table)
        session.document_changed.connect(self.refresh)

    def refresh(self) -> None:
        """Show the report of the open trace."""
        document = self.session.document
        rows = () if document is None else findings(document.trace)
        columns = (
            ScreenColumn("", lambda i: rows[i].sort, plain, draw=Draw.TEXT, width=80),
            ScreenColumn("what", lambda i: rows[i].what, plain, draw=Draw.TEXT, width=470),
            ScreenColumn("value or reason", lambda i: rows[i].value, plain, draw=Draw.TEXT, width=470),
        )
        self.table.rows.show_rows(columns, len(rows))
        self.table.lay_out()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.table.set_theme(theme)

    def copied_text(self) -> str:
        return self.table.copied_text()
