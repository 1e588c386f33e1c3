"""Whether the model that prices a trace is the one that was traced."""

from collections.abc import Iterator

import numpy as np

from tracescope.analysis.findings import ERROR, WARNING, Finding
from tracescope.core.category import StepKind
from tracescope.core.columns import I64
from tracescope.core.trace import Trace

_GUESSED = "layers by period"
"""The rule that finds layers by repetition alone: its count may be a multiple or a part of the true one."""


def layers_of_steps(trace: Trace) -> I64:
    """How many layers the device events of each step show, int64[steps]; 0 where none was recognised."""
    e = trace.events
    seen = np.flatnonzero((e.step >= 0) & (e.layer >= 0) & trace.on_device[trace.event_lane])
    result = np.zeros(len(trace.steps), np.int64)
    np.maximum.at(result, e.step[seen], e.layer[seen].astype(np.int64) + 1)
    return result


def model_mismatch(trace: Trace) -> Iterator[Finding]:
    """A finding where most decode steps show another number of layers than the model has.

    Most, for a recording may begin or end inside a step.
    """
    model = trace.meta.model
    if model is None:
        return
    layers = layers_of_steps(trace)
    decode = (trace.steps.kind == StepKind.DECODE) & (layers > 0)
    counts, times = np.unique(layers[decode], return_counts=True)
    if not len(counts) or int(counts[times.argmax()]) == model.layers:
        return
    shown = int(counts[times.argmax()])
    steps = np.flatnonzero(decode & (layers == shown))
    guessed = any(inference.rule == _GUESSED for inference in trace.meta.report.inferred)
    first = np.flatnonzero((trace.events.step == steps[0]) & (trace.events.layer >= 0))
    text = (
        f"the trace shows {shown:,} layers, {model.title or model.name} has {model.layers:,}: another model was traced"
    )
    text += "" if not guessed else ", or the layers, found by repetition alone, are not the model's"
    yield Finding("model_mismatch", WARNING if guessed else ERROR, len(steps), int(first[0]), text)
