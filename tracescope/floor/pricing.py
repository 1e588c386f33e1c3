"""The time below which work cannot finish: bytes over bandwidth against FLOPs over peak, plus the link."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I64, Bool
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import WorkTable
from tracescope.floor.step_ops import OpWork, counted_ops

F64 = NDArray[np.float64]
Amounts = I64 | F64

LINK_LATENCY_S: Final = 5e-6
"""Latency of one all-reduce; 3 to 7 µs are usual on a switched link, however small the message."""


def floor_s(memory: Amounts, flops: Amounts, link: Amounts, basis: Basis) -> tuple[F64, Bool]:
    """Seconds and whether they are known, arrays of one shape; ``memory``, ``link``, ``flops`` -1 where not known.

    max(bytes / BW, FLOP / P) + max(latency, link bytes / link rate): the floor that every number of a step rests on.
    """
    bandwidth, peak = basis.bandwidth_bytes_per_s, basis.peak_flops_per_s
    known = (memory == 0) | ((memory > 0) & (bandwidth is not None))
    seconds = np.where(memory > 0, memory, 0) / (bandwidth or 1)
    if peak is not None:
        seconds = np.maximum(seconds, np.where(flops > 0, flops, 0) / peak)
    rate = basis.link_bytes_per_s
    known &= (link == 0) | ((link > 0) & (rate is not None))
    if rate is not None:
        seconds = seconds + np.where(link > 0, np.maximum(link / rate, LINK_LATENCY_S), 0.0)
    return np.where(known, seconds, 0.0), known


def ops_floor_s(ops: tuple[OpWork, ...], basis: Basis) -> tuple[F64, Bool]:
    """Floors of ``ops`` in seconds, float64[n], and whether each is known (0.0 where it is not)."""
    # Amounts as floats: a hostile config times a large batch leaves int64, and a time needs no more than 53 bits.
    columns = np.array([(op.memory_bytes, op.flops, op.link) for op in ops], np.float64).reshape(-1, 3)
    return floor_s(columns[:, 0], columns[:, 1], columns[:, 2], basis)


def ops_total_s(model: ModelSpec, workload: Workload, basis: Basis) -> float | None:
    """The op floor of one step in seconds, None where the basis cannot price it."""
    counted = counted_ops(model, workload)
    seconds, known = ops_floor_s(tuple(op for op, _ in counted), basis)
    return float(seconds @ np.array([n for _, n in counted])) if known.all() else None


def work_floor_ns(work: WorkTable, basis: Basis) -> tuple[F64, Bool]:
    """Floors of the rows of ``work`` in unrounded ns, float64[n], and whether each is known, bool[n].

    Known means: no amount of bytes is missing and the basis prices those that are there. An unknown floor is 0.0, so
    that it counts nothing in a sum. Unknown FLOPs only drop the compute term.
    """
    seconds, known = floor_s(work.memory_bytes, work.flops, work.link, basis)
    return seconds * 1e9, known


def round_cumulatively(floors: F64) -> I64:
    """Whole ns for each of ``floors`` (ns, in program order along the last axis) that add up to their rounded sum."""
    ends = np.rint(np.cumsum(floors, axis=-1)).astype(np.int64)
    ends[..., 1:] -= ends[..., :-1].copy()
    return ends
