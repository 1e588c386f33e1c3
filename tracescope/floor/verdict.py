"""Which of the constraints binds a decode step, and at which batch the next one takes over."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core import units
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.capacity import Capacity
from tracescope.floor.dtypes import weight_dtype
from tracescope.floor.pricing import Amounts, compute_binds, compute_s, memory_s, ops_floor_s, ridge_flops_per_byte
from tracescope.floor.step_ops import OpWork, counted_ops, step_totals

BINDINGS: Final = ("weights", "kv", "compute", "capacity", "communication")

TERMS: Final = ("weights", "kv", "compute", "communication")
"""What can bind one op."""

LARGEST_BATCH: Final = 1 << 24
"""No search for a batch goes further."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Seconds of the op floor by the term that binds each op."""

    weights: float
    kv: float
    compute: float
    communication: float

    @property
    def total(self) -> float:
        """The op floor itself."""
        return self.weights + self.kv + self.compute + self.communication

    @property
    def largest(self) -> str:
        """The name of the largest share; the earlier of two equal ones."""
        return max(TERMS, key=lambda name: float(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """``binds`` is one of BINDINGS; ``why`` is the sentence with its arithmetic."""

    binds: str
    why: str


@dataclass(frozen=True, slots=True)
class Crossovers:
    """Batches at which the regime changes at this context; None where it never does or something is unknown.

    ``kv_passes_weights_batch``: the first at which KV reads are at least the weights. ``compute_passes_memory_batch``:
    the first at which the compute floor of the whole step is longer than its memory floor. ``compute_binds_batch``: the
    first at which ops bound by FLOPs make the largest share of the op floor. ``memory_full_batch``: the first that no
    longer fits. ``ridge_batch``: where a linear layer alone turns compute-bound, P · b_w / (2 · BW).
    """

    kv_passes_weights_batch: int | None
    compute_passes_memory_batch: int | None
    compute_binds_batch: int | None
    memory_full_batch: int | None
    ridge_batch: float | None


def shares(counted: Iterable[tuple[OpWork, int]], basis: Basis) -> Shares | None:
    """The op floor of ``counted`` ops by what binds each; None without a bandwidth or a link rate that is needed."""
    rows = tuple(counted)
    seconds, known = ops_floor_s(tuple(op for op, _ in rows), basis)
    if not known.all():
        return None
    amounts = np.array([(*_read_once(op), op.link, op.flops, n) for op, n in rows], np.float64).reshape(-1, 5)
    weights, kv, link, flops, times = amounts.T
    term = binding_term(weights, kv, link, flops, basis)
    return Shares(*(float(seconds[term == i] @ times[term == i]) for i in range(len(TERMS))))


def _read_once(op: OpWork) -> tuple[int, int]:
    return op.weight_read + op.embedding_gather, op.kv_read + op.kv_append


def binding_term(weights: Amounts, kv: Amounts, link: Amounts, flops: Amounts, basis: Basis) -> NDArray[np.intp]:
    """What binds each op, as an index of TERMS; bytes and FLOPs in arrays of one shape.

    Whatever crosses the link waits for it; FLOPs bind where they take longer than the bytes; of the bytes the larger
    kind counts, weights (with gathered rows) where both are equal.
    """
    term = np.where(kv > weights, TERMS.index("kv"), TERMS.index("weights"))
    term = np.where(compute_binds(weights + kv, flops, basis), TERMS.index("compute"), term)
    return np.where(link > 0, TERMS.index("communication"), term)


def verdict(model: ModelSpec, workload: Workload, basis: Basis, memory: Capacity | None) -> Verdict | None:
    """What binds one step; None where no bandwidth is known and capacity does not already decide."""
    if memory is not None and not memory.fits:
        return Verdict("capacity", _capacity_why(workload, memory))
    part = shares(counted_ops(model, workload), basis)
    if part is None:
        return None
    return verdict_of(part, step_totals(model, workload).weight_read, model, workload, basis, memory=memory)


def verdict_of(
    part: Shares, weight_read: int, model: ModelSpec, workload: Workload, basis: Basis, *, memory: Capacity | None
) -> Verdict:
    """The verdict on a step whose floor has these shares and which reads ``weight_read`` bytes of weights."""
    if memory is not None and not memory.fits:
        return Verdict("capacity", _capacity_why(workload, memory))
    binds = part.largest
    spent = f"{units.seconds(getattr(part, binds))} of the {units.seconds(part.total)} floor"
    if binds == "weights":
        fits = "it fits, and still waits for its weights" if memory is not None else "the step waits for its weights"
        arithmetic = units.over(weight_read, basis.bandwidth_bytes_per_s, memory_s(weight_read, basis))
        return Verdict(
            binds, f"{fits}: {arithmetic} of the {units.seconds(part.total)} floor; {_reuse(model, workload)}"
        )
    if binds == "kv":
        tokens = f"{workload.batch:,} × {workload.context:,} cached tokens"
        return Verdict(binds, f"reading the KV cache of {tokens} takes {spent}; it grows with batch and context")
    if binds == "compute":
        return Verdict(binds, f"ops bound by FLOPs take {spent}; more bandwidth moves nothing there")
    return Verdict(binds, f"sending over the link takes {spent}; more memory bandwidth moves nothing there")


def _reuse(model: ModelSpec, workload: Workload) -> str:
    """What a larger batch did to the bytes."""
    batch = f"{workload.batch:,}"
    if workload.batch == 1:
        return "every token reads all of them" if model.experts is None else "every token reads the experts it chose"
    served = f"one pass serves all {batch} requests: {batch} generated tokens a step and {batch} × the KV bytes of one"
    if model.experts is not None:
        return f"{served}, though a larger batch is expected to read more experts"
    return f"{served} for the same weight bytes"


def _capacity_why(workload: Workload, memory: Capacity) -> str:
    need = memory.stored_bytes + memory.other_bytes + memory.kv_stored_bytes
    largest = f"the largest batch at context {workload.context:,} is {memory.max_batch:,}"
    if memory.headroom_bytes >= 0:  # only the first block of requests that have nothing cached yet is missing
        return f"no KV block is left for every request: {largest}"
    return (
        f"needs {units.size(need)} of {units.size(memory.usable_bytes)} usable, {units.size(-memory.headroom_bytes)} "
        f"too much: {largest}"
    )


def crossovers(model: ModelSpec, workload: Workload, basis: Basis, memory: Capacity | None) -> Crossovers:
    """Where the regime changes as only the batch of ``workload`` grows."""
    return Crossovers(
        kv_passes_weights_batch=_kv_passes_weights_batch(model, workload),
        compute_passes_memory_batch=_compute_passes_memory_batch(model, workload, basis),
        compute_binds_batch=_compute_binds_batch(model, workload, basis),
        memory_full_batch=None if memory is None else memory.max_batch + 1,
        ridge_batch=ridge_batch(model, basis),
    )


def _kv_passes_weights_batch(model: ModelSpec, workload: Workload) -> int | None:
    one = step_totals(model, replace(workload, batch=1))
    if not one.kv_read:
        return None
    if model.experts is None and not workload.prefix_aware:
        return max(1, -(-one.weight_read // one.kv_read))

    def passes(batch: int) -> bool:
        total = step_totals(model, replace(workload, batch=batch))
        return total.kv_read >= total.weight_read

    return first_batch(passes)


def _compute_passes_memory_batch(model: ModelSpec, workload: Workload, basis: Basis) -> int | None:
    """Where the two lines that the roofline is made of cross."""
    if ridge_flops_per_byte(basis) is None:
        return None

    def passes(batch: int) -> bool:
        total = step_totals(model, replace(workload, batch=batch))
        return (compute_s(total.flops, basis) or 0.0) > (memory_s(total.streamed_bytes, basis) or 0.0)

    return first_batch(passes)


def ridge_batch(model: ModelSpec, basis: Basis) -> float | None:
    """The batch at which a linear layer's FLOPs take as long as its weights: P · b_w / (2 · BW)."""
    intensity = ridge_flops_per_byte(basis)
    return None if intensity is None else intensity * weight_dtype(model.weights).effective_bits() / 16


def _compute_binds_batch(model: ModelSpec, workload: Workload, basis: Basis) -> int | None:
    """The first batch at which compute is the largest share.

    Compute's share per request never falls as the batch grows and every other share per request never rises, so that
    once it is the largest it stays so, and halving the interval finds the first.
    """
    if basis.peak_flops_per_s is None or basis.bandwidth_bytes_per_s is None:
        return None

    def binds(batch: int) -> bool:
        part = shares(counted_ops(model, replace(workload, batch=batch)), basis)
        return part is not None and part.largest == "compute"

    return first_batch(binds)


def first_batch(holds: Callable[[int], bool]) -> int | None:
    """The first batch from which ``holds`` is true, for something that stays true; None where it never is."""
    if not holds(LARGEST_BATCH):
        return None
    low, high = 0, 1
    while not holds(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
