"""The picture for reviews: composed from the same paint functions as the window, with its view inside the file."""

import os
from pathlib import Path
from typing import Any, Final

import msgspec
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter, QPainter

from tracescope.core import units
from tracescope.core.errors import TraceError
from tracescope.io.atomic import write_atomically
from tracescope.ui.fonts import elided, register_fonts
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.paint.caption import LINE, paint_caption
from tracescope.ui.paint.legend import paint_legend
from tracescope.ui.paint.report_blocks import (
    paint_all_steps,
    paint_energy_of_step,
    paint_gap_causes,
    paint_in_order,
)
from tracescope.ui.paint.report_lanes import Block, paint_floor, paint_report_lanes
from tracescope.ui.paint.report_plan import (
    FLOOR,
    MARGIN,
    RUN_LINE,
    RUN_PX,
    TITLE_LINE,
    TITLE_PX,
    Plan,
    plan_picture,
)
from tracescope.ui.theme import LIGHT, Theme, colour
from tracescope.view.document import Document
from tracescope.view.picture_words import caption_parts, sha256_of, version_words
from tracescope.view.view_state import ViewState

SIZE: Final = (1600, 900)
SMALLEST: Final = (960, 720)
LARGEST_SIDE: Final = 16_384
MOST_PIXELS: Final = 100_000_000
TEXT_KEY: Final = "tracescope"
"""The key of the PNG text chunk that holds the view."""
_kept: Final[list[QGuiApplication]] = []
"""The application made for drawing lives as long as the process."""
_PAINTS: Final = {"causes": paint_gap_causes, "energy": paint_energy_of_step, "steps": paint_all_steps}


def check_size(size: tuple[int, int], scale: float) -> None:
    """Refuse a picture that would be unreadable or would not fit into memory, in one sentence."""
    width, height = size
    if width < SMALLEST[0] or height < SMALLEST[1]:
        raise TraceError(
            f"a picture of {width}x{height} is too small to read", action=f"Use at least {SMALLEST[0]}x{SMALLEST[1]}."
        )
    if not 1 <= scale <= 4:
        raise TraceError(f"a scale of {units.significant(scale, 6)} is not possible", action="Use a scale from 1 to 4.")
    wide, high = width * scale, height * scale
    if max(wide, high) > LARGEST_SIDE or wide * high > MOST_PIXELS:
        raise TraceError(
            f"a picture of {wide:.0f}x{high:.0f} pixels is too large",
            action=f"Use at most {LARGEST_SIDE} a side and {MOST_PIXELS // 10**6} million pixels in all.",
        )


def render_picture(
    document: Document, view: ViewState, size: tuple[int, int] = SIZE, scale: float = 1.0, theme: Theme = LIGHT
) -> QImage:
    """Draw ``view`` in ``size`` logical px; the image has size x scale pixels. Raises TraceError for absurd sizes.

    The lanes show the whole current step, or ``view.selection`` where a range is chosen; without steps the visible
    range. Needs a QGuiApplication.
    """
    check_size(size, scale)
    register_fonts()
    # A picture much larger than the design is the same picture with everything larger, not with more empty room.
    grow = max(1.0, min(size[0] / SIZE[0], size[1] / SIZE[1]))
    image = QImage(round(size[0] * scale), round(size[1] * scale), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale * grow)
    image.fill(colour(theme.panel))
    painter = QPainter(image)
    canvas = Canvas(painter, theme, scale * grow)
    try:
        _compose(canvas, document, _pictured(document, view), size[0] / grow, size[1] / grow)
    finally:  # Qt aborts when an image goes while it is painted on
        painter.end()
    image.setDevicePixelRatio(1.0)
    image.setText(TEXT_KEY, payload(document, view))
    return image


def _pictured(document: Document, view: ViewState) -> ViewState:
    if view.selection is not None:
        return view.with_(visible=view.selection, selection=None, playhead=None)
    if view.step >= 0:
        return view.with_(visible=document.step_range(view.step), playhead=None)
    return view.with_(playhead=None)


def _compose(canvas: Canvas, document: Document, view: ViewState, full_width: float, height: float) -> None:
    painter, theme, scale = canvas.painter, canvas.theme, canvas.scale
    canvas.begin()
    plan = plan_picture(document, view, full_width, height)
    width = full_width - 2 * MARGIN
    title, line = Style(TITLE_PX, 700, theme.text), Style(RUN_PX, 400, theme.text2)
    y = 52.0
    for text in plan.headline:
        canvas.text(MARGIN, y, elided(text, width, title.px, title.weight), title)
        y += TITLE_LINE
    y += 26 - TITLE_LINE
    for text in plan.run:
        canvas.text(MARGIN, y, elided(text, width, line.px, line.weight), line)
        y += RUN_LINE
    _upper(canvas, document, view, plan, width)
    if plan.in_order is not None:
        paint_in_order(canvas, Block(MARGIN, plan.in_order, width), document, view)
    for top, keys in plan.blocks:
        for i, key in enumerate(keys):
            # Blocks that are narrower than their share of the picture stand at even distances.
            left = MARGIN + i * (width - plan.block_width) / max(1, len(plan.blocks[0][1]) - 1)
            _PAINTS[key](canvas, Block(left, top, plan.block_width), document, view)
    canvas.hline(MARGIN, MARGIN + width, plan.rule, theme.border)
    legend = QRectF(MARGIN, plan.rule + 6, width, 26)
    paint_legend(painter, legend, document, view, theme, scale)
    foot = height - 22 - len(plan.caption) * LINE
    paint_caption(painter, QRectF(MARGIN, foot, width, len(plan.caption) * LINE), plan.caption, theme, scale)


def _upper(canvas: Canvas, document: Document, view: ViewState, plan: Plan, width: float) -> None:
    """Floor bar and lanes."""
    if view.step < 0:
        room = plan.rule - plan.top - 10
        paint_report_lanes(canvas, Block(MARGIN, plan.top + 10, width), document, view, room, plan.stretch)
        return
    whole = view.visible == document.step_range(view.step)
    lanes = Block(MARGIN, plan.top + FLOOR, width)
    bottom = paint_report_lanes(canvas, lanes, document, view, plan.rule - lanes.top, plan.stretch)
    # The line crosses the lanes only where both share the time axis; drawn last, it stays on top of them.
    crosses = whole and "floor" in view.overlays
    paint_floor(canvas, Block(MARGIN, plan.top, width), document, view, bottom if crosses else lanes.top - 10)


def payload(document: Document, view: ViewState) -> str:
    """The view as JSON, with the hash of the trace it belongs to: what a dropped picture is restored from."""
    content = {
        "format": 1,
        "made_by": version_words(),
        "name": document.name,
        "sha256": sha256_of(document),
        "caption": list(caption_parts(document, view)),
        "view": view.to_json(),
    }
    return msgspec.json.encode(content).decode()


def view_in_picture(path: Path) -> tuple[ViewState, dict[str, Any]]:
    """The view stored in a picture and the rest of its payload. Raises TraceError where the file holds none."""
    text = QImage(str(path)).text(TEXT_KEY)
    try:
        content = msgspec.json.decode(text.encode()) if text else None
        if not isinstance(content, dict):
            raise ValueError("no payload")
        return ViewState.from_json(content["view"]), content
    except (ValueError, KeyError, TypeError, msgspec.DecodeError) as error:
        raise TraceError(f"{path.name} is not a picture made by tracescope") from error


def png_bytes(image: QImage) -> bytes:
    """The image as PNG with its text chunk; the same bytes for the same image."""
    buffer = QBuffer()  # with an array of its own: one made here could be gone before the buffer
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(b"png"))
    if not writer.write(image):
        raise TraceError(f"the picture could not be encoded as PNG: {writer.errorString()}")
    return bytes(buffer.data().data())


def save_png(image: QImage, path: Path, view: ViewState, document: Document) -> None:
    """Write ``image`` with its view to ``path``: whole or not at all. Raises TraceError where it cannot be written."""
    image.setText(TEXT_KEY, payload(document, view))
    write_atomically(path, png_bytes(image))


def offscreen_application() -> QGuiApplication:
    """The Qt application for drawing without a window, made when there is none."""
    existing = QGuiApplication.instance()
    if isinstance(existing, QGuiApplication):
        return existing
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    _kept.append(QGuiApplication(["tracescope"]))
    return _kept[-1]
