"""The legend: every kind that appears with its letter, and what solid, hatched and the lines mean."""

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from tracescope.lod.planes import KIND_INDEX, KIND_OF_PLANE
from tracescope.ui.document import Document
from tracescope.ui.paint.bar_style import LETTERS
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.paint.hatch import GAP
from tracescope.ui.rows import TITLES
from tracescope.ui.theme import Theme
from tracescope.ui.view_state import ViewState


def kinds_present(document: Document) -> frozenset[int]:
    """Indices into ``KINDS`` of the kinds that any event of the trace has."""
    counts = np.bincount(document.trace.events.category, minlength=len(KIND_INDEX))
    return frozenset(KIND_INDEX[counts > 0].tolist())


def paint_legend(
    painter: QPainter, rect: QRectF, document: Document, view: ViewState, theme: Theme, scale: float
) -> None:
    """One line of entries from the left of ``rect``, its baseline in the middle of the height."""
    canvas = Canvas(painter, theme, scale)
    canvas.begin()
    style = Style(12, 400, theme.text)
    x, base = rect.left(), rect.center().y() + 4
    reads = document.reads(view.step) if view.step >= 0 else {}
    kinds = document.remembered("kinds", 0, lambda: kinds_present(document))
    for plane, kind in KIND_OF_PLANE.items():
        if reads.get(plane) or (view.step < 0 and kind in kinds):
            canvas.chip(x, base - 12, LETTERS[kind], 15)
            title = TITLES[plane]
            lower = title if title.startswith("KV") else title[0].lower() + title[1:]
            x += 21 + canvas.text(x + 21, base, lower, style) + 20
    if not document.has_floor:
        canvas.dashed(x, x + 24, base - 11, theme.muted, 2, 3)
        canvas.dashed(x, x + 24, base - 1, theme.muted, 2, 3)
        canvas.text(x + 30, base, "no floor known", style)
        return
    swatch = QRectF(x, base - 11, 24, 12)
    canvas.fill(swatch, theme.kinds["W"].fill)
    canvas.frame(swatch, theme.kinds["W"].edge)
    x += 30 + canvas.text(x + 30, base, "bytes ÷ bandwidth", style) + 20
    swatch = QRectF(x, base - 11, 24, 12)
    canvas.hatch(swatch, "W", 6)
    canvas.frame(swatch, theme.kinds["W"].edge)
    x += 30 + canvas.text(x + 30, base, "above the floor", style) + 20
    swatch = QRectF(x, base - 11, 24, 12)
    canvas.hatch(swatch, GAP, 6)
    canvas.frame(swatch, theme.ink)
    x += 30 + canvas.text(x + 30, base, "nothing running", style) + 20
    canvas.hline(x, x + 24, base - 6, theme.ink, 2.5)
    canvas.text(x + 30, base, "floor of all ops in series", style)
