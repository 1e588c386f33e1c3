"""The lanes: device time, resource lanes and plain tracks of what is in sight, with names and figures beside them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from tracescope.core import units
from tracescope.core.work_table import UNKNOWN
from tracescope.lod.fold import Bars, Content
from tracescope.lod.pick import nearest_in_plane
from tracescope.lod.planes import Plane
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.bar_style import BarStyle, Marks, place
from tracescope.ui.paint.bars import gap_labels, paint_bars
from tracescope.ui.paint.canvas import RIGHT as AT_RIGHT
from tracescope.ui.paint.canvas import Canvas, Style, centred_baseline, layer
from tracescope.ui.paint.dependency import end_of, incoming, paint_dependencies
from tracescope.ui.paint.folded import paint_columns
from tracescope.ui.paint.geometry import COLLAPSED, RAW_ROW, Sizes, TimeScale, split, time_scale
from tracescope.ui.paint.gutter import paint_figures, paint_names
from tracescope.ui.paint.hatch import GAP
from tracescope.ui.paint.pixels import argb, draw_line
from tracescope.ui.paint.plain_rows import paint_plain_lanes
from tracescope.ui.paint.time_axis import ticks, time_origin
from tracescope.ui.theme import Theme
from tracescope.view.document import Document
from tracescope.view.lane_labels import labels_of
from tracescope.view.lane_rows import Row, content_of, figures, rows_of
from tracescope.view.view_state import ViewState

SHORTEST_NAMED_GAP_NS: Final = 1000
GAP_FROM_PX: Final = 14
SHORTEST_BESIDE_PX: Final = 20
"""No amount of bytes and the room around it are narrower."""


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row and where it stands; ``bar`` is the band in which its bars are drawn."""

    row: Row
    rect: QRectF
    bar: QRectF


def row_height(row: Row, sizes: Sizes) -> int:
    """Height of a row in px."""
    if row.plane is None:
        return RAW_ROW
    if row.empty:
        return 0 if row.plane is Plane.COMMUNICATION and not sizes.empty_communication else COLLAPSED
    return {
        Plane.PATH: sizes.path, Plane.WEIGHTS: sizes.weights, Plane.KV_READS: sizes.kv_reads,
        Plane.KV_APPENDS: sizes.kv_appends, Plane.COMPUTE: sizes.compute,
        Plane.COMMUNICATION: sizes.communication, Plane.SELECTION: sizes.selection,
    }[row.plane]  # fmt: skip


def bar_band(row: Row, rect: QRectF) -> QRectF:
    """The band of a row's bars: the path leaves room for the gap below, other rows for the rail."""
    height = rect.height()
    if row.plane is Plane.PATH:
        return QRectF(rect.left(), round(rect.top() + height * 0.12), rect.width(), round(height * 0.47))
    if row.plane is None:
        return QRectF(rect.left(), rect.top() + 2, rect.width(), height - 4)
    share = 0.54 if row.plane in (Plane.KV_APPENDS, Plane.SELECTION) else 0.46
    bar = round(height * share)
    return QRectF(rect.left(), round(rect.top() + (height - bar - 3) / 2), rect.width(), bar)


def place_rows(document: Document, view: ViewState, rect: QRectF, sizes: Sizes) -> tuple[PlacedRow, ...]:
    """The rows that are (partly) inside ``rect``, the first ``view.first_track`` scrolled away."""
    placed = []
    y = rect.top()
    for row in rows_of(document, view)[view.first_track :]:
        height = row_height(row, sizes)
        if y >= rect.bottom():
            break
        if height:
            area = QRectF(rect.left(), y, rect.width(), height)
            placed.append(PlacedRow(row, area, bar_band(row, area)))
            y += height
    return tuple(placed)


def paint_lanes(
    painter: QPainter, rect: QRectF, document: Document, view: ViewState, theme: Theme, scale: float, *, sizes: Sizes,
    hover: int = UNKNOWN,
) -> None:  # fmt: skip
    """All rows in ``rect``; ``hover`` is the event under the pointer."""
    canvas = Canvas(painter, theme, scale)
    canvas.begin()
    parts = split(rect)
    time = time_scale(view.visible, parts.plot)
    rows = place_rows(document, view, rect, sizes)
    painter.save()
    painter.setClipRect(rect)
    canvas.fill(parts.right, theme.panel)
    _gutter(canvas, rect, document, rows)
    paint_ground(canvas, parts.plot, time, document, view)
    marks = marks_of(document, view, hover)
    planes = [placed for placed in rows if placed.row.plane is not None]
    tracks = rows[len(planes) :]
    for placed in planes:
        content = content_of(document, placed.row, view.visible, round(parts.plot.width()))
        painter.save()
        painter.setClipRect(QRectF(parts.plot.left(), placed.rect.top(), parts.plot.width(), placed.rect.height()))
        if placed.row.empty:
            base = centred_baseline(placed.rect, Style(10, 400, theme.muted))
            canvas.text(parts.plot.left() + 8, base, placed.row.empty, Style(10, 400, theme.muted))
        else:
            paint_row(canvas, placed, content, document, view, time, marks)
        painter.restore()
        paint_figures(canvas, placed.row, placed.rect, figures(document, view, placed.row, content))
        canvas.hline(parts.plot.left(), rect.right(), placed.rect.bottom() - 1, theme.grid)
    for placed in tracks:
        canvas.hline(parts.plot.left(), rect.right(), placed.rect.bottom() - 1, theme.grid)
    painter.setClipRect(parts.plot)
    if tracks:
        paint_plain_lanes(canvas, [p.row.lane for p in tracks], [p.bar for p in tracks], document, view, time, marks)
    paint_dependencies(canvas, {p.row.key: p.bar for p in rows}, time, document, view)
    painter.restore()
    canvas.vline(parts.plot.left(), rect.top(), rect.bottom(), theme.border)
    canvas.vline(parts.plot.right(), rect.top(), rect.bottom(), theme.border)


def marks_of(document: Document, view: ViewState, hover: int) -> Marks:
    """Selection, hover, search and the tolerance of the trace's clock as marks on bars."""
    matches = document.matching(view.search) if view.search else None
    return Marks(view.event, hover, matches, max(1, document.trace.meta.resolution_ns))


def paint_ground(canvas: Canvas, plot: QRectF, time: TimeScale, document: Document, view: ViewState) -> None:
    """The panel, bands of odd layers, a dragged range and grid lines at the ticks: for lanes and counters alike.

    All of it is the same at every height, so it is one line of pixels that is spread over the plot.
    """
    theme, scale = canvas.theme, canvas.scale
    area = canvas.snapped(plot)
    left, width = round(area.left() * scale), max(1, round(area.width() * scale))
    line = np.full(width, argb(theme.panel), np.uint32)

    def fill(x0: float, x1: float, hex_colour: str) -> None:
        low = round(x0 * scale) - left
        line[max(low, 0) : max(round(x1 * scale) - left, low + 1, 0)] = argb(hex_colour)

    for span in document.layers_in_sight(view.visible):
        if span.layer % 2:
            fill(max(time.x(span.start), plot.left()), min(time.x(span.end), plot.right()), theme.band)
    if view.selection is not None and view.selection.overlaps(view.visible.start, view.visible.end):
        x0, x1 = max(time.x(view.selection.start), plot.left()), min(time.x(view.selection.end), plot.right())
        fill(x0, x1, theme.wedge)
        for x in (x0, x1):
            fill(canvas.snap(x - 0.5), canvas.snap(x - 0.5) + 1, theme.accent)
    for at, _ in ticks(view.visible, plot.width(), time_origin(document, view)):
        x = canvas.snap(time.x(at) - 0.5)
        fill(x, x + 1, theme.grid)
    draw_line(canvas, line, area)


def _gutter(canvas: Canvas, rect: QRectF, document: Document, rows: tuple[PlacedRow, ...]) -> None:
    """The names of the rows, kept as one picture: they stay while what is beside them moves."""
    width = split(rect).gutter.width()
    key = (tuple((p.row, p.rect.top() - rect.top(), p.rect.height()) for p in rows), rect.height(), canvas.scale,
           canvas.theme.name)  # fmt: skip

    def paint(inner: Canvas) -> None:
        inner.fill(QRectF(0, 0, width, rect.height()), inner.theme.panel)
        for placed in rows:
            area = QRectF(0, placed.rect.top() - rect.top(), rect.width(), placed.rect.height())
            if placed.row.plane is Plane.PATH:
                inner.fill(QRectF(0, area.top(), width, area.height()), inner.theme.head)
            paint_names(inner, placed.row, area)
            inner.hline(0, width, area.bottom() - 1, inner.theme.grid)

    whole = QRectF(0, 0, width, rect.height())
    picture = document.pictured("gutter", key, lambda: layer(canvas, whole, paint))
    canvas.painter.drawImage(QPointF(canvas.snap(rect.left()), canvas.snap(rect.top())), picture)


def paint_row(
    canvas: Canvas, placed: PlacedRow, content: Content, document: Document, view: ViewState, time: TimeScale,
    marks: Marks,
) -> None:  # fmt: skip
    """The bars (or folded columns) of one row."""
    row = placed.row
    floor = "floor" in view.overlays and document.has_floor
    plane = row.plane
    if not isinstance(content, Bars):
        plot = QRectF(time.left, placed.bar.top(), time.width, placed.bar.height())
        idle = _idle_columns(document, view, content.share.shape[1]) if plane is Plane.PATH else None
        # Without a bandwidth nothing is known to be above a floor; plain tracks have none to show.
        letter = row.letter if plane is not None else ""
        pale = plane is Plane.COMPUTE or plane is None
        paint_columns(
            canvas, plot, content, floor=floor and plane is not None, letter=letter, idle=idle, pale=pale or not floor
        )
        return
    if plane is Plane.PATH:
        _paint_gaps(canvas, placed.bar, content, document, time)
    style = BarStyle(
        pitch=6 if plane is Plane.PATH else 5,
        floor="floor" in view.overlays,
        rail=plane in (Plane.PATH, Plane.WEIGHTS, Plane.KV_READS),
        pale=plane is Plane.COMPUTE,
        ticks=plane is not Plane.PATH,
        plain=plane is None and not (document.has_steps and document.trace.on_device[row.lane]),
        label_px=12 if plane is Plane.PATH else 11 if plane is not None else 10,
        labels=labels_of(document, row),
    )
    paint_bars(canvas, placed.bar, content, time, style, marks)
    if plane is Plane.PATH and floor:
        _paint_bar_gaps(canvas, placed, content, document, time)
    elif plane is Plane.KV_APPENDS:
        _labels_beside(canvas, placed.bar, content, document, view, time)
    elif not len(content) and plane is not None:
        _nearest(canvas, placed, document, view, time)


def _paint_gaps(canvas: Canvas, band: QRectF, bars: Bars, document: Document, time: TimeScale) -> None:
    """Time of a step in which nothing ran, as ink hatch leaning the other way."""
    start, end = gaps_between(document, bars, time)
    x0 = np.rint(time.px(start) * canvas.scale) / canvas.scale
    x1 = np.rint(time.px(end) * canvas.scale) / canvas.scale
    for left, right in zip(x0.tolist(), x1.tolist(), strict=True):
        if right > left:
            canvas.hatch(QRectF(left, band.top(), right - left, band.height()), GAP, 5)


def gaps_between(document: Document, bars: Bars, time: TimeScale) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end of the idle time inside steps around the path pieces in sight, int64 ns."""
    low, high = time.visible.start, time.visible.end
    steps = document.trace.steps
    inside = document.steps_in_sight(time.visible)
    if not len(inside):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    running = np.maximum.accumulate(bars.end) if len(bars) else bars.end
    start = np.concatenate([[low], running])
    end = np.concatenate([bars.start, [high]])
    found0, found1 = [], []
    for step in inside:
        begin, stop = int(steps.start[step]), int(steps.start[step] + steps.duration[step])
        a, b = np.maximum(start, begin), np.minimum(end, stop)
        keep = b > a
        found0.append(a[keep])
        found1.append(b[keep])
    return np.concatenate(found0), np.concatenate(found1)


def _idle_columns(document: Document, view: ViewState, width: int) -> NDArray[np.bool_]:
    """Which columns lie inside a step, so that idle time in them is a gap."""
    steps = document.trace.steps
    if not len(steps):
        return np.zeros(width, bool)
    visible = view.visible
    middle = visible.start + ((2 * np.arange(width, dtype=np.int64) + 1) * (visible.duration / (2 * width))).astype(
        np.int64
    )
    step = np.searchsorted(steps.start, middle, side="right") - 1
    return (step >= 0) & (middle < document.step_ends[np.maximum(step, 0)])


def _paint_bar_gaps(canvas: Canvas, placed: PlacedRow, bars: Bars, document: Document, time: TimeScale) -> None:
    """What each bar took above its floor, right-aligned under its end, largest first; gaps and KV reads in bold."""
    pixels = place(bars, time, canvas.scale)
    gap = bars.end - bars.start - bars.floor
    wide = np.flatnonzero((pixels.width >= GAP_FROM_PX) & bars.known & (gap >= 50))
    found = [
        (took, right, units.signed_micros(took), kind == 1)
        for took, right, kind in zip(
            gap[wide].tolist(), pixels.x1[wide].tolist(), bars.kind[wide].tolist(), strict=True
        )
    ]
    start, end = gaps_between(document, bars, time)
    named = (end - start >= max(SHORTEST_NAMED_GAP_NS, 3 / time.px_per_ns)) & (start >= time.visible.start)
    named &= end <= time.visible.end
    for begin, stop in zip(start[named].tolist(), end[named].tolist(), strict=True):
        found.append((stop - begin, time.x(stop), f"gap {units.micros(stop - begin)}", True))
    found.sort(key=lambda item: (-item[0], item[1]))
    limits = time.left + 2, time.left + time.width - 1
    baseline = placed.bar.bottom() + (placed.rect.bottom() - placed.bar.bottom()) / 2 + 7
    gap_labels(canvas, baseline, [item[1:] for item in found], limits)


def _labels_beside(
    canvas: Canvas, band: QRectF, bars: Bars, document: Document, view: ViewState, time: TimeScale
) -> None:
    """Appends are too short to carry a text: their bytes stand beside them where there is room."""
    work, events = document.trace.work, document.trace.events
    pixels = place(bars, time, canvas.scale)
    style = Style(10, 400, canvas.theme.text2)
    limit = time.left + time.width
    ends = np.append(pixels.x0[1:], np.inf)
    if 2 * int((ends - pixels.x1 >= SHORTEST_BESIDE_PX).sum()) < len(bars):
        return
    waited_for = {source: word for source, word in incoming(document, view.event)} if view.event >= 0 else {}
    said = []
    for row in range(len(bars)):
        count = int(work.kv_append[events.work[bars.event[row]]])
        text = units.size(count) if count >= 0 else "bytes unknown"
        left = float(pixels.x1[row]) + 5
        word = waited_for.get(int(bars.event[row]))
        if word is not None:  # the arrow and its tag stand here
            left += text_width(word, 10, 600) + 28
        if left + text_width(text, 10) < min(float(ends[row]) - 5, limit) and pixels.x0[row] >= time.left:
            said.append((left, text))
    if 2 * len(said) >= len(bars):  # where only a few fit, a lonely one would look special
        for left, text in said:
            canvas.text(left, centred_baseline(band, style), text, style)


def nearest_outside(document: Document, view: ViewState, plane: Plane) -> tuple[int, int]:
    """The last event of a plane before the view and the first after it, within the current step; -1 where none."""
    if view.step < 0:
        return UNKNOWN, UNKNOWN
    within = document.step_range(view.step)
    trace, members = document.trace, document.members
    known = document.remembered("nearest", plane, dict[int, tuple[int, int, int, int]])
    low, high, before, after = known.get(view.step, (0, 0, UNKNOWN, UNKNOWN))
    if low <= view.visible.start and view.visible.end <= high:
        return before, after
    before = nearest_in_plane(trace, members, plane, view.visible.start, forward=False, within=within)
    after = nearest_in_plane(trace, members, plane, view.visible.end, forward=True, within=within)
    # Between the two nothing of the plane runs: any view in there has the same neighbours.
    low = end_of(document, before) if before >= 0 else within.start
    high = int(trace.events.start[after]) if after >= 0 else within.end
    known.clear()
    known[view.step] = low, high, before, after
    return before, after


def _nearest(canvas: Canvas, placed: PlacedRow, document: Document, view: ViewState, time: TimeScale) -> None:
    """Nothing of this lane is in sight: arrows to the nearest events of the step, with their times."""
    if placed.row.plane is None:
        return
    before, after = nearest_outside(document, view, placed.row.plane)
    events = document.trace.events
    origin = time_origin(document, view)
    style = Style(10, 400, canvas.theme.text2)
    base = centred_baseline(placed.rect, style)
    y = placed.rect.center().y()
    if before >= 0:
        ended = int(events.start[before] + events.duration[before]) - origin
        canvas.arrow(time.left + 5, y, canvas.theme.muted, -1)
        canvas.text(time.left + 15, base, f"{document.title_of(before)} ended {units.duration(ended)}", style)
    if after >= 0:
        begins = int(events.start[after]) - origin
        right = time.left + time.width
        canvas.arrow(right - 5, y, canvas.theme.muted, 1)
        canvas.text(right - 15, base, f"{document.title_of(after)} at {units.duration(begins)}", style, AT_RIGHT)
