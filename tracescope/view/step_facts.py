"""What the step bar and the headline say about one step: floor parts with their arithmetic, gap, shares. No Qt here."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.analysis.breakdown import StepBreakdown
from tracescope.core import units
from tracescope.core.category import KIND_OF_CATEGORY, KINDS
from tracescope.core.work_table import UNKNOWN
from tracescope.lod.planes import KIND_INDEX
from tracescope.view.document import Document
from tracescope.view.floor_words import share_of_floor

NO_GAP: Final = "unknown: no floor"
"""Where the gap goes when there is none to tell."""


@dataclass(frozen=True, slots=True)
class FloorPart:
    """A solid part of the floor bar: the kind's letter, its ns, and texts from long to short."""

    letter: str
    ns: int
    texts: tuple[str, ...]


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
    """Weights, KV reads and the rest of the op floor; together exactly the step's floor."""
    series, taken = document.series, document.breakdown(step)
    if int(series.weight_read[step]) < 0 or int(series.kv_read[step]) < 0:
        return _known_parts(document, taken)
    rate = units.rate(document.basis.bandwidth_bytes_per_s)
    left = taken.floor_ops_ns
    parts = []
    for letter, word, amounts, floors in (
        ("W", "weights", series.weight_read, series.floor_weight_ns),
        ("K", "KV", series.kv_read, series.floor_kv_read_ns),
    ):
        ns = min(left, int(floors[step]))
        if ns <= 0:
            continue
        texts = (
            f"{word} {units.size(int(amounts[step]))} ÷ {rate} = {units.millis(ns)} ms",
            f"{word} {units.millis(ns)} ms",
            f"{letter} {units.millis(ns)}",
            letter,
        )
        parts.append(FloorPart(letter, ns, texts))
        left -= ns
    if left > 0:
        parts.append(FloorPart("C", left, (f"other floor {units.millis(left)} ms", units.millis(left))))
    return tuple(parts)


def _known_parts(document: Document, taken: StepBreakdown) -> tuple[FloorPart, ...]:
    """The known floors by the kind of their operations, where the bytes of the step are not all known."""
    category = document.trace.events.category[taken.events]
    floor = np.bincount(KIND_INDEX[category], weights=taken.floor_ns, minlength=len(KINDS)).astype(np.int64)
    return tuple(
        FloorPart(kind.letter, ns, (f"{kind.title.lower()}, known {units.millis(ns)} ms", kind.letter))
        for kind, ns in zip(KINDS, floor.tolist(), strict=True)
        if ns > 0
    )


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
