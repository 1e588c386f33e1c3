"""One dock a file, listed in PANELS."""

from typing import Final

from PySide6.QtCore import Qt

from tracescope.ui.panels.constraints import ConstraintsPanel
from tracescope.ui.panels.data_quality import DataQualityPanel
from tracescope.ui.panels.inspector import InspectorPanel
from tracescope.ui.panels.layers import LayersPanel
from tracescope.ui.panels.off_the_floor import OffTheFloorPanel
from tracescope.ui.panels.panel import Panel
from tracescope.ui.panels.steps import StepsPanel

_RIGHT, _BOTTOM = Qt.DockWidgetArea.RightDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea

PANELS: Final[tuple[Panel, ...]] = (
    Panel("inspector", "Inspector", _RIGHT, InspectorPanel),
    Panel("constraints", "Three constraints", _RIGHT, ConstraintsPanel),
    Panel("off_the_floor", "Off the floor", _BOTTOM, OffTheFloorPanel),
    Panel("steps", "Steps", _BOTTOM, StepsPanel),
    Panel("layers", "Layers", _BOTTOM, LayersPanel),
    Panel("data_quality", "Data quality", _BOTTOM, DataQualityPanel),
)
"""Every panel; a new one is one file and one entry here."""
