"""Structures this arithmetic does not count yet, each refused by the config key that declares it."""

from collections.abc import Mapping
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.models.families import DIFFERENT
from tracescope.models.limits import shown

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


def refuse_unmodelled(config: Mapping[str, Any], where: str) -> None:
    """Raise TraceError naming the key of the first structure in ``config`` that would be counted wrongly.

    ``where`` names the file and place for the message.
    """
    for key in ("attention_chunk_size", "attention_window_size", "local_attention"):
        if config.get(key):
            _refuse(where, key, config, "attention in chunks or local windows")
    feed_forward = config.get("ffn_config")
    if isinstance(feed_forward, dict) and feed_forward.get("moe_num_experts") is not None:
        _refuse(where, "ffn_config", config, "a mixture of experts laid out in its own way")
    values = config.get("v_head_dim")
    if config.get("kv_lora_rank") is None and values is not None and values != config.get("head_dim"):
        _refuse(where, "v_head_dim", config, "values of another head size than keys")
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


def _refuse(where: str, key: str, config: Mapping[str, Any], what: str) -> None:
    raise TraceError(
        f"{where}: {key} is {shown(config.get(key))}: {what}, which is not modelled",
        action="Decoders of attention layers with dense or expert MLPs are; a wrong byte count is not shown instead.",
    )
