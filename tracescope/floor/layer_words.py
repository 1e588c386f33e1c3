"""What sets the layers of a model apart, in words: for tables, pages and captions."""

from collections.abc import Iterator

from tracescope.core import units
from tracescope.core.layer_parts import Attention, Layer
from tracescope.core.model import ModelSpec
from tracescope.floor.kv_cache import cache_token_bytes, index_token_bytes
from tracescope.floor.state import state_bytes_per_request, state_is_known


def layer_words(model: ModelSpec) -> list[str]:
    """A phrase for each way in which layers differ from full attention with an MLP, with how many layers do."""
    counted: dict[str, int] = {}
    for kind, n in model.layer_kinds:
        for phrase in _phrases(kind):
            counted[phrase] = counted.get(phrase, 0) + n
    words = [f"{phrase} in {n} of {model.layers} layers" for phrase, n in counted.items()]
    state = state_bytes_per_request(model)
    if state:
        words.append(f"a state of {units.size(state)} a request")
    return words


def _phrases(kind: Layer) -> Iterator[str]:
    attention = kind.attention
    if attention is not None:
        if attention.window is not None:
            yield f"window {attention.window:,}"
        if attention.chunk is not None:
            yield f"chunks of {attention.chunk:,}"
        if attention.indexer is not None:
            yield f"the {attention.indexer.selected:,} tokens of an indexer"
        if not attention.stores:
            yield "the cache of another layer"
    if kind.recurrent is not None:
        yield kind.recurrent.form
    if not kind.mixes:
        yield "no attention"
    if not kind.has_mlp:
        yield "no MLP"


def kv_read_words(model: ModelSpec, batch: str, context: int, ranks: int) -> str:
    """The product behind the reads of caches and states, layers of one kind together."""
    products: dict[tuple[int, int], int] = {}
    for kind, n in model.layer_kinds:
        for tokens, size in _reads(model, kind.attention, context, ranks):
            products[tokens, size] = products.get((tokens, size), 0) + n
    sizes = {size for _, size in products}
    stateful = any(kind.recurrent for kind, _ in model.layer_kinds)
    if len(products) == 1 and not stateful:
        (((tokens, size), n),) = products.items()
        if n == model.layers:
            return f"{batch} × {tokens:,} tokens × {n * size:,} B"
    if len(sizes) == 1 and not stateful:
        parts = " + ".join(f"{n} layers × {tokens:,}" for (tokens, _), n in products.items())
        return f"{batch} × ({parts}) tokens × {sizes.pop():,} B"
    terms = [f"{n} layers × {tokens:,} tokens × {size:,} B" for (tokens, size), n in products.items()]
    if stateful:
        state = units.size(state_bytes_per_request(model, ranks))
        terms.append(f"state {state}" if state_is_known(model) else "a state of unknown size, not counted")
    return f"{batch} × ({' + '.join(terms)})"


def _reads(model: ModelSpec, attention: Attention | None, context: int, ranks: int) -> Iterator[tuple[int, int]]:
    """Tokens, and bytes of each, that a layer reads of one request: its cache, and the keys of its indexer."""
    if attention is None:
        return
    yield attention.attended(context), cache_token_bytes(model, attention, ranks)
    if attention.indexer is not None:
        yield context, index_token_bytes(attention)
