"""The lanes under the time axis: device time, resource lanes, plain tracks; and the playhead over them."""

from typing import Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, QSize, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QScrollBar, QSizePolicy

from tracescope.core.timerange import TimeRange
from tracescope.lod.fold import ids_in_sight
from tracescope.lod.pick import event_at
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.geometry import NORMAL, Sizes
from tracescope.ui.paint.lanes import PlacedRow, paint_lanes, place_rows, row_height
from tracescope.ui.paint.time_axis import paint_playhead, paint_time_axis
from tracescope.ui.session import Session
from tracescope.ui.settings import SettingsStore
from tracescope.ui.timeline.plot import KeyState, TimePlot
from tracescope.view import navigation
from tracescope.view.document import Document
from tracescope.view.lane_rows import rows_of
from tracescope.view.view_state import ViewState

PICK_PX: Final = 3
_MOST_EDGES: Final = 2000
_BAR_PX: Final = 6


class LanesView(TimePlot):
    """Time axis on top, then as many rows as fit; the wheel over the names scrolls them."""

    def __init__(self, session: Session, settings: SettingsStore, keys: KeyState) -> None:
        super().__init__("Lanes", session, settings, keys)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._sizes = NORMAL
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._bar.setAccessibleName("Scroll the tracks")
        self._bar.valueChanged.connect(self._scroll_to)
        self._bar.setObjectName("tracks")
        self._bar.hide()
        self.scrolled = self.scroll_rows
        session.view_changed.connect(self._follow)
        session.hover_changed.connect(self.update)

    def set_sizes(self, sizes: Sizes) -> None:
        """Other heights of axis and rows."""
        self._sizes = sizes
        self._follow()

    def rows_rect(self) -> QRectF:
        """Where rows may be: everything under the axis."""
        return QRectF(0, self._sizes.axis, self.width(), max(0, self.height() - self._sizes.axis))

    def whole_rows_rect(self, document: Document, view: ViewState) -> QRectF:
        """The part of it that whole rows fill: a row cut through its text says nothing."""
        area = self.rows_rect()
        placed = place_rows(document, view, area, self._sizes)
        whole = [row.rect.bottom() for row in placed if row.rect.bottom() <= area.bottom() + 0.5]
        if whole and len(whole) < len(placed):
            area.setBottom(whole[-1])
        return area

    def whole_rows_height(self, limit: float) -> int:
        """The height of the axis and as many of the rows, from the top, as fit into ``limit`` px."""
        document, view = self.session.document, self.session.view
        total = self._sizes.axis
        if document is None or view is None:
            return total
        for row in rows_of(document, view)[view.first_track :]:
            height = row_height(row, self._sizes)
            if total + height > limit:
                break
            total += height
        return total

    def placed(self, document: Document, view: ViewState) -> tuple[PlacedRow, ...]:
        """The rows on screen."""
        return place_rows(document, view, self.whole_rows_rect(document, view), self._sizes)

    def scroll_rows(self, rows: int) -> None:
        """Move by rows, not past the last one that still fills the view."""
        self._bar.setValue(self._bar.value() + rows)

    def paint(self, painter: QPainter, document: Document, view: ViewState) -> None:
        ratio = self.devicePixelRatioF()
        axis = QRectF(0, 0, self.width(), self._sizes.axis)
        hovered = self.session.hovered
        rows = self.whole_rows_rect(document, view)
        Canvas(painter, self.theme, ratio).fill(self.rows_rect(), self.theme.panel)
        paint_lanes(painter, rows, document, view, self.theme, ratio, sizes=self._sizes, hover=hovered)
        paint_time_axis(painter, axis, document, view, self.theme, ratio)
        paint_playhead(painter, axis, self.height(), document, view, self.theme, ratio)

    def event_under(self, position: QPointF, document: Document, view: ViewState) -> int:
        for placed in self.placed(document, view):
            if placed.rect.top() <= position.y() < placed.rect.bottom():
                row = placed.row.plane if placed.row.plane is not None else placed.row.lane
                scale = self.time_scale(view)
                time = scale.time_at(position.x())
                return event_at(document.trace, document.members, row, time, scale.tolerance(PICK_PX))
        return -1

    def edges_near(self, time: int, tolerance: int, document: Document, view: ViewState) -> list[int]:
        trace = document.trace
        around = TimeRange(time - tolerance, time + tolerance)
        ids = ids_in_sight(trace, np.flatnonzero(trace.on_device), around, _MOST_EDGES)
        if ids is None:
            return []
        start = trace.events.start[ids]
        edges = np.concatenate([start, start + trace.events.duration[ids]])
        return [int(edge) for edge in edges[np.abs(edges - time) <= tolerance]]

    def pressed_elsewhere(self, position: QPointF, document: Document, view: ViewState) -> bool:
        """Nothing but the plot can be clicked, except the layer heads, which lie inside it."""
        del position, document, view
        return False

    def _layer_head_at(self, position: QPointF, document: Document, view: ViewState) -> int:
        if position.y() > self._sizes.axis or view.step < 0:
            return -1
        time = self.time_scale(view).time_at(position.x())
        for span in document.layers_in_sight(view.visible):
            if span.start <= time < span.end:
                return span.layer
        return -1

    def _finish(self, drag: object, position: QPointF, document: Document) -> None:
        view = self.session.view
        moved = getattr(drag, "moved", False)
        layer = -1 if view is None or moved else self._layer_head_at(position, document, view)
        if layer >= 0 and view is not None:
            self.session.look(navigation.show_layer(document, view, layer))
        else:
            super()._finish(drag, position, document)  # type: ignore[arg-type]

    def _follow(self) -> None:
        """Keep scroll bar and view together."""
        document, view = self.session.document, self.session.view
        if document is None or view is None:
            self._bar.hide()
            return
        rows = rows_of(document, view)
        heights = [row_height(row, self._sizes) for row in rows]
        lanes = sum(height for row, height in zip(rows, heights, strict=True) if row.plane is not None)
        self.setMinimumHeight(self._sizes.axis + max(lanes, self._sizes.path))
        room, last = self.rows_rect().height(), len(heights)
        while last > 0 and sum(heights[last - 1 :]) <= room:
            last -= 1
        with QSignalBlocker(self._bar):
            self._bar.setRange(0, last)
            self._bar.setValue(view.first_track)
        self._bar.setVisible(last > 0)
        if view.first_track > last:
            self.session.glide(view.with_(first_track=last))
        self.update()

    def _scroll_to(self, row: int) -> None:
        view = self.session.view
        if view is not None:
            self.session.glide(view.with_(first_track=row))

    def sizeHint(self) -> QSize:
        return QSize(800, self._sizes.axis + self._sizes.path)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        rows = self.rows_rect()
        self._bar.setGeometry(self.width() - _BAR_PX, round(rows.top()), _BAR_PX, round(rows.height()))
        self._follow()
