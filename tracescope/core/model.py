"""A decoder as its bytes see it: shapes, biases, norms and the four dtypes of a decode step."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tracescope.core.layer_parts import Attention, Latent, Layer, Projection


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts: ``chosen`` of ``experts`` MLPs of ``ffn`` each compute a token; all of them are stored.

    ``shared_ffn`` is the width of the experts that every token uses together (0: none), ``shared_gate`` whether a
    vector weighs them, ``router_bias`` one number an expert, ``expert_bias`` biases inside each expert;
    ``dense_layers`` have one plain MLP of ``ModelSpec.ffn`` instead.
    """

    experts: int
    chosen: int
    ffn: int
    shared_ffn: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    dense_layers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """Bytes of one layer as its tensors store them, by the op that reads them, scales and biases included.

    ``experts`` holds all of them; ``scales`` and ``expert_scales`` are the parts that are scales and zeros;
    ``attention`` is what attention itself reads besides the cache (sinks); ``state_in`` and ``state_out`` are the
    linear weights around a recurrent state, ``state`` its small parameters; ``indexer`` is what selects tokens.
    """

    norm: int = 0
    qkv: int = 0
    attention: int = 0
    o: int = 0
    router: int = 0
    gate_up: int = 0
    down: int = 0
    experts: int = 0
    scales: int = 0
    expert_scales: int = 0
    state_in: int = 0
    state_out: int = 0
    state: int = 0
    indexer: int = 0


@dataclass(frozen=True, slots=True)
class TensorBytes:
    """Bytes taken from the headers of a checkpoint instead of from shapes and dtypes: one entry a layer, and the rest.

    ``embedding_norm`` and ``norm`` stand before the first and after the last layer; ``embedding_row`` is one row of
    the input embedding; ``stored`` every tensor there is, what a step never reads included.
    """

    layers: tuple[LayerBytes, ...]
    lm_head: int
    lm_head_scales: int
    norm: int
    embedding_norm: int
    embedding_row: int
    stored: int


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Shapes and storage of one decoder-only model.

    ``weights``, ``lm_head``, ``kv`` and ``activations`` name the dtypes (``bf16``, ``int4-g128`` ...) of the linear
    weights, the output head, the KV cache and the activations: four separate choices; norms, biases and embeddings are
    stored like the activations. ``norm`` is ``rms``, ``layer`` (a weight and a bias) or ``layer-no-bias``;
    ``norms_per_layer`` counts block norms (2; 1 where attention and MLP share one; 4 for sandwich norms).
    ``position_rows`` counts stored learned positions (0: none). ``assumptions`` lists every value the config did not
    give; ``source`` says where the shapes are from.
    """

    name: str
    source: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool
    gated: bool = True
    norm: str = "rms"
    norms_per_layer: int = 2
    parallel: bool = False
    """Attention and MLP read one input, so that one all-reduce adds up both, whatever an engine does."""
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    position_rows: int = 0
    weights: str = "bf16"
    lm_head: str = "bf16"
    kv: str = "bf16"
    activations: str = "bf16"
    unconverted: tuple[str, ...] = ()
    """Parts that a quantized model keeps in 16 bit, by the names of its config."""
    invented: bool = False
    assumptions: tuple[str, ...] = ()
    lm_head_bias: bool = False
    embedding_norm: bool = False
    """A norm right after the embedding (BLOOM), counted with it."""
    max_positions: int | None = None
    """The longest context the config claims; only shown, never used in a number."""
    title: str = ""
    kinds: tuple[Layer, ...] = ()
    """The distinct layers; empty where every one is as the sizes above and ``experts`` say."""
    pattern: tuple[int, ...] = ()
    """For each layer which of ``kinds`` it is."""
    sinks: bool = False
    """One learned attention logit a head and layer (gpt-oss)."""
    latent: Latent | None = None
    experts: Experts | None = None
    prediction_layers: int = 0
    """Further layers that predict later tokens (MTP): not read in a step, and loaded for speculative decoding alone."""
    tensors: TensorBytes | None = None
    """What the checkpoint's own headers say; preferred over the formulas on one rank."""
    qk_norm_wide: bool = False
    """The norms of queries and keys span all heads instead of one."""
    embedding: str = ""
    """The dtype of the input embedding; empty: like the activations."""
    head_rows: int = 0
    """Rows of the output head where they are not those of the vocabulary (a draft model's); 0: they are."""
    side_row: int = 0
    """Elements of a row of a second embedding table, looked up for every token beside the first (Gemma 3n)."""
    side_rows: int = 0
    beside: tuple[Projection, ...] = ()
    """Linear weights outside the layers that every token passes, besides the output head."""

    def __post_init__(self) -> None:
        tensors = len(self.tensors.layers) if self.tensors else 0
        for name, count in (("pattern", len(self.pattern)), ("tensors", tensors)):
            if count not in (0, self.layers):
                raise ValueError(f"{name} of {count} layers in a model of {self.layers}")
        if bool(self.kinds) is not bool(self.pattern) or any(not 0 <= i < len(self.kinds) for i in self.pattern):
            raise ValueError("the pattern of layers names a kind that is not there")
        experts = self.experts
        if experts is not None and not 0 < experts.chosen <= experts.experts:
            raise ValueError(f"{experts.chosen} of {experts.experts} experts cannot be chosen")

    def layer(self, number: int) -> Layer:
        """What layer ``number`` is built of."""
        return self.kinds[self.pattern[number]] if self.kinds else self.plain_layer(number)

    def plain_layer(self, number: int) -> Layer:
        """A layer of the model's own sizes: full attention, and the MLP or the experts that stand there."""
        attention = Attention(self.heads, self.kv_heads, self.head_dim, latent=self.latent)
        routed = self.experts is not None and number not in self.experts.dense_layers
        return Layer(attention, 0 if routed else self.ffn, routed)

    @property
    def layer_kinds(self) -> tuple[tuple[Layer, int], ...]:
        """Distinct layers with how many there are of each, in order of appearance."""
        if self.kinds:
            return tuple((self.kinds[i], self.pattern.count(i)) for i in dict.fromkeys(self.pattern))
        every = [self.plain_layer(i) for i in (range(self.layers) if self.experts else range(1))]
        return tuple((kind, every.count(kind) if self.experts else self.layers) for kind in dict.fromkeys(every))

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The attention window of each layer, None where there is none; empty where no layer has any."""
        found = tuple(kind.attention.window if kind.attention else None for kind in map(self.layer, range(self.layers)))
        return found if any(window is not None for window in found) else ()


def kinds_of(layers: Iterable[Layer]) -> dict[str, Any]:
    """The fields ``kinds`` and ``pattern`` of a model of these ``layers``."""
    listed = tuple(layers)
    kinds = {kind: i for i, kind in enumerate(dict.fromkeys(listed))}
    return {"kinds": tuple(kinds), "pattern": tuple(kinds[layer] for layer in listed)}


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of one decode step: ``batch`` of them, each with ``context`` tokens already cached.

    ``block`` is the KV block size in tokens, ``utilization`` the share of the device's capacity that may be used,
    ``reserve_bytes`` what else is kept free, ``tensor_parallel`` the number of ranks (bytes are then one rank's).
    ``pinned_bytes`` of the weights stay on chip. The first ``prefix`` tokens are the same in each group of
    ``prefix_group`` requests: stored once, and read once where ``prefix_aware``.
    """

    batch: int = 1
    context: int = 0
    block: int = 16
    utilization: float = 0.9
    reserve_bytes: int = 0
    tensor_parallel: int = 1
    pinned_bytes: int = 0
    prefix: int = 0
    prefix_group: int = 1
    prefix_aware: bool = False
