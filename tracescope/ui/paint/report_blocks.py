"""The lower part of a picture: one layer in order, where the gap goes, energy, and all steps."""

import numpy as np
from PySide6.QtCore import QPointF, QRectF

from tracescope.analysis.work_energy import energy_of_group
from tracescope.core import units
from tracescope.core.category import KIND_OF_CATEGORY
from tracescope.core.timerange import TimeRange
from tracescope.floor.energy import Energy, energy_facts, energy_words, worth_a_range
from tracescope.lod.fold import Bars
from tracescope.lod.planes import Plane
from tracescope.ui.fonts import elided, text_width
from tracescope.ui.paint.bar_style import LETTERS, BarStyle, Marks, place
from tracescope.ui.paint.bars import gap_labels, paint_bars
from tracescope.ui.paint.canvas import CENTRE, Canvas, Style, centred_baseline
from tracescope.ui.paint.canvas import RIGHT as AT_RIGHT
from tracescope.ui.paint.geometry import time_scale
from tracescope.ui.paint.hatch import GAP, STATIC
from tracescope.ui.paint.lanes import gaps_between
from tracescope.ui.paint.report_lanes import Block
from tracescope.ui.paint.run_strip import nice_top, paint_steps, scale_top, step_bars
from tracescope.ui.paint.step_bar import paint_unknown
from tracescope.view.document import Document
from tracescope.view.step_facts import NO_GAP, step_facts
from tracescope.view.step_layers import LayerSpan
from tracescope.view.view_state import ViewState

IN_ORDER: float = 112
"""Height of the block that shows one layer in order."""


_CAUSE: float = 29
_MOST_CAUSES = 6


def blocks_height(document: Document, step: int) -> float:
    """Height of a row of blocks: of the causes of the gap, or of energy and steps with their figures."""
    causes = min(_MOST_CAUSES, len(document.gap_causes(step)))
    return max(30 + _CAUSE * causes, 178)


def chosen_layer(document: Document, view: ViewState) -> LayerSpan | None:
    """The selected layer, else one three eighths into the step; None where no layer was recognised."""
    spans = document.layer_spans(view.step) if view.step >= 0 else ()
    return next((s for s in spans if s.layer == view.layer), spans[3 * len(spans) // 8] if spans else None)


def paint_in_order(canvas: Canvas, block: Block, document: Document, view: ViewState) -> None:
    """One layer from end to end: each op's bar with its name, bytes and time, and what it took above its floor."""
    theme = canvas.theme
    span = chosen_layer(document, view)
    if span is None:
        return
    width = canvas.text(block.left, block.top + 14, f"Layer {span.layer} in order", Style(15, 700, theme.text))
    said = f"{units.micros(span.duration_ns)} µs"
    if document.has_floor and span.floor_known:
        word = "known floor" if span.partly_known else "floor"
        said += f", {word} {units.micros(span.floor_ns)} µs{'' if span.partly_known else ','}"
    x = block.left + width + 20
    x += canvas.text(x, block.top + 14, said, Style(13, 400, theme.text2)) + 5
    if document.has_floor and span.floor_known and not span.partly_known:
        above = f"{units.micros(abs(span.gap_ns))} µs {'above' if span.gap_ns >= 0 else 'below'} the floor"
        canvas.text(x, block.top + 14, above, Style(13, 600, theme.text))
    bar = QRectF(block.left, block.top + 28, block.width, 52)
    visible = TimeRange(span.start, span.end)
    content = document.planes(visible, round(bar.width()))[Plane.PATH]
    if not isinstance(content, Bars):
        return
    time = time_scale(visible, bar)
    canvas.painter.save()
    canvas.painter.setClipRect(bar.adjusted(0, 0, 0, 40))
    starts, ends = gaps_between(document, content, time)
    for a, b in zip(starts.tolist(), ends.tolist(), strict=True):
        area = QRectF(time.x(a), bar.top(), time.x(b) - time.x(a), bar.height())
        canvas.hatch(area, GAP, 8 if area.width() >= 8 else 4)
        if area.width() >= 8:
            canvas.frame(area, theme.ink)
    style = BarStyle(pitch=8, floor="floor" in view.overlays)
    paint_bars(canvas, bar, content, time, style, Marks())
    canvas.painter.restore()
    _texts(canvas, bar, content, document, visible, floor=style.floor)
    pixels = place(content, time, canvas.scale)
    gap = content.end - content.start - content.floor
    wide = (pixels.width >= 6) & content.known & (gap >= 50)
    labels = [
        (int(gap[r]), float(pixels.x1[r]), units.signed_micros(int(gap[r])), int(content.kind[r]) == 1)
        for r in np.flatnonzero(wide).tolist()
    ]
    for a, b in zip(starts.tolist(), ends.tolist(), strict=True):
        if b - a >= 1000:
            labels.append((b - a, time.x(b), f"gap {units.micros(b - a)}", True))
    labels.sort(key=lambda item: (-item[0], item[1]))
    if document.has_floor and style.floor:
        gap_labels(canvas, bar.bottom() + 19, [i[1:] for i in labels], (bar.left(), bar.right() + 1), px=12)


def _texts(canvas: Canvas, bar: QRectF, bars: Bars, document: Document, visible: TimeRange, *, floor: bool) -> None:
    """Name over bytes and time inside wide bars; the names of narrow ones below, where they do not touch."""
    pixels = place(bars, time_scale(visible, bar), canvas.scale)
    free, said = bar.left() - 20, ""
    for row in range(len(bars)):
        event = int(bars.event[row])
        x0, x1 = float(pixels.x0[row]), float(pixels.x1[row])
        floor_end = min(float(pixels.floor[row]), x1) if bars.known[row] and floor else x1
        colours = canvas.theme.kinds[LETTERS[bars.kind[row]]]
        ink = colours.label if bars.known[row] or not floor else canvas.theme.text
        name = document.title_of(event)
        moved = document.bytes_of(event)
        took = units.duration(int(bars.end[row] - bars.start[row]))
        second = f"{units.size(moved)} · {took}" if moved else took
        room = floor_end - x0 - 16
        if text_width(name, 13, 600) <= room:
            canvas.text(x0 + 8, bar.top() + 21, name, Style(13, 600, ink))
            if text_width(second, 12) <= room:
                canvas.text(x0 + 8, bar.top() + 40, second, Style(12, 400, ink))
            said = name
        elif name != said:  # pieces of one operator are named once
            centre = (x0 + x1) / 2
            half = text_width(name, 11) / 2
            left = max(centre - half, bar.left())
            if left > free + 8 and left + 2 * half <= bar.right():
                canvas.text(left, bar.bottom() + 35, name, Style(11, 400, canvas.theme.text2))
                free, said = left + 2 * half, name


def paint_gap_causes(canvas: Canvas, block: Block, document: Document, view: ViewState) -> None:
    """One row a cause: its kind, its hatched bar, µs and share; they add up to the gap."""
    theme = canvas.theme
    canvas.text(block.left, block.top + 14, "Where the gap goes", Style(15, 700, theme.text))
    facts = step_facts(document, view.step)
    if facts.gap_ns is None:
        canvas.text(block.left, block.top + 44, NO_GAP, Style(12, 400, theme.text2))
        return
    right = block.left + block.width
    canvas.text(right, block.top + 14, f"{facts.gap_ns / 1e3:,.0f} µs", Style(13, 400, theme.text2), AT_RIGHT)
    causes = document.gap_causes(view.step)[:_MOST_CAUSES]
    if not causes:
        canvas.text(block.left, block.top + 44, "nowhere: every op is at its floor", Style(12, 400, theme.text2))
    largest = max((abs(c.ns) for c in causes), default=1)
    y = block.top + 30
    names = block.left + 24
    longest = max((text_width(cause.title, 12) for cause in causes), default=0.0)
    start, end = names + min(longest + 14, 0.55 * block.width), right - 104
    for cause in causes:
        row = QRectF(block.left, y, block.width, 22)
        letter = KIND_OF_CATEGORY[cause.category].letter if cause.category is not None else ""
        patch = QRectF(block.left, y + 3, 16, 16)
        if letter:
            canvas.chip(block.left, y + 3, letter, 16)
        elif not cause.known:
            paint_unknown(canvas, patch)
        else:
            canvas.hatch(patch, GAP, 4)
            canvas.frame(patch, theme.ink)
        canvas.text_in(QRectF(names, y, start - names - 6, 22), cause.title, Style(12, 400, theme.text))
        bar = QRectF(start, y + 3, max(1.0, (end - start) * abs(cause.ns) / largest), 16)
        if cause.known:
            canvas.hatch(bar, letter or GAP, 6)
            canvas.frame(bar, theme.kinds[letter].edge if letter else theme.ink)
        else:
            paint_unknown(canvas, bar)
        style = Style(12, 600, theme.text)
        sign = "" if cause.ns >= 0 else "−"
        said = f"{sign}{abs(cause.ns) / 1e3:,.0f} µs"
        canvas.text(right - 44, centred_baseline(row, style), said, style, AT_RIGHT)
        if facts.gap_ns > 0 and cause.known:
            share = units.percent(cause.ns / facts.gap_ns)
            canvas.text(right, centred_baseline(row, style), share, Style(12, 400, theme.text2), AT_RIGHT)
        y += _CAUSE


def paint_energy_of_step(canvas: Canvas, block: Block, document: Document, view: ViewState) -> None:
    """Joules of the step by source, the range of the fit's error, and the energy of a token."""
    theme = canvas.theme
    right = block.left + block.width
    series, step = document.series, view.step
    found = energy_of_group(series, step, int(series.duration[step]), document.basis, document.ranks)
    factor, unit = units.energy_unit(found[0].mid if found is not None else 1.0)
    canvas.text(block.left, block.top + 14, f"Energy per step, {unit}", Style(15, 700, theme.text))
    facts = ["modelled"] if found is None else [*energy_facts(found[0]), *filter(None, [found[0].word])]
    facts += [f"of {document.ranks} ranks"] if document.ranks > 1 else []
    room = block.width - text_width(f"Energy per step, {unit}", 15, 700) - 12
    said = elided(" · ".join(facts), room, 13)
    canvas.text(right, block.top + 14, said, Style(13, 400, theme.text2), AT_RIGHT)
    if found is None:
        without = document.basis.energy is None
        why = "no energy model for this machine" if without else "unknown: bytes or FLOPs are not all known"
        canvas.text(block.left, block.top + 44, why, Style(12, 400, theme.text2))
        return
    energy, parts = found
    per_j = block.width / max(energy.high * 1.08, 1e-12)
    x, bar_top = block.left, block.top + 34
    shown = [("weights", "W", parts.weights), ("KV", "K", parts.kv), ("compute", "C", parts.compute)]
    shown.append(("static", "", parts.static))
    free = block.left - 10
    for name, letter, joules in shown:
        area = QRectF(x, bar_top, joules * per_j, 28)
        if letter:
            canvas.fill(area, theme.kinds[letter].fill)
            canvas.frame(area, theme.kinds[letter].edge)
        else:
            canvas.hatch(area, STATIC, 6)
            canvas.frame(area, theme.static_hatch)
        value = Style(12, 600, theme.kinds[letter].label if letter else theme.text)
        text = f"{joules / factor:.2f}"
        if text_width(text, 12, 600) + 12 <= area.width():
            base = centred_baseline(area, value)
            if letter:
                canvas.text(area.left() + 7, base, text, value)
            else:
                canvas.halo_text(area.left() + 8, base, text, value)
        half = text_width(name, 11) / 2
        centre = max(area.center().x(), free + 6 + half)
        if joules > 0 and centre + half <= right:
            canvas.text(centre, bar_top + 44, name, Style(11, 400, theme.text2), CENTRE)
            free = centre + half
        x = area.right()
    y = bar_top + 66
    if worth_a_range(energy):
        low, mid, high = (block.left + v * per_j for v in (energy.low, energy.mid, energy.high))
        canvas.hline(low, high, y, theme.ink, 2)
        for at in (low, high):
            canvas.vline(at, y - 4, y + 6, theme.ink, 2)
        canvas.outline(QRectF(mid - 4, y - 3, 8, 8), theme.ink, 0, 4, theme.ink)
        _range_words(canvas, block, energy, (low, mid, high), y + 22)
    else:
        canvas.text(block.left, y + 8, f"{units.energy(energy.mid)} in all", Style(12, 600, theme.text))
    tokens = int(document.trace.steps.generated_tokens[step])
    if tokens > 0:
        said, _, rest = energy_words(energy.shared(tokens)).partition(", ")
        words = f"{said} per generated token"
        _strong_and_rest(canvas, QPointF(block.left, y + 52), block.width, words, rest)


def _strong_and_rest(canvas: Canvas, at: QPointF, room: float, strong: str, rest: str) -> None:
    """A strong figure and what belongs to it: beside it, or where the room ends before that, under it."""
    theme = canvas.theme
    width = canvas.text(at.x(), at.y(), strong, Style(13, 600, theme.text)) + 12
    style = Style(12, 400, theme.text2)
    if width + text_width(rest, style.px) <= room:
        canvas.text(at.x() + width, at.y(), rest, style)
    else:
        canvas.text(at.x(), at.y() + 18, elided(rest, room, style.px), style)


def _range_words(canvas: Canvas, block: Block, joules: Energy, at: tuple[float, float, float], base: float) -> None:
    named = (("low", joules.low), ("mid", joules.mid), ("high", joules.high))
    factor, unit = units.energy_unit(joules.mid)
    texts = [f"{name} {value / factor:.2f}" for name, value in named]
    texts[2] += f" {unit}"
    widths = [text_width(t, 12, 600) for t in texts]
    centres = list(at)
    centres[2] = min(centres[2], block.left + block.width - widths[2] / 2)
    centres[1] = min(centres[1], centres[2] - (widths[1] + widths[2]) / 2 - 10)
    centres[0] = max(min(centres[0], centres[1] - (widths[0] + widths[1]) / 2 - 10), block.left + widths[0] / 2)
    for i, (text, centre) in enumerate(zip(texts, centres, strict=True)):
        canvas.text(centre, base, text, Style(12, 600 if i == 1 else 400, canvas.theme.text), CENTRE)


def paint_all_steps(canvas: Canvas, block: Block, document: Document, view: ViewState) -> None:
    """Every step as a bar, the shown one framed, and the throughput with the batch it was reached at."""
    theme = canvas.theme
    right = block.left + block.width
    steps = document.trace.steps
    count = len(steps)
    title = f"All {count:,} steps" if count > 1 else "The only step"
    canvas.text(block.left, block.top + 14, title, Style(15, 700, theme.text))
    after = steps.decode & ~steps.warm_up
    if after.any():
        mean = f"mean {float(steps.duration[after].mean()) / 1e6:,.2f} ms"
        if steps.warm_up.any():
            mean += " after warm-up"
        canvas.text(right, block.top + 14, mean, Style(13, 400, theme.text2), AT_RIGHT)
    plot = QRectF(block.left + 26, block.top + 36, block.width - 26, 80)
    bars = step_bars(document, plot.width())
    top_ms = nice_top(scale_top(bars) / 1e6)
    for share in (0, 0.5, 1):
        y = plot.bottom() - share * plot.height()
        canvas.text(plot.left() - 6, y + 4, units.significant(share * top_ms, 6), Style(11, 400, theme.text2), AT_RIGHT)
        if share:
            canvas.hline(plot.left(), plot.right(), y, theme.grid)
    canvas.painter.save()
    canvas.painter.setClipRect(plot.adjusted(0, -2, 0, 0))
    paint_steps(canvas, plot, bars, top_ms * 1e6, document.has_floor and "floor" in view.overlays)
    canvas.painter.restore()
    if count == 1:
        _throughput(canvas, QPointF(block.left, plot.bottom() + 42), block.width, document, view)
        return
    x = plot.left() + view.step / count * plot.width()
    wide = max(plot.width() / count, 5.0)
    canvas.outline(QRectF(x - 1, plot.top() - 1, wide + 2, plot.height() + 2), theme.accent, 2, 2)
    number = Style(12, 600, theme.accent)
    half = text_width(f"{view.step:,}", 12, 600) / 2
    centre = min(max(x + wide / 2, plot.left() + half), plot.right() - half)
    canvas.text(centre, plot.bottom() + 15, f"{view.step:,}", number, CENTRE)
    if centre + half + 30 < plot.right():
        canvas.text(plot.right(), plot.bottom() + 15, f"{count - 1:,}", Style(11, 400, theme.text2), AT_RIGHT)
    _throughput(canvas, QPointF(block.left, plot.bottom() + 42), block.width, document, view)


def _throughput(canvas: Canvas, at: QPointF, room: float, document: Document, view: ViewState) -> None:
    steps, step = document.trace.steps, view.step
    tokens, batch = int(steps.generated_tokens[step]), int(steps.batch[step])
    took = int(steps.duration[step])
    if tokens <= 0 or batch <= 0 or not took:
        canvas.text(at.x(), at.y(), "throughput unknown: batch or tokens unknown", Style(12, 400, canvas.theme.text2))
        return
    accepted = "all accepted" if bool(steps.all_accepted[step]) else "acceptance unknown"
    words = f"{tokens:,} tok ÷ {units.millis(took)} ms, batch {batch:,}, {accepted}"
    _strong_and_rest(canvas, at, room, f"{tokens * 1e9 / took:,.0f} generated tok/s", words)
