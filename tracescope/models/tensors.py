"""From the names and sizes of a checkpoint's tensors to the bytes that each op of a step reads."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from tracescope.core.errors import TraceError
from tracescope.core.layer_parts import Layer
from tracescope.core.model import LayerBytes, ModelSpec, TensorBytes
from tracescope.floor.dtypes import WEIGHT_DTYPES, weight_dtype
from tracescope.floor.matrices import has_experts

_SAID: Final = 5

_DTYPES: Final = {
    **{name: name for name in WEIGHT_DTYPES},
    "BF16": "bf16",
    "F16": "fp16",
    "f16": "fp16",
    "F32": "fp32",
    "f32": "fp32",
    "F8_E4M3": "fp8-raw",
    "F8_E5M2": "fp8-raw",
}
"""Names of this arithmetic for those of files; a packed format (I32, U8) says nothing by itself."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file: its dtype as the file names it, its shape, its bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int


_LAYER: Final = re.compile(r"(?:^|\.)(?:layers|h|blocks|block|blk)\.(\d{1,6})\.(.+)")
_BESIDE: Final = re.compile(
    r"vision|visual|audio|image|multi_modal_projector|mm_projector|talker|token2wav|speech|^v\.|^mm\.", re.IGNORECASE
)
"""Parts beside the language model: they lie in memory and a step does not read them."""

_NOT_READ: Final = re.compile(r"rotary|inv_freq|rope_freqs|masked_bias|(?:attn|attention)\.bias$|position_ids")
"""Buffers that some checkpoints carry: causal masks and rotary tables."""

_SCALES: Final = re.compile(r"scale|zero|g_idx|absmax|quant_map|quant_state|\.biases$")
"""``biases`` are the zeros of an MLX checkpoint; a layer's own bias is ``bias``."""

_PREDICTING: Final = re.compile(r"(?:^|\.)mtp(?:_\w+)?\.")
"""What predicts later tokens, besides layers past the last one: loaded for speculative decoding alone."""
_SIDE: Final = re.compile(
    r"embed_tokens_per_layer|per_layer_model_projection|per_layer_projection_norm|altup_(?:un)?embed|altup_proj"
)
"""What Gemma 3n has outside its layers; a step's share of it follows from the shapes."""

_IN_LAYER: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (part, re.compile("|".join(patterns)))
    for part, patterns in (
        (
            "router",
            (
                r"shared_expert_gate",
                r"ffn_gate_inp",
                r"(?:^|\.)router\.",
                r"(?:mlp|block_sparse_moe|feed_forward|ffn|mixer)\.gate\.",
                r"exp_probs_b",
                r"e_score_correction",
            ),
        ),
        ("gate_up", (r"(?:shared_experts?|shared_mlp)\..*(?:gate|up|w1|w3|input_linear)", r"ffn_(?:gate|up)_shexp")),
        ("down", (r"(?:shared_experts?|shared_mlp)\..*(?:down|w2|output_linear)", r"ffn_down_shexp")),
        ("experts", (r"experts\.", r"_exps\b", r"(?:input|output)_linear")),
        ("indexer", (r"indexer\.",)),
        ("state_in", (r"(?:mamba|linear_attn|mixer|conv)\.(?:in_proj\w*|x_proj|dt_proj)\b",)),
        ("state_out", (r"(?:mamba|linear_attn|mixer|conv)\.out_proj\.",)),
        (
            "state",
            (r"conv1d|conv\.conv\.|A_log|dt_bias|\.D$", r"(?:mamba|linear_attn|mixer)\.(?:\w+_layer)?norm\."),
        ),
        ("qkv", (r"laurel\.linear|altup\.\w+(?:coefs|router)", r"(?:self_attn|attention)\.(?:gate_proj|output_gate)")),
        ("down", (r"per_layer_(?:input_gate|projection)\.", r"linear_mlp\.")),
        ("norm", (r"norm", r"altup\.correct_output_scale", r"layer_scalar", r"(?:^|\.)ln_?\w*\.")),
        ("attention", (r"sinks",)),
        # dense_h_to_4h is an MLP's: no dot stands behind its "dense".
        ("o", (r"(?:o_proj|out_proj|wo|attn_output|attn\.c_proj|dense)\.",)),
        (
            "qkv",
            (
                r"[qkv]_proj",
                r"qkv",
                r"c_attn",
                r"query_key_value",
                r"q_[ab]_proj",
                r"kv_[ab]_proj",
                r"attn_(?:q|k|v|kv)(?:_|\.)",
                r"w[qkv]\.",
            ),
        ),
        ("down", (r"down_proj", r"fc2", r"fc_out", r"c_proj", r"dense_4h_to_h", r"ffn_down", r"w2\.")),
        (
            "gate_up",
            (r"gate_proj", r"up_proj", r"fc1", r"fc_in", r"c_fc", r"dense_h_to_4h", r"ffn_(?:gate|up)", r"w[13]\."),
        ),
    )
)
"""What a tensor of a layer belongs to: the first that matches."""

_HEAD: Final = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output)\.")
_EMBEDDING: Final = re.compile(
    r"embed_tokens|(?:^|\.)wte\.|word_embeddings\.|tok_embeddings|token_embd\.|embed_in|shared\.weight"
    r"|(?:^|\.)embeddings\.weight$"
)
_POSITIONS: Final = re.compile(r"(?:^|\.)wpe\.|embed_positions|position_embd")
_FIRST_NORM: Final = re.compile(r"word_embeddings_layernorm|token_embd_norm|embed(?:ding)?_(?:layer)?norm")
_LAST_NORM: Final = re.compile(r"(?:^|\.)(?:norm|ln_f|final_layer_?norm|final_norm|output_norm|norm_f|ln_out)\.")


@dataclass(slots=True)
class _Sorted:
    """Bytes by place while tensors are sorted; ``unknown`` names those that nothing is known about."""

    layers: list[LayerBytes]
    head: int = 0
    head_scales: int = 0
    norm: int = 0
    embedding_norm: int = 0
    embedding: int = 0
    embedding_rows: int = 0
    stored: int = 0
    beside: int = 0
    predicting: int = 0
    predicting_layers: set[str] = field(default_factory=set)
    dtypes: dict[str, dict[str, int]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


def with_tensors(spec: ModelSpec, tensors: Iterable[StoredTensor], where: str) -> ModelSpec:
    """``spec`` with the bytes that ``tensors`` state, and what had to be assumed about them.

    Raises TraceError where they contradict the shapes: a layer without weights, layers missing, no embedding.
    """
    found = _Sorted([LayerBytes()] * spec.layers)
    listed, notes = _as_served(tuple(tensors), spec)
    for tensor in listed:
        found.stored += tensor.size
        _place(found, tensor, spec.layers)
    _check(found, spec, where)
    if found.unknown:
        named = ", ".join(sorted(found.unknown)[:_SAID]) + (" …" if len(found.unknown) > _SAID else "")
        notes.append(f"{len(found.unknown)} tensors are stored but taken as not read in a step: {named}")
    if found.embedding_rows != spec.vocab:
        notes.append(
            f"vocab_size is {spec.vocab:,} but the embedding has {found.embedding_rows:,} rows; bytes are the file's"
        )
    own_head = found.head > 0
    labels = _labels(spec, found, own_head=own_head)
    if labels["weights"] != spec.weights and not weight_dtype(spec.weights).quantized:
        most = labels["weights"]
        notes.append(f"the config says {spec.weights}, most weights are stored as {most}; bytes are the file's")
    truth = TensorBytes(
        layers=tuple(found.layers),
        lm_head=found.head if own_head else found.embedding,
        lm_head_scales=found.head_scales,
        norm=found.norm,
        embedding_norm=found.embedding_norm,
        embedding_row=-(-found.embedding // max(1, found.embedding_rows)),
        stored=found.stored - found.predicting,
    )
    return replace(
        spec,
        tensors=truth,
        prediction_layers=max(spec.prediction_layers, len(found.predicting_layers)),
        assumptions=tuple(dict.fromkeys(notes)),
        weights=labels["weights"],
        lm_head=labels["lm_head"],
    )


def _as_served(tensors: tuple[StoredTensor, ...], spec: ModelSpec) -> tuple[tuple[StoredTensor, ...], list[str]]:
    """``tensors`` as an engine holds them, and the notes so far: a checkpoint in fp32 is served in 16 bit."""
    wide = sum(tensor.size for tensor in tensors if tensor.dtype == "F32")
    if 2 * wide <= sum(tensor.size for tensor in tensors) or weight_dtype(spec.weights).bits != 16:
        return tensors, list(spec.assumptions)
    served = tuple(replace(t, dtype="BF16", size=t.size // 2) if t.dtype == "F32" else t for t in tensors)
    return served, [
        *spec.assumptions,
        "most weights are stored as fp32; engines serve them in 16 bit, which is counted",
    ]


def _labels(spec: ModelSpec, found: _Sorted, *, own_head: bool) -> dict[str, str]:
    """Names of the storage of most weights and of the head; a packed format keeps the name its config gives it."""
    head = found.dtypes.get("head" if own_head else "embedding", {})
    names = {"weights": found.dtypes.get("layers", {}), "lm_head": head}
    labels = {}
    for key, sizes in names.items():
        known = _DTYPES.get(max(sizes, key=lambda dtype: sizes[dtype]), "") if sizes else ""
        labels[key] = known or getattr(spec, key)
    if weight_dtype(spec.weights).quantized and labels["weights"] in ("fp8-raw", "int8-raw"):
        labels["weights"] = spec.weights
    return labels


def _place(found: _Sorted, tensor: StoredTensor, layers: int) -> None:
    name, size = tensor.name, tensor.size
    if _PREDICTING.search(name):
        found.predicting += size
        found.predicting_layers.add("")
        return
    if _BESIDE.search(name) or _NOT_READ.search(name) or _SIDE.search(name):
        found.beside += size
        return
    match = _LAYER.search(name)
    if match is not None:
        layer = int(match[1])
        if layer >= layers:
            found.predicting += size
            found.predicting_layers.add(match[1])
            return
        part = next((part for part, pattern in _IN_LAYER if pattern.search(match[2])), None)
        if part is None:
            found.unknown.append(name)
            return
        if part not in ("norm", "attention", "router") and len(tensor.shape) > 1:
            _weigh(found, "layers", tensor)
        found.layers[layer] = _added(found.layers[layer], part, size, is_scale=bool(_SCALES.search(match[2])))
    elif _FIRST_NORM.search(name):
        found.embedding_norm += size
    elif _EMBEDDING.search(name):
        found.embedding += size
        _weigh(found, "embedding", tensor)
        if len(tensor.shape) == 2 and not _SCALES.search(name):
            found.embedding_rows = tensor.shape[0]
    elif _POSITIONS.search(name):
        found.beside += size
    elif _HEAD.search(name):
        found.head += size
        _weigh(found, "head", tensor)
        found.head_scales += size if _SCALES.search(name) else 0
    elif _LAST_NORM.search(name):
        found.norm += size
    else:
        found.unknown.append(name)


def _weigh(found: _Sorted, place: str, tensor: StoredTensor) -> None:
    sizes = found.dtypes.setdefault(place, {})
    sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.size


def _added(layer: LayerBytes, part: str, size: int, *, is_scale: bool) -> LayerBytes:
    changes = {part: getattr(layer, part) + size}
    if is_scale:
        scales = "expert_scales" if part == "experts" else "scales"
        changes[scales] = getattr(layer, scales) + size
    return replace(layer, **changes)


def _check(found: _Sorted, spec: ModelSpec, where: str) -> None:
    if not found.embedding:
        raise TraceError(f"{where}: no tensor is an input embedding; is a shard missing?")
    for number, layer in enumerate(found.layers):
        if bool(layer.experts) is not has_experts(spec, number):
            raise TraceError(
                f"{where}: layer {number} has {'experts' if layer.experts else 'no experts'}, which contradicts the "
                "experts of its config"
            )
        missing = _missing(layer, spec.layer(number))
        if missing:
            raise TraceError(
                f"{where}: layer {number} of num_hidden_layers {spec.layers} has no weights of its {missing}",
                action="A shard may be missing, or the config belongs to another model.",
            )


def _missing(found: LayerBytes, kind: Layer) -> str:
    """The part that the config gives a layer and the file does not; empty where all are there."""
    if kind.attention is not None and not (found.qkv and found.o):
        return "attention"
    if kind.recurrent is not None and not ((found.state_in or found.qkv) and (found.state_out or found.o)):
        return "recurrent state"
    if kind.has_mlp and not (found.experts or (found.gate_up and found.down)):
        return "MLP"
    return ""
