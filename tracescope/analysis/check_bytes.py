"""Bytes of the events of a step against the model's own formula."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracescope.analysis.findings import ERROR, INFO, WARNING, Finding
from tracescope.analysis.steps import StepSeries
from tracescope.analysis.workload import ranks_that_fit
from tracescope.core.arithmetic import kv_bytes_per_token, weight_read_bytes
from tracescope.core.category import StepKind
from tracescope.core.columns import I64, Bool
from tracescope.core.trace import UNKNOWN, Trace

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
    read = series.weight_read[decode & (series.weight_read > 0)]
    ranks = ranks_that_fit(model, int(read[0]) if len(read) else UNKNOWN, bool(series.link.any()))
    token = kv_bytes_per_token(model, ranks)
    batch, context = trace.steps.batch.astype(np.int64), trace.steps.context_tokens
    everywhere = np.ones(len(series), bool)
    for comparison in (
        Comparison(
            "weight_bytes", "weight bytes", series.weight_read,
            np.full(len(series), weight_read_bytes(model, ranks)), everywhere,
        ),
        Comparison("kv_read_bytes", "KV bytes read", series.kv_read, context * token, context >= 0),
        Comparison("kv_append_bytes", "KV bytes appended", series.kv_append, batch * token, batch >= 0),
    ):  # fmt: skip
        off = np.where(decode, comparison.relative_difference, 0.0)
        if off.any():
            step = int(off.argmax())
            severity = ERROR if trace.meta.synthetic else WARNING if off[step] > _CLOSE else INFO
            text = f"step {step}: {comparison.text(step)}"
            yield Finding(comparison.rule, severity, int((off > 0).sum()), example(step), text)


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
