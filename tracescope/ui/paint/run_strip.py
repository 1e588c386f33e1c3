"""The run strip: every step as a bar of its floor by kind and its gap, with both floors; the current one framed."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage, QPainter

from tracescope.core import units
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.bar_style import LETTERS
from tracescope.ui.paint.canvas import CENTRE, Canvas, Style, layer
from tracescope.ui.paint.canvas import RIGHT as AT_RIGHT
from tracescope.ui.paint.folded import paint_stack
from tracescope.ui.paint.geometry import PAD, split
from tracescope.ui.paint.hatch import INK
from tracescope.ui.paint.pixels import Fill, Hatched
from tracescope.ui.theme import Theme, mixed
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

F64 = NDArray[np.float64]

_TOP: Final = 12
_BELOW: Final = 17
_SEPARATOR_FROM: Final = 3
_NICE: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True, eq=False, slots=True)
class StepBars:
    """Heights in ns of what is drawn, one entry a bar: steps, or runs of steps where there are more than pixels.

    ``parts`` float64[kinds, n]: the floor by the kinds of ``LETTERS`` (0 where unknown); ``weights``: what the weights
    alone need, ``took`` the mean and ``longest`` the longest duration of the bar's steps; ``edges`` float64[n + 1] in
    px from the left of the plot.
    """

    edges: F64
    parts: F64
    weights: F64
    took: F64
    longest: F64

    @property
    def ends(self) -> F64:
        """Where each part ends above the ground, float64[kinds, n]; the last is the floor."""
        return np.cumsum(self.parts, axis=0)


def step_bars(document: Document, width: float) -> StepBars:
    """The bars of all steps over ``width`` px; steps are folded by their mean where they would be under 1 px."""
    series = document.series
    count = len(series.duration)
    bins = min(count, max(1, int(width)))
    edges = np.linspace(0, count, bins + 1).astype(np.int64)
    size = np.maximum(1, np.diff(edges))
    found = document.floor_parts
    by_letter = {
        "W": found.weight_read + found.embedding_gather,
        "K": found.kv_read,
        "A": found.kv_append,
        "C": found.compute,
        "X": found.link,
    }

    def mean(values: NDArray[np.int64]) -> F64:
        return np.add.reduceat(values, edges[:-1]) / size

    return StepBars(
        edges / count * width,
        np.stack([mean(by_letter[letter]) for letter in LETTERS if letter in by_letter]),
        mean(np.maximum(series.floor_weight_ns, 0)),
        mean(series.duration),
        np.maximum.reduceat(series.duration, edges[:-1]).astype(np.float64),
    )


def plot_of(rect: QRectF) -> QRectF:
    """The area of the bars inside the strip's ``rect``."""
    plot = split(rect).plot
    return QRectF(plot.left(), rect.top() + _TOP, plot.width(), rect.height() - _TOP - _BELOW)


def step_at_x(document: Document, plot: QRectF, x: float) -> int:
    """The step under a pixel position of the plot column, clamped to the steps there are; -1 without steps."""
    count = len(document.trace.steps)
    return min(max(int((x - plot.left()) / plot.width() * count), 0), count - 1)


def nice_top(value: float) -> float:
    """The smallest round number (1 to 10 times a power of ten) that is at least ``value``."""
    if value <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(f * power for f in _NICE if f * power >= value * 0.999))


def paint_run_strip(
    painter: QPainter, rect: QRectF, document: Document, view: ViewState, theme: Theme, scale: float
) -> None:
    """All steps of the trace; nothing but the ground where there is none."""
    canvas = Canvas(painter, theme, scale)
    canvas.begin()
    canvas.fill(rect, theme.panel)
    if not document.has_steps:
        return
    plot = plot_of(rect)
    floor = document.has_floor and "floor" in view.overlays
    _names(canvas, rect, document)
    key = (rect.width(), rect.height(), scale, theme.name, floor)
    strip = document.pictured("run strip", key, lambda: _strip(canvas, rect, document, floor))
    painter.drawImage(QPointF(canvas.snap(rect.left()), canvas.snap(rect.top())), strip)
    _notes(canvas, plot, document, view.step)
    _numbers(canvas, plot, len(document.trace.steps), view.step)
    _current(canvas, plot, document, view)
    _results(canvas, rect, document, view)


def _strip(canvas: Canvas, rect: QRectF, document: Document, floor: bool) -> QImage:
    """The bars and their axis as an image: they are the same however the lanes below are zoomed."""

    def paint(inner: Canvas) -> None:
        plot = plot_of(QRectF(0, 0, rect.width(), rect.height()))
        bars = step_bars(document, plot.width())
        top_ms = nice_top(scale_top(bars) / 1e6)
        _axis(inner, plot, top_ms)
        inner.painter.setClipRect(QRectF(plot.left(), 0, plot.width(), rect.height()))
        paint_steps(inner, plot, bars, top_ms * 1e6, floor)

    return layer(canvas, rect, paint)


def scale_top(bars: StepBars) -> float:
    """The ns that must fit under the top of the axis: nearly all steps; a rare long one is cut and says how long."""
    # A duration that occurs: between two, one long step among a few would lift the axis far above all others.
    most = float(np.quantile(bars.took, 0.95, method="lower")) * 1.12
    return min(float(bars.longest.max()), most) if most > 0 else float(bars.longest.max())


def paint_steps(canvas: Canvas, plot: QRectF, bars: StepBars, top_ns: float, floor: bool) -> None:
    """Solid the floor by kind, hatch above; the floors as lines. Clipped at the top of ``plot``."""
    theme = canvas.theme
    per_ns = plot.height() / top_ns
    base = plot.bottom()
    x = np.rint((plot.left() + bars.edges) * canvas.scale) / canvas.scale
    wide = plot.width() / len(bars.took)
    separator = 1.0 if wide > _SEPARATOR_FROM else 0.0
    weights, ends = bars.weights * per_ns, bars.ends * per_ns
    took = np.minimum(np.maximum(bars.took, 0) * per_ns, plot.height())
    if wide <= _SEPARATOR_FROM and floor:
        _thin_steps(canvas, plot, x, weights, ends, took)
        return
    if not floor:
        pale = mixed(theme.ink, theme.panel, 0.25)
        for i in range(len(took)):
            canvas.fill(QRectF(x[i], base - took[i], max(x[i + 1] - x[i] - separator, 0.5), took[i]), pale)
        return
    origin = QPointF(plot.left(), plot.top())
    for i in range(len(took)):
        left, width = float(x[i]), float(x[i + 1] - x[i])
        solid = max(width - separator, 1 / canvas.scale)
        if took[i] > ends[-1, i]:
            canvas.hatch(QRectF(left, base - took[i], width, took[i] - ends[-1, i]), INK, 4, origin)
            canvas.fill(QRectF(left, base - took[i], width, 1), theme.ink)
        begin = 0.0
        for letter, end in zip(LETTERS, ends[:, i].tolist(), strict=False):
            if end > begin:
                canvas.fill(QRectF(left, base - end, solid, end - begin), theme.kinds[letter].fill)
            begin = end
    _floor_lines(canvas, plot, x, ends[-1], weights)


def _thin_steps(canvas: Canvas, plot: QRectF, x: F64, weights: F64, ends: F64, took: F64) -> None:
    """More steps than bars could be told apart: one column a pixel, and the floor as one line."""
    at = plot.left() + np.arange(round(plot.width()))
    column = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(took) - 1)
    floor = ends[-1]
    edges = np.vstack([ends, np.maximum(took, floor)])[:, column] / plot.height()
    fills: list[Fill] = [canvas.theme.kinds[letter].fill for letter in LETTERS[: len(ends)]]
    paint_stack(canvas, plot, edges, [*fills, Hatched(INK, 4)])
    known = np.flatnonzero(floor > 0)
    points = [QPointF(float(x[i]), plot.bottom() - float(floor[i]) - 1) for i in known.tolist()]
    if points:
        points.append(QPointF(float(x[known[-1] + 1]), points[-1].y()))
        canvas.polyline(points, canvas.theme.panel, 4)
        canvas.polyline(points, canvas.theme.ink, 2)
    some = weights[weights > 0]
    if len(some):
        y = plot.bottom() - float(np.median(some)) - 0.5
        canvas.dashed(plot.left(), plot.right(), y, canvas.theme.ink, 5, 3)


def _floor_lines(canvas: Canvas, plot: QRectF, x: F64, floor: F64, weights: F64) -> None:
    """Lines that stand on the floors, so that they cover none of the thin parts on top of them."""
    theme, base = canvas.theme, plot.bottom()
    last = None
    for i in range(len(floor)):
        if floor[i] <= 0:
            last = None
            continue
        y = base - float(floor[i]) - 2
        canvas.fill(QRectF(float(x[i]), y - 1, float(x[i + 1] - x[i]), 3), theme.panel)
        if last is not None and abs(last - y) > 1:
            canvas.fill(QRectF(float(x[i]) - 1, min(last, y), 2, abs(last - y)), theme.ink)
        last = y
    for i in range(len(floor)):
        if floor[i] > 0:
            canvas.fill(QRectF(float(x[i]), base - float(floor[i]) - 2, float(x[i + 1] - x[i]), 2), theme.ink)
    known = weights[weights > 0]
    if len(known):
        canvas.dashed(plot.left(), plot.right(), base - float(np.median(known)) - 0.5, theme.ink, 5, 3)


def _names(canvas: Canvas, rect: QRectF, document: Document) -> None:
    theme, left = canvas.theme, rect.left() + PAD
    canvas.text(left, rect.top() + 19, "Run", Style(13, 700, theme.text))
    for line, text in enumerate(document.remembered("run names", 0, lambda: _said_of_run(document))):
        base = rect.top() + 36 + 15 * line
        if base < rect.bottom() - 4:
            canvas.text(left, base, text, Style(11, 400, theme.text2))


def _said_of_run(document: Document) -> list[str]:
    steps = document.trace.steps
    decode = steps.decode & ~steps.warm_up
    count = int(steps.decode.sum())
    said = [f"{count:,} decode step{'' if count == 1 else 's'}"]
    if decode.any():
        mean = float(steps.duration[decode].mean()) / 1e6
        said.append(f"mean {mean:,.3f} ms" if mean < 1 else f"mean {mean:,.2f} ms")
    if document.ranks > 1:
        said.append(units.one_of_ranks(document.ranks))
    return said


def _axis(canvas: Canvas, plot: QRectF, top_ms: float) -> None:
    style = Style(10, 400, canvas.theme.muted)
    for share in (1.0, 0.5, 0.0):
        y = plot.bottom() - share * plot.height()
        text = units.significant(share * top_ms, 6) + (" ms" if share == 1 else "")
        canvas.text(plot.left() - 6, y + 4, text, style, AT_RIGHT)
        if share:
            canvas.hline(plot.left(), plot.right(), y, canvas.theme.grid)


def _notes(canvas: Canvas, plot: QRectF, document: Document, current: int) -> None:
    """Words at the steps that stand out."""
    steps = document.trace.steps
    found = document.remembered("notable steps", 0, lambda: _notable(document))
    frame = plot.left() + current / len(steps) * plot.width()
    frame_end = frame + max(plot.width() / len(steps), 4.0)
    taken: list[tuple[float, float]] = []
    style = Style(10, 400, canvas.theme.text2)
    for step, text in found:
        left = plot.left() + (step + 1) / len(steps) * plot.width() + 4
        if current >= 0 and left < frame_end + 4 and frame - 4 < left + text_width(text, style.px):
            if frame_end - left > 24:
                continue  # moved that far it would seem to speak of another step
            left = frame_end + 4
        right = left + text_width(text, style.px)
        if right < plot.right() and not any(left < b + 8 and a - 8 < right for a, b in taken):
            canvas.halo_text(left, plot.top() + 3, text, style)
            taken.append((left, right))


def _notable(document: Document) -> list[tuple[int, str]]:
    """The warm-up, and the longest other steps where they took a tenth more than usual, with words for them."""
    steps = document.trace.steps
    usual = float(np.median(steps.duration))
    found = [(int(i), f"warm-up {steps.duration[i] / 1e6:,.1f} ms") for i in np.flatnonzero(steps.warm_up)[:1]]
    rest = np.where(steps.warm_up, 0, steps.duration)
    for i in np.argsort(-rest, kind="stable")[:2].tolist():
        if rest[i] > 1.1 * usual:
            found.append((i, f"{rest[i] / 1e6:,.2f} ms"))
    return found


def _numbers(canvas: Canvas, plot: QRectF, count: int, current: int) -> None:
    """Ordinals under the bars, from 0; those under the tag of the current step are left out."""
    style = Style(10, 400, canvas.theme.muted)
    every = next(n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 10**6) if count / n <= plot.width() / 70)
    tag = plot.left() + (current + 0.5) / count * plot.width()
    for step in [*range(0, count - every // 2, every), count - 1]:
        x = plot.left() + (step + 0.5) / count * plot.width()
        half = text_width(str(step), style.px) / 2
        x = min(max(x, plot.left() + half), plot.right() - half)
        if abs(x - tag) > half + 16 or current < 0:
            canvas.text(x, plot.bottom() + 13, f"{step:,}", style, CENTRE)


def _current(canvas: Canvas, plot: QRectF, document: Document, view: ViewState) -> None:
    """An accent frame around the current step and its number in a tag below."""
    if view.step < 0:
        return
    count = len(document.trace.steps)
    x0 = plot.left() + view.step / count * plot.width()
    width = max(plot.width() / count, 4.0)
    frame = QRectF(x0, plot.top() - 1, width, plot.height() + 2).adjusted(-1, -1, 1, 1)
    canvas.outline(frame, canvas.theme.accent, 2, 2)
    style = Style(10, 600, canvas.theme.on_accent)
    text = f"{view.step:,}"
    half = max(text_width(text, 10, 600) / 2 + 5, 10)
    centre = min(max(x0 + width / 2, plot.left() + half), plot.right() - half)
    rect = QRectF(centre - half, plot.bottom() + 2, 2 * half, 13)
    canvas.outline(rect, canvas.theme.accent, 0, 3, canvas.theme.accent)
    canvas.text(centre, plot.bottom() + 12.5, text, style, CENTRE)


def _results(canvas: Canvas, rect: QRectF, document: Document, view: ViewState) -> None:
    theme, left = canvas.theme, split(rect).right.left() + 8
    if not document.has_floor or view.step < 0:
        return
    series = document.series
    canvas.text(left, rect.top() + 14, "floor, ms", Style(10, 400, theme.text2))
    lines = (
        ("all", series.floor_ops_ns, Style(11, 600, theme.text)),
        ("W+KV", series.floor_memory_ns, Style(11, 400, theme.text2)),
        ("W", series.floor_weight_ns, Style(11, 400, theme.text2)),
    )
    y = rect.top() + 34
    for word, column, style in lines:
        ns = int(column[view.step])
        if ns >= 0 and y < rect.bottom() - 4:
            canvas.text(left, y, f"{word} {ns / 1e6:,.2f}", style)
            y += 15
