"""The picture of what is being looked at, as a file or for the clipboard, through the one renderer."""

from pathlib import Path

from PySide6.QtGui import QImage

from tracescope.ui.picture import render_picture, save_png
from tracescope.ui.theme import LIGHT
from tracescope.view.document import Document
from tracescope.view.view_state import ViewState

SIZE = (1600, 900)
"""Logical pixels of an exported picture; the file has this times the scale."""


def copy_image(document: Document, view: ViewState, scale: float) -> QImage:
    """The picture, always on light: it is for reports."""
    return render_picture(document, view, SIZE, scale, LIGHT)


def export_image(path: Path, document: Document, view: ViewState, scale: float) -> None:
    """Write the picture as PNG with its caption. Raises TraceError where the file cannot be written."""
    save_png(copy_image(document, view, scale), path, view, document)
