"""The step bar: floor and gap by cause with the bracket, the step as it ran, and the wedge to what is in sight."""

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from tracescope.core import units
from tracescope.core.category import Op
from tracescope.core.timerange import TimeRange
from tracescope.lod.fold import Bars, Columns
from tracescope.lod.planes import Plane
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.bar_style import BarStyle, Marks
from tracescope.ui.paint.bars import letter_tag, paint_bars
from tracescope.ui.paint.canvas import CENTRE, Canvas, Style, centred_baseline, layer
from tracescope.ui.paint.canvas import RIGHT as AT_RIGHT
from tracescope.ui.paint.folded import paint_columns
from tracescope.ui.paint.geometry import PAD, TimeScale, split, time_scale
from tracescope.ui.paint.hatch import GAP
from tracescope.ui.theme import Theme, colour
from tracescope.view.document import Document
from tracescope.view.step_facts import StepFacts, step_facts
from tracescope.view.view_state import ViewState

BAR_TOP: Final = 26
BAR: Final = 26
RUN_TOP: Final = 59
RUN: Final = 16
HEIGHT: Final = 94


def as_run_rect(rect: QRectF) -> QRectF:
    """Where the step as it ran stands inside the step bar's ``rect``; its x axis is the whole step."""
    plot = split(rect).plot
    return QRectF(plot.left(), rect.top() + RUN_TOP, plot.width(), RUN)


def paint_step_bar(
    painter: QPainter, rect: QRectF, document: Document, view: ViewState, theme: Theme, scale: float
) -> None:
    """The current step of ``view``; nothing but the ground where there is none."""
    canvas = Canvas(painter, theme, scale)
    canvas.begin()
    canvas.fill(rect, theme.panel)
    if view.step < 0:
        return
    step = document.step_range(view.step)
    parts = split(rect)
    run = as_run_rect(rect)
    time = time_scale(step, parts.plot)
    _wedge(canvas, rect, run, time, view)
    floor = "floor" in view.overlays
    key = (view.step, rect.width(), scale, theme.name, floor)
    still = document.pictured(
        "step bar", key, lambda: layer(canvas, rect, lambda inner: _still(inner, rect.width(), document, view))
    )
    painter.drawImage(QPointF(canvas.snap(rect.left()), canvas.snap(rect.top())), still)
    _visible_frame(canvas, run, time, view)
    canvas.hline(rect.left(), rect.right(), rect.top(), theme.border)


def _still(canvas: Canvas, width: float, document: Document, view: ViewState) -> None:
    """All that depends on the step alone, so that zooming and panning within it need not draw it again."""
    rect = QRectF(0, 0, width, HEIGHT)
    facts = step_facts(document, view.step)
    parts = split(rect)
    time = time_scale(document.step_range(view.step), parts.plot)
    floor = "floor" in view.overlays
    _names(canvas, rect, document, view)
    bar = QRectF(parts.plot.left(), BAR_TOP, parts.plot.width(), BAR)
    canvas.text_in(_free_above(bar, facts), facts.setting, Style(11, 400, canvas.theme.text2))
    run = as_run_rect(rect)
    painter = canvas.painter
    painter.save()
    painter.setClipRect(parts.plot.adjusted(0, 0, 1, 0))
    paint_floor_bar(canvas, bar, facts, title_px=12)
    paint_as_run(canvas, run, document, view.step, floor=floor)
    _layer_numbers(canvas, run, time, document, view)
    if floor:
        paint_floor_line(canvas, bar, run.bottom() + 2, facts, gap_px=15)
    painter.restore()
    _results(canvas, parts.right, bar, run, facts)
    canvas.vline(parts.plot.left(), bar.top(), run.bottom(), canvas.theme.border)


def _free_above(bar: QRectF, facts: StepFacts) -> QRectF:
    """Where what is told of the step stands above the bar: left of the floor's words, else right of the gap's."""
    if facts.floor_ns is None:
        return QRectF(bar.left(), 6, bar.width(), 18)
    words = floor_line_words(bar, facts, 15)
    left = min(words.label_left, words.gap_centre - words.gap_width / 2) - 16 - bar.left()
    after = max(words.label_left + words.label_width, words.gap_centre + words.gap_width / 2) + 16
    right = bar.right() - after
    if left >= right:
        return QRectF(bar.left(), 6, max(0.0, left), 18)
    return QRectF(after, 1, right, 18)


def _names(canvas: Canvas, rect: QRectF, document: Document, view: ViewState) -> None:
    theme, top = canvas.theme, rect.top()
    left = rect.left() + PAD
    width = canvas.text(left, top + 19, document.step_title(view.step), Style(13, 700, theme.text))
    canvas.text(left + width + 7, top + 19, units.numbers_of(len(document.trace.steps)), Style(11, 400, theme.text2))
    edge = split(rect).plot.left() - 8
    label = Style(11, 500, theme.text)
    canvas.text(edge, top + BAR_TOP + 17, "floor + gap", label, AT_RIGHT)
    canvas.text(edge, top + RUN_TOP + 12, "as run", label, AT_RIGHT)
    canvas.text(edge, top + RUN_TOP + RUN + 13, "layer", Style(10, 400, theme.muted), AT_RIGHT)


def scale_of(bar: QRectF, facts: StepFacts) -> float:
    """Px per ns of a floor bar: the longer of step and floor fills it."""
    return bar.width() / max(1, facts.duration_ns, facts.floor_ns or 0)


def floor_x(bar: QRectF, facts: StepFacts) -> float:
    """Where the floor ends inside a floor bar."""
    return bar.left() + (facts.floor_ns or 0) * scale_of(bar, facts)


def paint_floor_bar(canvas: Canvas, bar: QRectF, facts: StepFacts, *, title_px: float, pitch: int = 6) -> None:
    """Solid parts up to the floor, then the gap by cause; without a floor a dotted bar that says so."""
    theme = canvas.theme
    if facts.floor_ns is None:
        canvas.fill(bar, theme.band)
        canvas.dashed(bar.left(), bar.right(), bar.top(), theme.muted, 2, 3)
        canvas.dashed(bar.left(), bar.right(), bar.bottom() - 1, theme.muted, 2, 3)
        style = Style(title_px, 600, theme.text2)
        canvas.text_in(bar.adjusted(10, 0, -10, 0), f"no floor: {facts.no_floor_because}", style)
        return
    per_ns = scale_of(bar, facts)
    x = bar.left()
    for part in facts.parts:
        area = QRectF(x, bar.top(), part.ns * per_ns, bar.height())
        colours = theme.kinds[part.letter]
        canvas.fill(area, colours.fill)
        canvas.frame(area, colours.edge)
        _fitting(canvas, area, part.texts, Style(title_px, 600, colours.label))
        x = area.right()
    x = _gaps(canvas, bar, facts, x, pitch)
    if facts.unknown_ns:
        area = QRectF(x, bar.top(), facts.unknown_ns * per_ns, bar.height())
        paint_unknown(canvas, area)
        took = f"{units.millis(facts.unknown_ns)} ms"
        texts = (f"bytes of {units.plural(facts.ops_without_floor, 'op')} unknown, {took}", f"bytes unknown, {took}",
                 "bytes unknown")  # fmt: skip
        _fitting(canvas, area, texts, Style(title_px, 600, theme.text2))


def paint_unknown(canvas: Canvas, area: QRectF) -> None:
    """Time of which no floor is known: a plain ground with a dotted outline, neither solid nor hatched."""
    theme = canvas.theme
    canvas.fill(area, theme.band)
    canvas.dashed(area.left(), area.right(), area.top(), theme.muted, 2, 3)
    canvas.dashed(area.left(), area.right(), area.bottom() - 1, theme.muted, 2, 3)
    canvas.vline(area.left(), area.top(), area.bottom(), theme.muted)
    canvas.vline(area.right() - 1, area.top(), area.bottom(), theme.muted)


def _gaps(canvas: Canvas, bar: QRectF, facts: StepFacts, x: float, pitch: int) -> float:
    """Causes that cost time, side by side over the gap; one that saved time (below its floor) takes no room.

    Returns where the gap ends.
    """
    gap = facts.gap_ns or 0
    costly = [part for part in facts.gaps if part.ns > 0]
    total = sum(part.ns for part in costly)
    if gap <= 0 or not total:
        return x
    per_ns = scale_of(bar, facts) * gap / total
    for part in costly:
        area = QRectF(x, bar.top(), part.ns * per_ns, bar.height())
        canvas.hatch(area, part.letter or GAP, pitch, QPointF(bar.left(), bar.top()))
        canvas.frame(area, canvas.theme.kinds[part.letter].edge if part.letter else canvas.theme.ink)
        letter_tag(canvas, area, part.texts)
        x = area.right()
    return x


def _fitting(canvas: Canvas, area: QRectF, texts: tuple[str, ...], style: Style) -> None:
    """The longest text that has room; a lone letter takes less of it and stands in the middle."""
    for text in texts:
        width = text_width(text, style.px, style.weight)
        if width <= area.width() - 16:
            canvas.text(area.left() + 10, centred_baseline(area, style), text, style)
            return
        if len(text) == 1 and width <= area.width() - 4:
            canvas.text(area.center().x(), centred_baseline(area, style), text, style, CENTRE)
            return


@dataclass(frozen=True, slots=True)
class LineWords:
    """The words at the floor line of a bar and where they stand, px."""

    label: str
    label_left: float
    label_width: float
    gap: str
    gap_centre: float
    gap_width: float
    label_above: bool
    """The label stands right of the line, above the bracket, because there is no room for it at the left."""


def floor_line_words(bar: QRectF, facts: StepFacts, gap_px: float) -> LineWords:
    """Place the floor's label left of its line, else right of it, and the gap's words over their bracket."""
    x = floor_x(bar, facts)
    gap = facts.gap_ns or 0
    text = f"gap {units.millis(gap)} ms" if gap >= 0 else f"{units.millis(-gap)} ms faster than the floor"
    width, label = text_width(text, gap_px, 700), text_width(facts.floor_words, gap_px - 4, 600)
    right = x + max(0, gap) * scale_of(bar, facts)
    above = label > x - 8 - bar.left()
    first = x + 8 + (label + 16 if above else 0)
    centre = min(max((x + right) / 2, first + width / 2), bar.right() - width / 2)
    if above:
        return LineWords(facts.floor_words, x + 8, label, text, centre, width, True)
    label_right = x - 8
    if gap < 0 or centre - width / 2 < x + 4:
        centre = min(x, bar.right()) - 8 - width / 2
        label_right = centre - width / 2 - 12
    return LineWords(facts.floor_words, label_right - label, label, text, centre, width, False)


def paint_floor_line(canvas: Canvas, bar: QRectF, bottom: float, facts: StepFacts, *, gap_px: float) -> None:
    """The floor line from above the bar down to ``bottom``, its label, and the bracket with the gap."""
    if facts.floor_ns is None:
        return
    theme = canvas.theme
    x = floor_x(bar, facts)
    canvas.halo_vline(x, bar.top() - 18, bottom, theme.ink, 2.5)
    words = floor_line_words(bar, facts, gap_px)
    gap = facts.gap_ns or 0
    right = x + max(0, gap) * scale_of(bar, facts)
    base = bar.top() - 10 * gap_px / 15 - 1
    label_base = base if words.label_above else bar.top() - 7
    canvas.text(words.gap_centre, base, words.gap, Style(gap_px, 700, theme.ink), CENTRE)
    canvas.text(words.label_left, label_base, words.label, Style(gap_px - 4, 600, theme.text))
    if gap > 0 and right - x > 6:
        top = bar.top() - 8
        canvas.hline(x + 3, right, top, theme.ink, 2)
        canvas.vline(x + 4, top, top + 5, theme.ink, 2)
        canvas.vline(right - 1, top, top + 5, theme.ink, 2)


def paint_as_run(canvas: Canvas, run: QRectF, document: Document, step: int, *, floor: bool) -> None:
    """The whole step in the order in which it ran, layers cut by thin lines."""
    visible = document.step_range(step)
    time = time_scale(visible, run)
    content = document.planes(visible, round(run.width()))[Plane.PATH]
    canvas.hatch(run, GAP, 4)
    style = BarStyle(pitch=4, floor=floor, rail=False, tags=False)
    if isinstance(content, Bars):
        paint_bars(canvas, run, content, time, style, Marks())
    elif isinstance(content, Columns):
        paint_columns(canvas, run, content, floor=floor and document.has_floor)
    for span in document.layer_spans(step):
        canvas.vline(time.x(span.start), run.top(), run.bottom(), canvas.theme.panel)
    canvas.frame(run, canvas.theme.border)


def _layer_numbers(canvas: Canvas, run: QRectF, time: TimeScale, document: Document, view: ViewState) -> None:
    spans = document.layer_spans(view.step)
    style = Style(10, 400, canvas.theme.muted)
    if not spans:
        return
    every = next((n for n in (1, 2, 4, 5, 8, 10, 16, 20) if len(spans) / n <= max(1.0, run.width() / 90)), 40)
    free = run.left() - 10
    chosen = [s for s in spans if s.layer % every == 0 or s is spans[-1]]
    base = run.bottom() + 13
    tail = time.x(spans[-1].end)
    for span in chosen:
        x = (time.x(span.start) + time.x(span.end)) / 2
        width = text_width(str(span.layer), style.px)
        last_free = (time.x(spans[-1].start) + tail) / 2 - width
        if x - width / 2 <= free + 6 or (span is not spans[-1] and x + width / 2 > last_free - 6):
            continue
        canvas.text(x, base, str(span.layer), style, CENTRE)
        free = x + width / 2
    after = any(e.layer < 0 and e.op is Op.LM_HEAD for e in document.off_the_floor(view.step))
    width = text_width("lm_head", style.px)
    if after and run.right() - width > free + 3:
        canvas.text(run.right(), base, "lm_head", style, AT_RIGHT)


def _wedge(canvas: Canvas, rect: QRectF, run: QRectF, time: TimeScale, view: ViewState) -> None:
    """The visible range of the step opening up to the width of the plot."""
    span = _in_step(view.visible, time.visible)
    if span is None:
        return
    x0, x1 = time.x(span.start), max(time.x(span.end), time.x(span.start) + 1)
    top, bottom = run.bottom() + 2, rect.bottom()
    points = [QPointF(x0, top), QPointF(x1, top), QPointF(run.right(), bottom), QPointF(run.left(), bottom)]
    canvas.polygon(points, colour(canvas.theme.wedge))
    painter = canvas.painter
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(colour(canvas.theme.accent))
    painter.setOpacity(0.55)
    painter.drawLine(points[0], points[3])
    painter.drawLine(points[1], points[2])
    painter.setOpacity(1)
    canvas.begin()


def _visible_frame(canvas: Canvas, run: QRectF, time: TimeScale, view: ViewState) -> None:
    span = _in_step(view.visible, time.visible)
    if span is None:
        return
    x0, x1 = time.x(span.start), time.x(span.end)
    frame = QRectF(x0, run.top(), max(3.0, x1 - x0), run.height()).adjusted(-1, -2, 1, 2)
    frame = frame.intersected(QRectF(run.left() - 1, run.top() - 2, run.width() + 2, run.height() + 4))
    canvas.outline(frame, canvas.theme.accent, 2, 2)


def _in_step(visible: TimeRange, step: TimeRange) -> TimeRange | None:
    if not step.overlaps(visible.start, visible.end):
        return None
    return TimeRange(max(visible.start, step.start), min(visible.end, step.end))


def _results(canvas: Canvas, right: QRectF, bar: QRectF, run: QRectF, facts: StepFacts) -> None:
    theme, left = canvas.theme, right.left() + 8
    if facts.share is not None:
        canvas.text(left, bar.top() + 14, units.percent(facts.share, 1), Style(17, 700, theme.text))
        canvas.text(left, bar.top() + 28, "of floor speed", Style(10, 400, theme.text2))
    elif facts.floor_ns is not None:
        room = QRectF(left, bar.top(), right.right() - left, 16)
        canvas.text_in(room, facts.priced_ops.removesuffix(" ops"), Style(11, 600, theme.text))
        canvas.text(left, bar.top() + 28, "ops with floor", Style(10, 400, theme.text2))
    canvas.text(left, run.top() + 12, f"{units.millis(facts.duration_ns)} ms", Style(11, 600, theme.text))
