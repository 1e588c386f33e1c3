"""The upper part of a picture: floor bar and lanes of a whole step (or a range) on one time axis."""

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QRectF

from tracescope.core.work_table import UNKNOWN
from tracescope.lod.planes import Plane
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.canvas import CENTRE, Canvas, Style, centred_baseline
from tracescope.ui.paint.canvas import RIGHT as AT_RIGHT
from tracescope.ui.paint.geometry import TimeScale, time_scale
from tracescope.ui.paint.lanes import PlacedRow, marks_of, paint_row
from tracescope.ui.paint.step_bar import paint_as_run, paint_floor_bar, paint_floor_line
from tracescope.ui.paint.time_axis import ticks, time_origin
from tracescope.view.document import Document
from tracescope.view.lane_rows import Row, content_of, rows_of
from tracescope.view.step_facts import step_facts
from tracescope.view.view_state import ViewState

NAMES: Final = 144
"""Width of the column of names in a picture."""
_HEIGHTS: Final[dict[Plane, tuple[int, int]]] = {
    Plane.WEIGHTS: (24, 9), Plane.KV_READS: (24, 9), Plane.KV_APPENDS: (16, 9), Plane.COMPUTE: (16, 9),
    Plane.COMMUNICATION: (16, 9), Plane.SELECTION: (16, 9),
}  # fmt: skip
_RAW: Final = (16, 4)
_PATH: Final = (46, 9)
AXIS: Final = 40
"""Height of the layer numbers and the time axis under the lanes."""


@dataclass(frozen=True, slots=True)
class Block:
    """Where a part of the picture stands: from the left margin to the right one, from ``top`` down."""

    left: float
    top: float
    width: float

    @property
    def plot(self) -> QRectF:
        """The columns right of the names; its height means nothing."""
        return QRectF(self.left + NAMES, self.top, self.width - NAMES, 1)


def paint_floor(canvas: Canvas, block: Block, document: Document, view: ViewState, lanes_bottom: float) -> float:
    """The floor bar with bracket, its line running through the lanes to ``lanes_bottom``; returns the bar's bottom."""
    facts = step_facts(document, view.step)
    bar = QRectF(block.plot.left(), block.top + 30, block.plot.width(), 42)
    _name(canvas, block, bar, "floor + gap", "")
    paint_floor_bar(canvas, bar, facts, title_px=15, pitch=8)
    whole = lanes_bottom if facts.duration_ns >= (facts.floor_ns or 0) else bar.bottom()
    paint_floor_line(canvas, bar, whole, facts, gap_px=18)
    return bar.bottom()


def _name(canvas: Canvas, block: Block, band: QRectF, text: str, letter: str) -> None:
    style = Style(12, 400 if letter else 600, canvas.theme.text)
    right = block.left + NAMES - 12
    base = centred_baseline(band, style)
    if letter:
        canvas.chip(right - 15, band.center().y() - 7.5, letter, 15)
        right -= 23
    canvas.text(right, base, text, style, AT_RIGHT)


def shown_rows(document: Document, view: ViewState) -> tuple[Row, ...]:
    """The rows of a picture: the resource lanes that hold anything; plain tracks only where there is no step."""
    rows = rows_of(document, view)
    if view.step >= 0:
        return tuple(r for r in rows if r.plane not in (None, Plane.PATH) and not r.empty)
    return tuple(r for r in rows if r.title or r.lane >= 0)


def lanes_height(document: Document, view: ViewState, stretch: float = 1.0) -> float:
    """Height of all lanes and their axis."""
    if view.step < 0:
        return stretch * sum(_RAW) * len(shown_rows(document, view)) + AXIS
    path = sum(_PATH) if "path" in view.overlays else 0
    planes = (r.plane for r in shown_rows(document, view) if r.plane is not None)
    return stretch * (path + sum(sum(_HEIGHTS[plane]) for plane in planes)) + AXIS


def tracks_shown(document: Document, view: ViewState, room: float) -> tuple[int, int]:
    """How many tracks a trace without steps has, and of how many at least the first row fits into ``room``."""
    rows = shown_rows(document, view)
    fitting = rows[: max(0, int((room - AXIS) // sum(_RAW)))]
    return sum(bool(r.title) for r in rows), sum(bool(r.title) for r in fitting)


def paint_report_lanes(
    canvas: Canvas, block: Block, document: Document, view: ViewState, room: float, stretch: float = 1.0
) -> float:
    """Lanes of ``view.visible`` with layer numbers and the axis under them; returns the bottom of the lanes.

    All heights but that of the axis are multiplied by ``stretch``.
    """
    plot = block.plot
    time = time_scale(view.visible, plot)
    y = block.top
    marks = marks_of(document, view.with_(event=UNKNOWN), UNKNOWN)
    if view.step >= 0 and "path" in view.overlays:
        band = QRectF(plot.left(), y, plot.width(), round(_PATH[0] * stretch))
        _path(canvas, block, band, document, view)
        y += round(sum(_PATH) * stretch)
    limit = block.top + room - AXIS
    rows = shown_rows(document, view)
    heights = [[round(part * stretch) for part in (_HEIGHTS[r.plane] if r.plane is not None else _RAW)] for r in rows]
    bottom = min(y + sum(map(sum, heights)), limit)
    if view.step >= 0:
        _bands(canvas, QRectF(plot.left(), y - 4, plot.width(), bottom - y), time, document, view)
    for row, (height, below) in zip(rows, heights, strict=True):
        if y + height > limit:
            break
        band = QRectF(plot.left(), y, plot.width(), height)
        title = row.title if row.title.startswith("KV") else row.title[:1].lower() + row.title[1:]
        if row.plane is None:
            area = QRectF(block.left, y, NAMES - 10, height)
            canvas.text_in(area, row.title, Style(11, 400, canvas.theme.text2), AT_RIGHT)
        else:
            _name(canvas, block, band, title, row.letter)
        canvas.painter.save()
        canvas.painter.setClipRect(band)
        content = content_of(document, row, view.visible, round(plot.width()))
        paint_row(canvas, PlacedRow(row, band, band), content, document, view, time, marks)
        canvas.painter.restore()
        y += height + below
    _axis(canvas, QRectF(plot.left(), y, plot.width(), 34), time, document, view)
    return y


def _path(canvas: Canvas, block: Block, band: QRectF, document: Document, view: ViewState) -> None:
    _name(canvas, block, band, "device time", "")
    floor = "floor" in view.overlays
    if view.visible == document.step_range(view.step):
        paint_as_run(canvas, band, document, view.step, floor=floor)
        return
    row = next(r for r in rows_of(document, view) if r.plane is Plane.PATH)
    content = content_of(document, row, view.visible, round(band.width()))
    canvas.painter.save()
    canvas.painter.setClipRect(band)
    marks = marks_of(document, view.with_(event=UNKNOWN), UNKNOWN)
    inner = band.adjusted(0, 0, 0, -18)
    paint_row(canvas, PlacedRow(row, band, inner), content, document, view, time_scale(view.visible, band), marks)
    canvas.painter.restore()


def _bands(canvas: Canvas, area: QRectF, time: TimeScale, document: Document, view: ViewState) -> None:
    for span in document.layers_in_sight(view.visible):
        if span.layer % 2:
            x0, x1 = max(time.x(span.start), area.left()), min(time.x(span.end), area.right())
            canvas.fill(QRectF(x0, area.top(), x1 - x0, area.height()), canvas.theme.band)


def _axis(canvas: Canvas, area: QRectF, time: TimeScale, document: Document, view: ViewState) -> None:
    """Layer numbers over an axis with ticks; the last label is the end of what is shown."""
    theme = canvas.theme
    style = Style(11, 400, theme.text2)
    free = area.left()
    spans = document.layers_in_sight(view.visible)
    last = spans[-1].layer if spans else 0
    every = 4 if len(spans) > 10 else 1
    for span in spans:
        if span.layer != last and (span.layer % every or (every > 1 and 0 < last - span.layer < 3)):
            continue
        x = (time.x(span.start) + time.x(span.end)) / 2
        text = f"layer {span.layer}" if free == area.left() else str(span.layer)
        half = text_width(text, style.px) / 2
        x = max(x, area.left() + half)
        if x - half > free - 1 and x + half <= area.right():
            canvas.text(x, area.top() + 10, text, style, CENTRE)
            free = x + half + 8
    y = area.top() + 16
    canvas.hline(area.left(), area.right(), y, theme.text2)
    origin = time_origin(document, view)
    for at, label in ticks(view.visible, area.width(), origin):
        x = time.x(at)
        canvas.vline(x, y, y + 5, theme.text2)
        half = text_width(label, style.px) / 2
        x = min(max(x, area.left() + half), area.right() - half)
        canvas.text(x, y + 18, label, style, CENTRE)
