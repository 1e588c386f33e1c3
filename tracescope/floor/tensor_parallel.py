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
    kinds = [kind for kind, _ in model.layer_kinds]
    attentions = [kind.attention for kind in kinds if kind.attention is not None]
    for heads, kv_heads, whole in dict.fromkeys((a.heads, a.kv_heads, a.latent is not None) for a in attentions):
        yield from _head_notes(model, ranks, heads, kv_heads, latent=whole)
    experts = model.experts
    widths = {"the MLP" if i == 0 else f"MLP {i + 1}": w for i, w in enumerate({k.ffn: 0 for k in kinds if k.ffn})}
    if experts is not None:
        widths |= {"an expert": experts.ffn, "the shared experts": experts.shared_ffn}
    for what, width in widths.items():
        if width % ranks:
            padded = f"taken as padded to {-(-width // ranks):,} a rank"
            yield f"the {width:,} columns of {what} do not divide by {ranks}: {padded}"
    if model.vocab % ranks:
        yield f"the vocabulary of {model.vocab:,} does not divide by {ranks}: taken as padded"


def _head_notes(model: ModelSpec, ranks: int, heads: int, kv_heads: int, *, latent: bool) -> Iterator[str]:
    if heads % ranks:
        raise _refusal(model, f"{heads} attention heads", ranks, heads, kv_heads)
    if latent:
        yield f"the latent cache is kept whole on each of the {ranks} ranks"
    elif ranks > kv_heads:
        if ranks % kv_heads:
            raise _refusal(model, f"{kv_heads} KV heads", ranks, heads, kv_heads)
        yield f"{kv_heads} KV heads on {ranks} ranks: each is kept, with its cache, on {ranks // kv_heads} of them"
    elif kv_heads % ranks:
        raise _refusal(model, f"{kv_heads} KV heads", ranks, heads, kv_heads)


def _refusal(model: ModelSpec, what: str, ranks: int, heads: int, kv_heads: int) -> TraceError:
    good = [n for n in range(1, heads + 1) if heads % n == 0 and (n % kv_heads == 0 or kv_heads % n == 0)]
    usable = ", ".join(str(n) for n in good[:8])
    return TraceError(
        f"{model.name}: {what} do not divide over {ranks} ranks", action=f"use one of {usable} ranks (--tp)"
    )
