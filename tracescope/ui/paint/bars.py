"""The event bar: solid up to the floor, hatched above it, a rail under the floor; and what becomes of it when small."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF

from tracescope.core.category import KINDS
from tracescope.core.columns import I64, Bool
from tracescope.lod.fold import Bars
from tracescope.ui.fonts import text_width
from tracescope.ui.paint.canvas import CENTRE, Canvas, Style, centred_baseline
from tracescope.ui.paint.geometry import FULL_BAR_PX, THIN_BAR_PX, TimeScale
from tracescope.ui.paint.hatch import INK
from tracescope.ui.theme import colour, mixed

LETTERS: Final = tuple(kind.letter for kind in KINDS)
RAIL: Final = 2
RAIL_GAP: Final = 2
SMALL: Final = 0.55
"""How much of its colour a bar under 6 px keeps."""
PALE: Final = 0.3
"""How much of its colour a pale fill keeps."""
PALE_EDGE_PX: Final = 24
DIMMED: Final = 0.3
MUTED: Final = 0.45
LABEL_PAD: Final = 5
TAG_PX: Final = 44
"""A folded run carries the number of its events from this width."""


@dataclass(frozen=True, eq=False, slots=True)
class BarStyle:
    """How the bars of one row are drawn.

    ``pitch``: hatch pitch; ``floor``: whether solid and hatch tell floor and excess (the overlay), and whether there
    is a rail; ``pale``: the compute lane's way (outline and pale fill, solid to its floor, no hatch); ``plain``: a
    track whose events have no floors at all; ``tags``: wide folded runs say how many they hold; ``labels``: texts of
    an event id, longest first.
    """

    pitch: int = 5
    floor: bool = True
    rail: bool = True
    pale: bool = False
    plain: bool = False
    tags: bool = True
    label_px: float = 12
    labels: Callable[[int], tuple[str, ...]] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Marks:
    """Which events are marked: ``selected`` and ``hover`` by id (-1 none); ``matches`` tells what a search found."""

    selected: int = -1
    hover: int = -1
    matches: Callable[[I64], Bool] | None = None
    tolerance_ns: int = field(default=1)
    """How much faster than its floor an event may be before it is marked as impossible."""


@dataclass(frozen=True, eq=False, slots=True)
class Placed:
    """Bars in px: left and right edges and the end of the floor, float64, edges between device pixels.

    ``width`` is unrounded; ``left`` and ``right`` bound the plot, and with it the labels.
    """

    x0: NDArray[np.float64]
    x1: NDArray[np.float64]
    floor: NDArray[np.float64]
    width: NDArray[np.float64]
    left: float
    right: float


def place(bars: Bars, time: TimeScale, scale: float) -> Placed:
    """Pixel positions of bars, each at least one device pixel wide so that nothing in sight vanishes."""
    raw0, raw1 = time.px(bars.start), time.px(bars.end)
    x0 = np.rint(raw0 * scale) / scale
    x1 = np.maximum(np.rint(raw1 * scale) / scale, x0 + 1 / scale)
    floor = np.rint(time.px(bars.start + np.maximum(bars.floor, 0)) * scale) / scale
    return Placed(x0, x1, np.maximum(floor, x0), raw1 - raw0, time.left, time.left + time.width)


def paint_bars(canvas: Canvas, band: QRectF, bars: Bars, time: TimeScale, style: BarStyle, marks: Marks) -> None:
    """Draw bars in ``band`` (its y and height; x comes from ``time``)."""
    if not len(bars):
        return
    placed = place(bars, time, canvas.scale)
    if marks.matches is not None:
        found = marks.matches(bars.event)
        canvas.painter.setOpacity(DIMMED)
        plain = BarStyle(style.pitch, style.floor, style.rail, style.pale, style.plain)
        _paint_all(canvas, band, bars, placed, np.flatnonzero(~found), plain, marks)
        canvas.painter.setOpacity(1)
        _paint_all(canvas, band, bars, placed, np.flatnonzero(found), style, marks)
    else:
        _paint_all(canvas, band, bars, placed, np.arange(len(bars)), style, marks)
    _paint_marks(canvas, band, bars, placed, style, marks)


def _paint_all(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, rows: NDArray[np.int64], style: BarStyle, marks: Marks
) -> None:
    width = placed.width[rows]
    _paint_small(canvas, band, bars, placed, rows[width < THIN_BAR_PX], style)
    thin = rows[(width >= THIN_BAR_PX) & (width < FULL_BAR_PX)]
    for row in thin.tolist():
        _thin_bar(canvas, band, bars, placed, row)
    for row in rows[width >= FULL_BAR_PX].tolist():
        _full_bar(canvas, band, bars, placed, row, style, marks)


def _full_bar(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, row: int, style: BarStyle, marks: Marks
) -> None:
    theme = canvas.theme
    colours = theme.kinds[LETTERS[bars.kind[row]]]
    muted = bool(bars.muted[row])
    x0, x1, floor = float(placed.x0[row]), float(placed.x1[row]), float(placed.floor[row])
    rect = QRectF(x0, band.top(), x1 - x0, band.height())
    label_start, label_end, label_colour = x0, x1, theme.text
    if style.plain:
        canvas.fill(rect, mixed(colours.fill, theme.panel, PALE))
    elif style.pale:
        canvas.fill(rect, mixed(colours.fill, theme.panel, PALE / 2 if muted else PALE))
        if style.floor and bars.known[row] and floor > x0:
            canvas.fill(QRectF(x0, band.top(), min(floor, x1) - x0, band.height()), colours.fill)
            label_start = min(floor, x1)
    elif style.floor and not bars.known[row]:
        canvas.fill(rect, colours.tint)
        label_colour = theme.text2 if muted else theme.text
    else:
        solid = min(floor, x1) if style.floor else x1
        if solid > x0:
            ground = mixed(colours.fill, theme.panel, MUTED) if muted else colours.fill
            canvas.fill(QRectF(x0, band.top(), solid - x0, band.height()), ground)
        if style.floor:
            _above_floor(canvas, band, bars, placed, row, style, marks)
        label_end, label_colour = solid, theme.text if muted else colours.label
    if style.floor and not (style.plain or style.pale or bars.known[row]):
        _dotted(canvas, rect, colours.edge)
    # The outline of a narrow pale bar would be heavier than what it holds.
    elif not style.pale or x1 - x0 >= PALE_EDGE_PX:
        canvas.frame(rect, colours.edge)
    span = max(label_start, placed.left), min(label_end, placed.right)
    _label(canvas, span, band, int(bars.event[row]), style, label_colour)


def _above_floor(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, row: int, style: BarStyle, marks: Marks
) -> None:
    """The hatch, the edge at the floor and the rail under it; for an impossible bar the ink stop and the triangle."""
    letter = LETTERS[bars.kind[row]]
    x0, x1, floor = float(placed.x0[row]), float(placed.x1[row]), float(placed.floor[row])
    if floor < x1:
        hatched = QRectF(floor, band.top(), x1 - floor, band.height())
        canvas.hatch(hatched, letter, style.pitch, QPointF(x0, band.top()))
        if floor > x0:
            canvas.fill(QRectF(floor, band.top(), 1, band.height()), canvas.theme.kinds[letter].edge)
    if not style.rail or floor <= x0:
        return
    canvas.fill(QRectF(x0, band.bottom() + RAIL_GAP, floor - x0, RAIL), canvas.theme.ink)
    if bars.floor[row] - (bars.end[row] - bars.start[row]) > marks.tolerance_ns:
        canvas.fill(QRectF(floor - RAIL, band.top(), RAIL, band.height() + RAIL_GAP + RAIL), canvas.theme.ink)
        if floor - x1 > 18:
            canvas.warning((x1 + floor) / 2 - 6, band.center().y() - 6)


def _dotted(canvas: Canvas, rect: QRectF, edge: str) -> None:
    """The 2-3 dashed outline of "no bytes recorded"."""
    canvas.dashed(rect.left(), rect.right(), rect.top(), edge, 2, 3)
    canvas.dashed(rect.left(), rect.right(), rect.bottom() - 1, edge, 2, 3)
    y = rect.top()
    while y < rect.bottom():
        height = min(2.0, rect.bottom() - y)
        canvas.fill(QRectF(rect.left(), y, 1, height), edge)
        canvas.fill(QRectF(rect.right() - 1, y, 1, height), edge)
        y += 5


def _label(
    canvas: Canvas, span: tuple[float, float], band: QRectF, event: int, style: BarStyle, hex_colour: str
) -> None:
    """The longest text that fits into ``span`` (the part in sight) with 5 px on each side."""
    room = span[1] - span[0] - 2 * LABEL_PAD
    if style.labels is None or room < -LABEL_PAD:
        return
    text_style = Style(style.label_px, 600, hex_colour)
    texts = style.labels(event)
    for text in texts:
        if text_width(text, style.label_px, 600) <= room:
            canvas.text(span[0] + LABEL_PAD, centred_baseline(band, text_style), text, text_style)
            return
    # A last try: the shortest text a size smaller, as close to the edges as still looks apart from them.
    small = Style(10, 600, hex_colour)
    width = text_width(texts[-1], small.px, 600) if texts else room
    if texts and width <= room + 2 * (LABEL_PAD - 1):
        canvas.text((span[0] + span[1]) / 2, centred_baseline(band, small), texts[-1], small, CENTRE)


def _thin_bar(canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, row: int) -> None:
    colours = canvas.theme.kinds[LETTERS[bars.kind[row]]]
    x0, x1 = float(placed.x0[row]), float(placed.x1[row])
    share = SMALL / 2 if bars.muted[row] else SMALL
    canvas.fill(QRectF(x0, band.top(), x1 - x0, band.height()), mixed(colours.fill, canvas.theme.panel, share))
    canvas.fill(QRectF(x0, band.top(), 1.2, band.height()), colours.edge)


def _paint_small(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, rows: NDArray[np.int64], style: BarStyle
) -> None:
    """Bars under 3 px: neighbours are folded into one box per run of pixels, a lonely one becomes a tick."""
    if not len(rows):
        return
    gap = placed.x0[rows][1:] - placed.x1[rows][:-1] > 1
    apart = np.diff(rows) > 1
    start = np.concatenate([[0], np.flatnonzero(gap | apart) + 1])
    stop = np.append(start[1:], len(rows))
    for low, high in zip(start.tolist(), stop.tolist(), strict=True):
        if high - low == 1:
            _tick(canvas, band, bars, placed, int(rows[low]), style)
        else:
            _folded_run(canvas, band, bars, placed, rows[low:high], style)


def _tick(canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, row: int, style: BarStyle) -> None:
    colours = canvas.theme.kinds[LETTERS[bars.kind[row]]]
    x0, x1 = float(placed.x0[row]), float(placed.x1[row])
    quiet = bars.muted[row] or (style.floor and not bars.known[row])
    ground = mixed(colours.fill, canvas.theme.panel, SMALL) if quiet else colours.fill
    canvas.fill(QRectF(x0, band.top(), x1 - x0, band.height()), ground)


@dataclass(frozen=True, eq=False, slots=True)
class RunShares:
    """The time of a folded run in ns: up to the floor by kind, without known floor by kind, and above the floor."""

    solid: NDArray[np.float64]
    unknown: NDArray[np.float64]
    above: float

    @property
    def total(self) -> float:
        """All of it: the summed durations of the run."""
        return float(self.solid.sum() + self.unknown.sum()) + self.above


def run_shares(bars: Bars, rows: NDArray[np.int64], floor: bool = True) -> RunShares:
    """The shares of the events ``rows``; without the floor overlay all time is solid."""
    duration = (bars.end - bars.start)[rows]
    known = bars.known[rows] if floor else np.ones(len(rows), bool)
    solid = np.minimum(bars.floor[rows], duration) if floor else duration
    kind = bars.kind[rows]
    return RunShares(
        _by_kind(kind, np.where(known, solid, 0)),
        _by_kind(kind, np.where(known, 0, duration)),
        float(np.where(known, duration - solid, 0).sum()),
    )


def _by_kind(kind: NDArray[np.uint8], values: I64) -> NDArray[np.float64]:
    return np.bincount(kind, weights=values, minlength=len(KINDS)).astype(np.float64)


def _folded_run(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, rows: NDArray[np.int64], style: BarStyle
) -> None:
    shares = run_shares(bars, rows, style.floor)
    if shares.total <= 0:
        for row in rows.tolist():
            _tick(canvas, band, bars, placed, row, style)
        return
    theme = canvas.theme
    x0, x1 = float(placed.x0[rows[0]]), float(placed.x1[rows].max())
    covered = min(x1 - x0, max(shares.total * _px_per_ns(bars, placed, rows), len(rows) / canvas.scale))
    per_ns = covered / shares.total
    x = 0.0
    parts = [(ns, theme.kinds[k].fill) for k, ns in zip(LETTERS, shares.solid.tolist(), strict=True)]
    for letter, ns in zip(LETTERS, shares.unknown.tolist(), strict=True):
        parts.append((ns, mixed(theme.kinds[letter].fill, theme.panel, SMALL)))
    for ns, ground in parts:
        if ns * per_ns >= 0.25 / canvas.scale:
            canvas.fill(QRectF(x0 + x, band.top(), ns * per_ns, band.height()), ground)
        x += ns * per_ns
    if shares.above * per_ns >= 0.25 / canvas.scale:
        area = QRectF(x0 + x, band.top(), shares.above * per_ns, band.height())
        single = (bars.kind[rows] == bars.kind[rows[0]]).all()
        letter = LETTERS[bars.kind[rows[0]]]
        if style.pale:
            canvas.fill(area, mixed(theme.kinds[letter].fill, theme.panel, PALE))
        else:
            canvas.hatch(area, letter if single else INK, max(3, style.pitch - 1))
    if x1 - x0 >= TAG_PX and style.tags:
        canvas.frame(QRectF(x0, band.top(), x1 - x0, band.height()), theme.ink)
        label = Style(10, 600, theme.text)
        canvas.tag((x0 + x1) / 2, band.center().y() - 7.5, f"×{len(rows):,}", theme.panel, label)


def _px_per_ns(bars: Bars, placed: Placed, rows: NDArray[np.int64]) -> float:
    time = (bars.end - bars.start)[rows].sum()
    return float(placed.width[rows].sum() / time) if time > 0 else 0.0


def _paint_marks(canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, style: BarStyle, marks: Marks) -> None:
    below = RAIL_GAP + RAIL if style.rail and style.floor and not style.plain and not style.pale else 0
    for event, is_hover in ((marks.selected, False), (marks.hover, True)):
        if event < 0:
            continue
        for row in np.flatnonzero(bars.event == event).tolist():
            rect = QRectF(placed.x0[row], band.top(), placed.x1[row] - placed.x0[row], band.height())
            if is_hover:
                canvas.frame(rect.adjusted(-1, -1, 1, 1), canvas.theme.ink)
            else:
                canvas.outline(rect.adjusted(-2, -2, 2, 2 + below), canvas.theme.accent, 2, 3)


def excess_labels(
    canvas: Canvas, baseline: float, ends: list[tuple[float, str, bool]], limits: tuple[float, float], px: float = 10
) -> None:
    """Texts right-aligned at bar ends, given largest first; one that would touch another or a limit is left out."""
    taken: list[tuple[float, float]] = []
    for right, text, bold in ends:
        style = Style(px, 600 if bold else 400, canvas.theme.text if bold else canvas.theme.text2)
        width = text_width(text, style.px, style.weight)
        left = right - width
        if left < limits[0] or right > limits[1] or any(left < b + 5 and a - 5 < right for a, b in taken):
            continue
        canvas.text(left, baseline, text, style)
        taken.append((left, right))


def letter_tag(canvas: Canvas, rect: QRectF, texts: tuple[str, ...]) -> None:
    """The longest of ``texts`` that fits into a hatched ``rect``, on a panel-coloured ground."""
    style = Style(11, 600, canvas.theme.text)
    for text in texts:
        width = text_width(text, style.px, style.weight) + 8
        if width <= rect.width() - 4:
            ground = QRectF(rect.center().x() - width / 2, rect.center().y() - 8, width, 16)
            canvas.painter.fillRect(canvas.snapped(ground), colour(canvas.theme.panel))
            canvas.text(rect.center().x(), centred_baseline(rect, style), text, style, CENTRE)
            return
