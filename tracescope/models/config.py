"""From a Hugging Face config.json to a ModelSpec: strict, and every value that was not there is listed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec
from tracescope.models.config_reader import Reader
from tracescope.models.families import ALIASES, FAMILIES, UNKNOWN_FAMILY
from tracescope.models.known_keys import refuse_unknown_keys
from tracescope.models.layer_plan import planned_by, with_layers
from tracescope.models.layouts import LAYOUTS
from tracescope.models.limits import read_json_object, shown
from tracescope.models.mixtures import prediction_layers, read_experts, read_latent
from tracescope.models.model_family import ModelFamily
from tracescope.models.quantization import DECLARATIONS, Quantization, beside_config, declared_quantization
from tracescope.models.refusals import refuse_unmodelled
from tracescope.models.windows import read_windows

TEXT_PLACES: Final = (
    ("text_config",),
    ("llm_config",),
    ("language_config",),
    ("thinker_config", "text_config"),
)
"""Where multimodal configs keep the language model, in the order in which they are looked at."""

OTHER_PARTS: Final = ("vision_config", "audio_config", "speech_config", "talker_config", "token2wav_config")
"""Parts beside the language model that a step of decoding does not read."""

_EIGHT_BIT: Final = "fp8-raw"
_DTYPES: Final = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": _EIGHT_BIT,
    "float8_e5m2": _EIGHT_BIT,
    "fp8": _EIGHT_BIT,
}
_INHERITED: Final = ("dtype", "torch_dtype", "tie_word_embeddings", *DECLARATIONS)
_COMPARED: Final = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")


def read_config(path: Path) -> ModelSpec:
    """The model of the config.json at ``path``; raises TraceError naming the file and the key for anything wrong."""
    name = path.parent.resolve().name if path.name == "config.json" else path.stem
    config = {**beside_config(path), **read_json_object(path)}
    return spec_from_config(config, name=name or path.stem, file=str(path))


def spec_from_config(config: Mapping[str, Any], *, name: str, file: str) -> ModelSpec:
    """The model that ``config`` (a decoded config.json) describes; ``file`` is named in messages."""
    place, notes = _language_model(config, file)
    notes += _elsewhere(config, place)
    text = _at(config, place)
    where = f"{file}, {'.'.join(place)}" if place else file
    inherited = {key: config[key] for key in _INHERITED if place and key in config and key not in text}
    reader = Reader({**inherited, **text}, where, notes)
    return _read(reader, name, ".".join(place) or Path(file).name)


def _language_model(config: Mapping[str, Any], file: str) -> tuple[tuple[str, ...], list[str]]:
    """The place of the language model in ``config`` (empty: the top level), and what the two levels disagree on."""
    for place in TEXT_PLACES:
        nested = _at(config, place)
        if not nested:
            continue
        label = ".".join(place)
        notes = [
            f"{key}: the top level says {shown(config[key])}, {label} says {shown(nested[key])}; {label} is used"
            for key in _COMPARED
            if config.get(key) is not None and nested.get(key) is not None and config[key] != nested[key]
        ]
        return place, notes
    return (), []


def _elsewhere(config: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    """The other parts of a multimodal model: they lie in memory, and their sizes are not counted."""
    around = [_at(config, place[:depth]) if depth else config for depth in range(len(place))]
    return [
        f"{key}: its weights are resident but not counted; stored bytes are those of the language model"
        for level in around
        for key in OTHER_PARTS
        if isinstance(level.get(key), dict)
    ]


def _at(config: Mapping[str, Any], place: tuple[str, ...]) -> Mapping[str, Any]:
    for key in place:
        inner = config.get(key)
        if not isinstance(inner, dict):
            return {}
        config = inner
    return config


def _read(reader: Reader, name: str, source: str) -> ModelSpec:
    family = _family(reader)
    known = reader.config.get("model_type") in FAMILIES
    refuse_unmodelled(reader.config, family.keys, reader.where)
    refuse_unknown_keys(reader.config, family.keys if known else None, reader.where)
    _usual_keys(reader, family)
    layers = reader.required("num_hidden_layers")
    hidden, heads = reader.required("hidden_size"), reader.required("num_attention_heads")
    projected = reader.whole("word_embed_proj_dim")
    if projected is not None and projected != hidden:
        raise TraceError(f"{reader.where}: word_embed_proj_dim is {projected}, hidden_size {hidden}: not modelled")
    kv_heads = _kv_heads(reader, family, heads)
    base = _base_dtype(reader)
    quantization = declared_quantization(reader.config, reader.where)
    latent = read_latent(reader.config, reader.where)
    head_dim = latent.nope_dim + latent.rope_dim if latent else _head_dim(reader, family, hidden, heads)
    dense_ffn = _ffn(reader, family, hidden)
    experts = read_experts(reader.config, layers, dense_ffn, family, reader.where)
    ffn = dense_ffn or (experts.ffn if experts else reader.required("intermediate_size"))
    planned = planned_by(reader)
    windows, window_notes = ((), ()) if planned else read_windows(reader.config, layers, family, reader.where)
    vocab = reader.required("vocab_size")
    tied = _tied(reader, family)
    spec = ModelSpec(
        name=name,
        source=source,
        title=name,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=ffn,
        vocab=vocab,
        tied=tied,
        gated=family.gated,
        norm=family.norm,
        norms_per_layer=_norms_per_layer(reader, family),
        parallel=reader.flag(family.parallel) or reader.truth("new_decoder_architecture") is True,
        qkv_bias=reader.flag(family.qkv_bias),
        o_bias=reader.flag(family.o_bias),
        mlp_bias=reader.flag(family.mlp_bias),
        qk_norm=family.qk_norm or reader.truth("use_qk_norm") is True or reader.truth("qk_layernorm") is True,
        position_rows=_position_rows(reader, family),
        lm_head_bias=family.lm_head_bias,
        embedding_norm=family.embedding_norm,
        max_positions=_max_positions(reader),
        sinks=family.sinks,
        latent=latent,
        experts=experts,
        prediction_layers=prediction_layers(reader.config, reader.where),
        head_rows=reader.number("draft_vocab_size", 0),
        qk_norm_wide=family.qk_norm_wide,
        **_stored(base, quantization),
        assumptions=(*reader.notes, *window_notes, *quantization.assumptions, *_rope_notes(reader.config)),
    )
    return with_layers(reader, spec, windows)


def _usual_keys(reader: Reader, family: ModelFamily) -> None:
    """Put a layout of its own, and the sizes that published configs leave out, under the usual keys."""
    layout = LAYOUTS.get(str(reader.config.get("model_type")))
    if layout is not None:
        changed = {**reader.config, **layout(reader)}
        reader.config = {key: value for key, value in changed.items() if value is not None}
    for key, default in family.defaults:
        if not reader.mentions(key):
            reader.config = {**reader.config, key: default}
            reader.notes.append(f"{key} is absent; {default:,} is the default of this model_type")


def _stored(base: str, quantization: Quantization) -> dict[str, Any]:
    """The dtypes of the parts; those of a checkpoint in 8 bit keep 16 bit for what is not a linear weight."""
    plain = "bf16" if base == _EIGHT_BIT else base
    return {
        "weights": quantization.weights or base,
        "lm_head": quantization.lm_head or plain,
        "kv": quantization.kv or plain,
        "activations": plain,
        "embedding": quantization.embedding,
        "unconverted": quantization.unconverted,
    }


def _family(reader: Reader) -> ModelFamily:
    model_type = reader.config.get("model_type")
    if model_type is not None and not isinstance(model_type, str):
        raise TraceError(f"{reader.where}: model_type must be text, got {shown(model_type)}")
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    from_refusal = "is absent" if model_type is None else f"{shown(model_type)} is not known"
    reader.notes.append(f"model_type {from_refusal}; a Llama-like layer is assumed (RMS norms, gated MLP, no biases)")
    return UNKNOWN_FAMILY


def _kv_heads(reader: Reader, family: ModelFamily, heads: int) -> int:
    multi_query = reader.truth("multi_query")
    attention = reader.config.get("attn_config")
    if isinstance(attention, dict):  # MPT keeps its attention settings one level down
        own = attention.get("kv_n_heads")
        if own is not None:
            return _divides(reader, heads, reader.checked("num_key_value_heads", "attn_config.kv_n_heads", own))
        multi_query = multi_query or attention.get("attn_type") == "multiquery_attention"
    if multi_query and reader.config.get("new_decoder_architecture") is not True:
        return 1
    kv_heads = reader.whole("num_key_value_heads")
    if kv_heads is None:
        if not family.mha and not reader.mentions("num_key_value_heads"):
            reader.notes.append(f"num_key_value_heads is absent; {heads} is assumed (one for each query head)")
        return heads
    return _divides(reader, heads, kv_heads)


def _divides(reader: Reader, heads: int, kv_heads: int) -> int:
    if kv_heads > heads or heads % kv_heads:
        raise TraceError(
            f"{reader.where}: num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}"
        )
    return kv_heads


def _head_dim(reader: Reader, family: ModelFamily, hidden: int, heads: int) -> int:
    head_dim = reader.whole("head_dim")
    if head_dim is not None:
        return head_dim
    if family.head_dim is not None:
        reader.notes.append(f"head_dim is absent; {family.head_dim} is the default of this model_type")
        return family.head_dim
    if hidden % heads:
        raise TraceError(
            f"{reader.where}: hidden_size {hidden} is not a multiple of num_attention_heads {heads}, and head_dim is "
            "missing",
            action="Add head_dim to the config.",
        )
    return hidden // heads


def _ffn(reader: Reader, family: ModelFamily, hidden: int) -> int | None:
    """The size of a plain MLP, None where neither the config nor the family says."""
    ffn = reader.whole("intermediate_size")
    if ffn is not None:
        return ffn
    ratio = reader.whole("expansion_ratio") or family.ffn_ratio
    if ratio is None:
        return None
    if not reader.mentions("intermediate_size") and not reader.mentions("expansion_ratio"):
        reader.notes.append(f"the ffn size is absent; {ratio * hidden} is assumed ({ratio} × hidden size)")
    return ratio * hidden


def _tied(reader: Reader, family: ModelFamily) -> bool:
    tied = reader.truth("tie_word_embeddings")
    if tied is None:
        tied = family.tied
        reader.notes.append(f"tie_word_embeddings is absent; {str(tied).lower()} is the default of this model_type")
    return tied


def _norms_per_layer(reader: Reader, family: ModelFamily) -> int:
    """Falcon's parallel layers share one norm unless the newer architecture gives each branch its own."""
    model_type = reader.config.get("model_type")
    if model_type in ("falcon", "RefinedWeb", "RefinedWebModel"):
        if reader.truth("new_decoder_architecture"):
            norms = reader.whole("num_ln_in_parallel_attn") or 2
            if norms > 2:
                raise TraceError(f"{reader.where}: num_ln_in_parallel_attn is {norms}; 1 or 2 are known")
            return norms
        return 1 if reader.truth("parallel_attn") is not False else 2
    if model_type == "stablelm" and reader.truth("use_parallel_residual"):
        return 1
    return family.norms_per_layer


def _position_rows(reader: Reader, family: ModelFamily) -> int:
    if not family.positions:
        return 0
    return reader.required("max_position_embeddings") + family.position_offset


def _max_positions(reader: Reader) -> int | None:
    """The longest context claimed; only shown, so that anything unreadable is just not shown."""
    for key in ALIASES["max_position_embeddings"]:
        value = reader.config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40:
            return value
    return None


def _base_dtype(reader: Reader) -> str:
    found = reader.given("dtype")
    if found is None or found[1] == "auto":
        reader.notes.append("torch_dtype is absent; bfloat16 is assumed")
        return "bf16"
    key, value = found
    name = _DTYPES.get(value.removeprefix("torch.")) if isinstance(value, str) else None
    if name is None:
        raise TraceError(
            f"{reader.where}: {key} {shown(value)} is not known",
            action="Known: bfloat16, float16, float32, float8_e4m3fn.",
        )
    if name == "fp32":
        reader.notes.append(f"{key} is {shown(value)}: engines serve such a checkpoint in 16 bit, which is counted")
        return "bf16"
    if name == _EIGHT_BIT:
        reader.notes.append(f"{key} is {shown(value)}: linear weights are counted in 8 bit without scales")
    return name


def _rope_notes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Spellings of rope_scaling that no reader of the model would accept; it changes no byte, so it is only noted."""
    scaling = config.get("rope_scaling")
    if scaling is None:
        return ()
    if not isinstance(scaling, dict):
        return (f"rope_scaling is {shown(scaling)}, not an object; it is ignored (it moves no bytes)",)
    factor = scaling.get("factor")
    if factor is not None and (isinstance(factor, bool) or not isinstance(factor, (int, float))):
        return (f"rope_scaling.factor is {shown(factor)}, not a number; it is ignored (it moves no bytes)",)
    return ()
