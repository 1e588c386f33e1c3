"""A half-open range of integer nanoseconds, and the arithmetic of zooming and panning it."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class TimeRange:
    """``[start, end)`` in int64 nanoseconds relative to the trace's base; never shorter than 1 ns."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end <= self.start:
            object.__setattr__(self, "end", self.start + 1)

    @property
    def duration(self) -> int:
        """Length in ns, at least 1."""
        return self.end - self.start

    def contains(self, time: int) -> bool:
        """Whether ``time`` lies inside."""
        return self.start <= time < self.end

    def overlaps(self, start: int, end: int) -> bool:
        """Whether ``[start, end]`` shares an instant with this range; a zero-length event inside counts."""
        return start < self.end and max(end, start + 1) > self.start

    def clamp(self, bounds: Self) -> Self:
        """This range moved, and shortened only where it must be, to lie inside ``bounds``."""
        duration = min(self.duration, bounds.duration)
        start = min(max(self.start, bounds.start), bounds.end - duration)
        return type(self)(start, start + duration)

    def panned(self, delta: int) -> Self:
        """This range moved by ``delta`` ns."""
        return type(self)(self.start + delta, self.end + delta)

    def zoomed_about(self, anchor: int, factor: float) -> Self:
        """This range scaled by ``factor`` (below 1 zooms in) with ``anchor`` staying at the same share of the width."""
        duration = max(1, round(self.duration * factor))
        share = (anchor - self.start) / self.duration
        start = anchor - round(share * duration)
        return type(self)(start, start + duration)

    def padded(self, share: float) -> Self:
        """This range widened by ``share`` of its duration on both sides."""
        margin = max(1, round(self.duration * share))
        return type(self)(self.start - margin, self.end + margin)
