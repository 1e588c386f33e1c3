"""Whether a model and its KV cache fit in memory, and the largest batch that does: paged blocks, exact integers."""

from dataclasses import dataclass
from fractions import Fraction

from tracescope.core.hardware import HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.kv_cache import kept_tokens, prefix_groups
from tracescope.floor.step_ops import kv_bytes_per_token_per_layer, stored_bytes


@dataclass(frozen=True, slots=True)
class Capacity:
    """One rank's memory before a step. Bytes throughout.

    ``usable_bytes`` is the share of the device that may be used and ``reserve_bytes`` the rest; ``other_bytes`` what
    the workload keeps free besides (activations, runtime). ``headroom_bytes`` is negative where it does not fit.
    ``blocks_total`` counts KV blocks of ``block_bytes`` that the weights leave room for; a block spans
    ``block_layers`` layers: all of them, or one where layers keep different numbers of tokens. ``request_blocks`` is
    what one more request takes. ``waste_bytes`` is the part of ``kv_stored_bytes`` that no token fills.
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
    request_blocks: int = 1
    block_layers: int = 1
    waste_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """KV blocks by request: ``own`` of each one, ``shared`` of each group with a common prefix; ``tokens`` likewise."""

    own: int
    shared: int
    own_tokens: int
    shared_tokens: int


def request_blocks(workload: Workload) -> int:
    """KV blocks that one request holds before the step in a layer that sees everything."""
    return -(-workload.context // workload.block)


def _layer_spans(model: ModelSpec) -> tuple[int, tuple[tuple[int | None, int], ...]]:
    """Layers that one block spans, and the distinct windows with how many such blocks each stands for."""
    groups = tuple((window, n) for window, n in model.window_groups if window != 0)
    if len(groups) == 1:
        return groups[0][1], ((groups[0][0], 1),)
    return 1, groups


def _held(model: ModelSpec, workload: Workload, context: int) -> Held:
    """What requests of ``context`` tokens hold. Only whole blocks of a prefix are shared; its last part is copied."""
    block = workload.block
    own = shared = own_tokens = shared_tokens = 0
    for window, n in _layer_spans(model)[1]:
        kept = kept_tokens(window, context)
        common = max(0, kept - (context - workload.prefix)) // block if workload.prefix_group > 1 else 0
        own += n * (-(-kept // block) - common)
        shared += n * common
        own_tokens += n * (kept - common * block)
        shared_tokens += n * common * block
    return Held(own, shared, own_tokens, shared_tokens)


def kv_stored_after(model: ModelSpec, workload: Workload) -> int:
    """Bytes of KV cache that all requests hold once the step has appended its tokens."""
    held = _held(model, workload, workload.context + 1)
    return _blocks(held, workload) * _block_bytes(model, workload)


def _block_bytes(model: ModelSpec, workload: Workload) -> int:
    spanned = _layer_spans(model)[0]
    return workload.block * spanned * kv_bytes_per_token_per_layer(model, workload.tensor_parallel)


def _blocks(held: Held, workload: Workload) -> int:
    return prefix_groups(workload) * held.shared + workload.batch * held.own


def capacity(model: ModelSpec, hardware: HardwareSpec, workload: Workload) -> Capacity:
    """What ``workload`` needs of ``hardware``, one rank's view, by the state before the step.

    The largest batch counts at least one block a request: a request that has nothing cached yet gets its first block
    in this very step. A layer with a window keeps min(S, W) tokens.
    """
    # The share as the decimal that was typed: 0.9 in binary floating point is a little more.
    usable = int(hardware.capacity_bytes * Fraction(repr(workload.utilization)))
    stored = stored_bytes(model, workload.tensor_parallel)
    block_bytes = _block_bytes(model, workload)
    held = _held(model, workload, workload.context)
    used = _blocks(held, workload)
    room = max(0, usable - stored - workload.reserve_bytes)
    blocks_total = room // block_bytes
    max_batch = _largest_batch(held, blocks_total, workload.prefix_group)
    tokens = prefix_groups(workload) * held.shared_tokens + workload.batch * held.own_tokens
    return Capacity(
        fits=workload.batch <= max_batch,
        max_batch=max_batch,
        capacity_bytes=hardware.capacity_bytes,
        usable_bytes=usable,
        reserve_bytes=hardware.capacity_bytes - usable,
        stored_bytes=stored,
        other_bytes=workload.reserve_bytes,
        kv_stored_bytes=used * block_bytes,
        headroom_bytes=usable - stored - workload.reserve_bytes - used * block_bytes,
        block_bytes=block_bytes,
        blocks_used=used,
        blocks_total=blocks_total,
        request_blocks=max(1, held.own),
        block_layers=_layer_spans(model)[0],
        waste_bytes=used * block_bytes - tokens * (block_bytes // workload.block),
    )


def _largest_batch(held: Held, blocks: int, group: int) -> int:
    """Whole groups first, then as much of one more as fits."""
    own = max(1, held.own)
    groups, left = divmod(blocks, held.shared + group * own)
    return groups * group + min(group, max(0, left - held.shared) // own)
