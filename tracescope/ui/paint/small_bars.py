"""Bars under 3 px: a lonely one becomes a tick, neighbours are folded so that shares and the excess stay in sight."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

from tracescope.core.category import KINDS
from tracescope.core.columns import I64
from tracescope.core.timerange import TimeRange
from tracescope.lod.fold import Bars, columns_of
from tracescope.ui.paint.bar_style import LETTERS, PALE, TAG_PX, UNKNOWN_SMALL, BarStyle, Placed
from tracescope.ui.paint.canvas import Canvas, Style
from tracescope.ui.paint.folded import paint_columns
from tracescope.ui.paint.geometry import TimeScale
from tracescope.ui.paint.hatch import INK
from tracescope.ui.theme import mixed

BOX_PX: Final = 12
"""Runs up to this width are one box with the shares side by side; wider ones have room for their shape in time."""


def paint_small(
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, rows: NDArray[np.int64], style: BarStyle, time: TimeScale
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
            _folded_run(canvas, band, bars, placed, rows[low:high], style, time)


def _tick(canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, row: int, style: BarStyle) -> None:
    colours = canvas.theme.kinds[LETTERS[bars.kind[row]]]
    x0, x1 = float(placed.x0[row]), float(placed.x1[row])
    quiet = bars.muted[row] or (style.floor and not bars.known[row])
    ground = mixed(colours.fill, canvas.theme.panel, UNKNOWN_SMALL) if quiet else colours.fill
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
    canvas: Canvas, band: QRectF, bars: Bars, placed: Placed, rows: NDArray[np.int64], style: BarStyle, time: TimeScale
) -> None:
    x0, x1 = float(placed.x0[rows[0]]), float(placed.x1[rows].max())
    if x1 - x0 > BOX_PX:
        _columns_of_run(canvas, QRectF(x0, band.top(), x1 - x0, band.height()), bars.taken(rows), style, time)
        return
    shares = run_shares(bars, rows, style.floor)
    if shares.total <= 0:
        for row in rows.tolist():
            _tick(canvas, band, bars, placed, row, style)
        return
    theme = canvas.theme
    covered = min(x1 - x0, max(shares.total * _px_per_ns(bars, placed, rows), len(rows) / canvas.scale))
    per_ns = covered / shares.total
    x = 0.0
    parts = [(ns, theme.kinds[k].fill) for k, ns in zip(LETTERS, shares.solid.tolist(), strict=True)]
    for letter, ns in zip(LETTERS, shares.unknown.tolist(), strict=True):
        parts.append((ns, mixed(theme.kinds[letter].fill, theme.panel, UNKNOWN_SMALL)))
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


def _columns_of_run(canvas: Canvas, area: QRectF, run: Bars, style: BarStyle, time: TimeScale) -> None:
    """A run over many pixels keeps its shape in time: shares per pixel column, and how many events they are."""
    low = time.time_at(area.left())
    visible = TimeRange(low, max(time.time_at(area.right()), low + 1))
    columns = columns_of(run, visible, max(1, round(area.width())))
    known = style.floor and bool(run.known.any())
    single = LETTERS[run.kind[0]] if (run.kind == run.kind[0]).all() else ""
    paint_columns(canvas, area, columns, floor=known, letter=single, pitch=max(3, style.pitch - 1), pale=style.pale)
    if area.width() >= TAG_PX and style.tags:
        label = Style(10, 600, canvas.theme.text)
        canvas.tag(area.center().x(), area.center().y() - 7.5, f"×{len(run):,}", canvas.theme.panel, label)


def _px_per_ns(bars: Bars, placed: Placed, rows: NDArray[np.int64]) -> float:
    time = (bars.end - bars.start)[rows].sum()
    return float(placed.width[rows].sum() / time) if time > 0 else 0.0
