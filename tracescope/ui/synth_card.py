"""The form "Synthesize a run": a model, a machine, a workload, and the floor of one step worked out while typing."""

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QGridLayout, QHBoxLayout, QLabel, QPushButton, QSpinBox, QVBoxLayout

from tracescope.core.errors import TraceError
from tracescope.core.units import count, one_of_ranks, plural, rate, short_source, size
from tracescope.floor.dtypes import KV_DTYPES, WEIGHT_NAMES
from tracescope.models import hardware_presets, model_presets
from tracescope.synth.timing import PROFILES
from tracescope.ui.asked import Asked, asked_of
from tracescope.ui.floor_bar import FloorBar
from tracescope.ui.fonts import font
from tracescope.ui.messages import plain_label
from tracescope.ui.settings import SynthForm
from tracescope.ui.style import SPIN_INSET, in_role
from tracescope.ui.theme import Theme
from tracescope.view.preview import Preview, preview

AS_THE_MODEL_SAYS = "as the model says"
"""The first choice of a dtype, which leaves it to the model's own config."""

_PROFILE_NOTES = {
    "ideal": "every operation exactly on its floor",
    "realistic": "typical shares of bandwidth and launch gaps",
    "calibrated": "fitted to public measurements of kernels",
}


class SynthCard(QFrame):
    """``synthesize`` carries a SynthForm. What cannot be synthesized is told in the form and cannot be asked for."""

    synthesize = Signal(object)

    def __init__(self, form: SynthForm) -> None:
        super().__init__()
        self.setObjectName("card")
        self.model = _choice("Model")
        self.weights = _choice("Weights")
        self.kv = _choice("KV cache")
        self.hardware = _choice("Machine")
        self.ranks = _spin("Ranks", 1, 1024)
        self.batch = _spin("Batch", 1, 1 << 16)
        self.context = _spin("Context", 0, 10_000_000)
        self.steps = _spin("Steps", 1, 100_000)
        self.profile = _choice("Profile")
        self._notes: dict[str, QLabel] = {}
        self._whose = plain_label("Floor of one step")
        self.headline = plain_label()
        self.said = plain_label(name="memoryLine")
        self.floor_bar = FloorBar()
        self.button = QPushButton("Synthesize")
        self._about = plain_label()
        self._preview: Preview | None = None
        self._fill_choices()
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
            ranks=self.ranks.value(),
            weights=self.weights.currentData(),
            kv=self.kv.currentData(),
        )

    def set_form(self, form: SynthForm) -> None:
        """Fill the form; a choice that no longer exists becomes the first one."""
        fields = (*self._choices(), *self._spins())
        blockers = [QSignalBlocker(field) for field in fields]
        for box, chosen in zip(
            self._choices(), (form.model, form.weights, form.kv, form.hardware, form.profile), strict=True
        ):
            box.setCurrentIndex(max(0, box.findData(chosen)))
        for spin, value in zip(self._spins(), (form.ranks, form.batch, form.context, form.steps), strict=True):
            spin.setValue(value)
        del blockers
        self._update()

    def set_theme(self, theme: Theme) -> None:
        """Draw with another palette."""
        self.floor_bar.set_theme(theme)

    @property
    def shown_preview(self) -> Preview | None:
        """The arithmetic on screen, None where the form cannot be worked out."""
        return self._preview

    def _choices(self) -> tuple[QComboBox, ...]:
        return self.model, self.weights, self.kv, self.hardware, self.profile

    def _spins(self) -> tuple[QSpinBox, ...]:
        return self.ranks, self.batch, self.context, self.steps

    def _fill_choices(self) -> None:
        for preset in model_presets():
            self.model.addItem(preset.name, preset.name)
        for machine in hardware_presets():
            self.hardware.addItem(machine.title, machine.name)
        for box, names in ((self.weights, WEIGHT_NAMES), (self.kv, tuple(KV_DTYPES))):
            box.addItem(AS_THE_MODEL_SAYS, "")
            for name in names:
                box.addItem(name, name)
        for profile in PROFILES:
            self.profile.addItem(profile, profile)

    def _build(self) -> None:
        head = QHBoxLayout()
        self._whose.setFont(font(12, 600))
        head.addWidget(self._whose)
        head.addStretch(1)
        self.headline.setFont(font(12, 600))
        head.addWidget(self.headline)
        self.said.setFont(font(12, 400))
        self.said.setWordWrap(True)
        self._about.setFont(font(12, 400))
        self._about.setProperty("role", "muted")
        self.button.setObjectName("primary")
        self.button.clicked.connect(lambda: self.synthesize.emit(self.form()))
        foot = QHBoxLayout()
        foot.addWidget(self.button)
        foot.addSpacing(8)
        foot.addWidget(self._about)
        foot.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 16, 20, 16)
        layout.setSpacing(8)
        title = plain_label("Synthesize a run")
        title.setFont(font(15, 700))
        layout.addWidget(title)
        layout.addSpacing(2)
        layout.addLayout(self._fields())
        layout.addSpacing(6)
        layout.addLayout(head)
        layout.addWidget(self.floor_bar)
        layout.addWidget(self.said)
        layout.addSpacing(6)
        layout.addLayout(foot)

    def _fields(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        for i, field in enumerate(
            (
                self.model,
                self.weights,
                self.kv,
                self.hardware,
                self.ranks,
                self.batch,
                self.context,
                self.steps,
                self.profile,
            )
        ):
            title = field.accessibleName()
            field.setFixedSize(180, 26)
            label, note = plain_label(title), plain_label()
            for text, role in ((label, "text2"), (note, "muted")):
                text.setFont(font(12, 400))
                text.setProperty("role", role)
            label.setBuddy(field)
            label.setFixedWidth(76)
            self._notes[title] = note
            grid.addWidget(label, i, 0)
            grid.addWidget(field, i, 1)
            grid.addWidget(note, i, 2)
        grid.setColumnStretch(2, 1)
        for box in self._choices():
            box.currentIndexChanged.connect(self._update)
        for spin in self._spins():
            spin.valueChanged.connect(self._update)
        return grid

    def _update(self) -> None:
        form = self.form()
        try:
            asked = asked_of(form)
            worked = preview(asked.model, asked.hardware, asked.basis, asked.workload)
        except TraceError as error:
            self._refuse(error)
            return
        self._preview = worked
        self.button.setEnabled(True)
        self._say(asked, worked)
        of = f", {one_of_ranks(worked.ranks)}" if worked.ranks > 1 else ""
        self._whose.setText(f"Floor of one step{of}")
        self.headline.setText(worked.headline)
        self.said.setText("\n".join((worked.memory_line, *worked.notes)))
        in_role(self.said, "text2")
        self._about.setText(plural(worked.ops * form.steps, "event"))
        self.floor_bar.show_preview(worked)

    def _say(self, asked: Asked, worked: Preview) -> None:
        """What each field stands for, beside it."""
        model, basis = asked.model, asked.basis
        experts = f", {model.experts.experts} experts" if model.experts is not None else ""
        self._notes["Model"].setText(f"{model.layers} layers, {model.heads} heads, {model.kv_heads} of KV{experts}")
        self._notes["Weights"].setText(f"{model.weights}: {size(worked.weight_bytes)} read per step")
        self._notes["KV cache"].setText(f"{model.kv}: {count(worked.kv_per_token)} B a token")
        self._notes["Machine"].setText(f"{rate(basis.bandwidth_bytes_per_s)}, {short_source(basis.bandwidth_source)}")
        split = f"tensor parallel, over {rate(basis.link_bytes_per_s)} a direction"
        self._notes["Ranks"].setText(split if worked.ranks > 1 else "one device, the whole model")
        self._notes["Batch"].setText("requests, one token each per step")
        self._notes["Context"].setText("tokens cached per request at step 0")
        self._notes["Profile"].setText(_PROFILE_NOTES.get(self.profile.currentText(), ""))

    def _refuse(self, error: TraceError) -> None:
        """One message, and no number that belongs to another form."""
        self._preview = None
        for note in self._notes.values():
            note.setText("")
        self._whose.setText("Floor of one step")
        self.headline.setText("")
        self._about.setText("")
        self.said.setText("\n".join(error.lines()))
        in_role(self.said, "warning")
        self.floor_bar.show_preview(None)
        self.button.setEnabled(False)


def _choice(name: str) -> QComboBox:
    box = QComboBox()
    box.setAccessibleName(name)
    box.setMaxVisibleItems(16)
    return box


def _spin(name: str, low: int, high: int) -> QSpinBox:
    spin = QSpinBox()
    spin.setRange(low, high)
    spin.setGroupSeparatorShown(True)
    spin.setAccessibleName(name)
    spin.lineEdit().setTextMargins(*SPIN_INSET)
    return spin
