"""Mixtures of experts and latent attention, from the keys of a config.json."""

from collections.abc import Mapping
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.layer_parts import Latent
from tracescope.core.model import Experts
from tracescope.models.limits import shown
from tracescope.models.model_family import ModelFamily

EXPERT_COUNTS: Final = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_CHOSEN: Final = (
    "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "moe_top_k",
    "num_experts_per_topk",
)  # fmt: skip
_EXPERT_FFN: Final = ("moe_intermediate_size", "expert_ffn_hidden_size")
_ROUTED: Final = {"sparse": 1, "moe": 1, "dense": 0}
_LARGEST_SIZE: Final = 1 << 24
_MOST_EXPERTS: Final = 1 << 16


def read_experts(
    config: Mapping[str, Any], layers: int, ffn: int | None, family: ModelFamily, where: str
) -> Experts | None:
    """The experts that ``config`` describes, None where every layer has one plain MLP; ``ffn`` is its dense size.

    Raises TraceError naming the key that is missing, contradictory or impossible.
    """
    key, experts = _first(config, EXPERT_COUNTS, where, _MOST_EXPERTS, least=0)
    if key is None or experts <= 1:
        return None
    chosen_key, chosen = _first(config, _CHOSEN, where, _MOST_EXPERTS)
    if chosen_key is None:  # a bare top_k belongs to sampling in most configs
        chosen_key, chosen = _first(config, ("top_k",), where, _MOST_EXPERTS)
    if chosen_key is None:
        raise TraceError(f"{where}: {key} is {experts} but num_experts_per_tok is missing")
    if chosen > experts:
        raise TraceError(f"{where}: {chosen_key} is {chosen} but {key} is only {experts}")
    ffn_key, width = _first(config, _EXPERT_FFN, where, _LARGEST_SIZE)
    if ffn_key is None:
        if ffn is None:
            raise TraceError(f"{where}: {key} is {experts} but neither moe_intermediate_size nor a ffn size is there")
        width = ffn
    dense = _dense_layers(config, layers, where)
    if len(dense) == layers:
        return None
    if dense and ffn is None:
        raise TraceError(f"{where}: intermediate_size is missing, which {len(dense)} layers without experts need")
    return Experts(
        experts=experts,
        chosen=chosen,
        ffn=width,
        shared_ffn=_shared_ffn(config, width, where),
        shared_gate=family.shared_gate and config.get("shared_expert_intermediate_size") is not None,
        router_bias=family.router_bias or config.get("topk_method") == "noaux_tc",
        expert_bias=family.expert_bias,
        dense_layers=dense,
    )


def read_latent(config: Mapping[str, Any], where: str) -> Latent | None:
    """Latent attention's sizes, None where K and V are cached in full."""
    if config.get("kv_lora_rank") is None:
        return None
    sizes = {
        key: _whole(config, key, where, _LARGEST_SIZE)
        for key in ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    }
    queries = None if config.get("q_lora_rank") is None else _whole(config, "q_lora_rank", where, _LARGEST_SIZE)
    return Latent(
        sizes["kv_lora_rank"], sizes["qk_rope_head_dim"], sizes["qk_nope_head_dim"], sizes["v_head_dim"], queries
    )


def prediction_layers(config: Mapping[str, Any], where: str) -> int:
    """Layers that predict later tokens, 0 where there are none."""
    for key in ("num_nextn_predict_layers", "mtp_num_hidden_layers"):
        if config.get(key) is not None:
            return _whole(config, key, where, 64, least=0)
    if config.get("num_mtp_modules") is None:
        return 0
    each = 1 if config.get("mtp_transformer_layers") is None else _whole(config, "mtp_transformer_layers", where, 64)
    return each * _whole(config, "num_mtp_modules", where, 64, least=0)


def _first(
    config: Mapping[str, Any], keys: tuple[str, ...], where: str, largest: int, *, least: int = 1
) -> tuple[str | None, int]:
    """The first of ``keys`` that is there, and its number; two that differ are a contradiction."""
    found: tuple[str | None, int] = (None, 0)
    for key in keys:
        if config.get(key) is None:
            continue
        value = _whole(config, key, where, largest, least=least)
        if found[0] is not None and found[1] != value:
            raise TraceError(
                f"{where}: {found[0]} is {found[1]} but {key} is {value}",
                action="They mean the same thing; correct the one that is wrong.",
            )
        found = (found[0] or key, value)
    return found


def _whole(config: Mapping[str, Any], key: str, where: str, largest: int, *, least: int = 1) -> int:
    value = config.get(key)
    if value is None:
        raise TraceError(f"{where}: {key} is missing")
    if isinstance(value, bool) or not isinstance(value, int):
        raise TraceError(f"{where}: {key} must be a whole number, got {shown(value)}")
    if not least <= value <= largest:
        raise TraceError(f"{where}: {key} is {shown(value)}; it must be between {least} and {largest:,}")
    return value


def _shared_ffn(config: Mapping[str, Any], width: int, where: str) -> int:
    """The width of the experts that every token uses; some configs give it whole, some for each of them."""
    if config.get("shared_expert_intermediate_size") is not None:
        return _whole(config, "shared_expert_intermediate_size", where, _LARGEST_SIZE, least=0)
    if config.get("moe_shared_expert_intermediate_size") is not None:
        width = _whole(config, "moe_shared_expert_intermediate_size", where, _LARGEST_SIZE, least=0)
    for key in ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"):
        if config.get(key) is not None:
            return width * _whole(config, key, where, _MOST_EXPERTS, least=0)
    return 0


def _dense_layers(config: Mapping[str, Any], layers: int, where: str) -> tuple[int, ...]:
    """Layers with one plain MLP: the first ones, those off the beat, those that are listed."""
    for key in ("moe_layer_freq", "is_moe_layer", "mlp_layer_types"):
        if isinstance(config.get(key), list):
            return _from_list(config[key], key, layers, where)
    if config.get("moe_layer_start_index") is not None:
        return _outside_range(config, layers, where)
    leading, every, offset = 0, 1, 0
    for key in ("first_k_dense_replace", "first_last_k_dense_replace", "num_dense_layers"):
        if config.get(key) is not None:
            leading = _whole(config, key, where, _LARGEST_SIZE, least=0)
    if config.get("decoder_sparse_step") is not None:
        every, offset = _whole(config, "decoder_sparse_step", where, _LARGEST_SIZE), 1
    if config.get("moe_layer_freq") is not None:
        every, offset = _whole(config, "moe_layer_freq", where, _LARGEST_SIZE), 0
    listed = config.get("mlp_only_layers")
    if listed is None:
        listed = []
    if not isinstance(listed, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in listed):
        raise TraceError(f"{where}: mlp_only_layers must be a list of layer numbers, got {shown(listed)}")
    named = frozenset(listed)
    return tuple(i for i in range(layers) if i < leading or (i + offset) % every or i in named)


def _outside_range(config: Mapping[str, Any], layers: int, where: str) -> tuple[int, ...]:
    """Ernie: experts from one layer to another (-1: the last), every so many layers."""
    first = _whole(config, "moe_layer_start_index", where, _LARGEST_SIZE, least=0)
    last, every = config.get("moe_layer_end_index", -1), config.get("moe_layer_interval", 1)
    for key, value in (("moe_layer_end_index", last), ("moe_layer_interval", every)):
        if isinstance(value, bool) or not isinstance(value, int) or value < -1:
            raise TraceError(f"{where}: {key} must be a whole number, got {shown(value)}")
    last = layers - 1 if last == -1 else last
    return tuple(i for i in range(layers) if (i + 1) % max(1, every) or not first <= i <= last)


def _from_list(listed: list[Any], key: str, layers: int, where: str) -> tuple[int, ...]:
    flags = [_ROUTED.get(flag) if isinstance(flag, str) else flag for flag in listed]
    if len(flags) != layers or any(flag not in (0, 1) for flag in flags):
        raise TraceError(f"{where}: {key} must hold a 0 or 1 for each of {layers} layers")
    return tuple(i for i, flag in enumerate(flags) if not flag)
