"""A time that each token may take: whether the floor keeps it, and up to which batch."""

from dataclasses import dataclass, replace

from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.capacity import capacity
from tracescope.floor.pricing import ops_total_s
from tracescope.floor.verdict import LARGEST_BATCH, first_batch


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time each token may take, and whether the op floor keeps it.

    ``largest_batch`` is the smaller of ``largest_batch_by_deadline``, whose floor still keeps it, and
    ``largest_batch_by_capacity``, which still fits (None where no machine is given); 0: none.
    """

    seconds: float
    met: bool
    largest_batch: int
    largest_batch_by_deadline: int
    largest_batch_by_capacity: int | None


def deadline_check(model: ModelSpec, workload: Workload, basis: Basis, seconds: float) -> Deadline | None:
    """Whether a step can keep a deadline of ``seconds`` a token; None where the basis cannot price a step.

    Only the floor is asked: a real step takes longer.
    """
    step_s = ops_total_s(model, workload, basis)
    if step_s is None:
        return None

    def misses(batch: int) -> bool:
        at = ops_total_s(model, replace(workload, batch=batch), basis)
        return at is None or at > seconds

    first = first_batch(misses)
    in_time = LARGEST_BATCH if first is None else first - 1
    fitting = None if basis.hardware is None else capacity(model, basis.hardware, workload).max_batch
    return Deadline(seconds, step_s <= seconds, in_time if fitting is None else min(in_time, fitting), in_time, fitting)
