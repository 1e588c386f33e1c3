"""Configs that say usual things in their own way, put into the usual keys; nothing is assumed here."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.models.config_reader import Reader
from tracescope.models.limits import shown

Config = dict[str, Any]
Layout = Callable[[Reader], Config]


def _section(reader: Reader, key: str) -> Mapping[str, Any]:
    value = reader.config.get(key)
    if not isinstance(value, dict):
        raise TraceError(f"{reader.where}: {key} must be an object, got {shown(value)}")
    return value


def _dbrx(reader: Reader) -> Config:
    feed_forward = _section(reader, "ffn_config")
    names = {"ffn_hidden_size": "intermediate_size", "moe_num_experts": "num_local_experts"}
    found = {new: feed_forward.get(old) for old, new in names.items()}
    return {**found, "num_experts_per_tok": feed_forward.get("moe_top_k")}


def _chatglm(reader: Reader) -> Config:
    if reader.config.get("padded_vocab_size") is None or reader.config.get("rmsnorm") is False:
        raise TraceError(f"{reader.where}: model_type is chatglm without padded_vocab_size: its first generation")
    groups = reader.config.get("multi_query_group_num") if reader.truth("multi_query_attention") else None
    biased = reader.truth("add_bias_linear") is True
    return {
        "vocab_size": reader.config["padded_vocab_size"],
        "num_key_value_heads": groups or reader.config.get("num_attention_heads"),
        "head_dim": reader.config.get("kv_channels"),
        "multi_query": None,
        "tie_word_embeddings": reader.truth("tie_word_embeddings") is True,
        "qkv_bias": biased or reader.truth("add_qkv_bias") is True,
        "linear_bias": biased,
    }


def _llama4(reader: Reader) -> Config:
    """The dense width has a key of its own, and experts and the shared one have the usual."""
    layers, width = reader.required("num_hidden_layers"), reader.number("intermediate_size")
    routed = reader.config.get("moe_layers")
    if not routed:
        step = reader.number("interleave_moe_layer_step", 1)
        routed = list(range(step - 1, layers, step))
    if not isinstance(routed, list) or not all(isinstance(i, int) for i in routed):
        raise TraceError(f"{reader.where}: moe_layers must list layers, got {shown(routed)}")
    return {
        "intermediate_size": reader.number("intermediate_size_mlp", width),
        "moe_intermediate_size": width,
        "shared_expert_intermediate_size": width,
        "moe_layer_freq": [int(i in routed) for i in range(layers)],
        "use_qk_norm": None,  # without weights
    }


def _granite(reader: Reader) -> Config:
    """The MLP of every layer is called shared, beside experts or without any."""
    shared = reader.config.get("shared_intermediate_size")
    if reader.config.get("num_local_experts"):
        return {"shared_expert_intermediate_size": shared}
    return {"intermediate_size": reader.config.get("intermediate_size") if shared is None else shared}


def _jamba(reader: Reader) -> Config:
    period, offset = reader.number("expert_layer_period", 2), reader.number("expert_layer_offset", 1, least=0)
    layers = reader.required("num_hidden_layers")
    return {"moe_layer_freq": [int(i % period == offset) for i in range(layers)]}


def _lfm2(reader: Reader) -> Config:
    """The MLP is a share of the width that is given, rounded up, unless the config says it is exact."""
    key = "intermediate_size" if reader.config.get("block_ff_dim") is None else "block_ff_dim"
    width = reader.number(key)
    if reader.truth("block_auto_adjust_ff_dim") is not False and reader.config.get("model_type") == "lfm2":
        factor, multiple = reader.config.get("block_ffn_dim_multiplier"), reader.number("block_multiple_of", 256)
        if isinstance(factor, bool) or not (factor is None or (isinstance(factor, (int, float)) and 0 < factor < 1024)):
            raise TraceError(f"{reader.where}: block_ffn_dim_multiplier is {shown(factor)}")
        width = int((1.0 if factor is None else factor) * (2 * width // 3))
        width = -(-width // multiple) * multiple
    tied = reader.config.get("tie_embedding")
    again = {} if tied is None else {"tie_word_embeddings": tied}
    heads = {} if reader.config.get("num_heads") is None else {"num_heads": None}
    return {"intermediate_size": width, **again, **heads}


def _elm(reader: Reader) -> Config:
    """Heads and widths are lists; those of the last layer, the widest, stand for the model."""
    last: Config = {}
    for old, new in (("num_query_heads", "num_attention_heads"), ("num_kv_heads", "num_key_value_heads")):
        values = reader.listed(old, reader.number("num_transformer_layers"))
        if values is None:
            raise TraceError(f"{reader.where}: {old} is missing")
        last[new] = values[-1]
    return {
        "hidden_size": reader.config.get("model_dim"),
        "num_hidden_layers": reader.config.get("num_transformer_layers"),
        **last,
        "num_kv_heads": None,  # another spelling of a number that all layers share
        "kv_heads_by_layer": reader.config["num_kv_heads"],
        "intermediate_size": 1,
        "tie_word_embeddings": reader.truth("share_input_output_layers") is True,
    }


def _deci(reader: Reader) -> Config:
    """KV heads and widths are those of each block; the ones here only stand for the model."""
    blocks = reader.config.get("block_configs")
    if blocks is None:
        counts = reader.config.get("num_key_value_heads_per_layer")
        return {"num_key_value_heads": counts[-1] if isinstance(counts, list) and counts else None}
    groups = [
        block["attention"].get("n_heads_in_group")
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, dict) and isinstance(block.get("attention"), dict)
    ]
    group = next((g for g in groups if isinstance(g, int) and not isinstance(g, bool) and g > 0), 1)
    heads = reader.required("num_attention_heads")
    return {
        "num_key_value_heads": max(1, heads // group),
        "intermediate_size": reader.config.get("intermediate_size") or 1,
    }


def _hunyuan(reader: Reader) -> Config:
    """What may differ from layer to layer is listed; only lists that do not are modelled."""
    found: Config = {}
    for key in ("moe_topk", "num_shared_expert", "moe_intermediate_size", "num_experts"):
        value = reader.config.get(key)
        if isinstance(value, list):
            if len({repr(each) for each in value}) != 1:
                raise TraceError(f"{reader.where}: {key} differs from layer to layer, which is not modelled")
            found[key] = value[0]
    shared = found.pop("num_shared_expert", reader.config.get("num_shared_expert"))
    mixed = reader.truth("use_mixed_mlp_moe") is not False
    return {**found, "num_shared_expert": None, "num_shared_experts": shared if mixed else 0}


def _gemma3n(reader: Reader) -> Config:
    widths = reader.config.get("intermediate_size")
    return {"intermediate_size": widths[-1]} if isinstance(widths, list) and widths else {}


LAYOUTS: Final[dict[str, Layout]] = {
    "dbrx": _dbrx,
    "chatglm": _chatglm,
    "llama4_text": _llama4,
    "granitemoehybrid": _granite,
    "granitemoeshared": _granite,
    "jamba": _jamba,
    "lfm2": _lfm2,
    "lfm2_moe": _lfm2,
    "openelm": _elm,
    "deci": _deci,
    "nemotron-nas": _deci,
    "hunyuan": _hunyuan,
    "hunyuan_v1_dense": _hunyuan,
    "hunyuan_v1_moe": _hunyuan,
    "gemma3n_text": _gemma3n,
}
"""Families whose configs need it. A layout gives keys that replace those of the config; None takes one away."""
