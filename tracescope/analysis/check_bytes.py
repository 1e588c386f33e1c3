"""Bytes of the events of a step against the model's own formula."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracescope.analysis.findings import ERROR, INFO, WARNING, Finding
from tracescope.analysis.request_steps import kv_read_by_requests
from tracescope.analysis.step_workload import ranks_of
from tracescope.analysis.steps import StepSeries
from tracescope.core.category import StepKind
from tracescope.core.columns import I64, Bool
from tracescope.core.model import ModelSpec
from tracescope.core.trace import Trace
from tracescope.floor.kv_cache import kv_read_per_request
from tracescope.floor.state import state_bytes_per_request
from tracescope.floor.step_ops import kv_bytes_per_token, weight_read_bytes

_CLOSE = 0.01
"""Shapes leave out norms and biases, and count the token just appended: a difference below 1 % explains itself."""


def model_differences(trace: Trace, series: StepSeries, example: Callable[[int], int | None]) -> Iterator[Finding]:
    """A finding for each kind of byte in which decode steps differ from the model's formula.

    In a synthesised trace any difference is an error: both come from the same formula. ``example`` gives an event of a
    step.
    """
    model = trace.meta.model
    if model is None:
        return
    decode = trace.steps.kind == StepKind.DECODE
    ranks = ranks_of(trace)
    token = kv_bytes_per_token(model, ranks) + state_bytes_per_request(model, ranks)
    batch = trace.steps.batch.astype(np.int64)
    weights, weights_known = _weights(model, batch, ranks)
    kv_read, kv_read_known = _kv_read(trace, model, ranks)
    for comparison in (
        Comparison("weight_bytes", "weight bytes", series.weight_read, weights, weights_known),
        Comparison("kv_read_bytes", "KV bytes read", series.kv_read, kv_read, kv_read_known),
        Comparison("kv_append_bytes", "KV bytes appended", series.kv_append, batch * token, batch >= 0),
    ):  # fmt: skip
        off = np.where(decode, comparison.relative_difference, 0.0)
        if off.any():
            step = int(off.argmax())
            severity = ERROR if trace.meta.synthetic else WARNING if off[step] > _CLOSE else INFO
            text = f"step {step}: {comparison.text(step)}"
            yield Finding(comparison.rule, severity, int((off > 0).sum()), example(step), text)


def _weights(model: ModelSpec, batch: I64, ranks: int) -> tuple[I64, Bool]:
    """The weights that each step reads, and where that is known: a mixture of experts needs the batch for it."""
    if model.experts is None:
        return np.full(len(batch), weight_read_bytes(model, ranks)), np.ones(len(batch), bool)
    sizes, of = np.unique(np.maximum(batch, 1), return_inverse=True)
    return np.array([weight_read_bytes(model, ranks, b) for b in sizes.tolist()], np.int64)[of], batch > 0


def _kv_read(trace: Trace, model: ModelSpec, ranks: int) -> tuple[I64, Bool]:
    """The KV that each step reads, and where that is known: windows need the length of every request for it."""
    batch, context = trace.steps.batch, trace.steps.context_tokens
    plain = all(kind.attention is not None and kind.attention.stores for kind, _ in model.layer_kinds)
    if plain and not any(
        kind.recurrent or (kind.attention and kind.attention.limited) for kind, _ in model.layer_kinds
    ):
        return context * kv_bytes_per_token(model, ranks), context >= 0
    by_requests = kv_read_by_requests(trace, model, ranks)
    if by_requests is not None:
        return by_requests, np.ones(len(context), bool)
    alone = (batch == 1) & (context >= 0)
    read = [kv_read_per_request(model, int(c), ranks) if one else 0 for c, one in zip(context, alone, strict=True)]
    return np.array(read, np.int64), alone


@dataclass(frozen=True, eq=False, slots=True)
class Comparison:
    """One kind of bytes a step: ``found`` from its events against the ``formula``, int64 each, where ``known``."""

    rule: str
    title: str
    found: I64
    formula: I64
    known: Bool

    @property
    def relative_difference(self) -> NDArray[np.float64]:
        """|found - formula| / formula, float64, 0 where either is not known."""
        off = np.abs(self.found - self.formula) / np.maximum(self.formula, 1)
        return np.where(self.known & (self.found >= 0), off, 0.0)

    def text(self, step: int) -> str:
        """Both numbers of one step."""
        return f"{self.title} {self.found[step]:,} from its events, {self.formula[step]:,} by the model's formula"
