"""The ops of a step for many batches and contexts at once, spread out from the formulas of single steps.

Every amount of a step is a straight line in the batch: weights are the same whatever it is (of a mixture the expected
part of the experts), gathered rows, appends, FLOPs and activations are ``batch`` times those of one request, and KV
reads are a line in the batch and in the number of groups that share a prefix. The lines are read off the ops of steps
of one and of two requests, so that there is one set of formulas.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import Op
from tracescope.core.columns import I64
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.experts import distinct_of, shares_of_expectation
from tracescope.floor.kv_cache import prefix_groups
from tracescope.floor.layer_weights import layer_weights
from tracescope.floor.pricing import F64, floor_s, sent_bytes
from tracescope.floor.step_ops import OpWork, all_reduce_bytes, closing_ops, layer_groups, layer_ops, opening_ops
from tracescope.floor.verdict import TERMS, binding_term

Line = TypeVar("Line", I64, F64)
Number = TypeVar("Number", int, float)

PROPORTIONAL: Final = ("embedding_gather", "kv_append", "activation", "flops", "state_read", "state_write")
"""Amounts of a step that are ``batch`` times those of one request."""
READS: Final = ("kv_read", "index_read")
"""Amounts that grow with the context, a line in the batch and in the groups that share a prefix."""
LARGEST: Final = 2.0**62
"""Amounts up to here fit int64; anything above is a typing mistake, not a machine."""


class OpGrid:
    """Steps of ``model`` at each of ``contexts``; what is asked of it takes batches that broadcast against them.

    Batches int64[n, 1] give results [n, contexts], batches int64[contexts] results [contexts].
    """

    def __init__(self, model: ModelSpec, workload: Workload, contexts: I64) -> None:
        self._model = model
        self._workload = replace(workload, pinned_bytes=0)
        self._pinned = workload.pinned_bytes
        self._ranks = workload.tensor_parallel
        self._layers = layer_groups(model, 1, self._ranks)
        one = [self._counted(1, context) for context in contexts.tolist()]
        self._shared = workload.prefix_aware and workload.prefix_group > 1
        two = [self._counted(2, context) for context in contexts.tolist()] if self._shared else None
        self._kv = _lines(_reads(one), None if two is None else _reads(two))
        self._kv_totals = {
            name: _lines(_read_totals(one, name), None if two is None else _read_totals(two, name)) for name in READS
        }
        ops = [op for op, _ in one[0]]
        self._count = np.array([n for _, n in one[0]], np.float64)
        self._flops = np.array([[op.flops for op, _ in row] for row in one], np.float64)
        self._weights = np.array([op.weight_read for op in ops], np.float64)
        self._gather = np.array([op.embedding_gather for op in ops], np.float64)
        self._append = np.array([op.kv_append for op in ops], np.float64)
        self._sends = np.array([op.link > 0 for op in ops], bool)
        self._experts = np.array([self._every_expert(op) for op in ops], np.float64)
        self._one = {name: _whole([_total(row, name) for row in one]) for name in PROPORTIONAL}
        self._every = sum(self._every_expert(op) * n for op, n in one[0])
        self._weights_beside = _total(one[0], "weight_read") - self._expert_bytes(1)

    def _counted(self, batch: int, context: int) -> list[tuple[OpWork, int]]:
        """The ops of one step with how often each occurs, whatever the batch in the same places."""
        workload = replace(self._workload, batch=batch, context=context)
        outside = (*opening_ops(self._model, workload), *closing_ops(self._model, workload))
        inside = [(op, n) for layer, n in self._layers for op in layer_ops(self._model, workload, layer)]
        return [*((op, 1) for op in outside), *inside]

    def _every_expert(self, op: OpWork) -> int:
        """Bytes of all experts of the layer that ``op`` reads some experts of, else 0."""
        if op.op != Op.EXPERTS:
            return 0
        return layer_weights(self._model, self._ranks, op.layer).experts.weight_read

    def groups(self, batch: I64) -> I64:
        """How many groups with a common prefix each batch makes; 0 where their reads do not depend on it."""
        if not self._shared:
            return np.zeros_like(batch)
        return _each(batch, lambda b: prefix_groups(replace(self._workload, batch=b)))

    def floors(self, batch: I64, basis: Basis) -> tuple[F64, F64] | None:
        """The op floor in s and its parts by what binds, float64[..., contexts] and [..., contexts, TERMS].

        None where the basis cannot price a step.
        """
        requests, groups = batch[..., None].astype(np.float64), self.groups(batch)[..., None].astype(np.float64)
        weights = self._weight_floats(batch) + requests * self._gather
        kv = groups * self._kv[0] + requests * self._kv[1] + requests * self._append
        flops = requests * self._flops
        link = sent_bytes(*self._link(batch), basis)[..., None] * self._sends
        weights, kv, flops, link = np.broadcast_arrays(weights, kv, flops, link)
        seconds, known = floor_s(weights + kv, flops, link, basis)
        if not known.all():
            return None
        seconds = seconds * self._count
        term = binding_term(weights, kv, link, flops, basis)
        parts = np.stack([np.where(term == i, seconds, 0.0).sum(axis=-1) for i in range(len(TERMS))], axis=-1)
        return seconds.sum(axis=-1), parts

    def streamed_and_flops(self, batch: I64) -> tuple[F64, F64]:
        """Bytes that T_mem counts and FLOPs of a whole step, float64[..., contexts], without rounding."""
        requests, groups = batch[..., None].astype(np.float64), self.groups(batch)[..., None].astype(np.float64)
        kv = groups * self._kv[0] + requests * (self._kv[1] + self._append)
        streamed: F64 = (self._weight_floats(batch) + kv) @ self._count
        return streamed, requests * self._flops @ self._count

    def _weight_floats(self, batch: I64) -> F64:
        """Weights that each op reads, float64[..., ops]: the expected experts and the pinned share without rounding."""
        if self._model.experts is None and not self._pinned:
            return self._weights
        share = _each(batch, self._expert_share, np.float64)[..., None]
        own = np.where(self._experts > 0, self._experts * share, self._weights)
        if not self._pinned:
            return own
        whole = own @ self._count
        left = np.maximum(0.0, whole - self._pinned) / whole
        return own * left[..., None]

    def _expert_share(self, batch: int) -> float:
        experts = self._model.experts
        return 1.0 if experts is None else float(distinct_of(experts, batch) / experts.experts)

    def _link(self, batch: I64) -> tuple[I64, I64]:
        """Bytes that one rank sends in one all-reduce: by itself, and where the switch adds up."""
        if not self._sends.any():
            return np.zeros_like(batch), np.zeros_like(batch)
        alone = _each(batch, lambda b: all_reduce_bytes(self._model, b, self._ranks)[0])
        reduced = _each(batch, lambda b: all_reduce_bytes(self._model, b, self._ranks)[1])
        return alone, reduced

    def weight_read(self, batch: I64) -> I64:
        """Weights of a whole step, exact, int64 of the shape of ``batch``."""
        if self._model.experts is None:
            return np.full_like(batch, self._exact_weights(1))
        return _each(batch, self._exact_weights)

    def _exact_weights(self, batch: int) -> int:
        return max(0, self._weights_beside + self._expert_bytes(batch) - self._pinned)

    def _expert_bytes(self, batch: int) -> int:
        """Expected bytes of experts in a whole step, rounded once as the layers' shares add up to it."""
        experts = self._model.experts
        if experts is None:
            return 0
        return shares_of_expectation((self._every,), distinct_of(experts, batch), experts.experts)[0]

    def kv_read(self, batch: I64, name: str = "kv_read") -> I64:
        """KV reads of a whole step, or ``name`` of them, exact, int64[..., contexts]. Raises TraceError beyond 2^62."""
        group, request = self._kv_totals[name]
        _refuse_large((float(group.max()) + float(request.max())) * float(batch.max()))
        return self.groups(batch) * group + batch * request

    def times_one(self, batch: I64, name: str) -> I64:
        """``batch`` times what a step of one request has of ``name``, exact, int64[..., contexts].

        Raises TraceError beyond 2^62.
        """
        one = self._one[name]
        _refuse_large(float(one.max()) * float(batch.max()))
        return batch * one

    def link(self, batch: I64) -> tuple[I64, I64]:
        """Bytes that one rank sends in a step, exact, like ``batch``: alone, and where the switch adds up."""
        times = int(self._count[self._sends].sum())
        alone, reduced = self._link(batch)
        return alone * times, reduced * times


def _lines(one: Line, two: Line | None) -> tuple[Line, Line]:
    """What a group and a request add to an amount: from that of one request, and of two that share a prefix."""
    if two is None:
        return np.zeros_like(one), one
    return 2 * one - two, two - one


def _reads(rows: list[list[tuple[OpWork, int]]]) -> F64:
    return np.array([[op.kv_read for op, _ in row] for row in rows], np.float64)


def _read_totals(rows: list[list[tuple[OpWork, int]]], name: str) -> I64:
    return _whole([_total(row, name) for row in rows])


def _whole(amounts: list[int]) -> I64:
    _refuse_large(float(max(amounts)))
    return np.array(amounts, np.int64)


def _total(row: list[tuple[OpWork, int]], name: str) -> int:
    return sum(int(getattr(op, name)) * n for op, n in row)


def _refuse_large(amount: float) -> None:
    if amount > LARGEST:
        raise TraceError("a step would move more than 2^62 bytes or FLOPs", action="check --batch and --context")


def _each(batch: I64, amount: Callable[[int], Number], dtype: type[Any] = np.int64) -> NDArray[Any]:
    """``amount`` of every batch in an array of its shape; asked once for each that occurs."""
    known = {b: amount(b) for b in set(batch.ravel().tolist())}
    return np.array([known[b] for b in batch.ravel().tolist()], dtype).reshape(batch.shape)
