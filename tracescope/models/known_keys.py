"""Which keys of a config.json change nothing that a step reads, and which would and are not understood.

A model type that is known is refused only for keys that name a structure its family does not have. One that is not
known is priced only if every key is known to be harmless or is read.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.models.families import ALIASES
from tracescope.models.limits import shown

_STRUCTURAL: Final = re.compile(
    r"sparse|linear_(?!loss)|_linear|^linear|ssm|mamba|recurrent|rwkv|chunk|^index|hash|compress|^global|local_|_local_?"
    r"|kv_shared|shared_kv|use_cla|cla_|block_config|no_rope|block_type|hybrid|attn_type|attention_type|attn_layer"
    r"|layer_group|moe_layer|dense_layer|is_moe|moe_block|expert_layer|per_layer|latent_size|altup|laurel|lora_rank|conv"
    r"|memory|landmark|block_size|double_wide|cross_attention|kv_channels|engram|hyper|num_loops|recursion|ut_steps"
    r"|loop_|lightning|delta|swa_|_swa|k_eq_v|value_residual|cache_layers|ngram|zero_expert"
)
"""Parts of names under which configs put what changes the bytes of a step."""

_READ: Final = frozenset(
    {key for keys in ALIASES.values() for key in keys}
    | {
        "model_type", "architectures", "tie_word_embeddings", "quantization_config", "quantization",
        "compression_config", "attention_bias", "mlp_bias", "layer_types", "sliding_window", "sliding_window_pattern",
        "use_sliding_window", "max_window_layers", "rope_scaling", "num_local_experts", "num_experts",
        "n_routed_experts", "moe_num_experts", "num_experts_per_tok", "num_experts_per_token", "experts_per_token",
        "moe_topk", "moe_k", "top_k", "moe_top_k", "num_experts_per_topk", "moe_intermediate_size",
        "expert_ffn_hidden_size", "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
        "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "first_k_dense_replace",
        "decoder_sparse_step", "moe_layer_freq", "mlp_only_layers", "is_moe_layer", "num_dense_layers",
        "first_last_k_dense_replace", "mlp_layer_types", "moe_layer_start_index", "moe_layer_end_index",
        "moe_layer_interval", "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "qk_head_dim",
        "v_head_dim", "num_nextn_predict_layers", "use_qk_norm", "qk_layernorm", "topk_method", "expansion_ratio",
        "attn_config", "word_embed_proj_dim", "is_encoder_decoder", "multi_query", "new_decoder_architecture",
        "parallel_attn", "num_ln_in_parallel_attn", "use_parallel_residual", "bias", "enable_bias", "use_bias",
        "use_qkv_bias", "qkv_bias", "draft_vocab_size", "index_topk", "index_n_heads", "index_head_dim", "hidden_act",
        "hidden_activation", "activation_function", "num_mtp_modules", "mtp_num_hidden_layers",
        "mtp_transformer_layers",
    }
)  # fmt: skip
"""Keys that the reader looks at for every model."""

_HARMLESS: Final = re.compile(
    r"_.*|.*_token_id|.*_token_ids|.*_token_index|.*_token|.*tokenizer.*|rope_.*|rotary.*|partial_rotary_factor|.*dropout.*"
    r"|.*_pdrop|.*_droprate|initializer_.*|init_.*|.*_init|.*_std|.*_eps|.*_epsilon|use_cache|.*transformers_version|auto_map"
    r"|pretraining_tp|id2label|label2id|num_labels|problem_type|return_.*|output_.*|task_.*|.*aux_loss.*|norm_topk_prob"
    r"|routed_scaling_factor|scoring_func|n_group|topk_group|seq_aux|.*_multiplier|.*_multipliers|logits_scaling|logit_scale"
    r"|.*soft_?cap.*|query_pre_attn_scalar|chunk_size_feed_forward|gradient_checkpointing|finetuning_task|name_or_path"
    r"|(?:min|max)_length|do_sample|early_stopping|num_beams|num_beam_groups|diversity_penalty|temperature|top_p|typical_p"
    r"|repetition_penalty|length_penalty|no_repeat_ngram_size|encoder_no_repeat_ngram_size|bad_words_ids|prefix|pruned_heads"
    r"|num_return_sequences|remove_invalid_values|exponential_decay_length_penalty|suppress_tokens|begin_suppress_tokens"
    r"|forced_.*|is_decoder|add_cross_attention|cross_attention_hidden_size|tie_encoder_decoder|torchscript|tf_legacy_loss"
    r"|use_bfloat16|original_max_position_embeddings|max_sequence_length|model_max_length|clip_qkv|attn_implementation"
    r"|.*flash_attn.*|use_pos_enc|mup_.*|embedding_scale|scale_emb|scale_depth|dim_model_base|router_.*_loss_coef|.*z_loss.*"
    r"|.*_loss_weight|license|language|vision_.*|audio_.*|image_.*|video_.*|bos_.*|eos_.*|pad_.*|ep_size|moe_router_.*"
    r"|rms_norm.*|layernorm_.*|norm_eps|attention_multiplier|unsloth.*|torch_.*|dtype|use_mrope"
)
"""Names that say how numbers are scaled, initialised, trained, tokenised or sampled."""

_ALWAYS: Final = frozenset({"chunk_size_feed_forward", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size"})
_PLAIN_TYPES: Final = frozenset({"full_attention", "sliding_attention"})
_GATED_ACTIVATIONS: Final = frozenset({"silu", "swish", "swiglu"})


def refuse_unknown_keys(config: Mapping[str, Any], understood: frozenset[str] | None, where: str) -> None:
    """Raise TraceError naming the first key that changes what a step reads and is not understood.

    ``understood`` are the structural keys that the family reads; None where the model type is not known: then every key
    has to be known, and the activation has to be one that comes with a gate.
    """
    for key, value in config.items():
        if value in (None, False, 0, "") or value in ([], {}):
            continue
        if understood is not None:
            plain = key in understood | _READ | _ALWAYS or (key == "attn_type_list" and all_ones(value))
            if _STRUCTURAL.search(key) and not plain and not _HARMLESS.fullmatch(key):
                _refuse(config, key, where, "which changes what a step reads and is not modelled")
        elif key not in _READ and not _HARMLESS.fullmatch(key):
            _refuse(config, key, where, f"and nothing is known about it in a {_named(config)}")
    if understood is None:
        _refuse_activation(config, where)
        types = config.get("layer_types")
        if isinstance(types, list) and any(kind not in _PLAIN_TYPES for kind in types if isinstance(kind, str)):
            _refuse(config, "layer_types", where, f"with layers that are not attention in a {_named(config)}")


def _refuse_activation(config: Mapping[str, Any], where: str) -> None:
    for key in ("hidden_act", "hidden_activation", "activation_function"):
        value = config.get(key)
        if value is not None and value not in _GATED_ACTIVATIONS:
            _refuse(config, key, where, f"which does not say whether the MLP of a {_named(config)} has a gate")


def _named(config: Mapping[str, Any]) -> str:
    model_type = config.get("model_type")
    return "config without model_type" if model_type is None else f"model_type {shown(model_type)}, which is not known"


def _refuse(config: Mapping[str, Any], key: str, where: str, why: str) -> None:
    raise TraceError(
        f"{where}: {key} is {shown(config.get(key))}, {why}",
        action="A wrong byte count is not shown instead; docs/MODELS.md lists what is modelled.",
    )


def all_ones(value: Any) -> bool:
    """Whether ``value`` is a list of ones: every layer of the usual kind."""
    return isinstance(value, list) and all(each == 1 for each in _numbers(value))


def _numbers(values: Iterable[Any]) -> Iterable[Any]:
    return (None if isinstance(value, bool) else value for value in values)
