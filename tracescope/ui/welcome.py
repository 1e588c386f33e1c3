"""The first window: synthesize a run (with its floor worked out while typing), drop a trace, or take a recent one."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from tracescope.core.errors import TraceError
from tracescope.core.model import Workload
from tracescope.core.units import count, plural, rate, short_source, size
from tracescope.models import hardware_presets, load_hardware, load_model, make_basis, model_presets
from tracescope.synth.timing import PROFILES
from tracescope.ui.floor_bar import FloorBar
from tracescope.ui.fonts import font
from tracescope.ui.messages import plain_label
from tracescope.ui.recent_list import RecentList
from tracescope.ui.settings import Recent, SynthForm
from tracescope.ui.style import SPIN_INSET
from tracescope.ui.theme import Theme
from tracescope.view.preview import Preview, preview


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
        self.model = QComboBox()
        self.hardware = QComboBox()
        self.batch = _spin("Batch", 1, 1 << 16)
        self.context = _spin("Context", 0, 10_000_000)
        self.steps = _spin("Steps", 1, 100_000)
        self.profile = QComboBox()
        self._notes: dict[str, QLabel] = {}
        self._headline = plain_label()
        self._memory = plain_label(name="memoryLine")
        self.floor_bar = FloorBar()
        self.button = QPushButton("Synthesize")
        self._about = plain_label()
        self.recent = RecentList()
        self.drop = QFrame()
        self._preview: Preview | None = None
        self._build()
        self.set_form(form)

    def form(self) -> SynthForm:
        """What the form says now."""
        return SynthForm(
            model=self.model.currentData(),
            hardware=self.hardware.currentData(),
            batch=self.batch.value(),
            context=self.context.value(),
            steps=self.steps.value(),
            profile=self.profile.currentText(),
        )

    def set_form(self, form: SynthForm) -> None:
        """Fill the form; a preset that no longer exists becomes the first one."""
        widgets = (self.model, self.hardware, self.batch, self.context, self.steps, self.profile)
        blockers = [QSignalBlocker(widget) for widget in widgets]
        self.model.setCurrentIndex(max(0, self.model.findData(form.model)))
        self.hardware.setCurrentIndex(max(0, self.hardware.findData(form.hardware)))
        self.batch.setValue(form.batch)
        self.context.setValue(form.context)
        self.steps.setValue(form.steps)
        self.profile.setCurrentIndex(max(0, self.profile.findText(form.profile)))
        del blockers
        self._update()

    def list_traces(self, recent: Sequence[Recent], samples: Sequence[Path]) -> None:
        """List recent traces and samples."""
        self.recent.fill(recent, samples)

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self.floor_bar.set_theme(theme)
        self.recent.set_theme(theme)

    def set_drop_target(self, active: bool) -> None:
        """Show that a drop would be taken."""
        self.drop.setProperty("target", active)
        self.drop.style().unpolish(self.drop)
        self.drop.style().polish(self.drop)

    @property
    def shown_preview(self) -> Preview | None:
        """The arithmetic on screen, None where the form cannot be worked out."""
        return self._preview

    def _build(self) -> None:
        page = QWidget()
        page.setObjectName("welcome")
        self.setWidget(page)
        inner = QWidget()
        inner.setMaximumWidth(1040)
        columns = QHBoxLayout()
        columns.setSpacing(32)
        columns.addWidget(self._form_card(), 58)
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

    def _form_card(self) -> QFrame:
        for preset in model_presets():
            self.model.addItem(preset.name, preset.name)
        for machine in hardware_presets():
            self.hardware.addItem(machine.title, machine.name)
        self.profile.addItems(list(PROFILES))
        self.model.setAccessibleName("Model")
        self.hardware.setAccessibleName("Machine")
        self.profile.setAccessibleName("Profile")
        card = QFrame()
        card.setObjectName("card")
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(10)
        rows: tuple[tuple[str, QWidget], ...] = (
            ("Model", self.model),
            ("Machine", self.hardware),
            ("Batch", self.batch),
            ("Context", self.context),
            ("Steps", self.steps),
            ("Profile", self.profile),
        )
        for i, (title, widget) in enumerate(rows):
            widget.setFixedSize(180, 26)
            label = _text(title, 12, 400, "text2")
            label.setBuddy(widget)
            label.setFixedWidth(76)
            note = _text("", 12, 400, "muted")
            self._notes[title] = note
            grid.addWidget(label, i, 0)
            grid.addWidget(widget, i, 1)
            grid.addWidget(note, i, 2)
        grid.setColumnStretch(2, 1)
        for box in (self.model, self.hardware, self.profile):
            box.currentIndexChanged.connect(self._update)
        for spin in (self.batch, self.context, self.steps):
            spin.valueChanged.connect(self._update)
        self._headline.setFont(font(12, 600))
        head = QHBoxLayout()
        head.addWidget(_text("Floor of one step", 12, 600))
        head.addStretch(1)
        head.addWidget(self._headline)
        self._memory.setFont(font(12, 400))
        self._memory.setProperty("role", "text2")
        self._about.setFont(font(12, 400))
        self._about.setProperty("role", "muted")
        self.button.setObjectName("primary")
        self.button.clicked.connect(lambda: self.synthesize.emit(self.form()))
        foot = QHBoxLayout()
        foot.addWidget(self.button)
        foot.addSpacing(8)
        foot.addWidget(self._about)
        foot.addStretch(1)
        layout = QVBoxLayout(card)
        layout.setContentsMargins(20, 16, 20, 16)
        layout.setSpacing(8)
        layout.addWidget(_text("Synthesize a run", 15, 700))
        layout.addSpacing(6)
        layout.addLayout(grid)
        layout.addSpacing(8)
        layout.addLayout(head)
        layout.addWidget(self.floor_bar)
        layout.addWidget(self._memory)
        layout.addSpacing(10)
        layout.addLayout(foot)
        return card

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

    def _update(self) -> None:
        form = self.form()
        try:
            model, hardware = load_model(form.model), load_hardware(form.hardware)
            basis = make_basis(hardware)
            workload = Workload(batch=form.batch, context=form.context)
            worked = preview(model, hardware, basis, workload)
        except TraceError as error:
            self._preview = None
            self._headline.setText("")
            self._memory.setText(error.lines()[0])
            self.floor_bar.show_preview(None)
            self.button.setEnabled(False)
            return
        self._preview = worked
        self.button.setEnabled(True)
        self._notes["Model"].setText(f"{size(worked.weight_bytes)} read per step, {model.weights}")
        self._notes["Machine"].setText(f"{rate(basis.bandwidth_bytes_per_s)}, {short_source(basis.bandwidth_source)}")
        self._notes["Batch"].setText("requests, one token each per step")
        self._notes["Context"].setText(f"tokens cached, {count(worked.kv_per_token)} B of KV each")
        self._notes["Profile"].setText(_PROFILE_NOTES.get(form.profile, ""))
        self._headline.setText(worked.headline)
        self._memory.setText(worked.memory_line)
        self._about.setText(plural(worked.ops * form.steps, "event"))
        self.floor_bar.show_preview(worked)


_PROFILE_NOTES = {
    "ideal": "every operation exactly on its floor",
    "realistic": "typical shares of bandwidth and launch gaps",
    "calibrated": "fitted to public measurements of kernels",
}


def _spin(name: str, low: int, high: int) -> QSpinBox:
    spin = QSpinBox()
    spin.setRange(low, high)
    spin.setGroupSeparatorShown(True)
    spin.setAccessibleName(name)
    spin.lineEdit().setTextMargins(*SPIN_INSET)
    return spin


def _text(text: str, px: int, weight: int, role: str = "") -> QLabel:
    label = plain_label(text)
    label.setFont(font(px, weight))
    if role:
        label.setProperty("role", role)
    return label
