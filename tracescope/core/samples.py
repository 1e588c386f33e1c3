"""Measured counters: what hardware said of itself while a trace was recorded, such as the use of its memory bus."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tracescope.core.columns import F64, I64, U32, empty_columns, freeze_columns


@dataclass(frozen=True, eq=False)
class SampleTable:
    """One row a sample, sorted by (track, time). ``track`` is a counter track of the trace, whose name says the unit.

    ``time`` int64 ns relative to the trace's base; ``value`` float64, never NaN: what was not measured has no row.
    """

    track: U32
    time: I64
    value: F64

    def __post_init__(self) -> None:
        freeze_columns(self)
        if not np.isfinite(self.value).all():
            raise ValueError("a sample is no finite number")
        track = self.track.astype(np.int64)
        backwards = (np.diff(track) < 0) | ((np.diff(track) == 0) & (self.time[1:] < self.time[:-1]))
        if backwards.any():
            raise ValueError("samples must be sorted by track, then time")

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def empty(cls) -> Self:
        """A table without samples."""
        return cls(**empty_columns(cls))

    def of_track(self, track: int) -> slice:
        """The rows of counter track ``track``."""
        low, high = np.searchsorted(self.track, [track, track + 1])
        return slice(int(low), int(high))
