"""Where the gap of a step goes: a handful of causes that add up to it exactly."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.breakdown import StepBreakdown
from tracescope.core.category import Category
from tracescope.core.trace import Trace


@dataclass(frozen=True, slots=True)
class GapCause:
    """One cause; ``category`` gives its colour and letter, None is time in which nothing ran. ``ns`` is signed.

    ``known`` is False for the time of operations without a floor: how much of it is gap is not known.
    """

    title: str
    category: Category | None
    ns: int
    known: bool = True


_ABOVE: dict[Category, tuple[str, Category]] = {
    Category.WEIGHT_READ: ("weight reads above floor", Category.WEIGHT_READ),
    Category.KV_READ: ("attention above KV floor", Category.KV_READ),
    Category.KV_APPEND: ("small kernels, no overlap", Category.COMPUTE),
    Category.COMPUTE: ("small kernels, no overlap", Category.COMPUTE),
    Category.OTHER: ("other and unclassified work", Category.OTHER),
    Category.COMMUNICATION: ("communication above floor", Category.COMMUNICATION),
    Category.COPY: ("copies", Category.COPY),
    Category.TOKEN_SELECTION: ("host and token selection", Category.TOKEN_SELECTION),
    Category.HOST: ("host and token selection", Category.TOKEN_SELECTION),
}

IDLE_TITLE = "launch gaps"
UNKNOWN_TITLE = "bytes unknown"
_NO_FLOOR: tuple[str, Category | None] = (UNKNOWN_TITLE, None)


def gap_causes(trace: Trace, breakdown: StepBreakdown) -> tuple[GapCause, ...]:
    """Causes of the step's gap, largest first, zero ones left out; those that are known sum to its ``step_gap_ns``.

    The time of operations without a floor is one more, which is not known.
    """
    total: dict[tuple[str, Category | None], int] = {}
    categories = trace.events.category[breakdown.events].tolist()
    gaps = np.where(breakdown.floor_known, breakdown.gap_ns, breakdown.exposed_ns).tolist()
    for category, gap, known in zip(categories, gaps, breakdown.floor_known.tolist(), strict=True):
        key = _ABOVE[Category(category)] if known else _NO_FLOOR
        total[key] = total.get(key, 0) + gap
    total[IDLE_TITLE, None] = breakdown.idle_ns
    causes = [GapCause(*key, ns, known=key != _NO_FLOOR) for key, ns in total.items() if ns]
    return tuple(sorted(causes, key=lambda c: (-c.ns, c.title)))
