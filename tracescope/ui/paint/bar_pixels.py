"""The bars of a row as pixels: solid, hatch, edges and rails of all of them composed at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

from tracescope.core.columns import I64, Bool
from tracescope.lod.fold import Bars
from tracescope.ui.paint.bar_style import (
    LETTERS,
    MUTED,
    PALE,
    PALE_EDGE_PX,
    RAIL,
    RAIL_GAP,
    SMALL,
    UNKNOWN_SMALL,
    BarStyle,
    Placed,
)
from tracescope.ui.paint.canvas import Canvas
from tracescope.ui.paint.hatch import hatch_pixels
from tracescope.ui.paint.pixels import Pixels, argb, covered, draw_pixels, last_over
from tracescope.ui.theme import THEMES, Theme, mixed

Colours = NDArray[np.uint32]

THIN_EDGE_PX = 1.2


@dataclass(frozen=True, eq=False, slots=True)
class Shades:
    """The colours of the six kinds in a theme, uint32[6] each."""

    fill: Colours
    edge: Colours
    tint: Colours
    muted: Colours
    pale: Colours
    paler: Colours
    small: Colours
    quiet: Colours


@lru_cache(maxsize=4)
def _shades(theme_name: str) -> Shades:
    theme = THEMES[theme_name]
    kinds = [theme.kinds[letter] for letter in LETTERS]

    def at(share: float) -> Colours:
        return np.array([argb(mixed(k.fill, theme.panel, share)) for k in kinds], np.uint32)

    return Shades(
        at(1), np.array([argb(k.edge) for k in kinds], np.uint32), np.array([argb(k.tint) for k in kinds], np.uint32),
        at(MUTED), at(PALE), at(PALE / 2), at(SMALL), at(UNKNOWN_SMALL),
    )  # fmt: skip


def shades_of(theme: Theme) -> Shades:
    """The colours of bars in a theme; callers must not change them."""
    return _shades(theme.name)


@dataclass(frozen=True, slots=True)
class Grid:
    """The device pixels of rows of bars: their left edge and their tops, the columns of each, the lines of its band
    and those of the rail.

    Several rows are composed side by side, row r in the columns from ``r * width``.
    """

    left: int
    tops: tuple[int, ...]
    width: int
    height: int
    rail: range
    pitch: int
    scale: float

    @property
    def columns(self) -> int:
        """The columns of all rows."""
        return self.width * len(self.tops)

    @property
    def line(self) -> int:
        """Device pixels of a 1 px line."""
        return max(1, round(self.scale))


def grid_of(bands: Sequence[QRectF], placed: Placed, pitch: int, scale: float) -> Grid:
    """The grid of the bars in ``bands``, which are equally high, between the edges of the plot."""
    band = bands[0]
    left, top = round(placed.left * scale), round(band.top() * scale)
    rail = round((band.bottom() + RAIL_GAP) * scale) - top
    height = max(1, round(band.bottom() * scale) - top)
    rail_end = max(rail + 1, round((band.bottom() + RAIL_GAP + RAIL) * scale) - top)
    width = max(1, round(placed.right * scale) - left)
    tops = tuple(round(band.top() * scale) for band in bands)
    return Grid(left, tops, width, height, range(max(rail, height), max(rail_end, height + 1)), pitch, scale)


@dataclass(eq=False, slots=True)
class Drawn:
    """Bars in the order in which they are drawn, one entry each; columns are device pixels from the grid's left.

    ``[low, high)``; ``until`` where the solid part ends; ``floor`` where the floor does, ``total`` that of other lanes
    too, which is pale up to there; ``solid`` and ``body`` their
    colours; ``edge`` of its lines; ``left_edge`` width of the line at its left; ``framed``, ``dotted``: the outline;
    ``hatched``: the body is a hatch of ``kind``; ``railed``: there is a rail up to the floor; ``impossible``: the bar
    is faster than its floor.
    """

    row: I64
    low: I64
    high: I64
    floor: I64
    total: I64
    until: I64
    kind: NDArray[np.uint8]
    solid: Colours
    body: Colours
    edge: Colours
    left_edge: I64
    framed: Bool
    dotted: Bool
    hatched: Bool
    railed: Bool
    impossible: Bool

    @classmethod
    def plain(cls, bars: Bars, placed: Placed, rows: I64, grid: Grid, theme: Theme) -> "Drawn":
        """Bars of one colour without an outline, still to be told their colour."""
        row = placed.row[rows]
        shift = row * grid.width - grid.left
        low, high, floor, total = (
            np.rint(at[rows] * grid.scale).astype(np.int64) + shift
            for at in (placed.x0, placed.x1, placed.floor, placed.total)
        )
        kind = bars.kind[rows]
        fill = shades_of(theme).fill[kind]
        framed, dotted, hatched, railed, impossible = np.zeros((5, len(rows)), bool)
        return cls(
            row, low, high, floor, total, low.copy(), kind, fill, fill.copy(), shades_of(theme).edge[kind],
            np.zeros(len(rows), np.int64), framed, dotted, hatched, railed, impossible,
        )  # fmt: skip


def drawn_bars(
    bars: Bars, placed: Placed, alone: I64, thin: I64, full: I64, style: BarStyle, tolerance_ns: int, grid: Grid,
    theme: Theme,
) -> Drawn:  # fmt: skip
    """Lonely bars under 3 px, over them bars of 3 to 6 px, over them full bars."""
    rows = np.concatenate([alone, thin, full])
    drawn = Drawn.plain(bars, placed, rows, grid, theme)
    from_thin, from_full = len(alone), len(alone) + len(thin)
    if from_thin:
        _ticks(drawn, bars, alone, slice(0, from_thin), style, theme)
    if len(thin):
        _thin(drawn, bars, thin, slice(from_thin, from_full), style, grid, theme)
    if len(full):
        _full(drawn, bars, placed, full, slice(from_full, len(rows)), style, tolerance_ns, grid, theme)
    return drawn


def _ticks(drawn: Drawn, bars: Bars, rows: I64, part: slice, style: BarStyle, theme: Theme) -> None:
    """Their kind's colour alone."""
    quiet = bars.muted[rows] | ~bars.known[rows] if style.floor else bars.muted[rows]
    drawn.body[part] = np.where(quiet, shades_of(theme).quiet[drawn.kind[part]], drawn.body[part])


def _thin(drawn: Drawn, bars: Bars, rows: I64, part: slice, style: BarStyle, grid: Grid, theme: Theme) -> None:
    """A part of their colour and a full-coloured left edge."""
    shades, kind = shades_of(theme), drawn.kind[part]
    quiet = bars.muted[rows] | (style.floor & ~bars.known[rows]) | style.plain
    drawn.body[part] = np.where(quiet, shades.pale[kind], shades.small[kind])
    drawn.left_edge[part] = max(1, round(THIN_EDGE_PX * grid.scale))


def _full(
    drawn: Drawn, bars: Bars, placed: Placed, rows: I64, part: slice, style: BarStyle, tolerance_ns: int, grid: Grid,
    theme: Theme,
) -> None:  # fmt: skip
    """Solid to the floor, hatched above it, with an outline and a rail."""
    shades, kind = shades_of(theme), drawn.kind[part]
    muted, known = bars.muted[rows], bars.known[rows]
    low, high, floor = drawn.low[part], drawn.high[part], drawn.floor[part]
    drawn.left_edge[part] = grid.line
    drawn.framed[part] = True
    reached = np.minimum(floor, high)
    if style.plain:
        drawn.body[part] = shades.pale[kind]
    elif style.pale:
        drawn.body[part] = np.where(muted, shades.paler[kind], shades.pale[kind])
        if style.floor:
            drawn.until[part] = np.where(known, reached, low)
        # The outline of a narrow pale bar would be heavier than what it holds.
        framed = placed.x1[rows] - placed.x0[rows] >= PALE_EDGE_PX
        drawn.framed[part] = framed
        drawn.left_edge[part] = np.where(framed, grid.line, 0)
    else:
        drawn.solid[part] = np.where(muted, shades.muted[kind], drawn.solid[part])
        if not style.floor:
            drawn.until[part] = high
            return
        drawn.until[part] = np.where(known, reached, low)
        drawn.body[part] = shades.tint[kind]
        drawn.hatched[part] = known & (floor < high)
        drawn.dotted[part], drawn.framed[part] = ~known, known
        drawn.left_edge[part] = np.where(known, grid.line, 0)
        if style.rail:
            railed = known & (floor > low)
            drawn.railed[part] = railed
            faster = bars.floor[rows] - (bars.end[rows] - bars.start[rows]) > tolerance_ns
            drawn.impossible[part] = railed & faster


def paint_drawn(canvas: Canvas, grid: Grid, drawn: Drawn, under: Pixels | None) -> None:
    """Compose the bars over ``under`` (uint32[height, columns] of the band) and draw each row as one image."""
    pixels, owner = _composed(canvas.theme, grid, drawn, under)
    lines = pixels.reshape(len(pixels), len(grid.tops), grid.width)
    for index, top in enumerate(grid.tops):
        draw_pixels(canvas, lines[:, index], grid.left / grid.scale, top / grid.scale)
    for row in np.flatnonzero(drawn.impossible).tolist():
        index = int(drawn.row[row])
        first = index * grid.width
        x0, x1 = int(drawn.high[row]) - first, int(drawn.floor[row]) - first
        middle = min(max((x0 + x1) // 2, 0), grid.width - 1)
        if x1 - x0 > 18 * grid.scale and owner[first + middle] <= row:
            at = (grid.left + (x0 + x1) / 2) / grid.scale
            canvas.warning(at - 6, (grid.tops[index] + grid.height / 2) / grid.scale - 6)


def _composed(theme: Theme, grid: Grid, drawn: Drawn, under: Pixels | None) -> tuple[Pixels, I64]:
    owner = last_over(drawn.low, drawn.high, grid.width, drawn.row, len(grid.tops))
    rails = bool(drawn.railed.any())
    pixels = np.zeros((grid.rail.stop if rails else grid.height, grid.columns), np.uint32)
    if under is not None:
        pixels[: grid.height] = under
    columns = np.flatnonzero(owner >= 0)
    if len(columns):
        _bodies(pixels[: grid.height], theme, grid, drawn, columns, owner[columns], blank=under is None)
    if rails:
        _rails(pixels, theme, grid, drawn, owner)
    return pixels, owner


def _bodies(band: Pixels, theme: Theme, grid: Grid, drawn: Drawn, columns: I64, own: I64, *, blank: bool) -> None:
    """The bars in ``columns``, each of which shows the bar ``own``; ``blank``: nothing is drawn there yet."""
    line = grid.line
    from_left, to_right = columns - drawn.low[own], drawn.high[own] - columns
    solid = columns < drawn.until[own]
    middle = np.where(solid, drawn.solid[own], drawn.body[own])
    # Time that the bytes of other lanes need is no more above the floor than it is this lane's.
    others = drawn.hatched[own] & ~solid & (columns < drawn.total[own])
    if others.any():
        middle[others] = shades_of(theme).pale[drawn.kind[own[others]]]
    framed, edge = drawn.framed[own], drawn.edge[own]
    hatched = drawn.hatched[own] & ~solid & ~others
    at_floor = drawn.hatched[own] & (drawn.until > drawn.low)[own]
    lines = (from_left < drawn.left_edge[own]) | (framed & (to_right <= line))
    if at_floor.any():
        past = columns - drawn.floor[own]
        lines |= at_floor & (past >= 0) & (past < line)
    middle[lines] = edge[lines]
    if len(band) <= 2 * line:
        middle[framed] = edge[framed]
    if blank:
        whole = np.zeros(grid.columns, np.uint32)
        whole[columns] = middle
        band[:] = whole
    else:
        band[:, columns] = middle
    if len(band) <= 2 * line:
        return
    hatched &= ~lines
    if hatched.any():
        _hatch(band, theme, grid, columns[hatched], drawn.kind[own[hatched]], from_left[hatched])
    rim = np.where(framed, edge, middle)
    dotted = drawn.dotted[own]
    if dotted.any():
        dashes = dotted & (from_left / grid.scale % 5 < 2)
        rim[dashes] = edge[dashes]
        sides = dotted & ((from_left < line) | (to_right <= line))
        rows = np.flatnonzero(np.arange(len(band)) / grid.scale % 5 < 2)
        band[np.ix_(rows, columns[sides])] = edge[sides]
    outlined = framed | dotted
    band[:line, columns[outlined]] = rim[outlined]
    band[len(band) - line :, columns[outlined]] = rim[outlined]


def _hatch(band: Pixels, theme: Theme, grid: Grid, columns: I64, kind: NDArray[np.uint8], from_left: I64) -> None:
    """The hatches start at the corner of their bar, so that they move with it."""
    for index in np.flatnonzero(np.bincount(kind)).tolist():
        of_kind = kind == index
        tile = hatch_pixels(LETTERS[index], theme, grid.pitch, grid.scale)
        size = len(tile)
        rows = np.arange(len(band)) % size
        band[:, columns[of_kind]] = tile[:, from_left[of_kind] % size][rows]


def _rails(pixels: Pixels, theme: Theme, grid: Grid, drawn: Drawn, owner: I64) -> None:
    """The floor under each bar, and the ink stop where the bar ends before it."""
    ink = argb(theme.ink)
    railed = np.flatnonzero(drawn.railed)
    column, _ = covered(drawn.low[railed], drawn.floor[railed], grid.width, drawn.row[railed])
    pixels[grid.rail.start :, column] = ink
    faster = np.flatnonzero(drawn.impossible)
    if len(faster):
        stop = drawn.floor[faster]
        column, bar = covered(stop - max(1, round(RAIL * grid.scale)), stop, grid.width, drawn.row[faster])
        open_ = owner[column] <= faster[bar]  # the next bar hides the stop
        pixels[: grid.height, column[open_]] = ink
        pixels[grid.height :, column] = ink
