"""The legend: every kind that appears with its letter, and what solid, hatched and the lines mean."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from tracescope.lod.planes import KIND_INDEX, KIND_OF_PLANE
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.bar_style import LETTERS
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.paint.hatch import GAP
from tracescope.ui.theme import Theme
from tracescope.view.document import Document
from tracescope.view.lane_rows import TITLES
from tracescope.view.view_state import ViewState

ROW: Final = 26
"""Height of one row of entries."""
_BETWEEN: Final = 20
_PX: Final = 12
_CHIP, _SWATCH = 21, 30
"""Room for a chip and for a swatch before the words."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its words and what stands before them, a kind's letter or the name of a swatch."""

    words: str
    letter: str = ""
    swatch: str = ""

    @property
    def width(self) -> float:
        """Px of the mark and the words."""
        return (_CHIP if self.letter else _SWATCH) + text_width(self.words, _PX)


def kinds_present(document: Document) -> frozenset[int]:
    """Indices into ``KINDS`` of the kinds that any event of the trace has. Plain events have none."""
    categories = document.trace.events.category
    if not document.has_steps:
        categories = categories[~document.plain_events]
    counts = np.bincount(categories, minlength=len(KIND_INDEX))
    return frozenset(KIND_INDEX[counts > 0].tolist())


def entries_of(document: Document, view: ViewState) -> tuple[Entry, ...]:
    """What a view needs explained: its kinds, then what solid, hatched and the lines mean."""
    reads = document.reads(view.step) if view.step >= 0 else {}
    kinds = document.remembered("kinds", 0, lambda: kinds_present(document))
    entries = []
    for plane, kind in KIND_OF_PLANE.items():
        if reads.get(plane) or (view.step < 0 and kind in kinds):
            title = TITLES[plane]
            words = title if title.startswith("KV") else title[0].lower() + title[1:]
            entries.append(Entry(words, letter=LETTERS[kind]))
    if view.step < 0 and not entries:
        return ()
    if not document.has_floor:
        return (*entries, Entry("no floor known", swatch="unknown"))
    entries.append(Entry("bytes ÷ bandwidth", swatch="solid"))
    entries.append(Entry("above the floor", swatch="hatched"))
    if view.step >= 0:
        entries.append(Entry("nothing running", swatch="gap"))
        entries.append(Entry("floor of all ops in series", swatch="line"))
    return tuple(entries)


def legend_rows(document: Document, view: ViewState, width: float) -> tuple[tuple[Entry, ...], ...]:
    """The entries in rows of at most ``width`` px."""
    rows: list[list[Entry]] = []
    used = 0.0
    for entry in entries_of(document, view):
        if not rows or used + _BETWEEN + entry.width > width:
            rows.append([])
            used = -_BETWEEN
        rows[-1].append(entry)
        used += _BETWEEN + entry.width
    return tuple(tuple(row) for row in rows)


def paint_legend(
    painter: QPainter, rect: QRectF, document: Document, view: ViewState, theme: Theme, scale: float
) -> None:
    """Rows of entries from the left of ``rect``, the first one's baseline in the middle of its height."""
    canvas = Canvas(painter, theme, scale)
    canvas.begin()
    style = Style(_PX, 400, theme.text)
    base = rect.center().y() + 4
    for row in legend_rows(document, view, rect.width()):
        x = rect.left()
        for entry in row:
            if entry.letter:
                canvas.chip(x, base - 12, entry.letter, 15)
            else:
                _swatch(canvas, QRectF(x, base - 11, 24, 12), entry.swatch)
            canvas.text(x + (_CHIP if entry.letter else _SWATCH), base, entry.words, style)
            x += entry.width + _BETWEEN
        base += ROW


def _swatch(canvas: Canvas, area: QRectF, name: str) -> None:
    theme = canvas.theme
    if name == "unknown":
        for y in (area.top(), area.bottom() - 2):
            canvas.dashed(area.left(), area.right(), y, theme.muted, 2, 3)
    elif name == "line":
        canvas.hline(area.left(), area.right(), area.top() + 5, theme.ink, 2.5)
    elif name == "gap":
        canvas.hatch(area, GAP, 6)
        canvas.frame(area, theme.ink)
    else:
        if name == "solid":
            canvas.fill(area, theme.kinds["W"].fill)
        else:
            canvas.hatch(area, "W", 6)
        canvas.frame(area, theme.kinds["W"].edge)
