"""Splitting a model over ranks as engines do it: what cannot be split, and what is padded or kept twice."""

from collections.abc import Iterator

from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec


def split_notes(model: ModelSpec, ranks: int) -> tuple[str, ...]:
    """What splitting ``model`` over ``ranks`` does to its bytes beyond dividing them, a sentence each.

    Raises TraceError where engines refuse: heads, or KV heads, that do not divide.
    """
    return tuple(_notes(model, ranks)) if ranks > 1 else ()


def _notes(model: ModelSpec, ranks: int) -> Iterator[str]:
    heads, kv_heads = model.heads, model.kv_heads
    if heads % ranks:
        raise _refusal(model, f"{heads} attention heads", ranks, heads)
    if model.latent is not None:
        yield f"the latent cache is kept whole on each of the {ranks} ranks"
    elif ranks > kv_heads:
        if ranks % kv_heads:
            raise _refusal(model, f"{kv_heads} KV heads", ranks, heads)
        yield f"{kv_heads} KV heads on {ranks} ranks: each is kept, with its cache, on {ranks // kv_heads} of them"
    elif kv_heads % ranks:
        raise _refusal(model, f"{kv_heads} KV heads", ranks, heads)
    experts = model.experts
    widths = {"the MLP": model.ffn} if experts is None or experts.dense_layers else {}
    if experts is not None:
        widths |= {"an expert": experts.ffn, "the shared experts": experts.shared_ffn}
    for what, width in widths.items():
        if width % ranks:
            padded = f"taken as padded to {-(-width // ranks):,} a rank"
            yield f"the {width:,} columns of {what} do not divide by {ranks}: {padded}"
    if model.vocab % ranks:
        yield f"the vocabulary of {model.vocab:,} does not divide by {ranks}: taken as padded"


def _refusal(model: ModelSpec, what: str, ranks: int, heads: int) -> TraceError:
    good = [n for n in range(1, heads + 1) if heads % n == 0 and (n % model.kv_heads == 0 or model.kv_heads % n == 0)]
    usable = ", ".join(str(n) for n in good[:8])
    return TraceError(
        f"{model.name}: {what} do not divide over {ranks} ranks", action=f"use one of {usable} ranks (--tp)"
    )
