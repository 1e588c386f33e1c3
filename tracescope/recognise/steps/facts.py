"""What each step is: its kind, batch, context and tokens, from its marker, else from shapes, else from the user."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracescope.core.category import BytesFrom, StepKind
from tracescope.core.columns import I32, I64
from tracescope.core.report import Inference
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.names.markers import Marker
from tracescope.recognise.names.shapes import ShapeKind
from tracescope.recognise.ops.op_events import OpEvents
from tracescope.recognise.work.work import StepSetting


@dataclass(frozen=True, eq=False)
class Seen:
    """What shapes show of each step: batch, query tokens, tokens in the cache the attention saw; int64[steps], -1.

    ``rows``, ``last_rows``: the most rows that a matrix product of the step has, and those of its last one.
    ``appends``, ``attends``: how many KV appends and attentions it has.
    """

    batch: I64
    queries: I64
    keys: I64
    rows: I64
    last_rows: I64
    appends: I64
    attends: I64
    selects: np.ndarray[tuple[int], np.dtype[np.bool_]]


def look_at_steps(op_events: OpEvents, step: I32, steps: int) -> Seen:
    """The first attention shape of each step, how many KV appends it has, and whether it selects tokens."""
    shape = op_events.shape.copy()
    # The operator that carries attention's shapes may lie inside its op event.
    shape[op_events.member_of[op_events.member_shape >= 0]] = op_events.member_shape[op_events.member_shape >= 0]
    is_attention = np.array([s.kind is ShapeKind.ATTENTION for s in op_events.shapes] + [False])[shape]
    found = np.flatnonzero(is_attention & (step >= 0))
    which, first = np.unique(step[found], return_index=True)
    columns = []
    for name in ("batch", "queries", "keys"):
        values = np.array([getattr(s, name) for s in op_events.shapes] + [-1], np.int64)
        column = np.full(steps, -1, np.int64)
        column[which] = values[shape[found[first]]]
        columns.append(column)
    rows = np.array([s.rows if s.kind is ShapeKind.GEMM else -1 for s in op_events.shapes] + [-1], np.int64)[shape]
    products = np.flatnonzero((rows >= 0) & (step >= 0))
    most, last_rows = np.full(steps, -1, np.int64), np.full(steps, -1, np.int64)
    np.maximum.at(most, step[products], rows[products])
    last_rows[step[products]] = rows[products]  # of several the last is kept
    inside = step >= 0
    appends = np.bincount(step[inside & (op_events.family == Family.APPEND)], minlength=steps).astype(np.int64)
    attention = np.isin(op_events.family, (Family.ATTENTION, Family.ATTENTION_PART))
    attends = np.bincount(step[inside & attention], minlength=steps).astype(np.int64)
    selects = np.bincount(step[inside & (op_events.family == Family.SAMPLE)], minlength=steps) > 0
    return Seen(columns[0], columns[1], columns[2], most, last_rows, appends, attends, selects)


def describe_steps(
    markers: Sequence[Marker], seen: Seen, context: int | None
) -> tuple[list[StepSetting], list[Inference]]:
    """Facts of every step and what was concluded. ``context``: tokens cached at the first decode step, by the user."""
    inferred: list[Inference] = []
    kinds = [_kind(marker, seen, i) for i, marker in enumerate(markers)]
    guessed = [k for k, m in zip(kinds, markers, strict=True) if m.kind is None and k is not StepKind.OTHER]
    if guessed:
        counts = ", ".join(f"{guessed.count(k):,} {k.label}" for k in dict.fromkeys(guessed))
        inferred.append(Inference(f"kinds of steps: {counts}", "one query token a request is decode", 0.8))
    decodes = [i for i, kind in enumerate(kinds) if kind is StepKind.DECODE]
    constant = _is_constant(seen.keys[decodes])
    facts = []
    for i, marker in enumerate(markers):
        batch = marker.batch if marker.batch >= 0 else int(seen.batch[i])
        keys = int(seen.keys[i])
        fact = StepSetting(kinds[i], batch, tokens=_tokens(kinds[i], marker, batch, seen, i), decodes=marker.decodes)
        said = marker.context_tokens
        decode = kinds[i] is StepKind.DECODE
        if said >= 0:
            past = max(said - marker.new_tokens, 0) if kinds[i] is StepKind.PREFILL and marker.new_tokens > 0 else said
            fact = replace(fact, context=past if marker.context_includes_new else said, context_from=BytesFrom.MARKER)
            allocated = decode and batch > 0 and keys > said // batch + 1
            fact = replace(fact, allocated=allocated)
        elif decode and keys >= 0 and batch > 0 and not constant:
            fact = replace(fact, context=batch * (keys - 1), context_from=BytesFrom.SHAPE)
        elif decode:
            fact = replace(fact, allocated=keys >= 0)
            if context is not None and batch > 0:
                done = decodes.index(i) if len(decodes) < 64 else int(np.searchsorted(decodes, i))
                fact = replace(fact, context=batch * (context + done), context_from=BytesFrom.USER)
        facts.append(fact)
    inferred += _allocation_notes(facts, seen)
    return facts, inferred


def _kind(marker: Marker, seen: Seen, step: int) -> StepKind:
    if marker.kind is not None:
        return marker.kind
    if seen.queries[step] == 1:
        return StepKind.DECODE
    if seen.queries[step] > 1:
        # Without a cache that it fills, in a run that generates nothing, it is no prompt: something else, training
        # perhaps.
        return StepKind.PREFILL if seen.appends[step] or (seen.queries == 1).any() else StepKind.OTHER
    if seen.appends[step] < 2:
        return StepKind.OTHER
    return StepKind.PREFILL if _computes_a_prompt(seen, step) else StepKind.DECODE


def _computes_a_prompt(seen: Seen, step: int) -> bool:
    """Whether the products of the layers have far more rows than the last one: all tokens of a prompt, and the one
    token a request whose logits are wanted. A graph may be padded, to less than twice the rows.
    """
    return bool(seen.rows[step] >= 2 * seen.last_rows[step] > 0)


def _is_constant(keys: I64) -> bool:
    """Whether several decode steps show the same cache length: it should have grown, so it is what was allocated."""
    return len(keys) > 1 and bool((keys >= 0).all()) and len(np.unique(keys)) == 1


def _tokens(kind: StepKind, marker: Marker, batch: int, seen: Seen, step: int) -> int:
    if marker.new_tokens >= 0:
        return marker.new_tokens
    if kind is StepKind.DECODE:
        return batch
    queries = int(seen.queries[step])
    if batch >= 0 and queries >= 0:
        return batch * queries
    return int(seen.rows[step]) if kind is StepKind.PREFILL else -1


def _allocation_notes(facts: Sequence[StepSetting], seen: Seen) -> list[Inference]:
    allocated = [i for i, f in enumerate(facts) if f.allocated]
    if not allocated:
        return []
    length = int(seen.keys[allocated[0]])
    known = sum(facts[i].context >= 0 for i in allocated)
    what = (
        f"the shapes of {len(allocated)} steps show a cache of {length} tokens: the allocated length, not the used one"
    )
    if known == len(allocated):
        source = "marker" if facts[allocated[0]].context_from is BytesFrom.MARKER else "given context"
        what += f"; KV reads count the {source}'s context and the token just appended"
    else:
        what += f"; KV reads of {len(allocated) - known} steps stay unknown (give --context)"
    return [Inference(what, "static KV cache", 0.95)]
