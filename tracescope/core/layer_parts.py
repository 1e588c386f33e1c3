"""What a layer is built of: the part that mixes tokens (attention, a recurrent state, both) and its MLP."""

from dataclasses import dataclass

from tracescope.core.category import Op


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention: one compressed vector a token (``kv_rank`` + ``rope_dim``) instead of K and V.

    ``q_rank`` is None where queries are projected in one step; ``nope_dim`` and ``v_dim`` are per head.
    """

    kv_rank: int
    rope_dim: int
    nope_dim: int
    v_dim: int
    q_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Projection:
    """A linear weight that the plain layer does not have: ``op`` reads it, ``module`` is its name inside the layer.

    ``split`` says how ranks share it: ``out`` and ``in`` by its outputs and inputs, empty: each keeps it whole.
    """

    op: Op
    module: str
    n_in: int
    n_out: int
    bias: bool = False
    split: str = ""


@dataclass(frozen=True, slots=True)
class Indexer:
    """What chooses the ``selected`` tokens that sparse attention reads: ``heads`` queries of ``dim`` against one key.

    A key of ``dim`` values is cached a token and layer, and the keys of the whole context are read. ``norm`` counts the
    elements of the key's norm.
    """

    heads: int
    dim: int
    selected: int
    weights: tuple[Projection, ...] = ()
    norm: int = 0
    dtype: str = "fp8"
    """Of the cached keys, one scale a block of 128 not counted."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax attention over cached tokens: ``heads`` queries, ``kv_heads`` keys and values of ``head_dim`` each.

    What it reads of the past is one of: everything; ``window``, the last tokens, the new one included; ``chunk``, those
    of the running chunk; ``indexer``, those that it selects. ``latent`` keeps one vector for keys and values.
    """

    heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None
    chunk: int | None = None
    indexer: Indexer | None = None
    latent: Latent | None = None
    stores: bool = True
    """False: it reads the cache of an earlier layer and has no keys and values of its own."""
    keys_are_values: bool = False
    """Keys are projected once and cached as values too."""

    def __post_init__(self) -> None:
        for name, size in (("window", self.window), ("chunk", self.chunk)):
            if size is not None and size < 1:
                raise ValueError(f"a {name} of {size} tokens: it holds at least the new one")

    @property
    def limited(self) -> bool:
        """Whether a long context is not read whole."""
        return self.window is not None or self.chunk is not None or self.indexer is not None

    def attended(self, context: int) -> int:
        """Cached tokens that a request of ``context`` of them reads; the new token's own come from on chip."""
        if self.window is not None:
            return min(context, self.window - 1)
        if self.chunk is not None:
            return context % self.chunk
        return context if self.indexer is None else min(context, self.indexer.selected)

    def kept(self, context: int) -> int:
        """Cached tokens of such a request that stay stored; of chunks up to a whole one, of shared caches none."""
        if not self.stores:
            return 0
        bound = self.chunk if self.window is None else self.window
        return context if bound is None else min(context, bound)

    @property
    def most_attended(self) -> int | None:
        """The cached tokens read at most: min(S, this) of a context S; None: all, or as many as a chunk has so far."""
        if self.window is not None:
            return self.window - 1
        return None if self.indexer is None else self.indexer.selected


@dataclass(frozen=True, slots=True)
class Recurrent:
    """A state of fixed size a request, read and written once a step whatever the context.

    ``state`` counts its elements, ``convolved`` those of the convolution's past columns; None where a config does not
    say. ``weights`` are the linear ones; ``beside`` counts small parameters (convolution, decay, norms) in
    ``plain`` elements each. ``flops`` are those of the recurrence itself, a token. ``form`` is its name on screen.
    """

    form: str
    state: int | None
    convolved: int = 0
    state_dtype: str = "fp32"
    weights: tuple[Projection, ...] = ()
    beside: int = 0
    flops: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, or a kind of layers: ``attention`` and ``recurrent`` side by side, each None where there is none.

    ``ffn`` is the width of its MLP, 0 without one; ``routed`` where the model's experts take its place. ``beside`` are
    further linear weights that every token passes, ``norms`` the elements of further norms.
    """

    attention: Attention | None
    ffn: int
    routed: bool = False
    recurrent: Recurrent | None = None
    beside: tuple[Projection, ...] = ()
    norms: int = 0

    @property
    def mixes(self) -> bool:
        """Whether it has a part that mixes tokens at all."""
        return self.attention is not None or self.recurrent is not None

    @property
    def has_mlp(self) -> bool:
        """Whether an MLP or experts follow."""
        return self.ffn > 0 or self.routed


def unsized_recurrence(form: str, hidden: int, attention: Attention, *, bias: bool = False) -> Recurrent:
    """A recurrent part of which only the place is known: weights like ``attention``'s, a state of unknown size."""
    query, key_value = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    into = (("q_proj", query), ("k_proj", key_value), ("v_proj", key_value))
    return Recurrent(
        form,
        None,
        weights=(
            *(Projection(Op.QKV, f"self_attn.{name}", hidden, n, bias, "out") for name, n in into),
            Projection(Op.O, "self_attn.o_proj", query, hidden, split="in"),
        ),
    )
