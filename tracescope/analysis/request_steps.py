"""What the requests of a trace have in each step: which are there, and how much of their caches is read."""

from typing import Final

import numpy as np

from tracescope.core.columns import I64, Bool
from tracescope.core.model import ModelSpec
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.kv_cache import cache_token_bytes, index_token_bytes
from tracescope.floor.state import layer_state_bytes

NO_CAP: Final = 1 << 62
"""More tokens than any request has: a layer that reads all of them."""


def served(trace: Trace) -> Bool:
    """Which requests of ``trace`` ever started, bool, one a request."""
    return np.not_equal(trace.requests.start, UNKNOWN)


def kv_read_by_requests(trace: Trace, model: ModelSpec, ranks: int = 1) -> I64 | None:
    """Bytes of KV that each step reads by its requests' own lengths, int64[steps]; None where a length is not known.

    A request with S cached tokens reads min(S, W − 1) of them in a layer with window W; of chunks nothing is said.
    """
    r, steps = trace.requests, trace.steps
    there = np.flatnonzero(served(trace))
    if not len(there) or (r.prompt_tokens[there] == UNKNOWN).any() or not len(steps):
        return None
    end = int((steps.start + steps.duration).max())
    first = np.searchsorted(steps.start, r.start[there])
    last = np.searchsorted(steps.start, np.where(r.finish[there] == UNKNOWN, end, r.finish[there]))
    total = np.zeros(len(steps), np.int64)
    for kind, layers in model.layer_kinds:
        total += layers * layer_state_bytes(model, kind, ranks) * steps.batch.astype(np.int64)
        attention = kind.attention
        if attention is None:
            continue
        if attention.chunk is not None:
            return None
        for most, size in (
            (attention.most_attended, cache_token_bytes(model, attention, ranks)),
            (None, index_token_bytes(attention)),
        ):
            if size:
                cap = NO_CAP if most is None else most
                total += layers * size * _tokens(first, last, r.prompt_tokens[there], cap, len(steps))
    return total


def _tokens(first: I64, last: I64, prompt: I64, cap: int, steps: int) -> I64:
    """Sum over requests of min(prompt + age, cap) in each step that they are part of: [first, last)."""
    level, slope = np.zeros(steps + 2, np.int64), np.zeros(steps + 2, np.int64)
    begin = np.minimum(prompt, cap)
    full = np.maximum(np.minimum(first + 1 + cap - begin, last), first + 1)
    np.add.at(level, first, begin)
    np.add.at(slope, first + 1, 1)
    np.subtract.at(slope, full, 1)
    np.subtract.at(level, last, begin + full - first - 1)
    return np.cumsum(level + np.cumsum(slope))[:steps]
