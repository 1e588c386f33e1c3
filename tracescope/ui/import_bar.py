"""The bar that offers a model and a machine for a trace that names none; choosing one imports it again."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QToolButton, QWidget

from tracescope.ui.messages import plain_label

UNKNOWN = ""


class ImportBar(QWidget):
    """Two choices and a button under the toolbar; ``chosen`` carries the preset names, empty where left open."""

    chosen = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("messageBar")
        self.setAccessibleName("Model and machine of this trace")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._text = plain_label(name="messageText")
        self.model = QComboBox()
        self.model.setAccessibleName("Model of this trace")
        self.hardware = QComboBox()
        self.hardware.setAccessibleName("Machine of this trace")
        self.button = QPushButton("Use and import again")
        self.button.clicked.connect(self._choose)
        close = QToolButton()
        close.setText("×")
        close.setAccessibleName("Leave model and machine unknown")
        close.clicked.connect(self.hide)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 4, 8, 4)
        layout.setSpacing(8)
        layout.addWidget(self._text)
        layout.addWidget(plain_label("Model"))
        layout.addWidget(self.model)
        layout.addWidget(plain_label("Machine"))
        layout.addWidget(self.hardware)
        layout.addWidget(self.button)
        layout.addStretch(1)
        layout.addWidget(close)
        for box in (self.model, self.hardware):
            box.currentIndexChanged.connect(self._enable)
        self.hide()

    def fill(self, models: list[tuple[str, str]], machines: list[tuple[str, str]]) -> None:
        """List the presets as (title, name)."""
        for box, entries in ((self.model, models), (self.hardware, machines)):
            box.clear()
            box.addItem("not known", UNKNOWN)
            for title, name in entries:
                box.addItem(title, name)

    def offer(self, *, model: str, hardware: str) -> None:
        """Show the bar with what is known so far (preset names, empty where unknown)."""
        for box, name in ((self.model, model), (self.hardware, hardware)):
            box.setCurrentIndex(max(0, box.findData(name)))
        missing = [word for word, name in (("model", model), ("machine", hardware)) if not name]
        if missing:
            self._text.setText(f"The file names no {' and no '.join(missing)}: floors that need it are unknown.")
        else:
            self._text.setText("What this trace is priced with:")
        self._enable()
        self.show()

    def _enable(self) -> None:
        self.button.setEnabled(bool(self.model.currentData() or self.hardware.currentData()))

    def _choose(self) -> None:
        self.hide()
        self.chosen.emit(self.model.currentData() or UNKNOWN, self.hardware.currentData() or UNKNOWN)
