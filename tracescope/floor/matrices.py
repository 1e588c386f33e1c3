"""The linear weights of a model, matrix by matrix, as one rank holds them."""

from collections.abc import Iterable
from dataclasses import dataclass

from tracescope.core.category import Op
from tracescope.core.layer_parts import Attention, Latent, Layer, Projection
from tracescope.core.model import Experts, ModelSpec


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


def share(amount: int, ranks: int) -> int:
    """One rank's part of ``amount`` columns, heads or rows, the last rank's padded."""
    return -(-amount // ranks)


def shard(model: ModelSpec, ranks: int = 1) -> Shard:
    """One rank's heads, KV heads (replicated where there are more ranks than heads), ffn and vocabulary rows."""
    return Shard(
        ranks,
        share(model.heads, ranks),
        share(model.kv_heads, ranks),
        share(model.ffn, ranks),
        share(model.head_rows or model.vocab, ranks),
    )


def has_experts(model: ModelSpec, layer: int) -> bool:
    """Whether ``layer`` routes its tokens to experts."""
    return model.layer(layer).routed


def layer_matrices(model: ModelSpec, ranks: int = 1, layer: int = 0) -> tuple[Matrix, ...]:
    """The linear weights of one layer in program order; those of routed experts and of a recurrent part left out.

    See :func:`expert_matrices` and :func:`recurrent_matrices`. Ranks split o and down by input, the others by output;
    what compresses queries, keys and values is replicated.
    """
    return kind_matrices(model, model.layer(layer), ranks)


def kind_matrices(model: ModelSpec, kind: Layer, ranks: int = 1) -> tuple[Matrix, ...]:
    """The same of a kind of layer."""
    found = [] if kind.attention is None else list(_attention(model, kind.attention, ranks))
    if kind.routed and model.experts is not None:
        found += _beside_experts(model, model.experts, ranks)
    elif kind.ffn:
        found += _mlp(model, share(kind.ffn, ranks), "mlp", bias=model.mlp_bias)
    return (*found, *projected(kind.beside, ranks))


def recurrent_matrices(kind: Layer, ranks: int = 1) -> tuple[Matrix, ...]:
    """The linear weights around a recurrent state; none where the layer has no such part."""
    return () if kind.recurrent is None else projected(kind.recurrent.weights, ranks)


def indexer_matrices(kind: Layer, ranks: int = 1) -> tuple[Matrix, ...]:
    """The linear weights that select tokens for sparse attention; none where every token is read."""
    indexer = None if kind.attention is None else kind.attention.indexer
    return () if indexer is None else projected(indexer.weights, ranks)


def projected(weights: Iterable[Projection], ranks: int) -> tuple[Matrix, ...]:
    """One rank's part of ``weights``."""
    return tuple(_projected(weight, ranks) for weight in weights)


def _projected(weight: Projection, ranks: int) -> Matrix:
    n_in = share(weight.n_in, ranks) if weight.split == "in" else weight.n_in
    n_out = share(weight.n_out, ranks) if weight.split == "out" else weight.n_out
    return Matrix(weight.op, weight.module, n_in, n_out, n_out if weight.bias else 0)


def _attention(model: ModelSpec, attention: Attention, ranks: int) -> tuple[Matrix, ...]:
    if attention.latent is not None:
        return _latent_attention(model, attention, attention.latent, ranks)
    d, h = model.hidden, attention.head_dim
    query, key_value = share(attention.heads, ranks) * h, share(attention.kv_heads, ranks) * h
    cached: tuple[str, ...] = ("k_proj",) if attention.keys_are_values else ("k_proj", "v_proj")
    return (
        Matrix(Op.QKV, "self_attn.q_proj", d, query, query if model.qkv_bias else 0),
        *(
            Matrix(Op.QKV, f"self_attn.{name}", d, key_value, key_value if model.qkv_bias else 0)
            for name in (cached if attention.stores else ())
        ),
        Matrix(Op.O, "self_attn.o_proj", query, d, d if model.o_bias else 0),
    )


def _latent_attention(model: ModelSpec, attention: Attention, latent: Latent, ranks: int) -> tuple[Matrix, ...]:
    d, heads = model.hidden, share(attention.heads, ranks)
    query = heads * (latent.nope_dim + latent.rope_dim)
    compressed = latent.kv_rank + latent.rope_dim
    if latent.q_rank is None:
        queries: tuple[Matrix, ...] = (Matrix(Op.QKV, "self_attn.q_proj", d, query),)
    else:
        bias = latent.q_rank if model.qkv_bias else 0
        queries = (
            Matrix(Op.QKV, "self_attn.q_a_proj", d, latent.q_rank, bias),
            Matrix(Op.QKV, "self_attn.q_b_proj", latent.q_rank, query),
        )
    return (
        *queries,
        Matrix(Op.QKV, "self_attn.kv_a_proj_with_mqa", d, compressed, compressed if model.qkv_bias else 0),
        Matrix(Op.QKV, "self_attn.kv_b_proj", latent.kv_rank, heads * (latent.nope_dim + latent.v_dim)),
        Matrix(Op.O, "self_attn.o_proj", heads * latent.v_dim, d, d if model.o_bias else 0),
    )


def _mlp(model: ModelSpec, ffn: int, module: str, *, bias: bool) -> tuple[Matrix, ...]:
    d, ffn_bias = model.hidden, ffn if bias else 0
    gate = (Matrix(Op.GATE_UP, f"{module}.gate_proj", d, ffn, ffn_bias),) if model.gated else ()
    return (
        *gate,
        Matrix(Op.GATE_UP, f"{module}.up_proj", d, ffn, ffn_bias),
        Matrix(Op.DOWN, f"{module}.down_proj", ffn, d, d if bias else 0),
    )


def _beside_experts(model: ModelSpec, experts: Experts, ranks: int) -> tuple[Matrix, ...]:
    """Router and shared experts; the router is replicated on every rank."""
    d = model.hidden
    found = [Matrix(Op.ROUTER, "mlp.router", d, experts.experts, experts.experts if experts.router_bias else 0)]
    if experts.shared_gate:
        found.append(Matrix(Op.ROUTER, "mlp.shared_expert_gate", d, 1))
    if experts.shared_ffn:
        found += _mlp(model, share(experts.shared_ffn, ranks), "mlp.shared_experts", bias=False)
    return tuple(found)


def expert_matrices(model: ModelSpec, ranks: int = 1) -> tuple[Matrix, ...]:
    """The linear weights of one routed expert, as one rank holds them: its ffn is split like a dense one's."""
    if model.experts is None:
        return ()
    return _mlp(model, share(model.experts.ffn, ranks), "mlp.experts", bias=model.experts.expert_bias)
