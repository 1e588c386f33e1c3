"""From the names and sizes of a checkpoint's tensors to the bytes that each op of a step reads."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from tracescope.core.errors import TraceError
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

_SCALES: Final = re.compile(r"scale|zero|g_idx|absmax|quant_map|quant_state")

_IN_LAYER: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (part, re.compile("|".join(patterns)))
    for part, patterns in (
        (
            "router",
            (
                r"shared_expert_gate",
                r"ffn_gate_inp",
                r"(?:^|\.)router\.",
                r"(?:mlp|block_sparse_moe|feed_forward|ffn)\.gate\.",
                r"exp_probs_b",
                r"e_score_correction",
            ),
        ),
        ("gate_up", (r"(?:shared_experts?|shared_mlp)\..*(?:gate|up|w1|w3|input_linear)", r"ffn_(?:gate|up)_shexp")),
        ("down", (r"(?:shared_experts?|shared_mlp)\..*(?:down|w2|output_linear)", r"ffn_down_shexp")),
        ("experts", (r"experts\.", r"_exps\b", r"(?:input|output)_linear")),
        ("norm", (r"norm", r"(?:^|\.)ln_?\w*\.")),
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
    dtypes: dict[str, dict[str, int]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


def with_tensors(spec: ModelSpec, tensors: Iterable[StoredTensor], where: str) -> ModelSpec:
    """``spec`` with the bytes that ``tensors`` state, and what had to be assumed about them.

    Raises TraceError where they contradict the shapes: a layer without weights, layers missing, no embedding.
    """
    found = _Sorted([LayerBytes()] * spec.layers)
    for tensor in tensors:
        found.stored += tensor.size
        _place(found, tensor, spec.layers)
    _check(found, spec, where)
    notes = list(spec.assumptions)
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
        stored=found.stored,
    )
    return replace(
        spec,
        tensors=truth,
        assumptions=tuple(dict.fromkeys(notes)),
        weights=labels["weights"],
        lm_head=labels["lm_head"],
    )


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
    if _BESIDE.search(name) or _NOT_READ.search(name):
        found.beside += size
        return
    match = _LAYER.search(name)
    if match is not None:
        layer = int(match[1])
        if layer >= layers:  # predicts later tokens
            found.beside += size
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
        mlp = layer.experts or (layer.gate_up and layer.down)
        if not (layer.qkv and layer.o and mlp):
            raise TraceError(
                f"{where}: layer {number} of num_hidden_layers {spec.layers} has no weights of "
                + ("its attention" if not (layer.qkv and layer.o) else "its MLP"),
                action="A shard may be missing, or the config belongs to another model.",
            )
