"""The KV cache of a step: bytes a token, tokens that each layer attends to and keeps, prefixes that are shared."""

from tracescope.core.layer_parts import Attention, Layer
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.dtypes import LATENT_KV, kv_dtype
from tracescope.floor.matrices import share
from tracescope.floor.state import layer_state_bytes


def cache_token_bytes(model: ModelSpec, attention: Attention, ranks: int = 1) -> int:
    """Bytes that one cached token takes in a layer with ``attention``: K and V, and the scales the dtype may have.

    Latent attention keeps one vector for both instead, the same on every rank.
    """
    latent = attention.latent
    if latent is None:
        return 2 * kv_dtype(model.kv).token_bytes(share(attention.kv_heads, ranks), attention.head_dim)
    if model.kv == LATENT_KV:  # 8-bit latent with an fp32 scale for each 128 values, rotary part in 16 bit
        return latent.kv_rank + 4 * -(-latent.kv_rank // 128) + 2 * latent.rope_dim
    return kv_dtype(model.kv).token_bytes(1, latent.kv_rank + latent.rope_dim)


def index_token_bytes(attention: Attention) -> int:
    """Bytes of one token's index key, the same on every rank; 0 where nothing is selected."""
    indexer = attention.indexer
    return 0 if indexer is None else kv_dtype(indexer.dtype).token_bytes(1, indexer.dim)


def stored_token_bytes(model: ModelSpec, kind: Layer, ranks: int = 1) -> int:
    """Bytes that one new token appends in such a layer, index key included; 0 where it keeps no cache of its own."""
    attention = kind.attention
    if attention is None or not attention.stores:
        return 0
    return cache_token_bytes(model, attention, ranks) + index_token_bytes(attention)


def kv_bytes_per_token_per_layer(model: ModelSpec, ranks: int = 1, layer: int = 0) -> int:
    """Bytes that one token takes in ``layer``."""
    return stored_token_bytes(model, model.layer(layer), ranks)


def kv_bytes_per_token(model: ModelSpec, ranks: int = 1) -> int:
    """Bytes that one new token appends over all layers on one rank."""
    return sum(n * stored_token_bytes(model, kind, ranks) for kind, n in model.layer_kinds)


def tokens_read(workload: Workload, attention: Attention) -> int:
    """Tokens of KV that one layer reads for the whole batch; a prefix counts once a group where shared.

    Only a prefix-aware kernel reads what a group shares once, and of selected tokens nobody knows whether they are.
    """
    each = attention.attended(workload.context)
    if not workload.prefix_aware or attention.indexer is not None:
        return workload.batch * each
    return _once_a_group(workload, each)


def index_keys_read(workload: Workload) -> int:
    """Tokens whose index keys one layer reads for the whole batch: all that are cached."""
    if not workload.prefix_aware:
        return workload.batch * workload.context
    return _once_a_group(workload, workload.context)


def _once_a_group(workload: Workload, each: int) -> int:
    shared = max(0, each - (workload.context - workload.prefix))
    return prefix_groups(workload) * shared + workload.batch * (each - shared)


def prefix_groups(workload: Workload) -> int:
    """Groups of requests that share a prefix, the last one maybe smaller."""
    return -(-workload.batch // workload.prefix_group)


def kv_read_per_request(model: ModelSpec, context: int, ranks: int = 1) -> int:
    """Bytes that one request of ``context`` cached tokens reads: caches, index keys and states of all layers."""
    total = 0
    for kind, n in model.layer_kinds:
        attention = kind.attention
        if attention is not None:
            total += n * attention.attended(context) * cache_token_bytes(model, attention, ranks)
            total += n * context * index_token_bytes(attention)
        total += n * layer_state_bytes(model, kind, ranks)
    return total
