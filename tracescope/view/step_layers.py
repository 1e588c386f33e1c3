"""The layers of one step as spans of time, each with its floor and its gap. No Qt here."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.breakdown import StepBreakdown, mostly_known
from tracescope.core.trace import Trace


@dataclass(frozen=True, slots=True)
class LayerSpan:
    """One layer of one step: ``[start, end)`` ns of the trace, its op floor and how much it took above it."""

    layer: int
    start: int
    end: int
    floor_ns: int
    floor_known: bool
    """Whether at least one of its events has a floor."""
    unknown_ns: int = 0
    """Exposed time of its events without a floor."""

    @property
    def duration_ns(self) -> int:
        """From its first event to the next layer's first."""
        return self.end - self.start

    @property
    def partly_known(self) -> bool:
        """Whether events without a floor take so much of it that the floor says little about the layer."""
        return not mostly_known(self.unknown_ns, self.duration_ns)

    @property
    def gap_ns(self) -> int:
        """Time above the floor of what has one, signed."""
        return self.duration_ns - self.floor_ns - self.unknown_ns


def layers_of(trace: Trace, taken: StepBreakdown) -> tuple[LayerSpan, ...]:
    """The layers of a step in time order; each reaches to the next layer's first event."""
    layer = trace.events.layer[taken.events].astype(np.int64)
    inside = np.flatnonzero(layer >= 0)
    if not len(inside):
        return ()
    first_of_run = inside[np.flatnonzero(np.diff(layer[inside], prepend=-1))]
    present, first = np.unique(layer[first_of_run], return_index=True)
    order = np.argsort(first, kind="stable")
    present, begin = present[order], trace.events.start[taken.events[first_of_run[first[order]]]]
    ends = trace.events.start[taken.events] + trace.events.duration[taken.events]
    last = np.array([int(ends[layer == n].max()) for n in present])
    stop = np.minimum(last, np.append(begin[1:], last[-1:]))
    stop[:-1] = np.where(begin[1:] > begin[:-1], begin[1:], stop[:-1])
    floor = np.bincount(layer[inside], weights=taken.floor_ns[inside], minlength=int(present.max()) + 1)
    known = np.bincount(layer[inside], weights=taken.floor_known[inside], minlength=int(present.max()) + 1)
    hidden = np.where(taken.floor_known[inside], 0, taken.exposed_ns[inside])
    unknown = np.bincount(layer[inside], weights=hidden, minlength=int(present.max()) + 1)
    return tuple(
        LayerSpan(int(n), int(b), int(e), int(floor[n]), bool(known[n]), int(unknown[n]))
        for n, b, e in zip(present, begin, stop, strict=True)
    )
