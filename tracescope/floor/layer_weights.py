"""Bytes of weights: by formula from shapes and dtypes, or as the headers of a checkpoint state them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tracescope.core.category import Op
from tracescope.core.model import LayerBytes, ModelSpec, TensorBytes
from tracescope.floor.dtypes import plain_bytes, weight_dtype
from tracescope.floor.experts import distinct_of, shares_of_expectation
from tracescope.floor.kept_modules import kept_modules
from tracescope.floor.matrices import Matrix, expert_matrices, has_experts, layer_matrices, shard

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

    ``norm`` is each block norm, the first one ``norm_surplus`` larger where a file's do not divide evenly;
    ``query_norm`` the norm between qkv and attention (qk-norm, or those of compressed queries and keys);
    ``attention`` what attention reads itself (sinks).
    """

    linear: dict[Op, LinearWork]
    norm: int
    experts: LinearWork = NO_WORK
    query_norm: int = 0
    attention: int = 0
    norm_surplus: int = 0


def truth(model: ModelSpec, ranks: int) -> TensorBytes | None:
    """The checkpoint's own sizes where they apply: they are those of a whole model, not of one rank among several."""
    return model.tensors if ranks == 1 else None


def layer_weights(model: ModelSpec, ranks: int, layer: int) -> LayerWeights:
    """The weights of ``layer`` on one of ``ranks`` ranks."""
    formula = _formula(model, ranks, kept_modules(model, layer), has_experts(model, layer))
    stated = truth(model, ranks)
    return formula if stated is None else _stated(model, formula, stated.layers[layer])


@lru_cache(maxsize=512)
def _formula(model: ModelSpec, ranks: int, kept: frozenset[str], routed: bool) -> LayerWeights:
    """Weights of a layer whose ``kept`` modules are stored unquantized; with experts where ``routed``."""
    layer = 0
    if model.experts is not None:
        layer = next((i for i in range(model.layers) if has_experts(model, i) is routed), 0)
    linear: dict[Op, LinearWork] = {}
    for op, work in _each(model, kept, layer_matrices(model, ranks, layer)):
        linear[op] = _plus(linear.get(op, NO_WORK), work)
    experts = NO_WORK
    if routed and model.experts is not None:
        one = NO_WORK
        for _, work in _each(model, kept, expert_matrices(model, ranks)):
            one = _plus(one, work)
        count, chosen = model.experts.experts, model.experts.chosen
        experts = LinearWork(count * one.weight_read, count * one.scales, chosen * one.elements)
    plain = plain_bytes(model.activations)
    sinks = shard(model, ranks).heads * plain if model.sinks else 0
    return LayerWeights(linear, norm_bytes(model), experts, _query_norm_elements(model, ranks) * plain, sinks)


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


def _query_norm_elements(model: ModelSpec, ranks: int) -> int:
    if model.latent is not None:
        return (model.latent.q_rank or 0) + model.latent.kv_rank
    if model.qk_norm_wide:
        part = shard(model, ranks)
        return (part.heads + part.kv_heads) * model.head_dim
    return 2 * model.head_dim if model.qk_norm else 0


def _stated(model: ModelSpec, formula: LayerWeights, found: LayerBytes) -> LayerWeights:
    """The file's bytes in the places of the formula; its elements stay, since FLOPs follow shapes."""
    sizes = {Op.QKV: found.qkv, Op.O: found.o, Op.ROUTER: found.router, Op.GATE_UP: found.gate_up, Op.DOWN: found.down}
    first = next(iter(formula.linear))
    linear = {
        op: LinearWork(sizes[op], found.scales if op is first else 0, work.elements)
        for op, work in formula.linear.items()
    }
    experts = LinearWork(found.experts, found.expert_scales, formula.experts.elements)
    query_norm = min(formula.query_norm, found.norm)
    each, surplus = divmod(found.norm - query_norm, model.norms_per_layer)
    return LayerWeights(linear, each, experts, query_norm, found.attention, surplus)


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
    return model.hidden * plain_bytes(model.activations) if stated is None else stated.embedding_row


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
    scales = sum(work.scales for layer in layers for work in layer.linear.values())
    if model.experts is not None:
        every = tuple(layer.experts.scales for layer in layers)
        scales += sum(shares_of_expectation(every, distinct_of(model.experts, batch), model.experts.experts))
    return scales + lm_head_work(model, ranks).scales


@lru_cache(maxsize=256)
def stored_bytes(model: ModelSpec, ranks: int = 1) -> int:
    """Weights one rank keeps in memory: what is read, every expert, positions, an input embedding of its own.

    A tied model keeps one table for both ends, unless its head is stored in a dtype of its own. Layers that only
    predict later tokens are stored as well.
    """
    stated = truth(model, ranks)
    if stated is not None:
        return stated.stored
    row = model.hidden * plain_bytes(model.activations)
    shared = model.tied and plain_bytes(model.activations) * 8 == weight_dtype(model.lm_head).bits
    embedding = 0 if shared else shard(model, ranks).vocab * row
    layers = [_layer_stored(model, ranks, layer) for layer in range(model.layers)]
    outside = (
        final_norm_bytes(model, ranks) + embedding_norm_bytes(model, ranks) + lm_head_work(model, ranks).weight_read
    )
    predicting = model.prediction_layers * (layers[-1] + _joining_bytes(model))
    return sum(layers) + predicting + outside + embedding + model.position_rows * row


def _layer_stored(model: ModelSpec, ranks: int, layer: int) -> int:
    weights = layer_weights(model, ranks, layer)
    linear = sum(work.weight_read for work in weights.linear.values()) + weights.experts.weight_read
    norms = model.norms_per_layer * weights.norm + weights.query_norm + weights.norm_surplus
    return linear + norms + weights.attention


def _joining_bytes(model: ModelSpec) -> int:
    """What a layer that predicts later tokens has besides a layer: a projection of two hidden states, three norms."""
    dtype, d = weight_dtype(model.weights), model.hidden
    return dtype.value_bytes(2 * d, d) + dtype.side_bytes(2 * d, d) + 3 * norm_bytes(model)
