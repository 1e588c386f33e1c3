"""What it costs that each token depends on the one before: steps one after another against all tokens at once."""

from dataclasses import dataclass, replace
from typing import Final

from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.pricing import compute_s, memory_s, ops_total_s
from tracescope.floor.step_ops import StepTotals, step_totals

TOKENS: Final = 100
"""The length of the answer that dependence is shown on."""


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
    moving = memory_s(weights + one.kv_read + tokens * (one.kv_append + one.embedding_gather), basis)
    if moving is None:
        return None
    return DependenceCost(tokens, tokens * step_s, max(moving, compute_s(tokens * one.flops, basis) or 0.0))
