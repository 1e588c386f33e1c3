"""From a Hugging Face config.json to a ModelSpec: strict, and every value that was not there is listed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, kinds_of
from tracescope.models.families import ALIASES, FAMILIES, UNKNOWN_FAMILY, Flag, ModelFamily
from tracescope.models.limits import read_json_object, shown
from tracescope.models.mixtures import prediction_layers, read_experts, read_latent
from tracescope.models.quantization import Quantization, read_quantization
from tracescope.models.refusals import refuse_unmodelled
from tracescope.models.windows import read_windows, with_reaches

TEXT_PLACES: Final = (
    ("text_config",),
    ("llm_config",),
    ("language_config",),
    ("thinker_config", "text_config"),
)
"""Where multimodal configs keep the language model, in the order in which they are looked at."""

OTHER_PARTS: Final = ("vision_config", "audio_config", "speech_config", "talker_config", "token2wav_config")
"""Parts beside the language model that a step of decoding does not read."""

_DTYPES: Final = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_INHERITED: Final = ("dtype", "torch_dtype", "tie_word_embeddings", "quantization_config")
_COMPARED: Final = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
_LARGEST: Final = {"num_hidden_layers": 10_000, "vocab_size": 1 << 28}
_LARGEST_SIZE: Final = 1 << 24  # hidden sizes and head counts; the largest public model has 53,248


@dataclass(slots=True)
class _Reader:
    """One config while it is read: ``where`` names the file and place, ``notes`` collect the assumptions."""

    config: Mapping[str, Any]
    where: str
    notes: list[str] = field(default_factory=list)

    def given(self, name: str) -> tuple[str, Any] | None:
        """The key under which the value ``name`` stands, and the value; None where absent or null everywhere."""
        found: tuple[str, Any] | None = None
        for key in ALIASES.get(name, (name,)):
            value = self.config.get(key)
            if value is None:
                continue
            if found is not None and found[1] != value:
                raise TraceError(
                    f"{self.where}: {found[0]} is {shown(found[1])} but {key} is {shown(value)}",
                    action="They mean the same thing; correct the one that is wrong.",
                )
            found = found or (key, value)
        return found

    def mentions(self, name: str) -> bool:
        """Whether a key of ``name`` is there at all, null included: an explicit null is an answer."""
        return any(key in self.config for key in ALIASES.get(name, (name,)))

    def whole(self, name: str) -> int | None:
        """A positive whole number, None where absent; raises TraceError for anything else."""
        found = self.given(name)
        return None if found is None else self.checked(name, *found)

    def checked(self, name: str, key: str, value: Any) -> int:
        """``value`` of ``key`` as a positive whole number no larger than anything of that name can be."""
        largest = _LARGEST.get(name, _LARGEST_SIZE)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TraceError(f"{self.where}: {key} must be a whole number, got {shown(value)}")
        if not 0 < value <= largest:
            raise TraceError(f"{self.where}: {key} is {shown(value)}; it must be between 1 and {largest:,}")
        return value

    def required(self, name: str) -> int:
        """A whole number without which nothing can be counted."""
        value = self.whole(name)
        if value is None:
            raise TraceError(
                f"{self.where}: {name} is missing",
                action="Known spellings: " + ", ".join(ALIASES.get(name, (name,))),
            )
        return value

    def truth(self, key: str) -> bool | None:
        """A true or false, None where absent; raises TraceError for anything else."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, bool):
            raise TraceError(f"{self.where}: {key} must be true or false, got {shown(value)}")
        return value

    def flag(self, flag: Flag) -> bool:
        """A fact of the family, or the value of the key that decides it."""
        if isinstance(flag, bool):
            return flag
        value = self.truth(flag[0])
        return flag[1] if value is None else value


def read_config(path: Path) -> ModelSpec:
    """The model of the config.json at ``path``; raises TraceError naming the file and the key for anything wrong."""
    name = path.parent.resolve().name if path.name == "config.json" else path.stem
    return spec_from_config(read_json_object(path), name=name or path.stem, file=str(path))


def spec_from_config(config: Mapping[str, Any], *, name: str, file: str) -> ModelSpec:
    """The model that ``config`` (a decoded config.json) describes; ``file`` is named in messages."""
    place, notes = _language_model(config, file)
    notes += _elsewhere(config, place)
    text = _at(config, place)
    where = f"{file}, {'.'.join(place)}" if place else file
    inherited = {key: config[key] for key in _INHERITED if place and key in config and key not in text}
    reader = _Reader({**inherited, **text}, where, notes)
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


def _read(reader: _Reader, name: str, source: str) -> ModelSpec:
    family = _family(reader)
    layers = reader.required("num_hidden_layers")
    refuse_unmodelled(reader.config, reader.where)
    hidden, heads = reader.required("hidden_size"), reader.required("num_attention_heads")
    projected = reader.whole("word_embed_proj_dim")
    if projected is not None and projected != hidden:
        raise TraceError(f"{reader.where}: word_embed_proj_dim is {projected}, hidden_size {hidden}: not modelled")
    kv_heads = _kv_heads(reader, family, heads)
    base = _base_dtype(reader)
    quantization = read_quantization(reader.config.get("quantization_config"), reader.where)
    latent = read_latent(reader.config, reader.where)
    head_dim = latent.nope_dim + latent.rope_dim if latent else _head_dim(reader, family, hidden, heads)
    dense_ffn = _ffn(reader, family, hidden)
    experts = read_experts(reader.config, layers, dense_ffn, family, reader.where)
    ffn = dense_ffn or (experts.ffn if experts else reader.required("intermediate_size"))
    windows, window_notes = read_windows(reader.config, layers, family, reader.where)
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
        qk_norm_wide=family.qk_norm_wide,
        **_stored(base, quantization),
        assumptions=(*reader.notes, *window_notes, *quantization.assumptions, *_rope_notes(reader.config)),
    )
    return replace(spec, **kinds_of(with_reaches(spec, windows))) if windows else spec


def _stored(base: str, quantization: Quantization) -> dict[str, Any]:
    return {
        "weights": quantization.weights or base,
        "lm_head": quantization.lm_head or base,
        "kv": "bf16" if base == "fp32" and quantization.weights else base,
        "activations": base,
        "unconverted": quantization.unconverted,
    }


def _family(reader: _Reader) -> ModelFamily:
    model_type = reader.config.get("model_type")
    if model_type is not None and not isinstance(model_type, str):
        raise TraceError(f"{reader.where}: model_type must be text, got {shown(model_type)}")
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    from_refusal = "is absent" if model_type is None else f"{shown(model_type)} is not known"
    reader.notes.append(f"model_type {from_refusal}; a Llama-like layer is assumed (RMS norms, gated MLP, no biases)")
    return UNKNOWN_FAMILY


def _kv_heads(reader: _Reader, family: ModelFamily, heads: int) -> int:
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


def _divides(reader: _Reader, heads: int, kv_heads: int) -> int:
    if kv_heads > heads or heads % kv_heads:
        raise TraceError(
            f"{reader.where}: num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}"
        )
    return kv_heads


def _head_dim(reader: _Reader, family: ModelFamily, hidden: int, heads: int) -> int:
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


def _ffn(reader: _Reader, family: ModelFamily, hidden: int) -> int | None:
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


def _tied(reader: _Reader, family: ModelFamily) -> bool:
    tied = reader.truth("tie_word_embeddings")
    if tied is None:
        tied = family.tied
        reader.notes.append(f"tie_word_embeddings is absent; {str(tied).lower()} is the default of this model_type")
    return tied


def _norms_per_layer(reader: _Reader, family: ModelFamily) -> int:
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


def _position_rows(reader: _Reader, family: ModelFamily) -> int:
    if not family.positions:
        return 0
    return reader.required("max_position_embeddings") + family.position_offset


def _max_positions(reader: _Reader) -> int | None:
    """The longest context claimed; only shown, so that anything unreadable is just not shown."""
    for key in ALIASES["max_position_embeddings"]:
        value = reader.config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40:
            return value
    return None


def _base_dtype(reader: _Reader) -> str:
    found = reader.given("dtype")
    if found is None or found[1] == "auto":
        reader.notes.append("torch_dtype is absent; bfloat16 is assumed")
        return "bf16"
    key, value = found
    name = _DTYPES.get(value.removeprefix("torch.")) if isinstance(value, str) else None
    if name is None:
        raise TraceError(
            f"{reader.where}: {key} {shown(value)} is not known", action="Known: bfloat16, float16, float32."
        )
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
