"""The machine and the workload of a recorded step, as the arithmetic takes them: batch, context per request, ranks."""

import numpy as np

from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import Trace
from tracescope.floor.step_ops import weight_read_bytes

_RANKS = (1, 2, 4, 8, 16, 32)


def machine_of(trace: Trace, basis: Basis) -> HardwareSpec | None:
    """The machine that a trace is priced on, else the one that it was made on; None where neither is known."""
    return basis.hardware or trace.meta.hardware


def ranks_of(trace: Trace) -> int:
    """Over how many ranks the model of a trace is split: as it was told, else what its weights come nearest; else 1."""
    meta = trace.meta
    if meta.tensor_parallel or meta.model is None or not len(trace.steps):
        return max(1, meta.tensor_parallel)
    decode = np.flatnonzero(trace.steps.decode)
    first = int(decode[0]) if len(decode) else 0
    work = trace.events.work[trace.step_events(first)]
    read = int(np.maximum(trace.work.weight_read[work], 0).sum())
    return ranks_that_fit(meta.model, read, bool((trace.work.link > 0).any()), int(trace.steps.batch[first]))


def ranks_that_fit(model: ModelSpec, weight_read: int, has_link: bool, batch: int = 1) -> int:
    """Over how many ranks a model is split: 1 without traffic between devices, else what the weights come nearest.

    ``weight_read`` is what one step of ``batch`` requests read on one rank, in bytes, -1 where not known.
    """
    if weight_read <= 0 or not has_link:
        return 1
    return min(_RANKS, key=lambda ranks: abs(weight_read_bytes(model, ranks, max(1, batch)) - weight_read))


def workload_of_step(trace: Trace, step: int, ranks: int = 1) -> Workload | None:
    """Batch and context of one step; None where the trace does not say both.

    Requests of different lengths are taken at their mean, rounded up to a whole token: the bytes read are exact where
    they are all of one length, and no more than one token a request too many otherwise.
    """
    batch, tokens = int(trace.steps.batch[step]), int(trace.steps.context_tokens[step])
    if batch < 1 or tokens < 0:
        return None
    return Workload(batch=batch, context=-(-tokens // batch), tensor_parallel=ranks)
