"""Layer heads with their floors, and the ticks of the time axis."""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from tracescope.core import units
from tracescope.core.timerange import TimeRange
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.canvas import CENTRE, Canvas, Style
from tracescope.ui.paint.geometry import HEADS, PAD, TimeScale, split, time_scale
from tracescope.ui.paint.hatch import INK, hatch_pixels
from tracescope.ui.paint.pixels import argb, draw_pixels
from tracescope.ui.theme import Theme
from tracescope.view.document import Document
from tracescope.view.step_layers import LayerSpan
from tracescope.view.view_state import ViewState

LAYER_RAIL: Final = 3
NARROWEST_WORD_PX: Final = 4
"""No number of a layer fits into less."""
TICK_PX: Final = 110
"""Labels are about this far apart."""
_UNITS: Final = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))


def tick_step(visible: TimeRange, width: float) -> int:
    """The distance of labelled ticks in ns: 1, 2 or 5 times a power of ten, at least 1."""
    wanted = max(1, int(visible.duration * TICK_PX / max(width, 1)))
    power = int(10 ** (len(str(wanted)) - 1))
    for factor in (1, 2, 5, 10):
        if factor * power >= wanted:
            return factor * power
    return 10 * power


@lru_cache(maxsize=16)
def ticks(visible: TimeRange, width: float, origin: int) -> tuple[tuple[int, str], ...]:
    """Times (ns) and labels of the ticks in sight, counted from ``origin``; labels of one axis are distinct.

    All labels of an axis have one unit, that of the time farthest from ``origin``.
    """
    step = tick_step(visible, width)
    farthest = max(abs(visible.start - origin), abs(visible.end - origin), step)
    first = -((origin - visible.start) // step)
    found = []
    for n in range(first, first + int(width / 20) + 3):
        time = origin + n * step
        if time > visible.end:
            break
        found.append((time, _label(n * step, step, farthest)))
    return tuple(found)


def _label(offset: int, step: int, farthest: int) -> str:
    """The offset in the largest unit of which ``farthest`` is at least one, with the decimals that the step needs."""
    divisor, unit = next((u for u in reversed(_UNITS) if farthest >= u[0]), _UNITS[0])
    decimals = 0
    while decimals < 9 and step * 10**decimals % divisor:
        decimals += 1
    whole, rest = divmod(abs(offset), divisor)
    sign = "−" if offset < 0 else ""
    fraction = f".{rest * 10**decimals // divisor:0{decimals}d}" if decimals else ""
    return f"{sign}{whole:,}{fraction} {unit}"


def time_origin(document: Document, view: ViewState) -> int:
    """What times on screen are counted from: the start of the current step, or of the trace."""
    return document.step_range(view.step).start if view.step >= 0 else document.whole_range.start


def since(document: Document, view: ViewState, time: int) -> str:
    """A time as shown on screen, such as ``3.288 ms``."""
    return units.duration(time - time_origin(document, view))


def paint_time_axis(
    painter: QPainter, rect: QRectF, document: Document, view: ViewState, theme: Theme, scale: float
) -> None:
    """Layer heads over tick labels, with the names of both at the left."""
    canvas = Canvas(painter, theme, scale)
    canvas.begin()
    parts = split(rect)
    canvas.fill(rect, theme.panel)
    time = time_scale(view.visible, parts.plot)
    quiet = Style(10, 400, theme.muted)
    base = rect.bottom() - 5
    word = "time since step start" if view.step >= 0 else "time since start"
    canvas.text(rect.left() + PAD, base, word, quiet)
    if view.step >= 0 and document.has_floor:
        canvas.text(parts.right.left() + 8, base, "of floor", quiet)
    painter.save()
    painter.setClipRect(parts.plot)
    spans = document.layers_in_sight(view.visible)
    if spans:
        _heads(canvas, parts.plot, time, spans, view, document.has_floor)
    _ticks(canvas, parts.plot, time, document, view)
    painter.restore()
    canvas.hline(rect.left(), rect.right(), rect.bottom() - 1, theme.border)


def _heads(
    canvas: Canvas, plot: QRectF, time: TimeScale, spans: tuple[LayerSpan, ...], view: ViewState, has_floor: bool
) -> None:
    """The grounds, borders and rails of all layers as one image, then the words of those that have room for any."""
    theme, scale = canvas.theme, canvas.scale
    left, width = round(plot.left() * scale), max(1, round(plot.width() * scale))
    ground = np.zeros(width, np.uint32)
    border = np.zeros(width, bool)
    solid, above = np.zeros(width, bool), np.full(width, width)
    starts, ends = (
        time.px(np.array(times, np.int64)) for times in zip(*((n.start, n.end) for n in spans), strict=True)
    )
    floors = np.minimum(time.px(np.array([n.start + n.floor_ns for n in spans], np.int64)), ends)

    def column(x: NDArray[np.float64]) -> list[int]:
        columns: list[int] = (np.rint(x * scale).astype(np.int64) - left).tolist()
        return columns

    line = canvas.line
    edges = np.rint((np.rint((starts - 0.5) * scale) / scale + 1) * scale) / scale
    for span, low, high, edge, first, floor in zip(
        spans, column(starts), column(ends), column(edges), column(starts + 1), column(floors), strict=True
    ):
        current = span.layer == view.layer
        high = max(high, low + 1, 0)
        ground[max(low, 0) : high] = argb(theme.selected if current else theme.band if span.layer % 2 else theme.panel)
        border[max(edge - line, 0) : max(edge, 0)] = True
        border[max(edge, 0) : high] = False
        if has_floor and span.floor_known:
            solid[max(first, 0) : max(floor, 0)] = True
            if not span.partly_known:
                above[max(floor, 0) : high] = floor
    rows, rail = round(HEADS * scale), round((HEADS + LAYER_RAIL) * scale)
    pixels = np.zeros((rail, width), np.uint32)
    pixels[:rows] = ground
    hatched = np.flatnonzero(above < width)
    tile = hatch_pixels(INK, theme, 3, scale)
    pixels[rows:, hatched] = tile[np.arange(rail - rows) % len(tile)][:, (hatched - above[hatched]) % len(tile)]
    pixels[rows:, solid] = argb(theme.ink)
    pixels[:, border] = argb(theme.border)
    draw_pixels(canvas, pixels, left / scale, canvas.snap(plot.top()))
    word_left = np.maximum(starts, plot.left()) + 5
    word_room = np.minimum(ends, plot.right()) - word_left - 4
    for i in np.flatnonzero(word_room >= NARROWEST_WORD_PX).tolist():
        _words_of(canvas, plot, spans[i], float(word_left[i]), float(word_room[i]), view, has_floor)


def _words_of(
    canvas: Canvas, plot: QRectF, span: LayerSpan, left: float, room: float, view: ViewState, has_floor: bool
) -> None:
    name = Style(10, 700 if span.layer == view.layer else 600, canvas.theme.text)
    figure = Style(10, 400, canvas.theme.text2)
    base = plot.top() + 11
    words = [(f"layer {span.layer}", name), (f"{units.micros(span.duration_ns)} µs", figure)]
    if has_floor and span.floor_known and span.partly_known:
        words.append((f"known floor {units.micros(span.floor_ns)}", figure))
    elif has_floor and span.floor_known:
        words.append((units.signed_micros(span.gap_ns), name))
    if room < text_width(words[0][0], 10, name.weight):
        words[0] = (str(span.layer), name)
    for text, style in words:
        width = text_width(text, style.px, style.weight)
        if width > room:
            break
        canvas.text(left, base, text, style)
        left, room = left + width + 8, room - width - 8


def _ticks(canvas: Canvas, plot: QRectF, time: TimeScale, document: Document, view: ViewState) -> None:
    origin = time_origin(document, view)
    style = Style(10, 400, canvas.theme.muted)
    top = plot.top() + HEADS + LAYER_RAIL
    flag = flag_span(document, view, time)
    for at, label in ticks(view.visible, plot.width(), origin):
        x = time.x(at)
        canvas.vline(x, top + 1, top + 7, canvas.theme.muted)
        left, right = x + 4, x + 4 + text_width(label, 10)
        if right > plot.right() or left < plot.left():
            continue
        if flag is None or right < flag[0] - 2 or left > flag[1] + 2:
            canvas.text(left, plot.bottom() - 5, label, style)
    step = tick_step(view.visible, plot.width())
    if step % 2 == 0:
        for at, _ in ticks(view.visible, plot.width(), origin + step // 2):
            canvas.vline(time.x(at), top + 1, top + 4, canvas.theme.border)


def flag_span(document: Document, view: ViewState, time: TimeScale) -> tuple[float, float] | None:
    """Left and right px of the playhead's flag; None where it is hidden or out of sight."""
    if view.playhead is None or not view.visible.contains(view.playhead):
        return None
    half = text_width(since(document, view, view.playhead), 11, 600) / 2 + 5
    x = min(max(time.x(view.playhead), time.left + half), time.left + time.width - half)
    return x - half, x + half


def paint_playhead(
    painter: QPainter, axis: QRectF, bottom: float, document: Document, view: ViewState, theme: Theme, scale: float
) -> None:
    """The line of the playhead from the axis row down to ``bottom``, and the flag with its time in the axis row."""
    plot = split(axis).plot
    time = time_scale(view.visible, plot)
    span = flag_span(document, view, time)
    if span is None or view.playhead is None:
        return
    canvas = Canvas(painter, theme, scale)
    canvas.begin()
    top = axis.bottom() - 17
    canvas.halo_vline(time.x(view.playhead), top + 14, bottom, theme.accent, 1.5)
    canvas.outline(QRectF(span[0], top, span[1] - span[0], 15), theme.accent, 0, 3, theme.accent)
    text = since(document, view, view.playhead)
    canvas.text((span[0] + span[1]) / 2, top + 11.5, text, Style(11, 600, theme.on_accent), CENTRE)
