"""The counters under the lanes: achieved bandwidth against its roof, and energy from the left edge."""

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from tracescope.lod.pick import event_at
from tracescope.lod.planes import Plane
from tracescope.ui.paint.counters import paint_bandwidth, paint_energy
from tracescope.ui.session import Session
from tracescope.ui.settings import SettingsStore
from tracescope.ui.timeline.plot import KeyState, TimePlot
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState


class CounterView(TimePlot):
    """A counter: the event under the pointer is the one that device time is counted to then."""

    def event_under(self, position: QPointF, document: Document, view: ViewState) -> int:
        scale = self.time_scale(view)
        return event_at(document.trace, document.members, Plane.PATH, scale.time_at(position.x()), 0)


class BandwidthView(CounterView):
    """Achieved bandwidth."""

    def __init__(self, session: Session, settings: SettingsStore, keys: KeyState) -> None:
        super().__init__("Achieved bandwidth", session, settings, keys)

    def paint(self, painter: QPainter, document: Document, view: ViewState) -> None:
        paint_bandwidth(painter, QRectF(self.rect()), document, view, self.theme, self.devicePixelRatioF())


class EnergyView(CounterView):
    """Cumulative energy."""

    def __init__(self, session: Session, settings: SettingsStore, keys: KeyState) -> None:
        super().__init__("Energy from the left edge", session, settings, keys)

    def paint(self, painter: QPainter, document: Document, view: ViewState) -> None:
        paint_energy(painter, QRectF(self.rect()), document, view, self.theme, self.devicePixelRatioF())
