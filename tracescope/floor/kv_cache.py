"""The KV cache of a step: bytes a token, tokens that each layer attends to and keeps, prefixes that are shared."""

from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.dtypes import LATENT_KV, kv_dtype
from tracescope.floor.matrices import shard


def kv_bytes_per_token_per_layer(model: ModelSpec, ranks: int = 1) -> int:
    """Bytes that one cached token takes in one layer on one rank: K and V, and the scales where the dtype has any.

    Latent attention keeps one vector for both instead, the same on every rank.
    """
    latent = model.latent
    if latent is None:
        return 2 * kv_dtype(model.kv).token_bytes(shard(model, ranks).kv_heads, model.head_dim)
    if model.kv == LATENT_KV:  # 8-bit latent with an fp32 scale for each 128 values, rotary part in 16 bit
        return latent.kv_rank + 4 * -(-latent.kv_rank // 128) + 2 * latent.rope_dim
    return kv_dtype(model.kv).token_bytes(1, latent.kv_rank + latent.rope_dim)


def caching_layers(model: ModelSpec) -> int:
    """Layers that keep a KV cache."""
    return sum(n for window, n in model.window_groups if window != 0)


def kv_bytes_per_token(model: ModelSpec, ranks: int = 1) -> int:
    """Bytes that one new token appends over all layers on one rank."""
    return caching_layers(model) * kv_bytes_per_token_per_layer(model, ranks)


def attended_tokens(window: int | None, context: int) -> int:
    """Cached tokens that a request of ``context`` cached tokens reads in a layer with ``window``: min(S, W − 1)."""
    return context if window is None else min(context, max(0, window - 1))


def kept_tokens(window: int | None, context: int) -> int:
    """Cached tokens that such a layer still stores: min(S, W)."""
    return context if window is None else min(context, window)


def tokens_read(workload: Workload, window: int | None) -> int:
    """Tokens of KV that one layer with ``window`` reads for the whole batch; a prefix counts once a group where shared.

    Only a prefix-aware kernel reads what a group shares once.
    """
    each = attended_tokens(window, workload.context)
    if not workload.prefix_aware:
        return workload.batch * each
    shared = max(0, each - (workload.context - workload.prefix))
    return prefix_groups(workload) * shared + workload.batch * (each - shared)


def prefix_groups(workload: Workload) -> int:
    """Groups of requests that share a prefix, the last one maybe smaller."""
    return -(-workload.batch // workload.prefix_group)


def kv_read_per_request(model: ModelSpec, context: int, ranks: int = 1) -> int:
    """Bytes of KV that one request of ``context`` cached tokens reads in a step."""
    tokens = sum(n * attended_tokens(window, context) for window, n in model.window_groups)
    return tokens * kv_bytes_per_token_per_layer(model, ranks)
