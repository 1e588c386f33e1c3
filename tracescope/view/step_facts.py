"""What the step bar and the headline say about one step: floor parts with their arithmetic, gap, shares. No Qt here."""

from dataclasses import dataclass
from typing import Final

from tracescope.analysis.floor_parts import NAMES
from tracescope.core import units
from tracescope.core.category import KIND_OF_CATEGORY
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.pricing import link_s, memory_s, sent_bytes
from tracescope.view.document import Document
from tracescope.view.floor_words import share_of_floor
from tracescope.view.part_words import FloorPart, parts_of

NO_GAP: Final = "unknown: no floor"
"""Where the gap goes when there is none to tell."""


@dataclass(frozen=True, slots=True)
class GapPart:
    """A hatched part: the kind's letter (empty: nothing running), ns, and texts from long to short."""

    letter: str
    title: str
    ns: int
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepFacts:
    """One step in numbers. ``floor_ns`` is None without a bandwidth or any bytes; the parts then are empty."""

    duration_ns: int
    floor_ns: int | None
    parts: tuple[FloorPart, ...]
    gaps: tuple[GapPart, ...]
    setting: str
    """Batch, context and tokens of the step, as far as they are known."""
    ops: int
    ops_without_floor: int
    unknown_ns: int = 0
    """Time of the operations without a floor: with the floor and the gap it is the duration."""
    partly_known: bool = False
    """Whether they take so much of the step that its floor is only told as that of the others."""
    no_floor_because: str = ""
    """Why ``floor_ns`` is None."""

    @property
    def gap_ns(self) -> int | None:
        """Duration less floor, of what has one; negative when the step was faster than its floor."""
        return None if self.floor_ns is None else self.duration_ns - self.floor_ns - self.unknown_ns

    @property
    def share(self) -> float | None:
        """Floor over duration; None where the floor is only that of some operations."""
        return None if self.partly_known else share_of_floor(self.floor_ns, self.duration_ns)

    @property
    def priced_ops(self) -> str:
        """Such as ``157 of 434 ops``: those that the floor is of."""
        return f"{self.ops - self.ops_without_floor:,} of {units.plural(self.ops, 'op')}"

    @property
    def floor_words(self) -> str:
        """``floor 5.120 ms``, or of which operations it is where it is not that of the step."""
        of = f" of {self.priced_ops}:" if self.partly_known else ""
        return f"floor{of} {units.millis(self.floor_ns)} ms"


def step_facts(document: Document, step: int) -> StepFacts:
    """The facts of one step, computed once."""
    return document.remembered("facts", step, lambda: _facts(document, step))


def _facts(document: Document, step: int) -> StepFacts:
    taken = document.breakdown(step)
    floor = taken.floor_ops_ns if taken.floor_ops_ns != UNKNOWN else None
    return StepFacts(
        duration_ns=taken.duration_ns,
        floor_ns=floor,
        parts=_floor_parts(document, step) if floor is not None else (),
        gaps=_gap_parts(document, step) if floor is not None else (),
        setting=setting(document, step),
        ops=len(taken.events),
        ops_without_floor=taken.ops_without_floor,
        unknown_ns=taken.unknown_ns if floor is not None else 0,
        partly_known=taken.partly_known,
        no_floor_because="no bytes are known" if document.has_floor else "the memory bandwidth is not known",
    )


def _floor_parts(document: Document, step: int) -> tuple[FloorPart, ...]:
    """The floor of the step by kind; together exactly the step's floor."""
    series, basis = document.series, document.basis
    ns = {name: int(getattr(document.floor_parts, name)[step]) for name in NAMES}
    moved = {name: int(getattr(series, name)[step]) for name in NAMES if name not in ("compute", "link")}
    alone = {name: memory_s(amount, basis) for name, amount in moved.items()}
    moved["link"] = sent_bytes(int(series.link[step]), int(series.link_reduced[step]), basis)
    alone["link"] = link_s(moved["link"], basis)
    # An op without a floor may have some of the bytes of a kind, which then are no part of this floor.
    whole = {name for name, seconds in alone.items() if seconds is not None and abs(seconds * 1e9 - ns[name]) <= 1}
    return parts_of(ns, {name: amount if name in whole else None for name, amount in moved.items()}, basis)


def _gap_parts(document: Document, step: int) -> tuple[GapPart, ...]:
    parts = []
    for cause in document.gap_causes(step):
        if not cause.known:
            continue
        letter = KIND_OF_CATEGORY[cause.category].letter if cause.category is not None else ""
        text = f"{cause.ns / 1e6:.2f}"
        parts.append(GapPart(letter, cause.title, cause.ns, (f"{letter} {text}", letter) if letter else ()))
    return tuple(parts)


def context_of(document: Document, step: int) -> str:
    """Tokens of context per request where all have the same number, else their sum; empty where not known."""
    steps = document.trace.steps
    total, batch = int(steps.context_tokens[step]), int(steps.batch[step])
    if total == UNKNOWN:
        return ""
    if batch > 0 and total % batch == 0:
        return f"context {total // batch:,}"
    return f"context {total:,} tokens in all"


def setting(document: Document, step: int) -> str:
    """Such as ``batch 16 · context 4,096 · one token per request``."""
    steps = document.trace.steps
    batch, tokens = int(steps.batch[step]), int(steps.generated_tokens[step])
    words = [units.one_of_ranks(document.ranks)] if document.ranks > 1 else []
    words.append(f"batch {batch:,}" if batch >= 0 else "batch unknown")
    context = context_of(document, step)
    if context:
        words.append(context)
    if tokens >= 0 and batch > 0:
        each = "one token per request" if tokens == batch else f"{tokens:,} tokens in this step"
        words.append(each)
    return " · ".join(words)
