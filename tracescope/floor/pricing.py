"""The one place where bytes and FLOPs become time: amounts over a bandwidth, a peak or a link rate.

Unknown has one meaning: an amount below 0 or a rate that the basis lacks gives None for a number and NaN in an array.
An amount of 0 takes 0 s, if the rate is known; a whole floor counts it as 0 s even where it is not.
"""

from math import fsum
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I64, Bool
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.work_table import UNKNOWN, WorkTable
from tracescope.floor.step_ops import OpWork, counted_ops

F64 = NDArray[np.float64]
Amounts = I64 | F64


@overload
def memory_s(amount: float, basis: Basis) -> float | None: ...
@overload
def memory_s(amount: Amounts, basis: Basis) -> F64: ...
def memory_s(amount: float | Amounts, basis: Basis) -> float | F64 | None:
    """Seconds in which ``amount`` bytes cross the memory bus."""
    return _over(amount, basis.bandwidth_bytes_per_s)


@overload
def compute_s(amount: float, basis: Basis) -> float | None: ...
@overload
def compute_s(amount: Amounts, basis: Basis) -> F64: ...
def compute_s(amount: float | Amounts, basis: Basis) -> float | F64 | None:
    """Seconds in which ``amount`` FLOPs are computed at the peak."""
    return _over(amount, basis.peak_flops_per_s)


@overload
def link_s(amount: float, basis: Basis) -> float | None: ...
@overload
def link_s(amount: Amounts, basis: Basis) -> F64: ...
def link_s(amount: float | Amounts, basis: Basis) -> float | F64 | None:
    """Seconds in which one rank sends ``amount`` bytes over its link, one direction, without any latency."""
    return _over(amount, basis.link_bytes_per_s)


def _over(amount: float | Amounts, rate: int | None) -> float | F64 | None:
    if isinstance(amount, np.ndarray):
        return np.where(amount >= 0, amount, np.nan) / (rate or np.nan)
    return None if amount < 0 or not rate else amount / rate


@overload
def sent_bytes(link: int, link_reduced: int, basis: Basis) -> int: ...
@overload
def sent_bytes(link: Amounts, link_reduced: Amounts, basis: Basis) -> Amounts: ...
def sent_bytes(link: int | Amounts, link_reduced: int | Amounts, basis: Basis) -> int | Amounts:
    """Bytes that one rank sends: the fewer of both where the switch of this machine adds up what the ranks send."""
    if not basis.switch_reduces:
        return link
    # The smaller one is also the one that is not known, where one of them is not.
    return np.minimum(link, link_reduced) if isinstance(link, np.ndarray) else min(link, int(link_reduced))


def whole_ns(seconds: F64) -> I64:
    """Seconds as whole ns, -1 where they are not known."""
    known = ~np.isnan(seconds)
    return np.where(known, np.rint(np.where(known, seconds, 0.0) * 1e9), UNKNOWN).astype(np.int64)


def datasheet_share(basis: Basis) -> float:
    """What to multiply a share of the datasheet rate by where the basis counts another one.

    A sustained rate has the memory's own losses in it already.
    """
    if basis.hardware is None or basis.bandwidth_bytes_per_s is None or basis.bandwidth_source != "sustained":
        return 1.0
    return basis.hardware.bandwidth_bytes_per_s / basis.bandwidth_bytes_per_s


def ridge_flops_per_byte(basis: Basis) -> float | None:
    """The arithmetic intensity at which computing takes as long as reading; None where a rate is not known."""
    if not basis.peak_flops_per_s or not basis.bandwidth_bytes_per_s:
        return None
    return basis.peak_flops_per_s / basis.bandwidth_bytes_per_s


def compute_binds(memory: Amounts, flops: Amounts, basis: Basis) -> Bool:
    """Which ops take longer to compute than to move their bytes; False where either is not known."""
    binds: Bool = np.less(memory_s(memory, basis), compute_s(flops, basis))  # NaN compares false
    return binds


def compute_beyond_s(memory: Amounts, flops: Amounts, basis: Basis) -> F64:
    """Seconds that ops compute beyond moving their bytes, 0.0 where bytes bind or either is not known.

    With the seconds of their bytes and of what they send it is their :func:`floor_s`.
    """
    moving = np.where(np.equal(memory, 0), 0.0, memory_s(memory, basis))
    return np.nan_to_num(np.maximum(compute_s(flops, basis) - moving, 0.0))


def floor_s(memory: Amounts, flops: Amounts, link: Amounts, basis: Basis) -> tuple[F64, Bool]:
    """Seconds (0.0 where unknown) and whether they are known, arrays of one shape; -1 where an amount is not known.

    max(bytes ÷ bandwidth, FLOPs ÷ peak) + link bytes ÷ link rate: the floor that every number of a step rests on. It
    holds no latency: a floor is what no machine can beat. Unknown FLOPs only drop their term.
    """
    moving = np.where(memory == 0, 0.0, memory_s(memory, basis))
    sending = np.where(link == 0, 0.0, link_s(link, basis))
    seconds = np.fmax(moving, compute_s(flops, basis)) + sending
    known = ~np.isnan(moving) & ~np.isnan(sending)
    return np.where(known, seconds, 0.0), known


def ops_floor_s(ops: tuple[OpWork, ...], basis: Basis) -> tuple[F64, Bool]:
    """Floors of ``ops`` in seconds, float64[n], and whether each is known (0.0 where it is not)."""
    # Amounts as floats: a hostile config times a large batch leaves int64, and a time needs no more than 53 bits.
    amounts = [(op.memory_bytes, op.flops, sent_bytes(op.link, op.link_reduced, basis)) for op in ops]
    columns = np.array(amounts, np.float64).reshape(-1, 3)
    return floor_s(columns[:, 0], columns[:, 1], columns[:, 2], basis)


def ops_total_s(model: ModelSpec, workload: Workload, basis: Basis) -> float | None:
    """The op floor of one step in seconds, None where the basis cannot price it."""
    counted = counted_ops(model, workload)
    seconds, known = ops_floor_s(tuple(op for op, _ in counted), basis)
    # fsum: the same last digit on every processor, whatever the order in which a library adds.
    return fsum(seconds * np.array([n for _, n in counted])) if known.all() else None


def work_floor_ns(work: WorkTable, basis: Basis) -> tuple[F64, Bool]:
    """Floors of the rows of ``work`` in unrounded ns, float64[n], and whether each is known, bool[n].

    Known means: no amount of bytes is missing and the basis prices those that are there. An unknown floor is 0.0, so
    that it counts nothing in a sum.
    """
    sent = sent_bytes(work.link, work.link_reduced, basis)
    seconds, known = floor_s(work.memory_bytes, work.flops, sent, basis)
    return seconds * 1e9, known


def round_cumulatively(floors: F64) -> I64:
    """Whole ns for each of ``floors`` (ns, in program order along the last axis) that add up to their rounded sum."""
    ends = np.rint(np.cumsum(floors, axis=-1)).astype(np.int64)
    ends[..., 1:] -= ends[..., :-1].copy()
    return ends
