"""Whether a model and its KV cache fit in memory, and the largest batch that does: paged blocks, exact integers."""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Final

from tracescope.core.hardware import HardwareSpec
from tracescope.core.layer_parts import Attention
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.kv_cache import prefix_groups, stored_token_bytes
from tracescope.floor.state import state_bytes_per_request
from tracescope.floor.step_ops import stored_bytes

NO_LIMIT: Final = 1 << 40
"""The largest batch of a model that keeps nothing of its requests."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """One rank's memory before a step. Bytes throughout.

    ``usable_bytes`` is the share of the device that may be used and ``reserve_bytes`` the rest; ``other_bytes`` what
    the workload keeps free besides (activations, runtime). ``headroom_bytes`` is negative where it does not fit.
    ``blocks_total`` counts KV blocks of ``block_bytes`` that the weights leave room for; a block spans
    ``block_layers`` layers: all of them, or one where layers keep different numbers of tokens. ``request_blocks`` is
    what one more request takes, ``request_state_bytes`` its recurrent state; ``state_bytes``, those of all requests,
    are in ``kv_stored_bytes``. ``waste_bytes`` is the part of ``kv_stored_bytes`` that no token fills.
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
    state_bytes: int = 0
    request_state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """KV blocks by request: ``own`` of each one, ``shared`` of each group with a common prefix; ``tokens`` likewise.

    ``state`` is what each request keeps besides, in bytes.
    """

    own: int
    shared: int
    own_tokens: int
    shared_tokens: int
    state: int


@dataclass(frozen=True, slots=True)
class _Span:
    """Layers that keep the same tokens: ``blocks`` of the unit for each block of tokens, over all of them."""

    attention: Attention
    blocks: int


def request_blocks(workload: Workload) -> int:
    """KV blocks that one request holds before the step in a layer that sees everything."""
    return -(-workload.context // workload.block)


def _unit(model: ModelSpec, ranks: int) -> tuple[int, int, tuple[_Span, ...]]:
    """Layers that one block spans, its bytes for each token, and how many such blocks the layers take.

    All layers where they keep the same of every token; else one, of the largest size that divides all of theirs.
    """
    kept: dict[tuple[Attention, int], int] = {}
    for kind, n in model.layer_kinds:
        size = stored_token_bytes(model, kind, ranks)
        if size and kind.attention is not None:
            kept[kind.attention, size] = kept.get((kind.attention, size), 0) + n
    if not kept:
        return 0, 0, ()
    if len(kept) == 1:
        (((attention, size), n),) = kept.items()
        return n, n * size, (_Span(attention, 1),)
    unit = gcd(*(size for _, size in kept))
    return 1, unit, tuple(_Span(attention, n * size // unit) for (attention, size), n in kept.items())


def _held(model: ModelSpec, workload: Workload, context: int) -> Held:
    """What requests of ``context`` tokens hold. Only whole blocks of a prefix are shared; its last part is copied."""
    block, ranks = workload.block, workload.tensor_parallel
    own = shared = own_tokens = shared_tokens = 0
    for span in _unit(model, ranks)[2]:
        kept = span.attention.kept(context)
        common = max(0, kept - (context - workload.prefix)) // block if workload.prefix_group > 1 else 0
        own += span.blocks * (-(-kept // block) - common)
        shared += span.blocks * common
        own_tokens += span.blocks * (kept - common * block)
        shared_tokens += span.blocks * common * block
    return Held(own, shared, own_tokens, shared_tokens, state_bytes_per_request(model, ranks))


def kv_stored_after(model: ModelSpec, workload: Workload) -> int:
    """Bytes of KV cache and state that all requests hold once the step has appended its tokens."""
    held = _held(model, workload, workload.context + 1)
    return _blocks(held, workload) * _block_bytes(model, workload) + workload.batch * held.state


def _block_bytes(model: ModelSpec, workload: Workload) -> int:
    return workload.block * _unit(model, workload.tensor_parallel)[1]


def _blocks(held: Held, workload: Workload) -> int:
    return prefix_groups(workload) * held.shared + workload.batch * held.own


def capacity(model: ModelSpec, hardware: HardwareSpec, workload: Workload) -> Capacity:
    """What ``workload`` needs of ``hardware``, one rank's view, by the state before the step.

    The largest batch counts at least one block a request: a request that has nothing cached yet gets its first block
    in this very step. A layer with a window keeps min(S, W) tokens, a recurrent state is as large as ever.
    """
    # The share as the decimal that was typed: 0.9 in binary floating point is a little more.
    usable = int(hardware.capacity_bytes * Fraction(repr(workload.utilization)))
    stored = stored_bytes(model, workload.tensor_parallel)
    block_bytes = _block_bytes(model, workload)
    held = _held(model, workload, workload.context)
    used = _blocks(held, workload)
    state = workload.batch * held.state
    room = max(0, usable - stored - workload.reserve_bytes)
    max_batch = _largest_batch(held, room, block_bytes, workload.prefix_group)
    tokens = prefix_groups(workload) * held.shared_tokens + workload.batch * held.own_tokens
    return Capacity(
        fits=workload.batch <= max_batch,
        max_batch=max_batch,
        capacity_bytes=hardware.capacity_bytes,
        usable_bytes=usable,
        reserve_bytes=hardware.capacity_bytes - usable,
        stored_bytes=stored,
        other_bytes=workload.reserve_bytes,
        kv_stored_bytes=used * block_bytes + state,
        headroom_bytes=usable - stored - workload.reserve_bytes - used * block_bytes - state,
        block_bytes=block_bytes,
        blocks_used=used,
        blocks_total=room // block_bytes if block_bytes else 0,
        request_blocks=max(1, held.own) if block_bytes else 0,
        block_layers=_unit(model, workload.tensor_parallel)[0],
        waste_bytes=used * block_bytes - tokens * (block_bytes // workload.block),
        state_bytes=state,
        request_state_bytes=held.state,
    )


def _largest_batch(held: Held, room: int, block_bytes: int, group: int) -> int:
    """Whole groups first, then as much of one more as fits; without anything to keep, as many as anybody asks for."""
    own = max(1, held.own) * block_bytes + held.state
    if not own:
        return NO_LIMIT
    shared = held.shared * block_bytes
    # Blocks are handed out whole, whatever of a block the state leaves.
    room = room if held.state else room // block_bytes * block_bytes
    groups, left = divmod(room, shared + group * own)
    return groups * group + min(group, max(0, left - shared) // own)
