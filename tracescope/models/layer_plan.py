"""What each layer of a model is built of, from the keys with which its family says so."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from tracescope.core.category import Op
from tracescope.core.errors import TraceError
from tracescope.core.layer_parts import Attention, Indexer, Layer, Projection, Recurrent
from tracescope.core.model import ModelSpec, kinds_of
from tracescope.models.config_reader import Reader
from tracescope.models.hybrids import (
    gated_delta,
    lightning,
    mamba1,
    mamba2_of,
    mamba2_of_nemotron,
    short_convolution,
)
from tracescope.models.limits import shown
from tracescope.models.sized_layers import deci_layers, elm_layers, gemma3n_layers, gemma3n_outside, gemma4_layers
from tracescope.models.windows import Windows, with_reaches

Plan = Callable[[Reader, ModelSpec], list[Layer]]
Makers = Mapping[str, Callable[[Layer], Layer]]


def _plain(spec: ModelSpec) -> list[Layer]:
    return [spec.plain_layer(number) for number in range(spec.layers)]


def _attention(layer: Layer) -> Attention:
    assert layer.attention is not None  # a plain layer always has some
    return layer.attention


def _recurrent(recurrent: Recurrent) -> Callable[[Layer], Layer]:
    return lambda layer: replace(layer, attention=None, recurrent=recurrent)


def _same(layer: Layer) -> Layer:
    return layer


def _typed(reader: Reader, spec: ModelSpec, key: str, types: list[Any], makers: Makers) -> list[Layer]:
    """The plain layers, each changed as its type says; raises TraceError naming a type that is not known."""
    found = []
    for layer, kind in zip(_plain(spec), types, strict=True):
        maker = makers.get(kind) if isinstance(kind, str) else None
        if maker is None:
            raise TraceError(
                f"{reader.where}: {key} has {shown(kind)}, which is not modelled", action="Known: " + ", ".join(makers)
            )
        found.append(maker(layer))
    return found


def _gate(reader: Reader, spec: ModelSpec) -> Callable[[Layer], Layer]:
    """Attention whose output is gated by as many values as its queries have."""
    width = spec.heads * spec.head_dim
    gate = Projection(Op.QKV, "self_attn.gate_proj", spec.hidden, width, spec.qkv_bias, "out")
    return lambda layer: replace(layer, beside=(*layer.beside, gate))


def delta_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Qwen3-Next, Qwen3.5: gated delta layers and every so manieth one of gated attention."""
    types = reader.listed("layer_types", spec.layers)
    if types is None:
        every = reader.number("full_attention_interval", 4)
        types = ["linear_attention" if (i + 1) % every else "full_attention" for i in range(spec.layers)]
    full = _same if reader.truth("attn_output_gate") is False else _gate(reader, spec)
    linear = _recurrent(gated_delta(reader, spec.hidden))
    return _typed(reader, spec, "layer_types", types, {"full_attention": full, "linear_attention": linear})


def mamba_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Granite 4 H and Bamba: Mamba-2 layers and some of attention, each with an MLP or experts."""
    key = "layer_types" if reader.config.get("layer_types") is not None else "layers_block_type"
    types = reader.listed(key, spec.layers)
    if types is None:
        key, types = "attn_layer_indices", _indexed(reader, "attn_layer_indices", spec.layers)
    state = _recurrent(mamba2_of(reader, spec.hidden))
    return _typed(reader, spec, key, types, {"attention": _same, "full_attention": _same, "mamba": state})


def _indexed(reader: Reader, key: str, layers: int) -> list[str]:
    """Types of layers of which ``key`` lists those with attention."""
    listed = reader.config.get(key)
    if not isinstance(listed, list) or not all(isinstance(i, int) for i in listed):
        raise TraceError(f"{reader.where}: {key} must list the layers with attention, got {shown(listed)}")
    return ["attention" if i in listed else "mamba" for i in range(layers)]


def parallel_mamba_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Falcon-H1: Mamba-2 beside attention in every layer."""
    recurrent = mamba2_of(reader, spec.hidden, gated_norm=reader.truth("mamba_rms_norm") is True)
    return [replace(layer, recurrent=recurrent) for layer in _plain(spec)]


def jamba_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Jamba: one layer of attention in every period, Mamba-1 in the others."""
    period, offset = reader.number("attn_layer_period", 8), reader.number("attn_layer_offset", 4, least=0)
    state = _recurrent(mamba1(reader, spec.hidden))
    return [layer if i % period == offset else state(layer) for i, layer in enumerate(_plain(spec))]


_NEMOTRON: Final = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def nemotron_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Nemotron-H: each layer is one of Mamba-2, attention, an MLP or experts, with one norm."""
    key, pattern = "hybrid_override_pattern", reader.config.get("hybrid_override_pattern")
    if pattern is None:
        key, types = "layers_block_type", reader.listed("layers_block_type", spec.layers)
        if types is None:
            raise TraceError(f"{reader.where}: hybrid_override_pattern is missing")
    else:
        if not isinstance(pattern, str) or len(pattern) != spec.layers:
            raise TraceError(f"{reader.where}: {key} must have one letter for each of {spec.layers} layers")
        types = [_NEMOTRON.get(letter, letter) for letter in pattern]
    recurrent = mamba2_of_nemotron(reader, spec.hidden)
    attention = Attention(spec.heads, spec.kv_heads, spec.head_dim)
    makers = {
        "mamba": lambda _: Layer(None, 0, recurrent=recurrent),
        "attention": lambda _: Layer(attention, 0),
        "mlp": lambda _: Layer(None, spec.ffn),
        "moe": lambda _: Layer(None, 0, routed=True),
    }
    return _typed(reader, spec, key, types, makers)


def convolution_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """LFM2: gated short convolutions and some layers of attention."""
    key, types = "layer_types", reader.listed("layer_types", spec.layers)
    if types is None:
        key = "full_attn_idxs"
        types = ["full_attention" if t == "attention" else "conv" for t in _indexed(reader, key, spec.layers)]
    state = _recurrent(short_convolution(reader, spec.hidden))
    return _typed(reader, spec, key, types, {"full_attention": _same, "conv": state})


def chunked_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Llama 4: attention in chunks, but for every fourth layer, which has no rotary positions and sees everything."""
    chunk = reader.config.get("attention_chunk_size")
    key, types = "layer_types", reader.listed("layer_types", spec.layers)
    if types is None:
        key = "no_rope_layers"
        rotary = reader.listed(key, spec.layers) if reader.config.get(key) else None
        if rotary is None:
            every = reader.number("no_rope_layer_interval", 4)
            rotary = [int((i + 1) % every != 0) for i in range(spec.layers)]
        types = ["chunked_attention" if flag else "full_attention" for flag in rotary]
    size = None if chunk is None else reader.number("attention_chunk_size")

    def chunked(layer: Layer) -> Layer:
        return replace(layer, attention=replace(_attention(layer), chunk=size))

    return _typed(reader, spec, key, types, {"chunked_attention": chunked, "full_attention": _same})


def lightning_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """MiniMax 01 and M1: lightning attention, and softmax attention in some layers."""
    key, types = "layer_types", reader.listed("layer_types", spec.layers)
    if types is None:
        key, flags = "attn_type_list", reader.listed("attn_type_list", spec.layers)
        if flags is None:
            raise TraceError(f"{reader.where}: attn_type_list is missing")
        types = [{0: "linear_attention", 1: "full_attention"}.get(flag, flag) for flag in flags]
    state = _recurrent(lightning(reader, spec.hidden, spec.heads, spec.head_dim))
    return _typed(reader, spec, key, types, {"full_attention": _same, "linear_attention": state})


def sparse_layers(reader: Reader, spec: ModelSpec, layers: list[Layer]) -> list[Layer]:
    """DeepSeek-V3.2 and GLM-5: latent attention to the tokens that an indexer selects."""
    heads, dim, selected = (reader.number(key) for key in ("index_n_heads", "index_head_dim", "index_topk"))
    if spec.latent is None:
        raise TraceError(
            f"{reader.where}: index_topk is {selected}: an indexer without latent attention is not modelled"
        )
    indexer = Indexer(
        heads,
        dim,
        selected,
        (
            Projection(Op.INDEXER, "self_attn.indexer.wq_b", spec.latent.q_rank or spec.hidden, heads * dim),
            Projection(Op.INDEXER, "self_attn.indexer.wk", spec.hidden, dim),
            Projection(Op.INDEXER, "self_attn.indexer.weights_proj", spec.hidden, heads),
        ),
        norm=2 * dim,
    )
    return [replace(layer, attention=replace(_attention(layer), indexer=indexer)) for layer in layers]


def cla_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Hunyuan: of every ``cla_share_factor`` layers the first keeps a cache, and the others read it."""
    if reader.truth("use_cla") is not True:
        return _plain(spec)
    factor = reader.number("cla_share_factor", 2)
    return [
        replace(layer, attention=replace(_attention(layer), stores=i % factor == 0))
        for i, layer in enumerate(_plain(spec))
    ]


def gated_attention_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Trinity: every layer of attention has an output gate; windows as the config gives them."""
    gate = _gate(reader, spec)
    return [gate(layer) for layer in _plain(spec)]


PLANS: Final[dict[str, Plan]] = {
    "qwen3_next": delta_layers,
    "qwen3_5_text": delta_layers,
    "qwen3_5_moe_text": delta_layers,
    "granitemoehybrid": mamba_layers,
    "bamba": mamba_layers,
    "falcon_h1": parallel_mamba_layers,
    "jamba": jamba_layers,
    "nemotron_h": nemotron_layers,
    "lfm2": convolution_layers,
    "lfm2_moe": convolution_layers,
    "llama4_text": chunked_layers,
    "minimax": lightning_layers,
    "minimax_m1": lightning_layers,
    "minimax_text_01": lightning_layers,
    "gemma4_text": gemma4_layers,
    "openelm": elm_layers,
    "deci": deci_layers,
    "nemotron-nas": deci_layers,
}
"""Families whose layers are not the plain ones."""

_BESIDE_WINDOWS: Final[dict[str, Plan]] = {
    "gemma3n_text": gemma3n_layers,
    "hunyuan": cla_layers,
    "hunyuan_v1_dense": cla_layers,
    "hunyuan_v1_moe": cla_layers,
    "afmoe": gated_attention_layers,
}
"""Families whose layers differ from the plain ones, and may have windows like any other's besides."""


def planned_by(reader: Reader) -> Plan | None:
    """The plan that says everything about the reach of this model's layers; None where windows do."""
    model_type = str(reader.config.get("model_type"))
    plan = PLANS.get(model_type)
    if plan is not None and plan is not gemma4_layers and reader.config.get("sliding_window"):
        raise TraceError(
            f"{reader.where}: sliding_window is {shown(reader.config['sliding_window'])}, which is not modelled in a "
            f"{model_type}"
        )
    return plan


def with_layers(reader: Reader, spec: ModelSpec, windows: Windows) -> ModelSpec:
    """``spec`` with its layers as the config plans them; without any plan of its own where all are the plain ones."""
    plan = planned_by(reader)
    layers = _plain(spec)
    if plan is not None:
        layers = plan(reader, spec)
    else:
        beside = _BESIDE_WINDOWS.get(str(reader.config.get("model_type")))
        layers = layers if beside is None else beside(reader, spec)
        layers = with_reaches(layers, windows, spec)
        if reader.config.get("index_topk"):
            layers = sparse_layers(reader, spec, layers)
    if layers == _plain(spec):
        return spec
    outside = gemma3n_outside(reader, spec) if reader.config.get("model_type") == "gemma3n_text" else {}
    widest = max(layer.ffn for layer in layers) or spec.ffn
    return replace(spec, ffn=widest, **kinds_of(layers), **outside)
