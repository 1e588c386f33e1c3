"""Mixtures of experts and latent attention, from the keys of a config.json."""

from collections.abc import Mapping
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.layers import Latent
from tracescope.core.model import Experts
from tracescope.models.families import ModelFamily
from tracescope.models.limits import shown

EXPERT_COUNTS: Final = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_CHOSEN: Final = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k")
_EXPERT_FFN: Final = ("moe_intermediate_size", "expert_ffn_hidden_size")
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
    if config.get("num_nextn_predict_layers") is None:
        return 0
    return _whole(config, "num_nextn_predict_layers", where, 64, least=0)


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
    if config.get("shared_expert_intermediate_size") is not None:
        return _whole(config, "shared_expert_intermediate_size", where, _LARGEST_SIZE, least=0)
    for key in ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"):
        if config.get(key) is not None:
            return width * _whole(config, key, where, _MOST_EXPERTS, least=0)
    return 0


def _dense_layers(config: Mapping[str, Any], layers: int, where: str) -> tuple[int, ...]:
    """Layers with one plain MLP: the first ones, those off the beat, those that are listed."""
    leading, every, offset = 0, 1, 0
    if config.get("first_k_dense_replace") is not None:
        leading = _whole(config, "first_k_dense_replace", where, _LARGEST_SIZE, least=0)
    if config.get("decoder_sparse_step") is not None:
        every, offset = _whole(config, "decoder_sparse_step", where, _LARGEST_SIZE), 1
    frequency = config.get("moe_layer_freq")
    if isinstance(frequency, list):
        return _from_list(frequency, layers, where)
    if frequency is not None:
        every, offset = _whole(config, "moe_layer_freq", where, _LARGEST_SIZE), 0
    listed = config.get("mlp_only_layers")
    if listed is None:
        listed = []
    if not isinstance(listed, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in listed):
        raise TraceError(f"{where}: mlp_only_layers must be a list of layer numbers, got {shown(listed)}")
    named = frozenset(listed)
    return tuple(i for i in range(layers) if i < leading or (i + offset) % every or i in named)


def _from_list(frequency: list[Any], layers: int, where: str) -> tuple[int, ...]:
    if len(frequency) != layers or any(flag not in (0, 1) for flag in frequency):
        raise TraceError(f"{where}: moe_layer_freq must hold a 0 or 1 for each of {layers} layers")
    return tuple(i for i, flag in enumerate(frequency) if not flag)
