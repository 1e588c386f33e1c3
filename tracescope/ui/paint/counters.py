"""Counter tracks on the time axis of the lanes: achieved bandwidth under its roof, energy from the left edge."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from tracescope.analysis.board_power import drawn_over_time
from tracescope.core import units
from tracescope.core.hardware import Basis
from tracescope.lod.fold import Bars
from tracescope.lod.planes import Plane
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.bar_style import LETTERS
from tracescope.ui.paint.canvas import RIGHT as AT_RIGHT
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.paint.folded import paint_stack
from tracescope.ui.paint.geometry import PAD, TimeScale, split, time_scale
from tracescope.ui.paint.hatch import ROOF, STATIC
from tracescope.ui.paint.lanes import paint_ground
from tracescope.ui.paint.pixels import Fill, Hatched, Pixels, argb, draw_pixels, hatched_area, last_over
from tracescope.ui.theme import Theme, mixed
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

F64 = NDArray[np.float64]

PALE: Final = 0.42
MOST_BARS: Final = 400
"""With more events in sight than this the line would be a thicket: columns are drawn instead."""
_ROOM: Final = 8
_MEMORY: Final = 3
"""So many of the planes of what is moved are memory; the last is compute."""


def paint_bandwidth(
    painter: QPainter, rect: QRectF, document: Document, view: ViewState, theme: Theme, scale: float
) -> None:
    """Achieved bandwidth of each event against the roof; hatched between them."""
    canvas = Canvas(painter, theme, scale)
    roof = document.basis.bandwidth_bytes_per_s
    tens, unit = (1e9, "GB/s") if roof and roof < 1e12 else (1e12, "TB/s")
    plot, time = _begin(canvas, rect, document, view, "Bandwidth", f"achieved, {unit}")
    right = split(rect).right.left() + 8
    if not roof:
        canvas.text(plot.left() + 8, rect.center().y() + 4, "no roof: bandwidth unknown", Style(10, 400, theme.muted))
        return
    area = QRectF(plot.left(), rect.top() + _ROOM, plot.width(), rect.height() - _ROOM - 4)
    top = roof * 1.08
    _scale_labels(canvas, area, top / tens)
    painter.save()
    painter.setClipRect(plot)
    content = document.planes(view.visible, round(plot.width()))[Plane.PATH]
    if isinstance(content, Bars) and len(content) <= MOST_BARS:
        _exact(canvas, area, content, document, time, top)
    else:
        _folded(canvas, area, document, view, time, top)
    canvas.hline(plot.left(), plot.right(), area.bottom() - roof / top * area.height() - 1, theme.ink, 2)
    painter.restore()
    canvas.text(right, rect.top() + 17, units.rate(roof), Style(11, 600, theme.text))
    if view.step >= 0:
        moved, took = int(document.series.memory_bytes[view.step]), int(document.series.duration[view.step])
        if moved >= 0 and took:
            mean = moved * 1e9 / took / tens
            canvas.text(right, rect.top() + 33, f"{mean:.2f} in step", Style(10, 400, theme.text2))
    _value_at_playhead(canvas, area, document, view, time, top, (tens, unit))
    _finish(canvas, rect, plot)


def _begin(
    canvas: Canvas, rect: QRectF, document: Document, view: ViewState, title: str, unit: str
) -> tuple[QRectF, TimeScale]:
    canvas.begin()
    parts = split(rect)
    canvas.fill(parts.gutter, canvas.theme.panel)
    canvas.fill(parts.right, canvas.theme.panel)
    plot = parts.plot
    time = time_scale(view.visible, plot)
    paint_ground(canvas, plot, time, document, view)
    canvas.text(rect.left() + PAD, rect.top() + 19, title, Style(12, 600, canvas.theme.text))
    if rect.height() > 40:
        canvas.text(rect.left() + PAD, rect.top() + 34, unit, Style(10, 400, canvas.theme.text2))
    return plot, time


def _finish(canvas: Canvas, rect: QRectF, plot: QRectF) -> None:
    canvas.hline(rect.left(), rect.right(), rect.bottom() - 1, canvas.theme.grid)
    canvas.vline(plot.left(), rect.top(), rect.bottom(), canvas.theme.border)
    canvas.vline(plot.right(), rect.top(), rect.bottom(), canvas.theme.border)


def _scale_labels(canvas: Canvas, area: QRectF, top: float) -> None:
    """At most four round values at the left of the plot."""
    if top <= 0:
        return
    raw = top / max(1, min(4, int(area.height() / 12.5)))
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(f * power for f in (1, 2, 5, 10) if f * power >= raw * 0.999)
    decimals = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    style = Style(10, 400, canvas.theme.muted)
    for n in range(int(top / step + 1e-9) + 1):
        y = area.bottom() - n * step / top * area.height()
        canvas.text(area.left() - 6, y + 3, f"{n * step:.{decimals}f}", style, AT_RIGHT)


def _exact(canvas: Canvas, area: QRectF, bars: Bars, document: Document, time: TimeScale, top: float) -> None:
    """One step of the line per event; events whose bytes are not known leave the line out."""
    theme, scale = canvas.theme, canvas.scale
    moved = document.trace.work.memory_bytes[document.trace.events.work[bars.event]]
    whole = np.maximum(document.trace.events.duration[bars.event], 1)
    rate = np.where(moved >= 0, moved * 1e9 / whole, -1.0)
    left, upper = round(area.left() * scale), round(area.top() * scale)
    width, height = max(1, round(area.width() * scale)), round(area.bottom() * scale) - upper
    low = np.rint(time.px(bars.start) * scale).astype(np.int64) - left
    high = np.maximum(np.rint(time.px(bars.end) * scale).astype(np.int64) - left, low + 1)

    def row(bytes_per_s: NDArray[np.float64]) -> NDArray[np.int64]:
        y = area.bottom() - np.minimum(np.maximum(bytes_per_s, 0) / top, 1) * area.height()
        return np.rint(y * scale).astype(np.int64) - upper

    owner = last_over(low, high, width, np.zeros(len(low), np.int64))
    running = np.flatnonzero(owner >= 0)
    level = np.full(width, height)
    level[running] = row(rate)[owner[running]]
    roof = int(row(np.array([document.basis.bandwidth_bytes_per_s or 0.0]))[0])
    pixels = np.zeros((height + canvas.line, width), np.uint32)
    pixels[roof:height] = hatched_area(Hatched(ROOF, 5), theme, scale, height - roof, width)
    unknown = running[rate[owner[running]] < 0]
    pixels[roof:height, unknown] = argb(theme.panel)
    pale = np.array([argb(mixed(theme.kinds[letter].fill, theme.panel, PALE)) for letter in LETTERS], np.uint32)
    below = np.arange(height)[:, None] >= level[running]
    pixels[:height, running] = np.where(below, pale[bars.kind[owner[running]]], pixels[:height, running])
    _trace_line(pixels, level, height, argb(theme.ink), canvas.line)
    draw_pixels(canvas, pixels, left / scale, upper / scale)


def _trace_line(pixels: Pixels, level: NDArray[np.int64], bottom: int, ink: np.uint32, thick: int) -> None:
    """A line along the ``level`` of each column, with uprights where it changes; it begins and ends at ``bottom``."""
    columns = np.arange(len(level))
    for offset in range(thick):
        pixels[np.minimum(level + offset, len(pixels) - 1), columns] = ink
    before = np.concatenate([[bottom], level[:-1]])
    changed = np.flatnonzero(before != level)
    upper, lower = np.minimum(before, level)[changed], np.maximum(before, level)[changed]
    rows = np.arange(len(pixels))[:, None]
    on = (rows >= upper) & (rows <= lower)
    for offset in range(thick):
        at = np.minimum(changed + offset, len(level) - 1)
        pixels[:, at] = np.where(on, ink, pixels[:, at])


def _folded(canvas: Canvas, area: QRectF, document: Document, view: ViewState, time: TimeScale, top: float) -> None:
    """Mean bandwidth of each column by what is moved, every byte spread over the time of its event.

    Where the bytes are not known the column is blank: room under the roof would say that they are few.
    """
    theme = canvas.theme
    share = (document.basis.bandwidth_bytes_per_s or 0) / top
    width = round(time.width)
    moved = document.moved(view.visible, width).share[:_MEMORY]
    edges = np.cumsum(moved, axis=0) * share
    fills: list[Fill] = [mixed(theme.kinds[letter].fill, theme.panel, PALE) for letter in "WKA"]
    # No line along the levels here: between neighbouring columns it would be a thicket.
    unknown = document.unknown_columns(view.visible, width)
    edges[:, unknown] = 0
    roof = np.where(unknown, 0, np.maximum(edges[-1], share))
    paint_stack(canvas, area, np.vstack([edges, roof]), [*fills, Hatched(ROOF, 5)], keep=False)


def _value_at_playhead(
    canvas: Canvas, area: QRectF, document: Document, view: ViewState, time: TimeScale, top: float,
    unit: tuple[float, str],
) -> None:  # fmt: skip
    if view.playhead is None or not view.visible.contains(view.playhead):
        return
    width = round(time.width)
    column = min(int((view.playhead - view.visible.start) * width // view.visible.duration), width - 1)
    content = document.planes(view.visible, width)[Plane.PATH]
    roof = document.basis.bandwidth_bytes_per_s or 0
    if isinstance(content, Bars):
        inside = np.flatnonzero((content.start <= view.playhead) & (content.end > view.playhead))
        event = int(content.event[inside[0]]) if len(inside) else -1
        moved = document.bytes_of(event) if event >= 0 else 0
        if moved is None:
            return
        value = moved * 1e9 / max(1, int(document.trace.events.duration[event])) if event >= 0 else 0.0
    else:
        if document.unknown_columns(view.visible, width)[column]:
            return
        value = float(document.moved(view.visible, width).share[:_MEMORY, column].sum()) * roof
    y = area.bottom() - min(value / top, 1) * area.height()
    dot_with_tag(canvas, area, time.x(view.playhead), y, f"{value / unit[0]:.2f} {unit[1]}")


def dot_with_tag(canvas: Canvas, area: QRectF, x: float, y: float, text: str) -> None:
    """A value on the playhead: a dot on the line and a tag beside it, inside the plot."""
    theme = canvas.theme
    canvas.outline(QRectF(x - 3, y - 3, 6, 6), theme.panel, 1, 3, theme.accent)
    style = Style(10, 600, theme.text)
    half = text_width(text, style.px, style.weight) / 2 + 5
    centre = x + 8 + half if x + 16 + 2 * half < area.right() else x - 8 - half
    top = min(max(y + 8, area.top()), area.bottom() - 16)
    canvas.tag(centre, top, text, theme.panel, style, theme.accent)


def energy_columns(document: Document, view: ViewState, basis: Basis, width: int) -> F64:
    """Joules of each column by source, float64[4, width]: weights, KV, compute, static, as the fit has them.

    Bytes and FLOPs that are not known are not in it. What the board cannot draw of a step is in no column of it.
    """
    energy = basis.energy
    assert energy is not None
    over_time = document.remembered("drawn", 0, lambda: drawn_over_time(document.trace.steps, document.series, basis))
    seconds = view.visible.duration * 1e-9 / width
    roof = (basis.bandwidth_bytes_per_s or 0) * seconds
    peak = (basis.peak_flops_per_s or 0) * seconds
    per_byte, per_flop = energy.memory_pj_per_bit[1] * 8e-12, energy.flop_pj[1] * 1e-12
    weights, read, appended, computed = document.moved(view.visible, width).share
    edges = np.linspace(view.visible.start, view.visible.end, width + 1)
    drawn = over_time.between(edges)
    low, high = document.trace.span
    inside = np.diff(np.clip(edges, low, high)) * 1e-9
    return np.stack(
        [
            weights * roof * per_byte * drawn.moved,
            (read + appended) * roof * per_byte * drawn.moved,
            computed * peak * per_flop * drawn.moved,
            inside * energy.static_w[1] * drawn.static,
        ]
    )


def paint_energy(
    painter: QPainter, rect: QRectF, document: Document, view: ViewState, theme: Theme, scale: float
) -> None:
    """Energy by source, summed from the left edge of the view so that it can be read at any zoom."""
    canvas = Canvas(painter, theme, scale)
    width = max(1, round(split(rect).plot.width()))
    known = document.basis.energy is not None and document.has_floor
    joules = energy_columns(document, view, document.basis, width) if known else np.zeros((4, width))
    joules *= document.ranks  # they generate the tokens together
    factor, unit = units.energy_unit(float(joules.sum()))
    plot, time = _begin(canvas, rect, document, view, "Energy", f"{unit} from left edge")
    if document.ranks > 1 and rect.height() > 54:
        said = f"all {document.ranks:,} ranks"
        canvas.text(rect.left() + PAD, rect.top() + 48, said, Style(10, 400, theme.text2))
    if document.basis.energy is None or not document.has_floor:
        canvas.text(
            plot.left() + 8, rect.center().y() + 4, "no energy model for this machine", Style(10, 400, theme.muted)
        )
        _finish(canvas, rect, plot)
        return
    unknown = document.unknown_columns(view.visible, width)
    total = np.cumsum(joules, axis=1)
    stacked = np.cumsum(total, axis=0)
    top = float(stacked[-1, -1]) * 1.12 or 1.0
    area = QRectF(plot.left(), rect.top() + _ROOM, plot.width(), rect.height() - _ROOM - 4)
    _scale_labels(canvas, area, top / factor)
    painter.save()
    painter.setClipRect(plot)
    fills: list[Fill] = [theme.kinds[letter].fill for letter in "WKC"]
    paint_stack(canvas, area, np.where(unknown, 0, stacked / top), [*fills, Hatched(STATIC, 5)], keep=False)
    names = (("weights", "W"), ("KV", "K"), ("compute", "C"), ("static", ""))
    for row, (name, letter) in enumerate(names):
        height = float(total[row, -1]) / top * area.height()
        y = area.bottom() - (float(stacked[row, -1]) - float(total[row, -1]) / 2) / top * area.height()
        if height >= 12:
            text = f"{name} {total[row, -1] / factor:.{3 if unit == 'J' else 1}f}"
            style = Style(10, 600, theme.kinds[letter].label if letter else theme.text)
            if letter:
                canvas.text(plot.right() - 6, y + 3.5, text, style, AT_RIGHT)
            else:
                canvas.halo_text(plot.right() - 6, y + 3.5, text, style, AT_RIGHT)
    painter.restore()
    left = split(rect).right.left() + 8
    canvas.text(left, rect.top() + 18, units.energy(float(stacked[-1, -1])), Style(11, 600, theme.text))
    fit = document.basis.energy
    facts = ("known part only" if unknown.any() else "modelled", f"± {units.percent(fit.error)}", fit.word)
    for line, words in enumerate(filter(None, facts)):
        canvas.text(left, rect.top() + 32 + 13 * line, words, Style(10, 400, theme.text2))
    if view.playhead is not None and view.visible.contains(view.playhead):
        column = min(int((view.playhead - view.visible.start) * width // view.visible.duration), width - 1)
        value = float(stacked[-1, column])
        y = area.bottom() - value / top * area.height()
        dot_with_tag(canvas, area, time.x(view.playhead), y, units.energy(value))
    _finish(canvas, rect, plot)
