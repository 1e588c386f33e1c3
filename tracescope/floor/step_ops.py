"""Bytes and FLOPs of one decode step, op by op, as exact integers: what is read once, what grows with the context.

The expected number of distinct experts of a mixture is the one quantity here that is an expectation; bytes made of it
are whole numbers that add up to the rounded expectation of the step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tracescope.core.category import Category, Op
from tracescope.core.model import Experts, ModelSpec, Workload
from tracescope.floor.dtypes import plain_bytes
from tracescope.floor.kept_modules import kept_modules
from tracescope.floor.kv_cache import (
    attended_tokens,
    kv_bytes_per_token,
    kv_bytes_per_token_per_layer,
    tokens_read,
)
from tracescope.floor.layer_weights import (
    LayerWeights,
    LinearWork,
    embedding_norm_bytes,
    expert_reads,
    final_norm_bytes,
    layer_weights,
    lm_head_work,
    norm_bytes,
    row_bytes,
    scale_bytes,
    stored_bytes,
    truth,
)
from tracescope.floor.matrices import Matrix, Shard, has_experts, layer_matrices, shard

__all__ = [
    "LinearWork",
    "Matrix",
    "OpWork",
    "Shard",
    "StepTotals",
    "all_reduce_bytes",
    "closing_ops",
    "counted_ops",
    "kv_bytes_per_token",
    "kv_bytes_per_token_per_layer",
    "layer_groups",
    "layer_matrices",
    "layer_ops",
    "lm_head_work",
    "norm_bytes",
    "opening_ops",
    "scale_bytes",
    "shard",
    "step_ops",
    "step_totals",
    "stored_bytes",
    "weight_read_bytes",
]


@dataclass(frozen=True, slots=True)
class OpWork:
    """What one op of a step moves and computes; ``layer`` is -1 outside the layers. Bytes and FLOPs are exact.

    ``embedding_gather`` is counted apart from ``weight_read``. ``activation`` is what an unfused kernel would move
    besides; it is shown but never part of a floor. ``link`` are bytes that one rank sends over
    the interconnect, ``link_reduced`` those where the switch adds up what the ranks send.
    """

    layer: int
    op: Op
    category: Category
    roles: int
    weight_read: int = 0
    embedding_gather: int = 0
    kv_read: int = 0
    kv_append: int = 0
    activation: int = 0
    link: int = 0
    link_reduced: int = 0
    flops: int = 0

    @property
    def memory_bytes(self) -> int:
        """Bytes that must cross the memory bus: weights, gathered rows, KV reads and appends."""
        return self.weight_read + self.embedding_gather + self.kv_read + self.kv_append


def all_reduce_bytes(model: ModelSpec, batch: int, ranks: int) -> tuple[int, int]:
    """Bytes that one rank sends in an all-reduce of the hidden state: by itself, and with the switch's help.

    A ring sends 2(t - 1)/t of the message, the least without help; a switch that adds up gets it once.
    """
    message = batch * model.hidden * plain_bytes(model.activations)
    alone = -(-message * 2 * (ranks - 1) // ranks)
    return alone, min(message, alone)


_W, _K, _A, _C = Category.WEIGHT_READ, Category.KV_READ, Category.KV_APPEND, Category.COMPUTE


def _linear(op: Op, work: LinearWork, batch: int, activation: int, layer: int = -1) -> OpWork:
    return OpWork(
        layer,
        op,
        _W,
        _W.role | _C.role,
        weight_read=work.weight_read,
        activation=activation,
        flops=2 * batch * work.elements,
    )


def _norm(layer: int, weight: int, activation: int) -> OpWork:
    return OpWork(layer, Op.NORM, _C, _C.role | _W.role, weight_read=weight, activation=activation)


def layer_ops(model: ModelSpec, workload: Workload, layer: int) -> tuple[OpWork, ...]:
    """The ops of one layer in program order.

    ``norm qkv rope kv_append attention o norm gate_up act down``, with a second norm only where the model has one, a
    norm after qkv for qk-norm and latent attention, and norms after o and down for sandwich norms. On more than one
    rank an all-reduce follows o and down, or both together where they read one input. A layer with experts has
    ``router experts`` in place of the last three, which then stand for its shared experts where it has any.
    """
    batch, ranks = workload.batch, workload.tensor_parallel
    weights = layer_weights(model, ranks, layer)
    moved = batch * plain_bytes(model.activations)  # bytes of one activation element over the whole batch
    hidden, weight = model.hidden * moved, weights.norm
    sandwich = (_norm(layer, weight, 0),) if model.norms_per_layer == 4 else ()
    reduce = (_all_reduce(model, batch, ranks, layer),) if ranks > 1 else ()
    # Each block norm also carries the residual addition before it: two reads and one write besides its own two.
    ops = [_norm(layer, weight + weights.norm_surplus, 5 * hidden)]
    ops += _attention_ops(model, workload, layer, weights)
    ops += [*(() if model.parallel else reduce), *sandwich]
    if model.norms_per_layer > 1:
        ops.append(_norm(layer, weight, 5 * hidden))
    if model.experts is not None and has_experts(model, layer):
        ops += _expert_ops(model, model.experts, workload, layer, weights)
    else:
        ops += _mlp_ops(model, workload, layer, weights, shard(model, ranks).ffn)
    return (*ops, *reduce, *sandwich)


def _attention_ops(model: ModelSpec, workload: Workload, layer: int, weights: LayerWeights) -> Iterator[OpWork]:
    """From qkv to o; a layer without a KV cache appends and reads nothing."""
    batch, ranks = workload.batch, workload.tensor_parallel
    part, latent, window = shard(model, ranks), model.latent, model.window(layer)
    moved = batch * plain_bytes(model.activations)
    d, query, key_value = model.hidden, part.heads * model.head_dim, part.kv_heads * model.head_dim
    token = 0 if window == 0 else kv_bytes_per_token_per_layer(model, ranks)
    past = attended_tokens(window, workload.context)
    if latent is None:
        flops = 0 if window == 0 else 4 * batch * (past + 1) * query
    else:  # absorbed: scores over the whole compressed vector, values over its first part
        key_value = latent.kv_rank + latent.rope_dim
        query = part.heads * (latent.nope_dim + latent.rope_dim)
        flops = 2 * batch * part.heads * (2 * latent.kv_rank + latent.rope_dim) * past
    yield _linear(Op.QKV, weights.linear[Op.QKV], batch, (d + query + 2 * key_value) * moved, layer)
    if weights.query_norm:
        yield _norm(layer, weights.query_norm, 0)
    yield OpWork(layer, Op.ROPE, _C, _C.role)
    yield OpWork(layer, Op.KV_APPEND, _A, _A.role, kv_append=batch * token)
    yield OpWork(
        layer,
        Op.ATTENTION,
        _K,
        _K.role | _C.role | (_W.role if weights.attention else 0),
        weight_read=weights.attention,
        kv_read=tokens_read(workload, window) * token,
        activation=2 * query * moved,
        flops=flops,
    )
    yield _linear(Op.O, weights.linear[Op.O], batch, (query + d) * moved, layer)


def _mlp_ops(
    model: ModelSpec, workload: Workload, layer: int, weights: LayerWeights, ffn: int
) -> tuple[OpWork, OpWork, OpWork]:
    batch, d = workload.batch, model.hidden
    moved = batch * plain_bytes(model.activations)
    up = 2 * ffn if model.gated else ffn
    return (
        _linear(Op.GATE_UP, weights.linear[Op.GATE_UP], batch, (d + up) * moved, layer),
        OpWork(layer, Op.ACT, _C, _C.role, activation=(up + ffn) * moved),
        _linear(Op.DOWN, weights.linear[Op.DOWN], batch, (ffn + d) * moved, layer),
    )


def _expert_ops(
    model: ModelSpec, experts: Experts, workload: Workload, layer: int, weights: LayerWeights
) -> Iterator[OpWork]:
    """Router, routed and shared experts: bytes of the distinct experts expected, FLOPs of those that were chosen."""
    batch, ranks, d = workload.batch, workload.tensor_parallel, model.hidden
    moved = batch * plain_bytes(model.activations)
    yield _linear(Op.ROUTER, weights.linear[Op.ROUTER], batch, (d + experts.experts) * moved, layer)
    ffn = -(-experts.ffn // ranks)
    inner = (2 * ffn if model.gated else ffn) + ffn
    read = LinearWork(expert_reads(model, batch, ranks)[layer], 0, weights.experts.elements)
    yield _linear(Op.EXPERTS, read, batch, (d + experts.chosen * (inner + ffn) + d) * moved, layer)
    if experts.shared_ffn:
        yield from _mlp_ops(model, workload, layer, weights, -(-experts.shared_ffn // ranks))


def _all_reduce(model: ModelSpec, batch: int, ranks: int, layer: int) -> OpWork:
    category = Category.COMMUNICATION
    alone, reduced = all_reduce_bytes(model, batch, ranks)
    return OpWork(layer, Op.ALL_REDUCE, category, category.role, link=alone, link_reduced=reduced)


def opening_ops(model: ModelSpec, workload: Workload) -> tuple[OpWork, ...]:
    """What a step does before its first layer: launch, embedding gather, block-table lookup."""
    row = row_bytes(model)
    rows = workload.batch * (2 if model.position_rows else 1)
    embedding_norm = embedding_norm_bytes(model, workload.tensor_parallel)
    host = Category.HOST
    return (
        OpWork(-1, Op.LAUNCH, host, host.role),
        OpWork(
            -1,
            Op.EMBED,
            _W,
            _W.role,
            weight_read=embedding_norm,
            embedding_gather=rows * row,
        ),
        OpWork(-1, Op.BLOCK_TABLE, _C, _C.role),
    )


def closing_ops(model: ModelSpec, workload: Workload) -> tuple[OpWork, ...]:
    """What a step does after its last layer: final norm, lm_head, token selection."""
    batch, ranks = workload.batch, workload.tensor_parallel
    logits = batch * shard(model, ranks).vocab * plain_bytes(model.activations)
    select = Category.TOKEN_SELECTION
    return (
        _norm(-1, final_norm_bytes(model, ranks), 0),
        _linear(Op.LM_HEAD, lm_head_work(model, ranks), batch, logits),
        OpWork(-1, Op.SAMPLE, select, select.role),
    )


def step_ops(model: ModelSpec, workload: Workload) -> tuple[OpWork, ...]:
    """Every op of one decode step in program order, launch first and token selection last.

    Weights pinned on chip are left out of every op in equal share: (1 − f) of each is read.
    """
    ops = tuple(_step_ops(model, workload))
    return _without_pinned(ops, workload.pinned_bytes) if workload.pinned_bytes else ops


def _step_ops(model: ModelSpec, workload: Workload) -> Iterator[OpWork]:
    yield from opening_ops(model, workload)
    for layer in range(model.layers):
        yield from layer_ops(model, workload, layer)
    yield from closing_ops(model, workload)


def _without_pinned(ops: tuple[OpWork, ...], pinned: int) -> tuple[OpWork, ...]:
    """``ops`` reading only what is not pinned; whole bytes, and exactly ``pinned`` (or everything) less in sum."""
    whole = sum(op.weight_read for op in ops)
    left = max(0, whole - pinned)
    running = done = 0
    found = []
    for op in ops:
        running += op.weight_read
        upto = running * left // whole if whole else 0
        found.append(replace(op, weight_read=upto - done))
        done = upto
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Sums over the ops of one step, one rank's view: bytes and FLOPs, exact."""

    weight_read: int = 0
    embedding_gather: int = 0
    kv_read: int = 0
    kv_append: int = 0
    activation: int = 0
    link: int = 0
    link_reduced: int = 0
    flops: int = 0

    @property
    def streamed_bytes(self) -> int:
        """Weights, KV reads and KV appends: what T_mem counts (the embedding gather is not in it)."""
        return self.weight_read + self.kv_read + self.kv_append


@lru_cache(maxsize=512)
def layer_groups(model: ModelSpec, batch: int = 1, ranks: int = 1) -> tuple[tuple[int, int], ...]:
    """Layers that do the same work, as (one of them, how many): the work of a step without listing every layer."""
    stated = truth(model, ranks)
    if not (model.unconverted or model.windows or model.experts or stated):
        return ((0, model.layers),)
    reads = expert_reads(model, batch, ranks)
    first: dict[object, int] = {}
    count: dict[object, int] = {}
    for layer in range(model.layers):
        bytes_read = (reads[layer] if reads else 0, stated.layers[layer] if stated else None)
        kind = (kept_modules(model, layer), model.window(layer), has_experts(model, layer), bytes_read)
        first.setdefault(kind, layer)
        count[kind] = count.get(kind, 0) + 1
    return tuple((first[kind], count[kind]) for kind in first)


def counted_ops(model: ModelSpec, workload: Workload) -> tuple[tuple[OpWork, int], ...]:
    """The ops of one step with how often each occurs, layers of one kind listed once; not in program order."""
    if workload.pinned_bytes:
        return tuple((op, 1) for op in step_ops(model, workload))
    outside = (*opening_ops(model, workload), *closing_ops(model, workload))
    groups = layer_groups(model, workload.batch, workload.tensor_parallel)
    inside = ((op, n) for layer, n in groups for op in layer_ops(model, workload, layer))
    return (*((op, 1) for op in outside), *inside)


def step_totals(model: ModelSpec, workload: Workload) -> StepTotals:
    """The sums over one step of ``model``."""
    counted = counted_ops(model, workload)
    return StepTotals(*(sum(getattr(op, name) * n for op, n in counted) for name in StepTotals.__dataclass_fields__))


@lru_cache(maxsize=1024)
def weight_read_bytes(model: ModelSpec, ranks: int = 1, batch: int = 1) -> int:
    """Weights one rank reads in a step: linears, norms, biases, scales and the output head.

    The same whatever the batch, but for a mixture of experts: a larger batch is expected to use more of them.
    """
    return step_totals(model, Workload(batch=batch, tensor_parallel=ranks)).weight_read
