"""Bytes and FLOPs of one decode step, op by op, as exact integers: what is read once, what grows with the context."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tracescope.core.category import Category, Op
from tracescope.core.dtypes import kv_dtype, plain_bytes, weight_dtype
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.modules import kept_modules

_NORM_VECTORS: Final = {"rms": 1, "layer": 2, "layer-no-bias": 1}


@dataclass(frozen=True, slots=True)
class OpWork:
    """What one op of a step moves and computes; ``layer`` is -1 outside the layers. Bytes and FLOPs are exact.

    ``embedding_gather`` is counted apart from ``weight_read``. ``activation`` is what an unfused kernel would move
    besides; it is shown but never part of a floor. ``link`` are bytes over the interconnect by one rank.
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
    flops: int = 0

    @property
    def memory_bytes(self) -> int:
        """Bytes that must cross the memory bus: weights, gathered rows, KV reads and appends."""
        return self.weight_read + self.embedding_gather + self.kv_read + self.kv_append


@dataclass(frozen=True, slots=True)
class Matrix:
    """One linear weight of a layer as one rank holds it: ``module`` is its name inside the layer (``mlp.up_proj``)."""

    op: Op
    module: str
    n_in: int
    n_out: int
    bias: int = 0

    @property
    def elements(self) -> int:
        """Number of weights, the bias not counted."""
        return self.n_in * self.n_out


@dataclass(frozen=True, slots=True)
class Shard:
    """One rank's share of a model's shapes under tensor parallelism of ``ranks``."""

    ranks: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int


def shard(model: ModelSpec, ranks: int = 1) -> Shard:
    """One rank's heads, KV heads (replicated where there are more ranks than heads), ffn and vocabulary rows."""
    return Shard(
        ranks,
        -(-model.heads // ranks),
        max(1, -(-model.kv_heads // ranks)),
        -(-model.ffn // ranks),
        -(-model.vocab // ranks),
    )


def layer_matrices(model: ModelSpec, ranks: int = 1) -> tuple[Matrix, ...]:
    """The linear weights of one layer in program order; ranks split o and down by input, the others by output."""
    part = shard(model, ranks)
    d, h = model.hidden, model.head_dim
    query, key_value = part.heads * h, part.kv_heads * h
    ffn_bias = part.ffn if model.mlp_bias else 0
    gate = (Matrix(Op.GATE_UP, "mlp.gate_proj", d, part.ffn, ffn_bias),) if model.gated else ()
    return (
        Matrix(Op.QKV, "self_attn.q_proj", d, query, query if model.qkv_bias else 0),
        Matrix(Op.QKV, "self_attn.k_proj", d, key_value, key_value if model.qkv_bias else 0),
        Matrix(Op.QKV, "self_attn.v_proj", d, key_value, key_value if model.qkv_bias else 0),
        Matrix(Op.O, "self_attn.o_proj", query, d, d if model.o_bias else 0),
        *gate,
        Matrix(Op.GATE_UP, "mlp.up_proj", d, part.ffn, ffn_bias),
        Matrix(Op.DOWN, "mlp.down_proj", part.ffn, d, d if model.mlp_bias else 0),
    )


@dataclass(frozen=True, slots=True)
class LinearWork:
    """Weight bytes of one linear op, scales and biases included; ``scales`` is the part that is scales and zeros."""

    weight_read: int
    scales: int
    elements: int


@lru_cache(maxsize=256)
def _linear_work(model: ModelSpec, ranks: int, kept: frozenset[str]) -> dict[Op, LinearWork]:
    """Linear ops of a layer whose ``kept`` modules are stored unquantized."""
    plain = plain_bytes(model.activations)
    total: dict[Op, LinearWork] = {}
    for matrix in layer_matrices(model, ranks):
        dtype = weight_dtype(model.activations if matrix.module in kept else model.weights)
        scales = dtype.side_bytes(matrix.n_in, matrix.n_out)
        read = dtype.value_bytes(matrix.n_in, matrix.n_out) + scales + matrix.bias * plain
        so_far = total.get(matrix.op, LinearWork(0, 0, 0))
        total[matrix.op] = LinearWork(
            so_far.weight_read + read, so_far.scales + scales, so_far.elements + matrix.elements
        )
    return total


@lru_cache(maxsize=256)
def lm_head_work(model: ModelSpec, ranks: int = 1) -> LinearWork:
    """The output head: read in full every step, tied or not."""
    dtype = weight_dtype(model.lm_head)
    n_in, n_out = model.hidden, shard(model, ranks).vocab
    scales = dtype.side_bytes(n_in, n_out)
    bias = n_out * plain_bytes(model.activations) if model.lm_head_bias else 0
    return LinearWork(dtype.value_bytes(n_in, n_out) + scales + bias, scales, n_in * n_out)


def norm_bytes(model: ModelSpec) -> int:
    """Bytes of one norm over the hidden size; replicated on every rank."""
    return _NORM_VECTORS[model.norm] * model.hidden * plain_bytes(model.activations)


def kv_bytes_per_token_per_layer(model: ModelSpec, ranks: int = 1) -> int:
    """Bytes that one cached token takes in one layer on one rank: K and V, and the scales where the dtype has any."""
    return 2 * kv_dtype(model.kv).token_bytes(shard(model, ranks).kv_heads, model.head_dim)


def kv_bytes_per_token(model: ModelSpec, ranks: int = 1) -> int:
    """Bytes that one cached token takes in all layers on one rank."""
    return model.layers * kv_bytes_per_token_per_layer(model, ranks)


def all_reduce_link_bytes(model: ModelSpec, batch: int, ranks: int) -> int:
    """Bytes that one rank sends in a ring all-reduce of the hidden state: 2(t - 1)/t of the message."""
    message = batch * model.hidden * plain_bytes(model.activations)
    return -(-message * 2 * (ranks - 1) // ranks)


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
    norm after qkv for qk-norm, norms after o and down for sandwich norms, and an all-reduce after o and down on more
    than one rank.
    """
    batch, ranks = workload.batch, workload.tensor_parallel
    part = shard(model, ranks)
    linear = _linear_work(model, ranks, kept_modules(model, layer))
    moved = batch * plain_bytes(model.activations)  # bytes of one activation element over the whole batch
    d, query, key_value = model.hidden, part.heads * model.head_dim, part.kv_heads * model.head_dim
    token = kv_bytes_per_token_per_layer(model, ranks)
    weight = norm_bytes(model)
    sandwich = (_norm(layer, weight, 0),) if model.norms_per_layer == 4 else ()
    reduce = (_all_reduce(model, batch, ranks, layer),) if ranks > 1 else ()
    up = 2 * part.ffn if model.gated else part.ffn
    # Each block norm also carries the residual addition before it: two reads and one write besides its own two.
    ops = [_norm(layer, weight, 5 * d * moved)]
    ops.append(_linear(Op.QKV, linear[Op.QKV], batch, (d + query + 2 * key_value) * moved, layer))
    if model.qk_norm:
        ops.append(_norm(layer, 2 * model.head_dim * plain_bytes(model.activations), 0))
    ops += [
        OpWork(layer, Op.ROPE, _C, _C.role),
        OpWork(layer, Op.KV_APPEND, _A, _A.role, kv_append=batch * token),
        OpWork(
            layer,
            Op.ATTENTION,
            _K,
            _K.role | _C.role,
            kv_read=batch * workload.context * token,
            activation=2 * query * moved,
            flops=4 * batch * (workload.context + 1) * query,
        ),
        _linear(Op.O, linear[Op.O], batch, (query + d) * moved, layer),
        *reduce,
        *sandwich,
    ]
    if model.norms_per_layer > 1:
        ops.append(_norm(layer, weight, 5 * d * moved))
    ops += [
        _linear(Op.GATE_UP, linear[Op.GATE_UP], batch, (d + up) * moved, layer),
        OpWork(layer, Op.ACT, _C, _C.role, activation=(up + part.ffn) * moved),
        _linear(Op.DOWN, linear[Op.DOWN], batch, (part.ffn + d) * moved, layer),
        *reduce,
        *sandwich,
    ]
    return tuple(ops)


def _all_reduce(model: ModelSpec, batch: int, ranks: int, layer: int) -> OpWork:
    category = Category.COMMUNICATION
    return OpWork(layer, Op.ALL_REDUCE, category, category.role, link=all_reduce_link_bytes(model, batch, ranks))


def opening_ops(model: ModelSpec, workload: Workload) -> tuple[OpWork, ...]:
    """What a step does before its first layer: launch, embedding gather, block-table lookup."""
    row = model.hidden * plain_bytes(model.activations)
    rows = workload.batch * (2 if model.position_rows else 1)
    host = Category.HOST
    return (
        OpWork(-1, Op.LAUNCH, host, host.role),
        OpWork(
            -1,
            Op.EMBED,
            _W,
            _W.role,
            weight_read=norm_bytes(model) if model.embedding_norm else 0,
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
        _norm(-1, norm_bytes(model), 0),
        _linear(Op.LM_HEAD, lm_head_work(model, ranks), batch, logits),
        OpWork(-1, Op.SAMPLE, select, select.role),
    )


def step_ops(model: ModelSpec, workload: Workload) -> tuple[OpWork, ...]:
    """Every op of one decode step in program order, launch first and token selection last."""
    return tuple(_step_ops(model, workload))


def _step_ops(model: ModelSpec, workload: Workload) -> Iterator[OpWork]:
    yield from opening_ops(model, workload)
    for layer in range(model.layers):
        yield from layer_ops(model, workload, layer)
    yield from closing_ops(model, workload)


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Sums over the ops of one step, one rank's view: bytes and FLOPs, exact."""

    weight_read: int = 0
    embedding_gather: int = 0
    kv_read: int = 0
    kv_append: int = 0
    activation: int = 0
    link: int = 0
    flops: int = 0

    @property
    def memory_bytes(self) -> int:
        """Weights, KV reads and KV appends: what T_mem counts (the embedding gather is not in it)."""
        return self.weight_read + self.kv_read + self.kv_append


def layer_groups(model: ModelSpec) -> tuple[tuple[int, int], ...]:
    """Layers that do the same work, as (one of them, how many): the work of a step without listing every layer."""
    if not model.unconverted:
        return ((0, model.layers),)
    first: dict[frozenset[str], int] = {}
    count: dict[frozenset[str], int] = {}
    for layer in range(model.layers):
        kept = kept_modules(model, layer)
        first.setdefault(kept, layer)
        count[kept] = count.get(kept, 0) + 1
    return tuple((first[kept], count[kept]) for kept in first)


def counted_ops(model: ModelSpec, workload: Workload) -> tuple[tuple[OpWork, int], ...]:
    """The ops of one step with how often each occurs, layers of one kind listed once; not in program order."""
    outside = (*opening_ops(model, workload), *closing_ops(model, workload))
    inside = ((op, n) for layer, n in layer_groups(model) for op in layer_ops(model, workload, layer))
    return (*((op, 1) for op in outside), *inside)


def step_totals(model: ModelSpec, workload: Workload) -> StepTotals:
    """The sums over one step of ``model``."""
    counted = counted_ops(model, workload)
    return StepTotals(*(sum(getattr(op, name) * n for op, n in counted) for name in StepTotals.__dataclass_fields__))


@lru_cache(maxsize=256)
def weight_read_bytes(model: ModelSpec, ranks: int = 1) -> int:
    """Weights one rank reads in every step, whatever the batch: linears, norms, biases, scales and the output head."""
    return step_totals(model, Workload(tensor_parallel=ranks)).weight_read


def scale_bytes(model: ModelSpec, ranks: int = 1) -> int:
    """How much of ``weight_read_bytes`` is scales and zeros of quantized weights."""
    in_layers = sum(
        n * work.scales
        for layer, n in layer_groups(model)
        for work in _linear_work(model, ranks, kept_modules(model, layer)).values()
    )
    return in_layers + lm_head_work(model, ranks).scales


def stored_bytes(model: ModelSpec, ranks: int = 1) -> int:
    """Weights one rank keeps in memory: what is read, learned positions, and an input embedding of its own.

    A tied model keeps one table for both ends, unless its head is stored in a dtype of its own.
    """
    row = model.hidden * plain_bytes(model.activations)
    shared = model.tied and plain_bytes(model.activations) * 8 == weight_dtype(model.lm_head).bits
    embedding = 0 if shared else shard(model, ranks).vocab * row
    return weight_read_bytes(model, ranks) + embedding + model.position_rows * row
