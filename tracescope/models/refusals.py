"""Structures this arithmetic does not count yet, each refused by the config key that declares it."""

from collections.abc import Mapping
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.models.families import DIFFERENT
from tracescope.models.known_keys import all_ones
from tracescope.models.limits import shown

_WORDS: Final = {
    "attention_chunk_size": "attention in chunks",
    "attention_window_size": "attention in local windows",
    "local_attention": "attention in local windows",
    "ssm_cfg": "layers that are not attention",
    "mamba_d_state": "layers that are not attention",
    "mamba_n_heads": "layers that are not attention",
    "state_size": "layers that are not attention",
    "linear_num_key_heads": "layers that are not attention",
    "layers_block_type": "layers that are not attention",
    "hybrid_override_pattern": "layers that are not attention",
    "linear_attn_config": "layers that are not attention",
    "attn_type_list": "layers that are not attention",
    "layer_group_size": "layers that are not attention",
    "cross_attention_layers": "cross-attention",
    "num_kv_shared_layers": "layers that share their KV cache",
    "use_cla": "layers that share their KV cache",
    "sparse_config": "attention to some blocks of the cache",
    "sparse_attention_config": "attention to some blocks of the cache",
    "global_head_dim": "heads of two sizes",
    "num_global_key_value_heads": "heads of two numbers",
    "block_configs": "layers of different sizes",
}
"""Keys that say by themselves that a layer is not the plain one."""


def refuse_unmodelled(config: Mapping[str, Any], understood: frozenset[str], where: str) -> None:
    """Raise TraceError naming the key of the first structure in ``config`` that would be counted wrongly.

    ``understood`` are the keys that the model's family reads; ``where`` names the file and place for the message.
    """
    for key, what in _WORDS.items():
        if config.get(key) and key not in understood and not (key == "attn_type_list" and all_ones(config[key])):
            _refuse(where, key, config, what)
    feed_forward = config.get("ffn_config")
    routed = isinstance(feed_forward, dict) and feed_forward.get("moe_num_experts") is not None
    if routed and "ffn_config" not in understood:
        _refuse(where, "ffn_config", config, "a mixture of experts laid out in its own way")
    values = config.get("v_head_dim")
    keys = config.get("head_dim", config.get("attention_head_dim"))
    if config.get("kv_lora_rank") is None and values is not None and values != keys:
        _refuse(where, "v_head_dim", config, "values of another head size than keys")
    if config.get("is_encoder_decoder") is True:
        _refuse(where, "is_encoder_decoder", config, "an encoder beside the decoder")
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type in DIFFERENT:
        _refuse(where, "model_type", config, DIFFERENT[model_type])


def _refuse(where: str, key: str, config: Mapping[str, Any], what: str) -> None:
    raise TraceError(
        f"{where}: {key} is {shown(config.get(key))}: {what}, which is not modelled",
        action="docs/MODELS.md lists what is; a wrong byte count is not shown instead.",
    )
