"""The linear weights of a model, matrix by matrix, as one rank holds them."""

from dataclasses import dataclass

from tracescope.core.category import Op
from tracescope.core.model import Experts, Latent, ModelSpec


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


def has_experts(model: ModelSpec, layer: int) -> bool:
    """Whether ``layer`` routes its tokens to experts."""
    return model.experts is not None and layer not in model.experts.dense_layers


def layer_matrices(model: ModelSpec, ranks: int = 1, layer: int = 0) -> tuple[Matrix, ...]:
    """The linear weights of one layer in program order, routed experts left out (see :func:`expert_matrices`).

    Ranks split o and down by input, the others by output; what compresses queries, keys and values is replicated.
    """
    if model.experts is not None and has_experts(model, layer):
        return (*_attention(model, ranks), *_beside_experts(model, model.experts, ranks))
    part = shard(model, ranks)
    bias = model.mlp_bias
    return (*_attention(model, ranks), *_mlp(model, part.ffn, "mlp", bias=bias))


def _attention(model: ModelSpec, ranks: int) -> tuple[Matrix, ...]:
    if model.latent is not None:
        return _latent_attention(model, model.latent, ranks)
    part = shard(model, ranks)
    d, h = model.hidden, model.head_dim
    query, key_value = part.heads * h, part.kv_heads * h
    return (
        Matrix(Op.QKV, "self_attn.q_proj", d, query, query if model.qkv_bias else 0),
        Matrix(Op.QKV, "self_attn.k_proj", d, key_value, key_value if model.qkv_bias else 0),
        Matrix(Op.QKV, "self_attn.v_proj", d, key_value, key_value if model.qkv_bias else 0),
        Matrix(Op.O, "self_attn.o_proj", query, d, d if model.o_bias else 0),
    )


def _latent_attention(model: ModelSpec, latent: Latent, ranks: int) -> tuple[Matrix, ...]:
    d, heads = model.hidden, shard(model, ranks).heads
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
        found += _mlp(model, -(-experts.shared_ffn // ranks), "mlp.shared_experts", bias=False)
    return tuple(found)


def expert_matrices(model: ModelSpec, ranks: int = 1) -> tuple[Matrix, ...]:
    """The linear weights of one routed expert, as one rank holds them: its ffn is split like a dense one's."""
    if model.experts is None:
        return ()
    ffn = -(-model.experts.ffn // ranks)
    return _mlp(model, ffn, "mlp.experts", bias=model.experts.expert_bias)
