"""Batch and context varied independently: bytes, floors, capacity, energy and what binds, for every pair of the two."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tracescope.core.columns import I64, U8, Bool
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.capacity import Capacity, capacity
from tracescope.floor.dependence import dependence_cost
from tracescope.floor.energy import around, mid_j
from tracescope.floor.op_grid import OpGrid
from tracescope.floor.pricing import F64, compute_binds, ridge_flops_per_byte, sent_bytes
from tracescope.floor.step_floor import StepFloor, assemble_floor
from tracescope.floor.step_ops import StepTotals
from tracescope.floor.tensor_parallel import split_notes
from tracescope.floor.verdict import (
    BINDINGS,
    LARGEST_BATCH,
    TERMS,
    Crossovers,
    Shares,
    ridge_batch,
    verdict_of,
)

MAX_CELLS = 1 << 20
NEVER = -1
"""A batch that does not exist: something never happens, or nobody knows."""


@dataclass(frozen=True, eq=False, slots=True)
class Sweep:
    """Steps of ``model`` for every batch (rows, int64[b]) and context (columns, int64[c]); arrays are [b, c].

    Bytes and FLOPs are exact int64, one rank's; seconds and joules float64, None where the basis cannot price a step.
    ``shares_s`` [b, c, TERMS] adds up to ``floor_ops_s``; ``binds`` is an index of BINDINGS. ``energy_j`` [3, b, c] is
    low, mid, high of steps that take their op floor. ``max_batch`` [c] is the capacity frontier (NEVER without a
    machine), ``deadline_batch`` [c] the largest batch whose floor keeps the deadline (0: none), None without one.
    ``kv_passes_weights``, ``compute_passes_memory`` and ``compute_binds`` [c] are the batches of the crossovers, NEVER
    where there is none.
    """

    model: ModelSpec
    workload: Workload
    basis: Basis
    batch: I64
    context: I64
    weight_read: I64
    embedding_gather: I64
    kv_read: I64
    kv_append: I64
    activation: I64
    link: I64
    link_reduced: I64
    flops: I64
    index_read: I64
    state_read: I64
    state_write: I64
    floor_ops_s: F64 | None
    shares_s: F64 | None
    binds: U8 | None
    fits: Bool | None
    energy_j: F64 | None
    max_batch: I64
    kv_passes_weights: I64
    compute_passes_memory: I64
    compute_binds: I64
    deadline_s: float | None
    deadline_batch: I64 | None

    @property
    def shape(self) -> tuple[int, int]:
        """Batches and contexts."""
        return len(self.batch), len(self.context)

    @property
    def streamed_bytes(self) -> I64:
        """Weights, KV reads and appends: what T_mem counts."""
        return self.weight_read + self.kv_read + self.kv_append

    def workload_at(self, row: int, column: int) -> Workload:
        """The workload of one cell."""
        return replace(self.workload, batch=int(self.batch[row]), context=int(self.context[column]))

    def binding(self, row: int, column: int) -> str | None:
        """What binds one cell, one of BINDINGS; None where it is not known."""
        return None if self.binds is None else BINDINGS[self.binds[row, column]]

    def cell(self, row: int, column: int) -> StepFloor:
        """One cell as the arithmetic of a single step would give it, without the sentences about changes."""
        workload, basis = self.workload_at(row, column), self.basis
        at = (row, column)
        total = StepTotals(*(int(getattr(self, name)[at]) for name in StepTotals.__dataclass_fields__))
        ops_s = None if self.floor_ops_s is None else float(self.floor_ops_s[at])
        fitting = capacity(self.model, basis.hardware, workload) if basis.hardware else None
        found = None
        if self.shares_s is not None:
            part = Shares(*self.shares_s[at].tolist())
            found = verdict_of(part, total.weight_read, self.model, workload, basis, memory=fitting)
        return assemble_floor(
            self.model,
            workload,
            basis,
            total,
            ops_s,
            fitting=fitting,
            verdict=found,
            cross=self._crossovers(column, fitting),
            dependence=dependence_cost(self.model, workload, basis),
        )

    def _crossovers(self, column: int, fitting: Capacity | None) -> Crossovers:
        arrays = (self.kv_passes_weights, self.compute_passes_memory, self.compute_binds)
        kv, passes, binds = (_batch(array[column]) for array in arrays)
        full = None if fitting is None else fitting.max_batch + 1
        return Crossovers(kv, passes, binds, full, ridge_batch(self.model, self.basis))


def sweep(
    model: ModelSpec,
    workload: Workload,
    basis: Basis,
    batches: list[int],
    contexts: list[int],
    *,
    deadline_s: float | None = None,
) -> Sweep:
    """Work out every cell; ``workload`` gives what is the same in all of them.

    Raises TraceError for no cells, too many, batches or contexts out of range, and amounts beyond 2^62.
    """
    _refuse_absurd(batches, contexts)
    split_notes(model, workload.tensor_parallel)
    batch, context = np.array(batches, np.int64), np.array(contexts, np.int64)
    grid, column = OpGrid(model, workload, context), batch[:, None]
    shape = (len(batch), len(context))

    def spread(amount: I64) -> I64:
        return np.broadcast_to(amount, shape)

    weight_read, kv_read = spread(grid.weight_read(column)), grid.kv_read(column)
    gather, append, activation, flops = (
        grid.times_one(column, name) for name in ("embedding_gather", "kv_append", "activation", "flops")
    )
    link, link_reduced = (spread(amount) for amount in grid.link(column))
    priced = grid.floors(column, basis)
    floor, shares = (None, None) if priced is None else priced
    largest = _capacity_frontier(model, workload, basis, context)
    fits = None if basis.hardware is None else column <= largest
    energy = None
    if basis.energy is not None and floor is not None:
        memory = (weight_read + kv_read + append).astype(np.float64)
        over_link = sent_bytes(link, link_reduced, basis).astype(np.float64)
        counted = (memory, flops.astype(np.float64), over_link, floor)
        energy = around(np.asarray(mid_j(*counted, basis.energy, basis.tdp_w)), basis.energy)
    return Sweep(
        model=model,
        workload=workload,
        basis=basis,
        batch=batch,
        context=context,
        weight_read=weight_read,
        embedding_gather=gather,
        kv_read=kv_read,
        kv_append=append,
        activation=activation,
        link=link,
        link_reduced=link_reduced,
        flops=flops,
        index_read=grid.kv_read(column, "index_read"),
        state_read=grid.times_one(column, "state_read"),
        state_write=grid.times_one(column, "state_write"),
        floor_ops_s=floor,
        shares_s=shares,
        binds=_binds(shares, fits),
        fits=fits,
        energy_j=energy,
        max_batch=largest,
        kv_passes_weights=_kv_passes_weights(grid, context),
        compute_passes_memory=_compute_passes_memory(grid, basis, context),
        compute_binds=_compute_binds(grid, basis, context),
        deadline_s=deadline_s,
        deadline_batch=None if deadline_s is None else _deadline_frontier(grid, basis, context, deadline_s),
    )


def _refuse_absurd(batches: list[int], contexts: list[int]) -> None:
    if not batches or not contexts:
        raise TraceError(
            "a sweep needs at least one batch and one context", action="use --batch 1,4 --context 512,4096"
        )
    if len(batches) * len(contexts) > MAX_CELLS:
        raise TraceError(
            f"{len(batches):,} × {len(contexts):,} cells are more than {MAX_CELLS:,}", action="use fewer of them"
        )
    if min(batches) < 1 or max(batches) > LARGEST_BATCH:
        raise TraceError("a batch is out of range", action=f"use 1 to {LARGEST_BATCH:,} requests")
    if min(contexts) < 0 or max(contexts) > 1 << 30:
        raise TraceError("a context is out of range", action=f"use 0 to {1 << 30:,} tokens")


def _capacity_frontier(model: ModelSpec, workload: Workload, basis: Basis, context: I64) -> I64:
    if basis.hardware is None:
        return np.full(len(context), NEVER, np.int64)
    machine = basis.hardware
    found = [capacity(model, machine, replace(workload, batch=1, context=c)).max_batch for c in context.tolist()]
    return np.array(found, np.int64)


def _binds(shares: F64 | None, fits: Bool | None) -> U8 | None:
    """What binds, an index of BINDINGS; what does not fit binds by capacity, as in the verdict on one step."""
    if shares is None:
        return None
    names = np.array([BINDINGS.index(term) for term in TERMS], np.uint8)
    largest = names[shares.argmax(axis=-1)]
    return largest if fits is None else np.where(fits, largest, np.uint8(BINDINGS.index("capacity")))


def _kv_passes_weights(grid: OpGrid, context: I64) -> I64:
    reads = grid.kv_read(np.ones(len(context), np.int64)) > 0
    first = first_batches(lambda batch: grid.kv_read(batch) >= grid.weight_read(batch), len(context))
    return np.where(reads, first, NEVER)


def _compute_passes_memory(grid: OpGrid, basis: Basis, context: I64) -> I64:
    if ridge_flops_per_byte(basis) is None:
        return np.full(len(context), NEVER, np.int64)

    def passes(batch: I64) -> Bool:
        streamed, flops = grid.streamed_and_flops(batch)
        return compute_binds(streamed, flops, basis)

    return first_batches(passes, len(context))


def _compute_binds(grid: OpGrid, basis: Basis, context: I64) -> I64:
    """Compute's share per request never falls as the batch grows: once it is the largest it stays so."""
    none = np.full(len(context), NEVER, np.int64)
    if basis.peak_flops_per_s is None or basis.bandwidth_bytes_per_s is None:
        return none

    def binds(batch: I64) -> Bool:
        priced = grid.floors(batch, basis)
        if priced is None:
            return np.zeros(len(batch), bool)
        found: Bool = priced[1].argmax(axis=-1) == TERMS.index("compute")
        return found

    return first_batches(binds, len(context))


def _deadline_frontier(grid: OpGrid, basis: Basis, context: I64, seconds: float) -> I64:
    def misses(batch: I64) -> Bool:
        priced = grid.floors(batch, basis)
        if priced is None:
            raise TraceError("a deadline needs a bandwidth", action="give --hardware or --bandwidth")
        return priced[0] > seconds

    first = first_batches(misses, len(context))
    return np.where(first == NEVER, LARGEST_BATCH, first - 1)


def first_batches(holds: Callable[[I64], Bool], n: int) -> I64:
    """The first batch from which ``holds`` is true, for each of ``n`` contexts; NEVER where it never is.

    ``holds`` takes one batch a context, int64[n], and must stay true once it is.
    """
    low, high = np.zeros(n, np.int64), np.ones(n, np.int64)
    open_end = ~holds(high)
    while (open_end & (high < LARGEST_BATCH)).any():
        low, high = np.where(open_end, high, low), np.where(open_end, high * 2, high)
        open_end &= ~holds(high)
    never = open_end
    while (high - low > 1).any():
        middle = (low + high) // 2
        true = holds(np.maximum(middle, 1))
        split = high - low > 1
        low, high = np.where(split & ~true, middle, low), np.where(split & true, middle, high)
    return np.where(never, NEVER, high)


def _batch(value: np.int64) -> int | None:
    return None if value == NEVER else int(value)
