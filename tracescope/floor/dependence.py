"""What it costs that each token depends on the one before: steps one after another against all tokens at once."""

from dataclasses import dataclass, replace
from math import fsum
from typing import Final

import numpy as np

from tracescope.core.category import Op
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.experts import distinct_of
from tracescope.floor.pricing import F64, ops_floor_s
from tracescope.floor.step_ops import OpWork, counted_ops

TOKENS: Final = 100
"""The length of the answer that dependence is shown on."""


@dataclass(frozen=True, slots=True)
class DependenceCost:
    """``tokens`` of every request one after another, against a machine that needed no token to begin the next.

    ``serial_s`` is ``tokens`` steps at the op floor. ``at_once_s`` is the same ops reading weights and cache once, and
    appending, computing and sending for all tokens: no machine can do it, since each token depends on the one before.
    The factor is at most ``tokens``.
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

    The context is taken as constant over the steps, which favours them. At once every op moves its weights and reads
    the cache once, but appends, computes and sends for all tokens, so that no op takes longer than its steps do.
    """
    counted = counted_ops(model, workload)
    times = np.array([n for _, n in counted], np.float64)
    step = _ops_s([op for op, _ in counted], basis)
    everything = [_at_once(op, tokens, _experts_at_once(model, workload, op, tokens)) for op, _ in counted]
    at_once = _ops_s(everything, basis)
    if step is None or at_once is None:
        return None
    return DependenceCost(tokens, tokens * fsum(step * times), fsum(at_once * times))


def _ops_s(ops: list[OpWork], basis: Basis) -> F64 | None:
    seconds, known = ops_floor_s(tuple(ops), basis)
    return seconds if known.all() else None


def _at_once(op: OpWork, tokens: int, weights: int) -> OpWork:
    grown = ("embedding_gather", "link", "link_reduced", "flops")
    appended = tokens * (op.kv_append - op.state_write) + op.state_write  # a state is written once, however many tokens
    return replace(op, weight_read=weights, kv_append=appended, **{name: tokens * getattr(op, name) for name in grown})


def _experts_at_once(model: ModelSpec, workload: Workload, op: OpWork, tokens: int) -> int:
    """Weights that ``op`` reads for all tokens at once: the same, but for more distinct experts."""
    if model.experts is None or op.op is not Op.EXPERTS:
        return op.weight_read
    distinct, at_once = (distinct_of(model.experts, workload.batch * n) for n in (1, tokens))
    return round(op.weight_read * at_once / distinct)
