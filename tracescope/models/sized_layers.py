"""Layers of different sizes, and layers that share a cache: OpenELM, DeciLM, Nemotron NAS, Gemma 3n and Gemma 4."""

from dataclasses import replace
from typing import Any, Final

from tracescope.core.category import Op
from tracescope.core.errors import TraceError
from tracescope.core.layer_parts import Attention, Layer, Projection
from tracescope.core.model import ModelSpec
from tracescope.models.config_reader import Reader
from tracescope.models.limits import shown

_MULTIPLE: Final = 256
_LARGEST: Final = 1 << 24


def _whole_list(reader: Reader, key: str, spec: ModelSpec) -> list[int]:
    values = reader.listed(key, spec.layers)
    if values is None:
        raise TraceError(f"{reader.where}: {key} is missing")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _LARGEST:
            raise TraceError(f"{reader.where}: {key} must hold positive whole numbers, got {shown(value)}")
    return values


def _divided(reader: Reader, heads: int, kv_heads: int, keys: str) -> None:
    if heads % kv_heads:
        raise TraceError(f"{reader.where}: {keys}: {heads} heads are not a multiple of {kv_heads} KV heads")


def elm_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """OpenELM: heads, KV heads and the width of the MLP of every layer in lists."""
    heads = _whole_list(reader, "num_query_heads", spec)
    kv_heads = _whole_list(reader, "kv_heads_by_layer", spec)
    divisor = reader.number("ffn_dim_divisor", _MULTIPLE)
    factors = reader.listed("ffn_multipliers", spec.layers)
    if factors is None:
        raise TraceError(f"{reader.where}: ffn_multipliers is missing")
    found = []
    for head, kv_head, factor in zip(heads, kv_heads, factors, strict=True):
        _divided(reader, head, kv_head, "num_query_heads and num_kv_heads")
        width = _positive(reader, "ffn_multipliers", factor) * spec.hidden
        rounded = max(divisor, int(width + divisor / 2) // divisor * divisor)
        ffn = rounded + divisor if rounded < 0.9 * width else rounded
        found.append(Layer(Attention(head, kv_head, spec.head_dim), ffn))
    return found


def _positive(reader: Reader, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1024:
        raise TraceError(f"{reader.where}: {key} has {shown(value)}, which is no factor of the hidden size")
    return float(value)


def deci_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """DeciLM: a KV head count a layer; Nemotron NAS: a block a layer, whose parts may be missing or one matrix."""
    blocks = reader.listed("block_configs", spec.layers)
    if blocks is None:
        counts = _whole_list(reader, "num_key_value_heads_per_layer", spec)
        for count in counts:
            _divided(reader, spec.heads, count, "num_key_value_heads_per_layer")
        return [Layer(Attention(spec.heads, count, spec.head_dim), spec.ffn) for count in counts]
    return [_block(reader, spec, block) for block in blocks]


def _block(reader: Reader, spec: ModelSpec, block: Any) -> Layer:
    attention, ffn = (block.get(part) if isinstance(block, dict) else None for part in ("attention", "ffn"))
    if not isinstance(attention, dict) or not isinstance(ffn, dict):
        raise TraceError(f"{reader.where}: block_configs must hold attention and ffn for each layer")
    for part, known in ((attention, _ATTENTION_KEYS), (ffn, _FFN_KEYS)):
        unknown = next((key for key, value in part.items() if key not in known and value), None)
        if unknown is not None:
            raise TraceError(f"{reader.where}: block_configs has {unknown}, which is not modelled")
    beside: list[Projection] = []
    mixing: Attention | None = None
    if attention.get("replace_with_linear"):
        beside.append(Projection(Op.O, "self_attn.linear_attn", spec.hidden, spec.hidden))
    elif not attention.get("no_op"):
        group = attention.get("n_heads_in_group")
        if isinstance(group, bool) or not isinstance(group, int) or group < 1 or spec.heads % group:
            raise TraceError(f"{reader.where}: block_configs: n_heads_in_group is {shown(group)}")
        mixing = Attention(spec.heads, spec.heads // group, spec.head_dim)
    width = 0
    if ffn.get("replace_with_linear"):
        beside.append(Projection(Op.DOWN, "mlp.linear_mlp", spec.hidden, spec.hidden))
    elif not ffn.get("no_op"):
        exact = ffn.get("intermediate_size")
        if exact is None:
            scaled = int(2 * _positive(reader, "block_configs.ffn_mult", ffn.get("ffn_mult")) * spec.hidden / 3)
            exact = -(-scaled // _MULTIPLE) * _MULTIPLE
        if isinstance(exact, bool) or not isinstance(exact, int) or not 0 < exact <= _LARGEST:
            raise TraceError(f"{reader.where}: block_configs: intermediate_size is {shown(exact)}")
        width = exact
    # A matrix in the place of a part keeps the part's norm.
    return Layer(mixing, width, beside=tuple(beside), norms=spec.hidden * len(beside))


_ATTENTION_KEYS: Final = frozenset({"n_heads_in_group", "no_op", "replace_with_linear", "num_sink_tokens"})
_FFN_KEYS: Final = frozenset({"ffn_mult", "no_op", "replace_with_linear", "intermediate_size", "hidden_act"})


def _shared(reader: Reader, spec: ModelSpec, layers: list[Layer]) -> list[Layer]:
    """``layers`` whose last ``num_kv_shared_layers`` read the cache of an earlier layer of their type."""
    count = reader.number("num_kv_shared_layers", 0, least=0)
    if count >= spec.layers:
        raise TraceError(f"{reader.where}: num_kv_shared_layers is {count} of {spec.layers} layers")
    own = spec.layers - count
    found = layers[:own]
    for layer in layers[own:]:
        attention = None if layer.attention is None else replace(layer.attention, stores=False)
        found.append(replace(layer, attention=attention))
    return found


def gemma3n_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Gemma 3n: a low-rank path beside attention, predictions for several streams, an input of its own a layer."""
    d, rank, streams = spec.hidden, reader.number("laurel_rank", 64), reader.number("altup_num_inputs", 4)
    own = reader.number("hidden_size_per_layer_input", 256)
    beside = (
        Projection(Op.QKV, "laurel.linear_left", d, rank),
        Projection(Op.QKV, "laurel.linear_right", rank, d),
        Projection(Op.QKV, "altup.modality_router", d, streams),
        Projection(Op.QKV, "altup.prediction_coefs", streams, streams * streams),
        Projection(Op.DOWN, "altup.correction_coefs", streams, streams),
        Projection(Op.DOWN, "per_layer_input_gate", d, own),
        Projection(Op.DOWN, "per_layer_projection", own, d),
    )
    widths = reader.config.get("intermediate_size")
    sizes = _whole_list(reader, "intermediate_size", spec) if isinstance(widths, list) else [spec.ffn] * spec.layers
    plain = [
        replace(spec.plain_layer(i), ffn=size, beside=beside, norms=4 * d)  # router, laurel, input, output scale
        for i, size in enumerate(sizes)
    ]
    return _shared(reader, spec, plain)


def gemma3n_outside(reader: Reader, spec: ModelSpec) -> dict[str, Any]:
    """What Gemma 3n has outside its layers: a second embedding, its projection, and those of the streams."""
    own, streams = reader.number("hidden_size_per_layer_input", 256), reader.number("altup_num_inputs", 4)
    row = spec.layers * own
    return {
        "side_row": row,
        "side_rows": reader.number("vocab_size_per_layer_input", spec.vocab),
        "beside": (
            Projection(Op.OTHER, "per_layer_model_projection", spec.hidden, row),
            Projection(Op.OTHER, "altup_projections", spec.hidden, 2 * (streams - 1) * spec.hidden),
        ),
    }


_GEMMA4_UNREAD: Final = ("enable_moe_block", "use_double_wide_mlp", "hidden_size_per_layer_input", "per_layer_config")


def gemma4_layers(reader: Reader, spec: ModelSpec) -> list[Layer]:
    """Gemma 4: layers that see everything have heads of their own size and number, whose keys may serve as values."""
    for key in _GEMMA4_UNREAD:
        if reader.config.get(key):
            raise TraceError(f"{reader.where}: {key} is {shown(reader.config[key])}, which is not modelled for Gemma 4")
    types = reader.listed("layer_types", spec.layers)
    if types is None:
        types = ["sliding_attention" if (i + 1) % 6 else "full_attention" for i in range(spec.layers)]
    joint = reader.truth("attention_k_eq_v") is True
    kv_heads = reader.number("num_global_key_value_heads", spec.kv_heads) if joint else spec.kv_heads
    _divided(reader, spec.heads, kv_heads, "num_global_key_value_heads")
    whole = Attention(spec.heads, kv_heads, reader.number("global_head_dim", 512), keys_are_values=joint)
    bounded = Attention(spec.heads, spec.kv_heads, spec.head_dim, window=reader.number("sliding_window", 512))
    reaches = {"sliding_attention": bounded, "full_attention": whole}
    unknown = next((kind for kind in types if kind not in reaches), None)
    if unknown is not None:
        raise TraceError(f"{reader.where}: layer_types has {shown(unknown)}, which is not modelled")
    # norms: one number that scales the layer's output
    return _shared(reader, spec, [Layer(reaches[kind], spec.ffn, norms=1) for kind in types])
