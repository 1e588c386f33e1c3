"""The header of a GGUF file: its metadata as config keys, and the size of every tensor; no tensor is read."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from tracescope.core.errors import TraceError
from tracescope.core.regular import require_regular
from tracescope.models.families import DIFFERENT
from tracescope.models.layer_plan import PLANS
from tracescope.models.layouts import LAYOUTS
from tracescope.models.limits import shown
from tracescope.models.tensors import StoredTensor

SUFFIX: Final = ".gguf"
MAGIC: Final = b"GGUF"

_MAX_KEYS: Final = 1 << 16
_MAX_TENSORS: Final = 1 << 20
_MAX_STRING: Final = 16 << 20
_MAX_ARRAY: Final = 1 << 24
_MAX_HEADER: Final = 512 << 20
"""Vocabularies of a few hundred thousand words take some MB; nothing honest comes near."""

_LARGEST: Final = 1 << 50
_PART: Final = re.compile(r"(.+)-(?:\d{5})-of-(\d{5})\.gguf")
_MAX_PARTS: Final = 1000

_SCALARS: Final = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_KEPT: Final = 4096
"""Arrays up to here are kept (one number a layer); longer ones are vocabularies, of which only the length counts."""

# Values and bytes of a block of each tensor type.
_BLOCKS: Final[dict[int, tuple[str, int, int]]] = {
    0: ("f32", 1, 4), 1: ("f16", 1, 2), 2: ("q4_0", 32, 18), 3: ("q4_1", 32, 20), 6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24), 8: ("q8_0", 32, 34), 9: ("q8_1", 32, 36), 10: ("q2_k", 256, 84), 11: ("q3_k", 256, 110),
    12: ("q4_k", 256, 144), 13: ("q5_k", 256, 176), 14: ("q6_k", 256, 210), 15: ("q8_k", 256, 292),
    16: ("iq2_xxs", 256, 66), 17: ("iq2_xs", 256, 74), 18: ("iq3_xxs", 256, 98), 19: ("iq1_s", 256, 50),
    20: ("iq4_nl", 32, 18), 21: ("iq3_s", 256, 110), 22: ("iq2_s", 256, 82), 23: ("iq4_xs", 256, 136),
    24: ("i8", 1, 1), 25: ("i16", 1, 2), 26: ("i32", 1, 4), 27: ("i64", 1, 8), 28: ("f64", 1, 8),
    29: ("iq1_m", 256, 56), 30: ("bf16", 1, 2), 34: ("tq1_0", 256, 54), 35: ("tq2_0", 256, 66), 39: ("mxfp4", 32, 17),
}  # fmt: skip

ARCHITECTURES: Final = {
    "llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen2moe": "qwen2_moe", "qwen3moe": "qwen3_moe",
    "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3_text", "phi3": "phi3", "phi2": "phi", "gpt2": "gpt2",
    "falcon": "falcon", "bloom": "bloom", "mpt": "mpt", "stablelm": "stablelm", "starcoder2": "starcoder2",
    "gptneox": "gpt_neox", "deepseek2": "deepseek_v3", "gpt-oss": "gpt_oss", "olmo2": "olmo2", "olmoe": "olmoe",
    "command-r": "cohere", "cohere2": "cohere2", "nemotron": "nemotron", "granite": "granite",
    "internlm2": "internlm2", "baichuan": "baichuan", "glm4": "glm4", "glm4moe": "glm4_moe", "phimoe": "phimoe",
    "mistral3": "mistral3", "smollm3": "smollm3", "exaone": "exaone", "minicpm": "minicpm", "arcee": "arcee",
    "apertus": "apertus", "ernie4_5": "ernie4_5", "ernie4_5-moe": "ernie4_5_moe", "exaone4": "exaone4",
    "minimax-m2": "minimax_m2", "hunyuan-dense": "hunyuan_v1_dense", "hunyuan-moe": "hunyuan_v1_moe",
}  # fmt: skip
"""The ``model_type`` that an architecture's name stands for."""

_KEYS: Final = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "feed_forward_length": "intermediate_size",
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "attention.sliding_window": "sliding_window",
    "expert_count": "num_local_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "nextn_predict_layers": "num_nextn_predict_layers",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim",
}


_ALSO_READ: Final = frozenset(
    {
        "attention.value_length",
        "attention.key_length_mla",
        "attention.value_length_mla",
        "attention.sliding_window_pattern",
    }
)
_STRUCTURAL: Final = re.compile(
    r"ssm|indexer|shared_kv|full_attention|attention_interval|time_mix|token_shift|wkv|shortconv|altup|laurel|per_layer"
    r"|chunk|_swa|recurrent|linear|hyper|compress|sparse|kda|cross_attention|lora_rank|convnext|posnet|block_skip"
)
"""Parts of keys that say that a layer is not the plain one."""
_HARMLESS: Final = re.compile(
    r"rope\..*|attention\.(?:layer_norm.*|causal|scale|max_alibi_bias|clamp_kqv|temperature.*|group_norm.*)|.*softcapping"
    r"|expert_(?:weights|gating|group|selection).*|tensor_data_layout|logit_scale|(?:embedding|residual)_scale"
    r"|use_parallel_residual|interleave_moe_layer_step|vocab_size|pooling_type|classifier.*|swiglu.*"
)


@dataclass(slots=True)
class _Source:
    """A file read from its start with a budget, so that no count in it can make the reader read for ever."""

    file: BinaryIO
    path: Path
    size: int
    used: int = 0
    numbers: dict[str, struct.Struct] = field(default_factory=dict)

    def take(self, count: int) -> bytes:
        self.used += count
        if self.used > _MAX_HEADER:
            raise TraceError(f"{self.path}: its header is larger than {_MAX_HEADER >> 20} MiB, which no model's is")
        if self.used > self.size:
            raise TraceError(f"{self.path}: the file ends inside its header")
        data = self.file.read(count)
        if len(data) < count:
            raise TraceError(f"{self.path}: the file ends inside its header")
        return data

    def number(self, form: str) -> Any:
        reader = self.numbers.setdefault(form, struct.Struct(form))
        return reader.unpack(self.take(reader.size))[0]

    def text(self) -> str:
        length = self.number("<Q")
        if length > _MAX_STRING:
            raise TraceError(f"{self.path}: a text of {length:,} bytes in its header")
        return self.take(length).decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self.array()
        if kind not in _SCALARS:
            raise TraceError(f"{self.path}: a metadata value has type {kind}, which is not known")
        return self.number(_SCALARS[kind])

    def array(self) -> Any:
        """A short array as a list, a long one as its length."""
        kind, count = self.number("<I"), self.number("<Q")
        if count > _MAX_ARRAY or kind == _ARRAY:
            raise TraceError(f"{self.path}: an array of {count:,} values of type {kind} in its header")
        if kind != _STRING and kind not in _SCALARS:
            raise TraceError(f"{self.path}: a metadata array has type {kind}, which is not known")
        if kind != _STRING and count > _KEPT:
            self.take(count * struct.calcsize(_SCALARS[kind]))
            return _Long(count)
        values = [self.value(kind) for _ in range(count)]
        return values if count <= _KEPT else _Long(count)


@dataclass(frozen=True, slots=True)
class _Long:
    """An array that was passed over."""

    length: int


def read_gguf(path: Path) -> tuple[dict[str, Any], tuple[StoredTensor, ...], str]:
    """The header of ``path``: config keys as a config.json has them, its tensors, and the model's own name.

    A file that is one of several parts (``…-00001-of-00003.gguf``) stands for all of them. Raises TraceError for
    anything that is not a whole header of version 2 or 3.
    """
    parts = _parts(path)
    metadata, stored = _header(parts[0])
    for part in parts[1:]:
        stored += _header(part)[1]
    if len({tensor.name for tensor in stored}) != len(stored):
        raise TraceError(f"{path}: a tensor is listed twice")
    name = metadata.get("general.name")
    return _config(metadata, stored, path), stored, name if isinstance(name, str) else ""


def _parts(path: Path) -> tuple[Path, ...]:
    match = _PART.fullmatch(path.name)
    if match is None:
        return (path,)
    count = int(match[2])
    if not 0 < count <= _MAX_PARTS:
        raise TraceError(f"{path}: one of {count} parts; up to {_MAX_PARTS} are read")
    found = tuple(path.with_name(f"{match[1]}-{i:05}-of-{count:05}{SUFFIX}") for i in range(1, count + 1))
    for part in found:
        if not part.is_file():
            raise TraceError(f"{part}: this part of the model is not there")
    return found


def _header(path: Path) -> tuple[dict[str, Any], tuple[StoredTensor, ...]]:
    require_regular(path)
    try:
        with path.open("rb") as file:
            source = _Source(file, path, path.stat().st_size)
            if source.take(4) != MAGIC:
                raise TraceError(f"{path}: not a GGUF file")
            version = source.number("<I")
            if version not in (2, 3):
                raise TraceError(f"{path}: GGUF version {version}; 2 and 3 are known")
            tensors, keys = source.number("<Q"), source.number("<Q")
            if tensors > _MAX_TENSORS or keys > _MAX_KEYS:
                raise TraceError(f"{path}: {tensors:,} tensors and {keys:,} keys, which no model has")
            metadata = {source.text(): source.value(source.number("<I")) for _ in range(keys)}
            return metadata, tuple(_tensors(source, tensors))
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None


def _tensors(source: _Source, count: int) -> Iterator[StoredTensor]:
    seen: set[str] = set()
    for _ in range(count):
        name = source.text()
        extents = source.number("<I")
        if extents > 8 or name in seen:
            raise TraceError(f"{source.path}: tensor {shown(name)} is listed twice or has {extents} dimensions")
        seen.add(name)
        shape = tuple(source.number("<Q") for _ in range(extents))[::-1]  # the file lists the fastest one first
        kind = source.number("<I")
        offset = source.number("<Q")
        if kind not in _BLOCKS:
            raise TraceError(f"{source.path}: tensor {shown(name)} has type {kind}, which is not known")
        dtype, values, size = _BLOCKS[kind]
        elements = 1
        for extent in shape:
            elements *= extent
            if elements > _LARGEST:
                raise TraceError(f"{source.path}: tensor {shown(name)} has an impossible shape")
        held = -(-elements // values) * size
        if offset + held > source.size:
            raise TraceError(f"{source.path}: tensor {shown(name)} lies outside the file; is the download complete?")
        yield StoredTensor(name, dtype, shape, held)


def _config(metadata: dict[str, Any], tensors: tuple[StoredTensor, ...], path: Path) -> dict[str, Any]:
    """The metadata under the keys of a config.json; what it leaves out follows from the tensors."""
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise TraceError(f"{path}: general.architecture is missing")
    prefix = f"{architecture}."
    config: dict[str, Any] = {"model_type": ARCHITECTURES.get(architecture, architecture), "torch_dtype": "float16"}
    for key, name in _KEYS.items():
        value = metadata.get(prefix + key)
        if value is not None and not isinstance(value, _Long):
            config[name] = _one(value, key, path)
    _refuse_structures(metadata, architecture, path)
    predicting = config.get("num_nextn_predict_layers")
    if isinstance(predicting, int) and isinstance(config.get("num_hidden_layers"), int):
        config["num_hidden_layers"] -= predicting  # they are the last of its blocks
    _window_pattern(metadata.get(f"{prefix}attention.sliding_window_pattern"), config, path)
    if not config.get("sliding_window"):
        config.pop("sliding_window", None)
    elif config["model_type"].startswith("qwen"):
        config["use_sliding_window"] = True
    names = {tensor.name for tensor in tensors}
    words = metadata.get("tokenizer.ggml.tokens")
    if "vocab_size" not in config and words is not None:
        config["vocab_size"] = words.length if isinstance(words, _Long) else len(words)
    config["tie_word_embeddings"] = "output.weight" not in names
    if config.get("kv_lora_rank") is None:
        config.pop("qk_rope_head_dim", None)
    else:
        _latent_sizes(metadata, prefix, config)
    for key, name in (("attention_bias", "attn_q.bias"), ("mlp_bias", "ffn_up.bias")):
        config[key] = f"blk.0.{name}" in names or (key == "attention_bias" and "blk.0.attn_qkv.bias" in names)
    return config


def _refuse_structures(metadata: dict[str, Any], architecture: str, path: Path) -> None:
    """Raise TraceError naming the first key that changes what a step reads and is not read here.

    An architecture that is not known must have none but keys that are known to be harmless.
    """
    prefix, known = f"{architecture}.", architecture in ARCHITECTURES
    if not known and architecture in (*PLANS, *LAYOUTS, *DIFFERENT):
        what = DIFFERENT.get(architecture, "layers that differ")
        raise TraceError(
            f"{path}: general.architecture is {shown(architecture)}: {what}, which is not modelled from a GGUF file"
        )
    for name, value in metadata.items():
        key = name.removeprefix(prefix)
        if key == name or key in _KEYS or key in _ALSO_READ or _empty(value):
            continue
        if _STRUCTURAL.search(key) or not (known or _HARMLESS.fullmatch(key)):
            raise TraceError(
                f"{path}: {name} is {shown(value) if isinstance(value, (int, float, str, list)) else 'a list'}: a "
                "structure that is not modelled from a GGUF file",
                action="docs/MODELS.md lists what is; the model's config.json may say enough.",
            )


def _empty(value: Any) -> bool:
    return value in (None, 0, False, "", []) or (isinstance(value, list) and not any(value))


def _window_pattern(pattern: Any, config: dict[str, Any], path: Path) -> None:
    """Which layers have the window: a flag for each, or every so manieth that has none."""
    if pattern is None or not config.get("sliding_window"):
        return
    if isinstance(pattern, list) and all(isinstance(flag, (bool, int)) for flag in pattern):
        flags = pattern[: config.get("num_hidden_layers", len(pattern))]
        config["layer_types"] = ["sliding_attention" if flag else "full_attention" for flag in flags]
    elif isinstance(pattern, int) and not isinstance(pattern, bool) and pattern > 0:
        config["sliding_window_pattern"] = pattern
    else:
        raise TraceError(f"{path}: attention.sliding_window_pattern must be a number or a flag for each layer")


def _one(value: Any, key: str, path: Path) -> Any:
    """A value a layer, all the same, is that value."""
    if not isinstance(value, list):
        return value
    if len(set(map(repr, value))) != 1:
        raise TraceError(f"{path}: {key} differs from layer to layer, which is not modelled")
    return value[0]


def _latent_sizes(metadata: dict[str, Any], prefix: str, config: dict[str, Any]) -> None:
    """Head sizes of latent attention: newer files give those of the whole heads under names of their own."""
    key = metadata.get(prefix + "attention.key_length_mla", config.pop("head_dim", None))
    value = metadata.get(prefix + "attention.value_length_mla", metadata.get(prefix + "attention.value_length"))
    rotary = config.get("qk_rope_head_dim")
    if isinstance(key, int) and isinstance(rotary, int):
        config["qk_nope_head_dim"] = key - rotary
    config["v_head_dim"] = value
    config["num_key_value_heads"] = config.get("num_attention_heads")
