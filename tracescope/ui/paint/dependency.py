"""What the selected event waited for: an elbow from the end of its predecessor to its bar, with a word for the edge."""

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from tracescope.core.category import EdgeKind, Op
from tracescope.lod.planes import PLANES, Plane
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.paint.geometry import TimeScale
from tracescope.ui.theme import colour
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

_WORDS: Final[dict[Op, str]] = {
    Op.KV_APPEND: "KV ready",
    Op.ROPE: "query ready",
    Op.QKV: "query ready",
    Op.SAMPLE: "token",
    Op.LAUNCH: "launched",
    Op.DOWN: "layer output",
    Op.ALL_REDUCE: "layer output",
    Op.ATTENTION: "attention output",
}
_MOST: Final = 2
_KEYS: Final = ("path", "W", "K", "A", "C", "X", "S")


def incoming(document: Document, event: int) -> list[tuple[int, str]]:
    """The events that ``event`` waited for and the word for each edge, nearest (latest end) first."""
    edges = document.trace.dependencies
    rows = edges.into(event)
    found = []
    for source, kind in zip(edges.source[rows].tolist(), edges.kind[rows].tolist(), strict=True):
        if kind == EdgeKind.RESOURCE:
            continue
        op = Op(int(document.trace.events.op[source]))
        word = "token" if kind == EdgeKind.PREVIOUS_TOKEN else _WORDS.get(op, document.title_of(source))
        found.append((end_of(document, source), source, word))
    return [(source, word) for _, source, word in sorted(found, reverse=True)]


def end_of(document: Document, event: int) -> int:
    """The end of one event, ns; the column of all ends is not stored."""
    events = document.trace.events
    return int(events.start[event]) + int(events.duration[event])


def paint_dependencies(
    canvas: Canvas, bands: dict[str, QRectF], time: TimeScale, document: Document, view: ViewState
) -> None:
    """One hop into the selected event, between the lanes in ``bands`` (bar bands by row key)."""
    if view.event < 0:
        return
    target = _band(document, bands, view.event)
    begin = int(document.trace.events.start[view.event])
    if target is None or not view.visible.contains(begin):
        return
    for source, word in incoming(document, view.event)[:_MOST]:
        origin = _band(document, bands, source)
        end = end_of(document, source)
        if origin is None or origin is target or not view.visible.start <= end <= view.visible.end:
            continue
        _elbow(canvas, origin, target, time.x(end), time.x(begin), word)


def _band(document: Document, bands: dict[str, QRectF], event: int) -> QRectF | None:
    """The band of the lane of the event's own kind, of which the elbow starts or ends."""
    events = document.trace.events
    row = slice(event, event + 1)
    columns = events.work[row], events.roles[row], events.category[row]
    inside = [p for p in PLANES if p is not Plane.PATH and document.members.contains(p, *columns)[0]]
    order = (Plane.KV_READS, Plane.KV_APPENDS, Plane.WEIGHTS, Plane.COMMUNICATION, Plane.SELECTION, Plane.COMPUTE)
    for plane in order:
        if plane in inside and _KEYS[plane] in bands:
            return bands[_KEYS[plane]]
    return None


def _elbow(canvas: Canvas, origin: QRectF, target: QRectF, x0: float, x1: float, word: str) -> None:
    theme = canvas.theme
    below = origin.center().y() > target.center().y()
    y0 = origin.center().y()
    y1 = target.bottom() + 7 if below else target.top() - 3
    x1 = max(x1, x0) + 6
    path = QPainterPath(QPointF(x0, y0))
    path.lineTo(x1, y0)
    path.lineTo(x1, y1)
    canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    pen = QPen(colour(theme.accent))
    pen.setWidthF(2)
    canvas.painter.setPen(pen)
    canvas.painter.setBrush(colour(theme.accent))
    canvas.painter.drawEllipse(QPointF(x0, y0), 2.5, 2.5)
    canvas.painter.setBrush(Qt.BrushStyle.NoBrush)
    canvas.painter.drawPath(path)
    canvas.begin()
    tip = -1 if below else 1
    points = [QPointF(x1, y1), QPointF(x1 - 4, y1 - 6 * tip), QPointF(x1 + 4, y1 - 6 * tip)]
    canvas.polygon(points, colour(theme.accent))
    style = Style(10, 600, theme.on_accent)
    width = text_width(word, style.px, style.weight) + 10
    canvas.tag(x1 + 8 + width / 2, (y0 + y1) / 2 - 7.5, word, theme.accent, style)
