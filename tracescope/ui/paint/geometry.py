"""Where everything stands: the three columns, heights by window size, and time to pixels. One place for all views."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

from tracescope.core.columns import I64
from tracescope.core.timerange import TimeRange

F64 = NDArray[np.float64]

GUTTER: Final = 148
"""Width of the column of names, the same in run strip, step bar, lanes and counters."""
RIGHT: Final = 84
"""Width of the column of results."""
PAD: Final = 10
HEADS: Final = 15
"""Height of the layer heads inside the time axis; a 3 px rail follows."""
COLLAPSED: Final = 18
RAW_ROW: Final = 18
"""Height of a row of a plain track."""
FULL_BAR_PX: Final = 6
THIN_BAR_PX: Final = 3
MINIMUM_WINDOW: Final = (1120, 640)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Heights in px of the parts of the centre, and the width of the right docks."""

    run_strip: int
    step_bar: int
    axis: int
    path: int
    weights: int
    kv_reads: int
    kv_appends: int
    compute: int
    communication: int
    selection: int
    counter: int
    right_dock: int
    empty_communication: bool
    """Whether a communication lane without events still gets a collapsed row."""
    energy: bool
    """Whether there is room for the energy track."""
    table_rows: int


COMPACT: Final = Sizes(66, 94, 34, 56, 38, 38, 22, 32, 20, 20, 44, 300, False, False, 6)
NORMAL: Final = Sizes(84, 94, 34, 60, 44, 44, 26, 38, 22, 22, 66, 320, True, True, 8)
LARGE: Final = Sizes(96, 94, 34, 72, 56, 56, 28, 46, 46, 24, 84, 340, True, True, 12)
HUGE: Final = Sizes(130, 94, 34, 92, 76, 76, 36, 64, 64, 28, 120, 400, True, True, 20)


def sizes_for(width: int, height: int) -> Sizes:
    """The heights for a window of ``width`` x ``height`` logical px."""
    if width < 1400 or height < 800:
        return COMPACT
    if width < 1800 or height < 1000:
        return NORMAL
    return LARGE if width < 2400 or height < 1300 else HUGE


@dataclass(frozen=True, slots=True)
class Split:
    """One horizontal part of the centre cut into its three columns."""

    gutter: QRectF
    plot: QRectF
    right: QRectF


def split(rect: QRectF) -> Split:
    """The names, plot and results columns of ``rect``."""
    plot_width = max(1.0, rect.width() - GUTTER - RIGHT)
    return Split(
        QRectF(rect.x(), rect.y(), GUTTER, rect.height()),
        QRectF(rect.x() + GUTTER, rect.y(), plot_width, rect.height()),
        QRectF(rect.x() + GUTTER + plot_width, rect.y(), RIGHT, rect.height()),
    )


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Time to pixels: ``visible`` spread over ``width`` px from ``left``.

    Times are clipped to a little more than the visible range in integer ns before anything becomes a float: a
    rectangle wider than 2^31 px is not painted at all, and an absolute time in ns does not fit a double.
    """

    visible: TimeRange
    left: float
    width: float

    @property
    def px_per_ns(self) -> float:
        """Pixels one ns is wide."""
        return self.width / self.visible.duration

    def clipped(self, time: I64) -> I64:
        """``time`` limited to the visible range and a few px on both sides of it, int64 ns."""
        margin = max(1, int(self.visible.duration * 8 / max(1.0, self.width)))
        # Not np.clip: it first asks what the type's limits are, at several times the cost of both of these.
        limited: I64 = np.minimum(np.maximum(time, self.visible.start - margin), self.visible.end + margin)
        return limited

    def px(self, time: I64) -> F64:
        """Pixel positions of times in ns, float64."""
        return self.left + (self.clipped(time) - self.visible.start).astype(np.float64) * self.px_per_ns

    def x(self, time: int) -> float:
        """Pixel position of one time, clipped as in :meth:`px`."""
        margin = max(1, int(self.visible.duration * 8 / max(1.0, self.width)))
        limited = min(max(time, self.visible.start - margin), self.visible.end + margin)
        return self.left + (limited - self.visible.start) * self.px_per_ns

    def time_at(self, x: float) -> int:
        """The time in ns under a pixel position."""
        return self.visible.start + int((x - self.left) / self.px_per_ns // 1)

    def tolerance(self, px: float) -> int:
        """``px`` pixels as ns, at least 1."""
        return max(1, int(px / self.px_per_ns))


def time_scale(visible: TimeRange, plot: QRectF) -> TimeScale:
    """The time scale of a plot area."""
    return TimeScale(visible, plot.left(), plot.width())
