"""Beside a row: its name and what it holds at the left, its figures at the right."""

from PySide6.QtCore import QRectF

from tracescope.lod.planes import Plane
from tracescope.ui.paint.canvas import Canvas, Style, centred_baseline
from tracescope.ui.paint.geometry import GUTTER, PAD, split
from tracescope.view.lane_rows import Row


def paint_names(canvas: Canvas, row: Row, rect: QRectF) -> None:
    """The gutter of one row: letter chip, name, and a second line where the row is high enough."""
    theme = canvas.theme
    left = rect.left() + PAD
    if row.plane is Plane.PATH:
        canvas.text(left, rect.top() + 20, row.title, Style(13, 700, theme.text))
        if rect.height() >= 50:
            canvas.text(left, rect.top() + 35, "solid = floor", Style(10, 400, theme.text2))
            canvas.text(left, rect.top() + 48, "hatched = above floor", Style(10, 400, theme.text2))
        return
    muted = bool(row.empty)
    if not row.letter:
        area = QRectF(left, rect.top(), GUTTER - 2 * PAD, rect.height())
        canvas.text_in(area, row.title, Style(10, 400, theme.text2))
        return
    two_lines = bool(row.subtitle) and rect.height() >= 30 and not muted
    y = rect.center().y() - (15 if two_lines else 7)
    canvas.chip(left, y, row.letter)
    canvas.text(left + 20, y + 11.5, row.title, Style(12, 500, theme.muted if muted else theme.text))
    if two_lines:
        area = QRectF(left + 20, y + 15, GUTTER - 20 - PAD - 4, 13)
        canvas.text_in(area, row.subtitle, Style(10, 400, theme.text2))


def paint_figures(canvas: Canvas, row: Row, rect: QRectF, said: tuple[str, str]) -> None:
    """The results column of one row: a bold figure and a small one under it."""
    if row.empty:
        return
    bold, small = said
    left = split(rect).right.left() + 8
    middle = rect.center().y()
    if bold and small and rect.height() >= 30:
        canvas.text(left, middle - 2, bold, Style(11, 600, canvas.theme.text))
        canvas.text(left, middle + 11, small, Style(10, 400, canvas.theme.text2))
    elif bold or small:
        style = Style(11, 600, canvas.theme.text) if bold else Style(10, 400, canvas.theme.text2)
        canvas.text(left, centred_baseline(rect, style), bold or small, style)
