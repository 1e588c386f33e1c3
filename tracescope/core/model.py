"""A decoder as its bytes see it: shapes, biases, norms and the four dtypes of a decode step."""

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of one decode step: ``batch`` of them, each with ``context`` tokens already cached.

    ``block`` is the KV block size in tokens, ``utilization`` the share of the device's capacity that may be used,
    ``reserve_bytes`` what else is kept free, ``tensor_parallel`` the number of ranks (bytes are then one rank's).
    """

    batch: int = 1
    context: int = 0
    block: int = 16
    utilization: float = 0.9
    reserve_bytes: int = 0
    tensor_parallel: int = 1
