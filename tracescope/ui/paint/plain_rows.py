"""Rows of plain tracks, of which there may be hundreds: fetched, composed and labelled together."""

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRectF

from tracescope.lod.plain_lanes import PlainLanes
from tracescope.ui.paint.bar_pixels import grid_of
from tracescope.ui.paint.bar_style import BarStyle, Marks, place
from tracescope.ui.paint.bars import paint_rows
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.folded import column_fills, stack_levels
from tracescope.ui.paint.geometry import TimeScale
from tracescope.ui.paint.pixels import Pixels, stacked
from tracescope.view.document import Document
from tracescope.view.lane_labels import event_labels
from tracescope.view.view_state import ViewState


def paint_plain_lanes(
    canvas: Canvas, lanes: Sequence[int], bands: Sequence[QRectF], document: Document, view: ViewState,
    time: TimeScale, marks: Marks,
) -> None:  # fmt: skip
    """The lanes ``lanes`` of the trace, each in its band; the bands are equally high."""
    on_device = document.trace.on_device
    for plain in (True, False):
        rows = [i for i, lane in enumerate(lanes) if plain is not (document.has_steps and bool(on_device[lane]))]
        if rows:
            chosen, own = [lanes[i] for i in rows], [bands[i] for i in rows]
            _paint(canvas, chosen, own, document, view, time, marks, plain=plain)


def _paint(
    canvas: Canvas, lanes: Sequence[int], bands: Sequence[QRectF], document: Document, view: ViewState,
    time: TimeScale, marks: Marks, *, plain: bool,
) -> None:  # fmt: skip
    tracks = document.tracks(tuple(lanes), view.visible, max(1, round(time.width)))
    style = BarStyle(
        pitch=5, floor="floor" in view.overlays, rail=False, ticks=True, plain=plain, label_px=10,
        labels=event_labels(document),
    )  # fmt: skip
    under = _folded(canvas, bands, tracks, time) if len(tracks.folded) else None
    paint_rows(canvas, bands, tracks.bars, tracks.row, time, style, marks, under)


def _folded(canvas: Canvas, bands: Sequence[QRectF], tracks: PlainLanes, time: TimeScale) -> Pixels:
    """The folded lanes as pale stacks, side by side with room for the others."""
    grid = grid_of(bands, place(tracks.bars.taken(np.empty(0, np.int64)), time, canvas.scale), 5, canvas.scale)
    kinds, count, columns = tracks.share.shape
    edges = np.cumsum(tracks.share.reshape(kinds, count * columns), axis=0, dtype=np.float64)
    fills = column_fills(canvas.theme, floor=False, pale=True)
    shown = [fills[kind] for kind in tracks.kinds]
    levels = stack_levels(edges, grid.height, grid.width * count)
    pixels = stacked(levels, grid.height, shown, canvas.theme, canvas.scale)
    if count == len(bands):
        return pixels
    under = np.zeros((grid.height, len(bands), grid.width), np.uint32)
    under[:, tracks.folded] = pixels.reshape(grid.height, count, grid.width)
    return under.reshape(grid.height, grid.columns)
