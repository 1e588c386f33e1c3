"""Where the gap of a step goes: a handful of causes that add up to it exactly."""

from dataclasses import dataclass

from tracescope.analysis.breakdown import StepBreakdown
from tracescope.core.category import Category
from tracescope.core.trace import Trace


@dataclass(frozen=True, slots=True)
class GapCause:
    """One cause; ``category`` gives its colour and letter, None is time in which nothing ran. ``ns`` is signed."""

    title: str
    category: Category | None
    ns: int


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

_WITHOUT_FLOOR: dict[Category, str] = {
    Category.WEIGHT_READ: "weight reads, bytes unknown",
    Category.KV_READ: "attention, bytes unknown",
    Category.COMMUNICATION: "communication, bytes unknown",
}

IDLE_TITLE = "launch gaps"


def gap_causes(trace: Trace, breakdown: StepBreakdown) -> tuple[GapCause, ...]:
    """Causes of the step's gap, largest first, zero ones left out; their sum is ``breakdown.gap_of_step_ns``."""
    total: dict[tuple[str, Category | None], int] = {}
    categories = trace.events.category[breakdown.events].tolist()
    gaps = breakdown.gap_ns.tolist()
    for category, gap, known in zip(categories, gaps, breakdown.floor_known.tolist(), strict=True):
        title, shown = _ABOVE[Category(category)]
        if not known:
            title = _WITHOUT_FLOOR.get(Category(category), title)
        total[title, shown] = total.get((title, shown), 0) + gap
    total[IDLE_TITLE, None] = breakdown.idle_ns
    causes = [GapCause(title, category, ns) for (title, category), ns in total.items() if ns]
    return tuple(sorted(causes, key=lambda c: (-c.ns, c.title)))
