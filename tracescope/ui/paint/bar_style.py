"""How bars are drawn and where they stand in px: what full, thin and folded bars share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import KINDS
from tracescope.core.columns import I64, Bool
from tracescope.lod.fold import Bars
from tracescope.ui.paint.geometry import TimeScale

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
UNKNOWN_SMALL: Final = 0.4
"""How much of its colour a small bar keeps of which no floor is known."""
LABEL_PAD: Final = 5
ELIDE_FROM_PX: Final = 24
TAG_PX: Final = 100
"""A folded run carries the number of its events from this width."""


@dataclass(frozen=True, eq=False, slots=True)
class BarStyle:
    """How the bars of one row are drawn.

    ``pitch``: hatch pitch; ``floor``: whether solid and hatch tell floor and gap (the overlay), and whether there
    is a rail; ``pale``: the compute lane's way (outline and pale fill, solid to its floor, no hatch); ``plain``: a
    track whose events have no floors at all; ``tags``: wide folded runs say how many they hold; ``ticks``: a lonely
    bar under 3 px is a solid tick of its kind, since its shares could not be read; ``labels``: texts of an event id,
    longest first.
    """

    pitch: int = 5
    floor: bool = True
    rail: bool = True
    pale: bool = False
    plain: bool = False
    tags: bool = True
    ticks: bool = False
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

    ``total``: where the floor of the whole event ends, for the bytes of other lanes too.

    ``width`` is unrounded; ``left`` and ``right`` bound the plot, and with it the labels. ``row`` int64: in which of
    several rows each bar lies, where bars of many rows are drawn at once.
    """

    x0: NDArray[np.float64]
    x1: NDArray[np.float64]
    floor: NDArray[np.float64]
    total: NDArray[np.float64]
    width: NDArray[np.float64]
    left: float
    right: float
    row: I64


def place(bars: Bars, time: TimeScale, scale: float, row: I64 | None = None) -> Placed:
    """Pixel positions of bars, each at least one device pixel wide so that nothing in sight vanishes."""
    rows = row if row is not None else np.zeros(len(bars), np.int64)
    raw0, raw1 = time.px(bars.start), time.px(bars.end)
    x0 = np.rint(raw0 * scale) / scale
    x1 = np.maximum(np.rint(raw1 * scale) / scale, x0 + 1 / scale)
    floor = np.rint(time.px(bars.start + np.maximum(bars.floor, 0)) * scale) / scale
    floor = np.maximum(floor, x0)
    total = floor
    if bars.other is not None:
        total = np.maximum(np.rint(time.px(bars.start + np.maximum(bars.floor, 0) + bars.other) * scale) / scale, floor)
    return Placed(x0, x1, floor, total, raw1 - raw0, time.left, time.left + time.width, rows)
