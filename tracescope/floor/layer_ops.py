"""The ops of one layer in program order, each with what it moves and computes: the layer says what it is built of."""

from collections.abc import Iterator

from tracescope.core.category import Category, Op
from tracescope.core.layer_parts import Attention, Indexer, Layer, Recurrent
from tracescope.core.model import Experts, ModelSpec, Workload
from tracescope.floor.dtypes import plain_bytes
from tracescope.floor.kv_cache import (
    cache_token_bytes,
    index_keys_read,
    index_token_bytes,
    stored_token_bytes,
    tokens_read,
)
from tracescope.floor.layer_weights import LayerWeights, LinearWork, expert_reads, layer_weights
from tracescope.floor.matrices import share
from tracescope.floor.op_work import OpWork, all_reduce_op, linear_op, norm_op
from tracescope.floor.state import layer_state_bytes

_W, _K, _A, _C = Category.WEIGHT_READ, Category.KV_READ, Category.KV_APPEND, Category.COMPUTE


def layer_ops(model: ModelSpec, workload: Workload, layer: int) -> tuple[OpWork, ...]:
    """The ops of one layer in program order.

    ``norm qkv rope kv_append attention o norm gate_up act down``, with a second norm only where the model has one, a
    norm after qkv for qk-norm and latent attention, and norms after o and down for sandwich norms. Sparse attention
    has an ``indexer`` before it; a layer with a recurrent state has ``qkv state o``, beside attention or in its place.
    On more than one rank an all-reduce follows o and down, or both together where they read one input. A layer with
    experts has ``router experts`` in place of the last three, which then stand for its shared experts where it has any.
    """
    batch, ranks, kind = workload.batch, workload.tensor_parallel, model.layer(layer)
    weights = layer_weights(model, ranks, layer)
    sandwich = (norm_op(layer, weights.norm, 0),) if model.norms_per_layer == 4 else ()
    reduce = (all_reduce_op(model, batch, ranks, layer),) if ranks > 1 else ()
    ops: list[OpWork] = []
    norms = _block_norms(model, workload, layer, weights)
    if not (kind.mixes and kind.has_mlp):
        ops += _lone_matrices(workload, layer, weights, kind)
    if kind.mixes:
        ops.append(next(norms))
        ops += _mixing_ops(model, workload, layer, weights)
        ops += [*(() if model.parallel and kind.has_mlp else reduce), *sandwich]
    if kind.has_mlp:
        ops += [next(norms)] if model.norms_per_layer > 1 or not kind.mixes else []
        if kind.routed and model.experts is not None:
            ops += _expert_ops(model, model.experts, workload, layer, weights)
        else:
            ops += _mlp_ops(model, workload, layer, weights, share(kind.ffn, ranks))
        ops += [*reduce, *sandwich]
    return tuple(ops)


def _lone_matrices(workload: Workload, layer: int, weights: LayerWeights, kind: Layer) -> Iterator[OpWork]:
    """Linear weights that stand in the place of a part, with the norm of that part."""
    own = ({Op.QKV, Op.O} if kind.attention is not None else set()) | ({Op.GATE_UP, Op.DOWN} if kind.ffn else set())
    for op, work in weights.linear.items():
        if op not in own and not (kind.routed and op in (Op.ROUTER, Op.GATE_UP, Op.DOWN)):
            yield linear_op(op, work, workload.batch, 0, layer)
    if weights.norm_surplus and not kind.mixes and not kind.has_mlp:
        yield norm_op(layer, weights.norm_surplus, 0)


def _block_norms(model: ModelSpec, workload: Workload, layer: int, weights: LayerWeights) -> Iterator[OpWork]:
    """Block norms as they are needed: each also carries the residual addition before it.

    That is two reads and one write besides its own two; the first one carries what else of norms a layer has.
    """
    moved = 5 * model.hidden * workload.batch * plain_bytes(model.activations)
    yield norm_op(layer, weights.norm + weights.norm_surplus, moved)
    while True:
        yield norm_op(layer, weights.norm, moved)


def _mixing_ops(model: ModelSpec, workload: Workload, layer: int, weights: LayerWeights) -> Iterator[OpWork]:
    kind = model.layer(layer)
    if kind.attention is not None:
        yield from _attention_ops(model, workload, layer, weights, kind.attention)
    if kind.recurrent is not None:
        yield from _recurrent_ops(model, workload, layer, weights, kind.recurrent)


def _attention_ops(
    model: ModelSpec, workload: Workload, layer: int, weights: LayerWeights, attention: Attention
) -> Iterator[OpWork]:
    """From qkv to o; a layer that reads another one's cache appends nothing."""
    batch, ranks, latent = workload.batch, workload.tensor_parallel, attention.latent
    moved, heads = batch * plain_bytes(model.activations), share(attention.heads, ranks)
    d, query, key_value = (
        model.hidden,
        heads * attention.head_dim,
        share(attention.kv_heads, ranks) * attention.head_dim,
    )
    past = attention.attended(workload.context)
    if latent is None:
        flops = 4 * batch * (past + 1) * query
    else:  # absorbed: scores over the whole compressed vector, values over its first part
        key_value = latent.kv_rank + latent.rope_dim
        query = heads * (latent.nope_dim + latent.rope_dim)
        flops = 2 * batch * heads * (2 * latent.kv_rank + latent.rope_dim) * past
    yield linear_op(Op.QKV, weights.linear[Op.QKV], batch, (d + query + 2 * key_value) * moved, layer)
    if weights.query_norm:
        yield norm_op(layer, weights.query_norm, 0)
    yield OpWork(layer, Op.ROPE, _C, _C.role)
    append = batch * stored_token_bytes(model, model.layer(layer), ranks)
    yield OpWork(layer, Op.KV_APPEND, _A, _A.role, kv_append=append)
    if attention.indexer is not None:
        yield _indexer_op(workload, layer, weights, attention, attention.indexer)
    yield OpWork(
        layer,
        Op.ATTENTION,
        _K,
        _K.role | _C.role | (_W.role if weights.attention else 0),
        weight_read=weights.attention,
        kv_read=tokens_read(workload, attention) * cache_token_bytes(model, attention, ranks),
        activation=2 * query * moved,
        flops=flops,
    )
    yield linear_op(Op.O, weights.linear[Op.O], batch, (query + d) * moved, layer)


def _indexer_op(
    workload: Workload, layer: int, weights: LayerWeights, attention: Attention, indexer: Indexer
) -> OpWork:
    """Scores of every cached token against its index key: all keys are read, whatever is selected."""
    keys, batch = index_keys_read(workload) * index_token_bytes(attention), workload.batch
    scores = 2 * batch * indexer.heads * indexer.dim * workload.context
    return OpWork(
        layer,
        Op.INDEXER,
        _K,
        _K.role | _C.role | _W.role,
        weight_read=weights.indexer.weight_read,
        kv_read=keys,
        index_read=keys,
        flops=scores + 2 * batch * weights.indexer.elements,
    )


def _recurrent_ops(
    model: ModelSpec, workload: Workload, layer: int, weights: LayerWeights, recurrent: Recurrent
) -> Iterator[OpWork]:
    """Into the recurrence, the recurrence itself, out of it: its state is read once and written once a request."""
    batch, ranks = workload.batch, workload.tensor_parallel
    moved = batch * plain_bytes(model.activations)
    widths = {weight.op: 0 for weight in recurrent.weights}
    for weight in recurrent.weights:
        widths[weight.op] += weight.n_out if weight.op is Op.QKV else weight.n_in
    into, out = (share(widths.get(op, 0), ranks) for op in (Op.QKV, Op.O))
    yield linear_op(Op.QKV, weights.recurrent[Op.QKV], batch, (model.hidden + into) * moved, layer)
    state = batch * layer_state_bytes(model, model.layer(layer), ranks)
    yield OpWork(
        layer,
        Op.STATE,
        _K,
        _K.role | _A.role | _C.role | _W.role,
        weight_read=weights.state,
        kv_read=state,
        kv_append=state,
        activation=(into + out) * moved,
        flops=batch * share(recurrent.flops, ranks),
        state_read=state,
        state_write=state,
    )
    yield linear_op(Op.O, weights.recurrent[Op.O], batch, (out + model.hidden) * moved, layer)


def _mlp_ops(
    model: ModelSpec, workload: Workload, layer: int, weights: LayerWeights, ffn: int
) -> tuple[OpWork, OpWork, OpWork]:
    batch, d = workload.batch, model.hidden
    moved = batch * plain_bytes(model.activations)
    up = 2 * ffn if model.gated else ffn
    return (
        linear_op(Op.GATE_UP, weights.linear[Op.GATE_UP], batch, (d + up) * moved, layer),
        OpWork(layer, Op.ACT, _C, _C.role, activation=(up + ffn) * moved),
        linear_op(Op.DOWN, weights.linear[Op.DOWN], batch, (ffn + d) * moved, layer),
    )


def _expert_ops(
    model: ModelSpec, experts: Experts, workload: Workload, layer: int, weights: LayerWeights
) -> Iterator[OpWork]:
    """Router, routed and shared experts: bytes of the distinct experts expected, FLOPs of those that were chosen."""
    batch, ranks, d = workload.batch, workload.tensor_parallel, model.hidden
    moved = batch * plain_bytes(model.activations)
    yield linear_op(Op.ROUTER, weights.linear[Op.ROUTER], batch, (d + experts.experts) * moved, layer)
    ffn = -(-experts.ffn // ranks)
    inner = (2 * ffn if model.gated else ffn) + ffn
    read = LinearWork(expert_reads(model, batch, ranks)[layer], 0, weights.experts.elements)
    yield linear_op(Op.EXPERTS, read, batch, (d + experts.chosen * (inner + ffn) + d) * moved, layer)
    if experts.shared_ffn:
        yield from _mlp_ops(model, workload, layer, weights, -(-experts.shared_ffn // ranks))
