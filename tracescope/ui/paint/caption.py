"""The caption under a picture: as many lines as it takes, the version at the right of the last."""

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from tracescope.ui.fonts import text_width
from tracescope.ui.paint.canvas import RIGHT as AT_RIGHT
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.theme import Theme
from tracescope.view.document import Document
from tracescope.view.picture_words import caption_parts, version_words, wrapped
from tracescope.view.view_state import ViewState

LINE: float = 18
PX: float = 11


def caption_lines(document: Document, view: ViewState, width: float, left_out: tuple[str, ...] = ()) -> list[str]:
    """The caption broken into lines of at most ``width`` px, room for the version left in each."""
    room = width - text_width(version_words(), PX) - 30

    def wide(text: str) -> float:
        return text_width(text, PX)

    lines: list[str] = []
    for line in wrapped(caption_parts(document, view, left_out), wide, room):
        lines += [line] if wide(line) <= room else wrapped(tuple(line.split(" ")), wide, room, between=" ")
    return lines


def paint_caption(painter: QPainter, rect: QRectF, lines: tuple[str, ...], theme: Theme, scale: float) -> None:
    """The caption's lines from the top of ``rect``."""
    canvas = Canvas(painter, theme, scale)
    canvas.begin()
    style = Style(PX, 400, theme.text2)
    base = rect.top() + 12
    for line in lines:
        canvas.text(rect.left(), base, line, style)
        base += LINE
    canvas.text(rect.right(), base - LINE, version_words(), style, AT_RIGHT)
