"""Whether a model and its KV cache fit in memory, and the largest batch that does: paged blocks, exact integers."""

from dataclasses import dataclass
from fractions import Fraction

from tracescope.core.arithmetic import kv_bytes_per_token, stored_bytes
from tracescope.core.hardware import HardwareSpec
from tracescope.core.model import ModelSpec, Workload


@dataclass(frozen=True, slots=True)
class Capacity:
    """One rank's memory before a step. Bytes throughout.

    ``usable_bytes`` is the share of the device that may be used and ``reserve_bytes`` the rest; ``other_bytes`` what
    the workload keeps free besides (activations, runtime). ``headroom_bytes`` is negative where it does not fit.
    ``blocks_total`` counts KV blocks of ``block_bytes`` that the weights leave room for.
    """

    fits: bool
    max_batch: int
    capacity_bytes: int
    usable_bytes: int
    reserve_bytes: int
    stored_bytes: int
    other_bytes: int
    kv_stored_bytes: int
    headroom_bytes: int
    block_bytes: int
    blocks_used: int
    blocks_total: int


def request_blocks(workload: Workload) -> int:
    """KV blocks that one request holds before the step."""
    return -(-workload.context // workload.block)


def kv_stored_after(model: ModelSpec, workload: Workload) -> int:
    """Bytes of KV cache that all requests hold once the step has appended its tokens."""
    blocks = -(-(workload.context + 1) // workload.block)
    return workload.batch * blocks * workload.block * kv_bytes_per_token(model, workload.tensor_parallel)


def capacity(model: ModelSpec, hardware: HardwareSpec, workload: Workload) -> Capacity:
    """What ``workload`` needs of ``hardware``, one rank's view, by the state before the step.

    The largest batch counts at least one block a request: a request that has nothing cached yet gets its first block
    in this very step.
    """
    ranks = workload.tensor_parallel
    # The share as the decimal that was typed: 0.9 in binary floating point is a little more.
    usable = int(hardware.capacity_bytes * Fraction(repr(workload.utilization)))
    stored = stored_bytes(model, ranks)
    block_bytes = workload.block * kv_bytes_per_token(model, ranks)
    blocks = request_blocks(workload)
    kv_stored = workload.batch * blocks * block_bytes
    room = max(0, usable - stored - workload.reserve_bytes)
    blocks_total = room // block_bytes
    headroom = usable - stored - workload.reserve_bytes - kv_stored
    max_batch = blocks_total // max(1, blocks)
    return Capacity(
        fits=workload.batch <= max_batch,
        max_batch=max_batch,
        capacity_bytes=hardware.capacity_bytes,
        usable_bytes=usable,
        reserve_bytes=hardware.capacity_bytes - usable,
        stored_bytes=stored,
        other_bytes=workload.reserve_bytes,
        kv_stored_bytes=kv_stored,
        headroom_bytes=headroom,
        block_bytes=block_bytes,
        blocks_used=workload.batch * blocks,
        blocks_total=blocks_total,
    )
