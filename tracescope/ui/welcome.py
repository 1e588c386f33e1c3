"""The first window: synthesize a run (with its floor worked out while typing), drop a trace, or take a recent one."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from tracescope.ui.fonts import font
from tracescope.ui.messages import plain_label
from tracescope.ui.recent_list import RecentList
from tracescope.ui.settings import Recent, SynthForm
from tracescope.ui.synth_card import SynthCard
from tracescope.ui.theme import Theme


class Welcome(QScrollArea):
    """Shown while no trace is open. ``synthesize`` carries a SynthForm, ``open_path`` a Path."""

    synthesize = Signal(object)
    open_path = Signal(object)
    open_dialog = Signal()

    def __init__(self, form: SynthForm) -> None:
        super().__init__()
        self.setObjectName("welcomeArea")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.card = SynthCard(form)
        self.card.synthesize.connect(self.synthesize)
        self.recent = RecentList()
        self.drop = QFrame()
        self._build()

    def list_traces(self, recent: Sequence[Recent], samples: Sequence[Path]) -> None:
        """List recent traces and samples."""
        self.recent.fill(recent, samples)

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self.card.set_theme(theme)
        self.recent.set_theme(theme)

    def set_drop_target(self, active: bool) -> None:
        """Show that a drop would be taken."""
        self.drop.setProperty("target", active)
        self.drop.style().unpolish(self.drop)
        self.drop.style().polish(self.drop)

    def _build(self) -> None:
        page = QWidget()
        page.setObjectName("welcome")
        self.setWidget(page)
        inner = QWidget()
        inner.setMaximumWidth(1040)
        columns = QHBoxLayout()
        columns.setSpacing(32)
        columns.addWidget(self.card, 58)
        columns.addLayout(self._right_column(), 40)
        outer = QVBoxLayout(inner)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(6)
        outer.addWidget(_text("How far is each decode step from the bandwidth floor?", 24, 700))
        outer.addWidget(_text("Open a trace, or build one from a model, a machine and a batch size.", 14, 400, "text2"))
        outer.addSpacing(22)
        outer.addLayout(columns)
        outer.addSpacing(12)
        outer.addWidget(_text("Nothing leaves this machine. Press ? for all keys.", 12, 400, "muted"))
        outer.addStretch(1)
        centred = QHBoxLayout(page)
        centred.setContentsMargins(40, 56, 40, 24)
        centred.addStretch(1)
        centred.addWidget(inner, 20)
        centred.addStretch(1)

    def _right_column(self) -> QLayout:
        self.drop.setObjectName("drop")
        self.drop.setMinimumHeight(126)
        opening = QPushButton("Open…")
        opening.clicked.connect(self.open_dialog)
        inside = QVBoxLayout(self.drop)
        inside.setSpacing(6)
        centre = Qt.AlignmentFlag.AlignHCenter
        inside.addStretch(1)
        inside.addWidget(_text("Drop a trace here", 15, 600), alignment=centre)
        inside.addWidget(_text(".tscope.h5  ·  Chrome or PyTorch JSON, .gz too", 12, 400, "text2"), alignment=centre)
        inside.addWidget(opening, alignment=centre)
        inside.addStretch(1)
        column = QVBoxLayout()
        column.setSpacing(10)
        column.addWidget(self.drop)
        column.addSpacing(8)
        self.recent.chosen.connect(self.open_path)
        column.addWidget(self.recent)
        column.addStretch(1)
        return column


def _text(text: str, px: int, weight: int, role: str = "") -> QLabel:
    label = plain_label(text)
    label.setFont(font(px, weight))
    if role:
        label.setProperty("role", role)
    return label
