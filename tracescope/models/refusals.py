"""Structures this arithmetic does not count yet, each refused by the config key that declares it."""

from collections.abc import Mapping
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.models.families import DIFFERENT
from tracescope.models.limits import shown

_EXPERT_COUNTS: Final = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_STATE_SPACE: Final = (
    "ssm_cfg",
    "mamba_d_state",
    "mamba_n_heads",
    "state_size",
    "linear_num_key_heads",
    "layers_block_type",
    "hybrid_override_pattern",
    "linear_attn_config",
)
_FULL_ATTENTION: Final = frozenset({"full_attention", "attention", "global", "global_attention"})
_WINDOWED_ATTENTION: Final = frozenset({"sliding_attention", "chunked_attention"})


def refuse_unmodelled(config: Mapping[str, Any], layers: int, where: str) -> None:
    """Raise TraceError naming the key of the first structure in ``config`` that would be counted wrongly.

    ``where`` names the file and place for the message; ``layers`` is the number of layers already read.
    """
    _check_layer_types(config, layers, where)
    window = _window_key(config)
    if window is not None:
        _refuse(where, window, config, "sliding-window attention")
    if config.get("kv_lora_rank") is not None:
        _refuse(where, "kv_lora_rank", config, "multi-head latent attention (MLA)")
    for key in _EXPERT_COUNTS:
        count = config.get(key)
        if count is not None and (not isinstance(count, int) or count > 1):
            _refuse(where, key, config, "a mixture of experts")
    feed_forward = config.get("ffn_config")
    if isinstance(feed_forward, dict) and feed_forward.get("moe_num_experts") is not None:
        _refuse(where, "ffn_config", config, "a mixture of experts")
    for key in _STATE_SPACE:
        if config.get(key) is not None:
            _refuse(where, key, config, "layers that are not attention")
    if config.get("is_encoder_decoder") is True:
        _refuse(where, "is_encoder_decoder", config, "an encoder beside the decoder")
    if config.get("cross_attention_layers"):
        _refuse(where, "cross_attention_layers", config, "cross-attention")
    for key in ("num_kv_shared_layers", "use_cla"):
        if config.get(key):
            _refuse(where, key, config, "layers that share their KV cache")
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type in DIFFERENT:
        _refuse(where, "model_type", config, DIFFERENT[model_type])


def _window_key(config: Mapping[str, Any]) -> str | None:
    """The key that turns on windowed attention, if one does; ``use_sliding_window: false`` turns it off."""
    for key in ("attention_chunk_size", "attention_window_size", "local_attention"):
        if config.get(key):
            return key
    types = config.get("layer_types")
    if isinstance(types, list) and any(isinstance(t, str) and t in _WINDOWED_ATTENTION for t in types):
        return "sliding_window" if config.get("sliding_window") is not None else "layer_types"
    if config.get("use_sliding_window") is False:
        return None
    if config.get("sliding_window") is not None:
        return "sliding_window"
    return "sliding_window_pattern" if config.get("sliding_window_pattern") is not None else None


def _check_layer_types(config: Mapping[str, Any], layers: int, where: str) -> None:
    types = config.get("layer_types")
    if types is None:
        return
    if not isinstance(types, list):
        raise TraceError(f"{where}: layer_types must be a list of one type a layer, got {shown(types)}")
    if len(types) != layers:
        raise TraceError(f"{where}: layer_types lists {len(types)} layers but num_hidden_layers is {layers}")
    known = _FULL_ATTENTION | _WINDOWED_ATTENTION
    other = [t for t in types if not isinstance(t, str) or t not in known]
    if other:
        raise TraceError(
            f"{where}: layer_types has {shown(other[0])}, which is not modelled",
            action="Only full-attention layers are counted; the others would be wrong.",
        )


def _refuse(where: str, key: str, config: Mapping[str, Any], what: str) -> None:
    raise TraceError(
        f"{where}: {key} is {shown(config.get(key))}: {what}, which is not modelled yet",
        action="Dense decoders with full attention are; a wrong byte count is not shown instead.",
    )
