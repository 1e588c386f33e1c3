"""Bytes of weights: by formula from shapes and dtypes, or as the headers of a checkpoint state them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tracescope.core.category import Op
from tracescope.core.layer_parts import Attention, Layer
from tracescope.core.model import LayerBytes, ModelSpec, TensorBytes
from tracescope.floor.dtypes import plain_bytes, weight_dtype
from tracescope.floor.experts import distinct_of, shares_of_expectation
from tracescope.floor.kept_modules import kept_modules
from tracescope.floor.matrices import (
    Matrix,
    expert_matrices,
    indexer_matrices,
    kind_matrices,
    projected,
    recurrent_matrices,
    shard,
    share,
)

_NORM_VECTORS: Final = {"rms": 1, "layer": 2, "layer-no-bias": 1}
_PLAIN_MODULES: Final = frozenset({"mlp.router", "mlp.shared_expert_gate"})
"""Weights that no format quantizes."""


@dataclass(frozen=True, slots=True)
class LinearWork:
    """Weight bytes of one linear op, scales and biases included; ``scales`` is the part that is scales and zeros.

    ``elements`` counts the weights that one token multiplies.
    """

    weight_read: int
    scales: int
    elements: int


NO_WORK: Final = LinearWork(0, 0, 0)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one kind of layer: ``linear`` by op, ``experts`` all routed experts together, small extras.

    ``recurrent`` holds the linear weights around a recurrent state by op and ``state`` its small parameters;
    ``indexer`` what selects tokens. ``norm`` is each block norm, the first one ``norm_surplus`` larger where a file's
    do not divide evenly or a layer has further ones; ``query_norm`` the norm between qkv and attention (qk-norm, or
    those of compressed queries and keys); ``attention`` what attention reads itself (sinks).
    """

    linear: dict[Op, LinearWork]
    norm: int
    experts: LinearWork = NO_WORK
    query_norm: int = 0
    attention: int = 0
    norm_surplus: int = 0
    recurrent: dict[Op, LinearWork] = field(default_factory=dict)
    state: int = 0
    indexer: LinearWork = NO_WORK

    @property
    def stored(self) -> int:
        """Bytes of everything but the block norms."""
        linear = sum(work.weight_read for work in (*self.linear.values(), *self.recurrent.values()))
        return (
            linear + self.experts.weight_read + self.indexer.weight_read + self.query_norm + self.attention + self.state
        )

    @property
    def scales(self) -> int:
        """The part that is scales and zeros, those of routed experts left out."""
        linear = sum(work.scales for work in (*self.linear.values(), *self.recurrent.values()))
        return linear + self.indexer.scales


def truth(model: ModelSpec, ranks: int) -> TensorBytes | None:
    """The checkpoint's own sizes where they apply: they are those of a whole model, not of one rank among several."""
    return model.tensors if ranks == 1 else None


def layer_weights(model: ModelSpec, ranks: int, layer: int) -> LayerWeights:
    """The weights of ``layer`` on one of ``ranks`` ranks."""
    formula = _formula(model, ranks, kept_modules(model, layer), model.layer(layer))
    stated = truth(model, ranks)
    return formula if stated is None else _stated(model, formula, model.layer(layer), stated.layers[layer])


def block_norms(model: ModelSpec, kind: Layer) -> int:
    """How many block norms such a layer has: one less where it has nothing that mixes tokens, or no MLP."""
    if model.norms_per_layer == 1 or (kind.mixes and kind.has_mlp):
        return model.norms_per_layer
    return model.norms_per_layer // 2 if kind.mixes or kind.has_mlp else 0


@lru_cache(maxsize=512)
def _formula(model: ModelSpec, ranks: int, kept: frozenset[str], kind: Layer) -> LayerWeights:
    """Weights of a layer of ``kind`` whose ``kept`` modules are stored unquantized."""
    experts = NO_WORK
    if kind.routed and model.experts is not None:
        one = _sum(work for _, work in _each(model, kept, expert_matrices(model, ranks)))
        count, chosen = model.experts.experts, model.experts.chosen
        experts = LinearWork(count * one.weight_read, count * one.scales, chosen * one.elements)
    plain = plain_bytes(model.activations)
    attention, recurrent = kind.attention, kind.recurrent
    return LayerWeights(
        _by_op(_each(model, kept, kind_matrices(model, kind, ranks))),
        norm_bytes(model),
        experts,
        0 if attention is None else _query_norm_elements(model, attention, ranks) * plain,
        share(attention.heads, ranks) * plain if model.sinks and attention is not None else 0,
        kind.norms * plain,
        _by_op(_each(model, kept, recurrent_matrices(kind, ranks))),
        0 if recurrent is None else share(recurrent.beside, ranks) * plain,
        _sum(work for _, work in _each(model, kept, indexer_matrices(kind, ranks))),
    )


def _by_op(weights: Iterable[tuple[Op, LinearWork]]) -> dict[Op, LinearWork]:
    found: dict[Op, LinearWork] = {}
    for op, work in weights:
        found[op] = _plus(found.get(op, NO_WORK), work)
    return found


def _sum(weights: Iterable[LinearWork]) -> LinearWork:
    found = NO_WORK
    for work in weights:
        found = _plus(found, work)
    return found


def _each(model: ModelSpec, kept: frozenset[str], matrices: Iterable[Matrix]) -> Iterable[tuple[Op, LinearWork]]:
    plain = plain_bytes(model.activations)
    for matrix in matrices:
        unquantized = matrix.module in kept or matrix.module in _PLAIN_MODULES
        dtype = weight_dtype(model.activations if unquantized else model.weights)
        scales = dtype.side_bytes(matrix.n_in, matrix.n_out)
        read = dtype.value_bytes(matrix.n_in, matrix.n_out) + scales + matrix.bias * plain
        yield matrix.op, LinearWork(read, scales, matrix.elements)


def _plus(a: LinearWork, b: LinearWork) -> LinearWork:
    return LinearWork(a.weight_read + b.weight_read, a.scales + b.scales, a.elements + b.elements)


def _query_norm_elements(model: ModelSpec, attention: Attention, ranks: int) -> int:
    index = 0 if attention.indexer is None else attention.indexer.norm
    if attention.latent is not None:
        return (attention.latent.q_rank or 0) + attention.latent.kv_rank + index
    keys = attention.stores
    if model.qk_norm_wide:
        heads = share(attention.heads, ranks) + share(attention.kv_heads, ranks) * keys
        return heads * attention.head_dim + index
    return (1 + keys) * attention.head_dim * model.qk_norm + index


def _stated(model: ModelSpec, formula: LayerWeights, kind: Layer, found: LayerBytes) -> LayerWeights:
    """The file's bytes in the places of the formula; its elements stay, since FLOPs follow shapes."""
    sizes = {Op.QKV: found.qkv, Op.O: found.o, Op.ROUTER: found.router, Op.GATE_UP: found.gate_up, Op.DOWN: found.down}
    first = next(iter(formula.linear), None)
    linear = {
        op: LinearWork(sizes[op], found.scales if op is first else 0, work.elements)
        for op, work in formula.linear.items()
    }
    alone = kind.attention is None  # some families name the matrices around a state as those of attention
    inside = {Op.QKV: found.state_in + alone * found.qkv, Op.O: found.state_out + alone * found.o}
    scales = 0 if linear else found.scales
    recurrent = {
        op: LinearWork(inside[op], scales if op is Op.QKV else 0, work.elements)
        for op, work in formula.recurrent.items()
    }
    experts = LinearWork(found.experts, found.expert_scales, formula.experts.elements)
    query_norm = min(formula.query_norm, found.norm)
    each, surplus = divmod(found.norm - query_norm, max(1, block_norms(model, kind)))
    indexer = LinearWork(found.indexer, 0, formula.indexer.elements)
    return LayerWeights(linear, each, experts, query_norm, found.attention, surplus, recurrent, found.state, indexer)


@lru_cache(maxsize=256)
def lm_head_work(model: ModelSpec, ranks: int = 1) -> LinearWork:
    """The output head: read in full every step, tied or not."""
    n_in, n_out = model.hidden, shard(model, ranks).vocab
    stated = truth(model, ranks)
    if stated is not None:
        return LinearWork(stated.lm_head, stated.lm_head_scales, n_in * n_out)
    dtype = weight_dtype(model.lm_head)
    scales = dtype.side_bytes(n_in, n_out)
    bias = n_out * plain_bytes(model.activations) if model.lm_head_bias else 0
    return LinearWork(dtype.value_bytes(n_in, n_out) + scales + bias, scales, n_in * n_out)


def norm_bytes(model: ModelSpec) -> int:
    """Bytes of one norm over the hidden size; replicated on every rank."""
    return _NORM_VECTORS[model.norm] * model.hidden * plain_bytes(model.activations)


def final_norm_bytes(model: ModelSpec, ranks: int = 1) -> int:
    """Bytes of the norm after the last layer."""
    stated = truth(model, ranks)
    return norm_bytes(model) if stated is None else stated.norm


def embedding_norm_bytes(model: ModelSpec, ranks: int = 1) -> int:
    """Bytes of the norm right after the embedding, 0 where there is none."""
    stated = truth(model, ranks)
    if stated is not None:
        return stated.embedding_norm
    return norm_bytes(model) if model.embedding_norm else 0


def row_bytes(model: ModelSpec) -> int:
    """Bytes of one row of the input embedding."""
    stated = model.tensors
    if stated is not None:
        return stated.embedding_row
    dtype = weight_dtype(model.embedding or model.activations)
    return dtype.value_bytes(model.hidden, 1) + dtype.side_bytes(model.hidden, 1)


def side_row_bytes(model: ModelSpec) -> int:
    """Bytes of one row of the second embedding table; 0 without one."""
    return model.side_row * plain_bytes(model.activations)


@lru_cache(maxsize=256)
def beside_work(model: ModelSpec, ranks: int = 1) -> LinearWork:
    """The linear weights outside the layers, without the output head."""
    return _sum(work for _, work in _each(model, frozenset(), projected(model.beside, ranks)))


@lru_cache(maxsize=256)
def expert_reads(model: ModelSpec, batch: int, ranks: int = 1) -> tuple[int, ...]:
    """Expert bytes that each layer is expected to read for ``batch`` tokens, 0 where it has no experts.

    Empty for a model without experts. Whole bytes that add up to the rounded expectation of the whole step.
    """
    if model.experts is None:
        return ()
    every = tuple(layer_weights(model, ranks, layer).experts.weight_read for layer in range(model.layers))
    return shares_of_expectation(every, distinct_of(model.experts, batch), model.experts.experts)


@lru_cache(maxsize=256)
def scale_bytes(model: ModelSpec, ranks: int = 1, batch: int = 1) -> int:
    """How much of the weights that a step reads is scales and zeros; of experts the expected part."""
    layers = [layer_weights(model, ranks, layer) for layer in range(model.layers)]
    scales = sum(layer.scales for layer in layers) + beside_work(model, ranks).scales
    if model.experts is not None:
        every = tuple(layer.experts.scales for layer in layers)
        scales += sum(shares_of_expectation(every, distinct_of(model.experts, batch), model.experts.experts))
    return scales + lm_head_work(model, ranks).scales


@lru_cache(maxsize=256)
def stored_bytes(model: ModelSpec, ranks: int = 1) -> int:
    """Weights one rank keeps in memory: what is read, every expert, positions, an input embedding of its own.

    A tied model keeps one table for both ends, unless its head is stored in a dtype of its own. Layers that only
    predict later tokens are left out (:func:`prediction_bytes`): engines load them for speculative decoding alone.
    """
    stated = truth(model, ranks)
    if stated is not None:
        return stated.stored
    head = weight_dtype(model.lm_head)
    shared = model.tied and not model.head_rows and weight_dtype(model.embedding or model.activations).bits == head.bits
    rows = share(model.vocab, ranks)
    embedding = 0 if shared else rows * row_bytes(model)
    layers = [_layer_stored(model, ranks, layer) for layer in range(model.layers)]
    outside = (
        final_norm_bytes(model, ranks)
        + embedding_norm_bytes(model, ranks)
        + lm_head_work(model, ranks).weight_read
        + beside_work(model, ranks).weight_read
        + share(model.side_rows, ranks) * side_row_bytes(model)
    )
    positions = model.position_rows * model.hidden * plain_bytes(model.activations)
    return sum(layers) + outside + embedding + positions


def prediction_bytes(model: ModelSpec, ranks: int = 1) -> int:
    """Weights of the layers that predict later tokens, by formula: each like the last layer, and what joins it."""
    if not model.prediction_layers:
        return 0
    return model.prediction_layers * (_layer_stored(model, ranks, model.layers - 1) + _joining_bytes(model))


def _layer_stored(model: ModelSpec, ranks: int, layer: int) -> int:
    weights = layer_weights(model, ranks, layer)
    return weights.stored + block_norms(model, model.layer(layer)) * weights.norm + weights.norm_surplus


def _joining_bytes(model: ModelSpec) -> int:
    """What a layer that predicts later tokens has besides a layer: a projection of two hidden states, three norms."""
    dtype, d = weight_dtype(model.weights), model.hidden
    return dtype.value_bytes(2 * d, d) + dtype.side_bytes(2 * d, d) + 3 * norm_bytes(model)
