"""The blocks of the inspector, each with a height and a paint function; a painted block says what a click hits."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF

from tracescope.core.category import KIND_OF_CATEGORY, KINDS, Category, Op
from tracescope.core.units import duration, energy, energy_unit, micros, percent, signed_duration
from tracescope.floor.energy import energy_facts, energy_words, worth_a_range
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.canvas import CENTRE, RIGHT, Canvas, Style
from tracescope.ui.paint.hatch import GAP
from tracescope.ui.theme import colour
from tracescope.view.document import Document
from tracescope.view.floor_words import share_text
from tracescope.view.inspection import Inspection
from tracescope.view.step_facts import StepFacts
from tracescope.view.view_state import ViewState

PAD = 14
_LABEL = 66
_ROW = 18
_LETTERS = frozenset(kind.letter for kind in KINDS)
"""A row whose label is one of these is of that kind and bears its chip."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What a click on a part of the inspector leads to: an event, or the same op in another layer."""

    to_event: int = -1
    to_layer: int = -1

    def event(self, document: Document, view: ViewState) -> int:
        """The event to select, -1 where it cannot be found."""
        if self.to_event >= 0 or self.to_layer < 0 or view.event < 0:
            return self.to_event
        events = document.trace.events
        ids = document.breakdown(int(events.step[view.event])).events
        same = events.op[ids] == events.op[view.event]
        if events.op[view.event] == Op.NONE:
            same = events.name[ids] == events.name[view.event]
        found = ids[same & (events.layer[ids] == self.to_layer)]
        return int(found[0]) if len(found) else -1


Hits = list[tuple[QRectF, Hit]]


@dataclass(frozen=True, slots=True)
class Block:
    """One part of the inspector."""

    height: int
    paint: Callable[[Canvas, QRectF], Hits]


def height_of(blocks: tuple[Block, ...]) -> int:
    """The height of all blocks."""
    return sum(block.height for block in blocks)


def blocks_of(shown: Inspection, *, energy: bool) -> tuple[Block, ...]:
    """The blocks of an inspection; ``energy``: whether the energy overlay is on."""
    blocks = [Block(56, lambda c, r: _head(c, r, shown)), Block(42, lambda c, r: _figures(c, r, shown))]
    if shown.share is not None and (shown.category is not None or shown.facts is not None):
        blocks.append(Block(34, lambda c, r: _bar(c, r, shown)))
    blocks.append(Block(34 + _ROW * len(shown.rows), lambda c, r: _arithmetic(c, r, shown)))
    if energy and shown.energy is not None:
        blocks.append(Block(84, lambda c, r: _energy(c, r, shown)))
    if shown.waits:
        blocks.append(Block(34 + 20 * len(shown.waits), lambda c, r: _waits(c, r, shown)))
    if shown.twins is not None and len(shown.twins.layers) > 1:
        blocks.append(Block(106, lambda c, r: _twins(c, r, shown)))
    if shown.details:
        blocks.append(Block(28, lambda c, r: _section(c, r, "Recorded", "")))
    return tuple(blocks)


def _section(canvas: Canvas, area: QRectF, title: str, note: str) -> Hits:
    t = canvas.theme
    canvas.text(area.left(), area.top() + 18, title, Style(11, 600, t.text2))
    if note:
        canvas.text(area.right(), area.top() + 18, note, Style(10, 400, t.muted), RIGHT)
    canvas.hline(area.left(), area.right(), area.top() + 23, t.grid)
    return []


def _head(canvas: Canvas, area: QRectF, shown: Inspection) -> Hits:
    t = canvas.theme
    left = area.left()
    if shown.category is not None:
        canvas.chip(left, area.top() + 12, KIND_OF_CATEGORY[shown.category].letter, 20)
        left += 28
    room = area.right() - left
    canvas.text_in(QRectF(left, area.top() + 9, room, 22), shown.title, Style(15, 700, t.text))
    canvas.text_in(QRectF(left, area.top() + 31, room, 16), shown.subtitle, Style(11, 400, t.text2))
    return []


def _figures(canvas: Canvas, area: QRectF, shown: Inspection) -> Hits:
    t = canvas.theme
    gap = shown.gap_ns
    figures = [(duration(shown.took_ns), "took")]
    if gap is None:
        figures.append(("none", "floor"))
    else:
        figures.append((duration(shown.floor_ns), "floor"))
        figures.append((signed_duration(gap), "gap" if gap >= 0 else "below its floor"))
    width = area.width() / 3
    for i, (value, name) in enumerate(figures):
        left = area.left() + i * width
        canvas.text_in(QRectF(left, area.top() + 2, width, 20), value, Style(17, 700, t.text))
        canvas.text(left, area.top() + 34, name, Style(11, 400, t.text2))
    return []


def _bar(canvas: Canvas, area: QRectF, shown: Inspection) -> Hits:
    t = canvas.theme
    bar = QRectF(area.left(), area.top() + 6, area.width(), 18)
    share = shown.share or 0.0
    letter = KIND_OF_CATEGORY[shown.category].letter if shown.category is not None else "W"
    kind = t.kinds[letter]
    at = bar.left() + bar.width() * min(1.0, share)
    canvas.fill(bar, t.panel)
    if shown.facts is not None:
        _step_parts(canvas, bar, shown.facts)
    else:
        canvas.hatch(bar, letter, 6)
        canvas.fill(QRectF(bar.left(), bar.top(), at - bar.left(), bar.height()), kind.fill)
        canvas.frame(bar, kind.edge)
    digits = 1 if shown.facts is not None else 0  # as in the step bar: the two must agree
    said = percent(share, digits) if digits else share_text(share)
    text = f"{said} of floor speed" if share <= 1 else f"faster than its floor ({percent(share, digits)})"
    inside = text_width(text, 11, 600) + 16 <= at - bar.left()
    if inside:
        canvas.text_in(bar.adjusted(8, 0, 0, 0), text, Style(11, 600, kind.label))
    if share < 1:
        canvas.vline(at, bar.top() - 3, bar.bottom() + 3, t.ink, 2)
    if not inside:
        canvas.halo_text(at + 8, bar.bottom() - 5, text, Style(11, 600, t.text))
    return []


def _step_parts(canvas: Canvas, bar: QRectF, facts: StepFacts) -> None:
    """A step's floor by kind, solid, and its gap by cause, hatched, as the step bar draws them."""
    t = canvas.theme
    scale = bar.width() / max(1, facts.duration_ns, facts.floor_ns or 0)
    x = bar.left()
    for part in facts.parts:
        area = QRectF(x, bar.top(), part.ns * scale, bar.height())
        canvas.fill(area, t.kinds[part.letter].fill)
        canvas.frame(area, t.kinds[part.letter].edge)
        x = area.right()
    costing = [gap for gap in facts.gaps if gap.ns > 0]
    room, total = bar.right() - x, sum(gap.ns for gap in costing)
    for gap in costing if room > 0 else []:
        area = QRectF(x, bar.top(), room * gap.ns / total, bar.height())
        canvas.hatch(area, gap.letter or GAP, 5)
        canvas.frame(area, t.kinds[gap.letter].edge if gap.letter else t.ink)
        x = area.right()


def _arithmetic(canvas: Canvas, area: QRectF, shown: Inspection) -> Hits:
    t = canvas.theme
    _section(canvas, area, "Arithmetic", "")
    y = area.top() + 28
    for label, expression, result in shown.rows:
        row = QRectF(area.left(), y, area.width(), _ROW)
        if label in _LETTERS:
            canvas.chip(row.left(), y + 2, label, 14)
        else:
            canvas.text_in(QRectF(row.left(), y, _LABEL, _ROW), label, Style(11, 400, t.text2))
        width = text_width(result, 11, 600)
        canvas.text_in(QRectF(row.right() - width - 1, y, width + 1, _ROW), result, Style(11, 600, t.text), RIGHT)
        room = row.width() - _LABEL - width - 8
        canvas.text_in(QRectF(row.left() + _LABEL, y, room, _ROW), expression, Style(11, 400, t.text))
        y += _ROW
    return []


def _energy(canvas: Canvas, area: QRectF, shown: Inspection) -> Hits:
    t, joules = canvas.theme, shown.energy
    if joules is None:
        return []
    whose = [f"{shown.ranks} ranks"] if shown.ranks > 1 else []
    _section(canvas, area, "Energy", ", ".join([*whose, *energy_facts(joules)]))
    scale = area.width() / max(joules.high, 1e-30)
    top = area.top() + 31
    mid = QRectF(area.left(), top, joules.mid * scale, 11)
    left = area.left()
    for letter, part in shown.energy_parts:
        piece = QRectF(left, top, part * scale, 11)
        if letter == "static":
            canvas.hatch(piece, "static", 4)
        else:
            canvas.fill(piece, t.kinds[letter].fill)
        left = piece.right()
    canvas.frame(mid, t.border)
    text = energy_words(joules) if joules.word else energy(joules.mid)
    if worth_a_range(joules):
        y = top + 16
        low, high = area.left() + joules.low * scale, area.left() + joules.high * scale
        canvas.hline(low, high, y, t.ink, 1)
        canvas.vline(low + 0.5, y - 2, y + 3, t.ink)
        canvas.vline(high - 0.5, y - 2, y + 3, t.ink)
        canvas.polygon(_dot(mid.right(), y + 0.5), colour(t.ink))
        text = energy_words(joules)
    canvas.text_in(QRectF(area.left(), top + 20, area.width(), 16), text, Style(11, 400, t.text))
    names = {"W": "weights", "K": "KV", "C": "compute", "X": "link", "static": "static"}
    factor, unit = energy_unit(joules.mid)
    digits = 3 if unit == "J" else 1
    terms = [f"{names[letter]} {part / factor:.{digits}f}" for letter, part in shown.energy_parts if part > 0]
    parts = f"{' + '.join(terms)} {unit}"
    canvas.text_in(QRectF(area.left(), top + 35, area.width(), 16), parts, Style(10, 400, t.text2))
    return []


def _dot(x: float, y: float) -> list[QPointF]:
    angles = np.linspace(0, 2 * np.pi, 13)[:-1]
    return [QPointF(x + 3 * float(np.cos(a)), y + 3 * float(np.sin(a))) for a in angles]


def _waits(canvas: Canvas, area: QRectF, shown: Inspection) -> Hits:
    t = canvas.theme
    _section(canvas, area, "Dependencies", "")
    hits: Hits = []
    heading = ""
    y = area.top() + 28
    for wait in shown.waits:
        row = QRectF(area.left(), y, area.width(), 20)
        if wait.heading != heading:
            heading = wait.heading
            canvas.text_in(QRectF(row.left(), y, _LABEL, 20), heading, Style(11, 400, t.text2))
        canvas.chip(row.left() + _LABEL, y + 3, KIND_OF_CATEGORY[Category(wait.category)].letter, 14)
        left = row.left() + _LABEL + 20
        reason = text_width(wait.reason, 11, 400)
        canvas.text_in(QRectF(left, y, row.right() - left - reason - 8, 20), wait.title, Style(11, 600, t.text))
        canvas.text_in(QRectF(row.right() - reason - 1, y, reason + 1, 20), wait.reason, Style(11, 400, t.text2), RIGHT)
        hits.append((row, Hit(to_event=wait.event)))
        y += 20
    return hits


def _twins(canvas: Canvas, area: QRectF, shown: Inspection) -> Hits:
    t, twins = canvas.theme, shown.twins
    if twins is None or shown.category is None:
        return []
    name = shown.title.split(" · ", maxsplit=1)[0]
    _section(canvas, area, "Same op in every layer", f"{name}, µs")
    letter = KIND_OF_CATEGORY[shown.category].letter
    kind = t.kinds[letter]
    count = len(twins.layers)
    largest = max(int(twins.exposed_ns.max()), int(twins.floor_ns.max()), 1)
    plot = QRectF(area.left(), area.top() + 42, area.width(), 46)
    pitch = plot.width() / count
    hits: Hits = []
    for i in range(count):
        left, right = round(plot.left() + i * pitch), round(plot.left() + (i + 1) * pitch) - (1 if pitch > 4 else 0)
        took, floor = int(twins.exposed_ns[i]), int(twins.floor_ns[i])
        top = plot.bottom() - plot.height() * took / largest
        bar = QRectF(left, top, right - left, plot.bottom() - top)
        solid = plot.bottom() - plot.height() * min(took, floor) / largest
        if not twins.floor_known[i]:
            canvas.fill(bar, kind.tint)
            canvas.frame(bar, kind.edge)
        else:
            canvas.hatch(bar, letter, 4)
            canvas.fill(QRectF(left, solid, right - left, plot.bottom() - solid), kind.fill)
        if i == twins.current:
            canvas.outline(bar.adjusted(-1.5, -1.5, 1.5, 1.5), t.accent, 2, 2)
        hits.append((QRectF(left, plot.top(), pitch, plot.height()), Hit(to_layer=int(twins.layers[i]))))
    if twins.floor_known.any():
        y = plot.bottom() - plot.height() * float(np.median(twins.floor_ns[twins.floor_known])) / largest
        canvas.hline(plot.left(), plot.right(), y - 1, t.ink, 2)
    worst = int(np.argmax(twins.exposed_ns))
    marks = {0: "", count - 1: ""}
    if twins.current >= 0:
        marks[twins.current] = ""
    marks.setdefault(worst, "")
    _twin_labels(canvas, plot, pitch, [int(n) for n in twins.layers], sorted(marks), twins.current)
    at = plot.left() + (worst + 0.5) * pitch
    text = micros(int(twins.exposed_ns[worst]))
    width = text_width(text, 10, 600)
    at = min(max(at, plot.left() + width / 2), plot.right() - width / 2)
    canvas.text(at, plot.top() - 4, text, Style(10, 600, t.text), CENTRE)
    return hits


def _twin_labels(canvas: Canvas, plot: QRectF, pitch: float, layers: list[int], marks: list[int], current: int) -> None:  # noqa: PLR0917
    """Layer numbers under some bars; one that would touch an earlier one is left out, the current one never."""
    t = canvas.theme
    taken: list[tuple[float, float]] = []
    for i in sorted(marks, key=lambda m: m != current):
        text = str(layers[i])
        half = text_width(text, 10, 600) / 2
        x = min(max(plot.left() + (i + 0.5) * pitch, plot.left() + half), plot.right() - half)
        if any(x - half < high + 4 and x + half > low - 4 for low, high in taken):
            continue
        taken.append((x - half, x + half))
        strong = i == current
        style = Style(10, 600, t.text) if strong else Style(10, 400, t.muted)
        canvas.text(x, plot.bottom() + 14, text, style, CENTRE)
