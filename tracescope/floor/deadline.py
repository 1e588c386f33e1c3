"""A time that each token may take: whether the floor keeps it, and up to which batch."""

from dataclasses import dataclass, replace

from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.pricing import ops_total_s
from tracescope.floor.verdict import LARGEST_BATCH


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time each token may take: whether the op floor keeps it, and the largest batch whose floor does (0: none)."""

    seconds: float
    met: bool
    largest_batch: int


def deadline_check(model: ModelSpec, workload: Workload, basis: Basis, seconds: float) -> Deadline | None:
    """Whether a step can keep a deadline of ``seconds`` a token; None where the basis cannot price a step.

    Only the floor is asked: a real step takes longer.
    """
    step_s = ops_total_s(model, workload, basis)
    if step_s is None:
        return None

    def meets(batch: int) -> bool:
        at = ops_total_s(model, replace(workload, batch=batch), basis)
        return at is not None and at <= seconds

    if not meets(1):
        return Deadline(seconds, step_s <= seconds, 0)
    low, high = 1, 2
    while high <= LARGEST_BATCH and meets(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return Deadline(seconds, step_s <= seconds, low)
