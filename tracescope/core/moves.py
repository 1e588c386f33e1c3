"""What one change would do to a decode step, and what its dependence on the last token costs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tracescope.core import units
from tracescope.core.arithmetic import StepTotals, counted_ops, step_totals
from tracescope.core.capacity import Capacity
from tracescope.core.floors import ops_floor_s
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.verdict import LARGEST_BATCH, Crossovers

TOKENS: Final = 100
"""The length of the answer that dependence is shown on."""

FASTER: Final = 10
_SAME: Final = 1e-9


@dataclass(frozen=True, slots=True)
class DependenceCost:
    """``tokens`` of every request one after another, against a machine that needed no token to begin the next.

    ``serial_s`` is ``tokens`` steps at the op floor. ``at_once_s`` reads weights and cache once, appends all tokens and
    computes all their FLOPs: no machine can do it, since each token depends on the one before.
    """

    tokens: int
    serial_s: float
    at_once_s: float

    @property
    def factor(self) -> float:
        """How many times longer the steps take."""
        return self.serial_s / self.at_once_s


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time each token may take: whether the op floor keeps it, and the largest batch whose floor does (0: none)."""

    seconds: float
    met: bool
    largest_batch: int


def ops_total_s(model: ModelSpec, workload: Workload, basis: Basis) -> float | None:
    """The op floor of one step in seconds, None where the basis cannot price it."""
    counted = counted_ops(model, workload)
    seconds, known = ops_floor_s(tuple(op for op, _ in counted), basis)
    return float(seconds @ np.array([n for _, n in counted])) if known.all() else None


def dependence_cost(model: ModelSpec, workload: Workload, basis: Basis, tokens: int = TOKENS) -> DependenceCost | None:
    """What ``tokens`` dependent steps cost; None where the basis cannot price a step.

    The context is taken as constant over the steps, which favours them.
    """
    step_s = ops_total_s(model, workload, basis)
    if step_s is None:
        return None
    one = step_totals(model, workload)
    weights = one.weight_read
    if model.experts:
        weights = step_totals(model, replace(workload, batch=workload.batch * tokens)).weight_read
    return dependence_of(one, weights, step_s, basis, tokens)


def dependence_of(
    one: StepTotals, weights: int, step_s: float, basis: Basis, tokens: int = TOKENS
) -> DependenceCost | None:
    """The same from the totals and the floor of ``one`` step; ``weights`` is what all tokens at once would read."""
    bandwidth = basis.bandwidth_bytes_per_s
    if not bandwidth:
        return None
    memory_s = (weights + one.kv_read + tokens * (one.kv_append + one.embedding_gather)) / bandwidth
    compute_s = tokens * one.flops / basis.peak_flops_per_s if basis.peak_flops_per_s else 0.0
    return DependenceCost(tokens, tokens * step_s, max(memory_s, compute_s))


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


def moves(
    model: ModelSpec, workload: Workload, basis: Basis, memory: Capacity | None, cross: Crossovers
) -> tuple[str, ...]:
    """One sentence for each change that could move the step, with what it would do."""
    return tuple(_moves(model, workload, basis, memory, cross))


def _moves(
    model: ModelSpec, workload: Workload, basis: Basis, memory: Capacity | None, cross: Crossovers
) -> Iterator[str]:
    context = f"at context {workload.context:,}"
    if memory is not None:
        yield f"{context}, batch {memory.max_batch + 1:,} is the first that does not fit"
    if cross.kv_passes_weights_batch is not None:
        yield f"{context}, KV reads pass the weights from batch {cross.kv_passes_weights_batch:,}"
    if cross.compute_binds_batch is not None:
        yield f"{context}, compute passes memory from batch {cross.compute_binds_batch:,}"
    elif cross.ridge_batch is not None:
        yield f"{context}, compute never passes memory: memory grows faster with the batch"
    now = ops_total_s(model, workload, basis)
    if now is None or not now:
        return
    if basis.peak_flops_per_s is not None:
        peak = replace(basis, peak_flops_per_s=basis.peak_flops_per_s * FASTER)
        yield _after(f"{FASTER} × the peak FLOPS alone", now, ops_total_s(model, workload, peak))
    if basis.bandwidth_bytes_per_s is not None:
        faster = replace(basis, bandwidth_bytes_per_s=basis.bandwidth_bytes_per_s * 2)
        yield _after("twice the bandwidth alone", now, ops_total_s(model, workload, faster))
    cost = dependence_cost(model, workload, basis)
    if cost is not None:
        yield (
            f"{cost.tokens} tokens of each request take at least {cost.tokens} × {units.seconds(now)} = "
            f"{units.seconds(cost.serial_s)}, one after another; a machine that could generate them all at once would "
            f"need {units.seconds(cost.at_once_s)}: dependence costs × {cost.factor:,.1f}"
        )


def _after(change: str, now: float, then: float | None) -> str:
    if then is None:
        return f"{change}: not known"
    if abs(then - now) <= _SAME:
        return f"{change} moves nothing: still {units.seconds(now)}"
    return f"{change}: {units.seconds(now)} becomes {units.seconds(then)}"
