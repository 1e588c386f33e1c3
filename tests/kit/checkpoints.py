"""Checkpoints made by hand: the tensors that public models store, by name and shape, and files that hold only headers.

Nothing here is the product's: shapes are written out tensor by tensor as the checkpoints list them.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import pytest

from tracescope.core.errors import TraceError
from tracescope.models import load_model

Tensors = dict[str, tuple[str, tuple[int, ...]]]
"""Name to (dtype, shape), shapes as PyTorch stores them: outputs first."""

BYTES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1, "I32": 4}


def nbytes(tensors: Iterable[tuple[str, tuple[int, ...]]]) -> int:
    """Bytes of all of them."""
    return sum(BYTES[dtype] * prod(shape) for dtype, shape in tensors)


def plain(shapes: Mapping[str, tuple[int, ...]], dtype: str = "BF16") -> Tensors:
    """Every shape in one dtype."""
    return {name: (dtype, shape) for name, shape in shapes.items()}


def llama(  # noqa: PLR0917
    d: int, f: int, layers: int, heads: int, kv: int, h: int, vocab: int
) -> dict[str, tuple[int, ...]]:
    """Llama 3: gated MLP, no biases, a head of its own."""
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, d), "model.norm.weight": (d,)}
    found["lm_head.weight"] = (vocab, d)
    for i in range(layers):
        layer = f"model.layers.{i}"
        found |= {
            f"{layer}.self_attn.q_proj.weight": (heads * h, d),
            f"{layer}.self_attn.k_proj.weight": (kv * h, d),
            f"{layer}.self_attn.v_proj.weight": (kv * h, d),
            f"{layer}.self_attn.o_proj.weight": (d, heads * h),
            f"{layer}.mlp.gate_proj.weight": (f, d),
            f"{layer}.mlp.up_proj.weight": (f, d),
            f"{layer}.mlp.down_proj.weight": (d, f),
            f"{layer}.input_layernorm.weight": (d,),
            f"{layer}.post_attention_layernorm.weight": (d,),
        }
    return found


def qwen3(  # noqa: PLR0917
    d: int, f: int, layers: int, heads: int, kv: int, h: int, vocab: int
) -> dict[str, tuple[int, ...]]:
    """Llama's tensors and a norm of each query and key head."""
    found = llama(d, f, layers, heads, kv, h, vocab)
    for i in range(layers):
        found[f"model.layers.{i}.self_attn.q_norm.weight"] = (h,)
        found[f"model.layers.{i}.self_attn.k_norm.weight"] = (h,)
    return found


def gemma(  # noqa: PLR0917
    d: int, f: int, layers: int, heads: int, kv: int, h: int, vocab: int, *, qk_norm: bool
) -> dict[str, tuple[int, ...]]:
    """Gemma 2 and 3: norms before and after each block, one table for both ends; 3 also norms queries and keys."""
    found = (qwen3 if qk_norm else llama)(d, f, layers, heads, kv, h, vocab)
    del found["lm_head.weight"]
    for i in range(layers):
        found[f"model.layers.{i}.pre_feedforward_layernorm.weight"] = (d,)
        found[f"model.layers.{i}.post_feedforward_layernorm.weight"] = (d,)
    return found


def opt(d: int, f: int, layers: int, vocab: int, positions: int) -> dict[str, tuple[int, ...]]:
    """OPT: every bias, two rows of positions more than it claims, one table for both ends."""
    found: dict[str, tuple[int, ...]] = {
        "model.decoder.embed_tokens.weight": (vocab, d),
        "model.decoder.embed_positions.weight": (positions + 2, d),
        "model.decoder.final_layer_norm.weight": (d,),
        "model.decoder.final_layer_norm.bias": (d,),
    }
    for i in range(layers):
        layer = f"model.decoder.layers.{i}"
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            found[f"{layer}.self_attn.{name}.weight"] = (d, d)
            found[f"{layer}.self_attn.{name}.bias"] = (d,)
        for norm in ("self_attn_layer_norm", "final_layer_norm"):
            found[f"{layer}.{norm}.weight"] = (d,)
            found[f"{layer}.{norm}.bias"] = (d,)
        found |= {f"{layer}.fc1.weight": (f, d), f"{layer}.fc1.bias": (f,)}
        found |= {f"{layer}.fc2.weight": (d, f), f"{layer}.fc2.bias": (d,)}
    return found


def mixtral(  # noqa: PLR0917
    d: int, f: int, layers: int, heads: int, kv: int, h: int, vocab: int, experts: int
) -> dict[str, tuple[int, ...]]:
    """Llama's attention, and experts of three matrices each behind a router."""
    found = {name: shape for name, shape in llama(d, f, layers, heads, kv, h, vocab).items() if ".mlp." not in name}
    for i in range(layers):
        moe = f"model.layers.{i}.block_sparse_moe"
        found[f"{moe}.gate.weight"] = (experts, d)
        for e in range(experts):
            found[f"{moe}.experts.{e}.w1.weight"] = (f, d)
            found[f"{moe}.experts.{e}.w2.weight"] = (d, f)
            found[f"{moe}.experts.{e}.w3.weight"] = (f, d)
    return found


def gpt_oss(  # noqa: PLR0917
    d: int, f: int, layers: int, heads: int, kv: int, h: int, vocab: int, experts: int
) -> Tensors:
    """gpt-oss: sinks, biases everywhere, experts in MXFP4 (blocks of 32 values: 16 bytes and one of scale)."""
    found = plain({"model.embed_tokens.weight": (vocab, d), "model.norm.weight": (d,), "lm_head.weight": (vocab, d)})
    for i in range(layers):
        layer = f"model.layers.{i}"
        for name, rows in (("q_proj", heads * h), ("k_proj", kv * h), ("v_proj", kv * h)):
            found |= plain({f"{layer}.self_attn.{name}.weight": (rows, d), f"{layer}.self_attn.{name}.bias": (rows,)})
        found |= plain(
            {
                f"{layer}.self_attn.o_proj.weight": (d, heads * h),
                f"{layer}.self_attn.o_proj.bias": (d,),
                f"{layer}.self_attn.sinks": (heads,),
                f"{layer}.input_layernorm.weight": (d,),
                f"{layer}.post_attention_layernorm.weight": (d,),
                f"{layer}.mlp.router.weight": (experts, d),
                f"{layer}.mlp.router.bias": (experts,),
                f"{layer}.mlp.experts.gate_up_proj_bias": (experts, 2 * f),
                f"{layer}.mlp.experts.down_proj_bias": (experts, d),
            }
        )
        found |= plain(
            {
                f"{layer}.mlp.experts.gate_up_proj_blocks": (experts, 2 * f, d // 32, 16),
                f"{layer}.mlp.experts.gate_up_proj_scales": (experts, 2 * f, d // 32),
                f"{layer}.mlp.experts.down_proj_blocks": (experts, d, f // 32, 16),
                f"{layer}.mlp.experts.down_proj_scales": (experts, d, f // 32),
            },
            "U8",
        )
    return found


def deepseek(config: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """DeepSeek-V3's main model: compressed queries, keys and values; dense first layers; a shared expert."""
    d, heads, vocab = config["hidden_size"], config["num_attention_heads"], config["vocab_size"]
    q_rank, kv_rank, rope = config["q_lora_rank"], config["kv_lora_rank"], config["qk_rope_head_dim"]
    nope, v, f = config["qk_nope_head_dim"], config["v_head_dim"], config["moe_intermediate_size"]
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, d), "model.norm.weight": (d,)}
    found["lm_head.weight"] = (vocab, d)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        found |= {
            f"{layer}.self_attn.q_a_proj.weight": (q_rank, d),
            f"{layer}.self_attn.q_a_layernorm.weight": (q_rank,),
            f"{layer}.self_attn.q_b_proj.weight": (heads * (nope + rope), q_rank),
            f"{layer}.self_attn.kv_a_proj_with_mqa.weight": (kv_rank + rope, d),
            f"{layer}.self_attn.kv_a_layernorm.weight": (kv_rank,),
            f"{layer}.self_attn.kv_b_proj.weight": (heads * (nope + v), kv_rank),
            f"{layer}.self_attn.o_proj.weight": (d, heads * v),
            f"{layer}.input_layernorm.weight": (d,),
            f"{layer}.post_attention_layernorm.weight": (d,),
        }
        if i < config["first_k_dense_replace"]:
            found |= _mlp(f"{layer}.mlp", d, config["intermediate_size"])
            continue
        found |= _mlp(f"{layer}.mlp.shared_experts", d, f)
        found[f"{layer}.mlp.gate.weight"] = (config["n_routed_experts"], d)
        found[f"{layer}.mlp.gate.e_score_correction_bias"] = (config["n_routed_experts"],)
        for e in range(config["n_routed_experts"]):
            found |= _mlp(f"{layer}.mlp.experts.{e}", d, f)
    return found


def _mlp(name: str, d: int, f: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.gate_proj.weight": (f, d), f"{name}.up_proj.weight": (f, d), f"{name}.down_proj.weight": (d, f)}


def write_safetensors(path: Path, tensors: Tensors, *, cut: int = 0) -> None:
    """A file with a true header; the data is a hole. ``cut`` bytes are missing at its end."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape) in tensors.items():
        size = nbytes([(dtype, shape)])
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at - cut)


def write_model(folder: Path, config: Mapping[str, object], tensors: Tensors, shards: int = 1) -> Path:
    """A directory as published: config.json, ``shards`` files, and an index where there are several."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    names = list(tensors)
    placed: dict[str, str] = {}
    for i in range(shards):
        file = "model.safetensors" if shards == 1 else f"model-{i + 1:05}-of-{shards:05}.safetensors"
        own = {name: tensors[name] for name in names[i::shards]}
        write_safetensors(folder / file, own)
        placed |= dict.fromkeys(own, file)
    if shards > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    return folder


GGML = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_k": (12, 256, 144), "q6_k": (14, 256, 210), "q8_0": (8, 32, 34)}
"""Number, values a block, bytes a block."""


def gguf_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor in whole blocks."""
    _, values, size = GGML[dtype]
    return -(-prod(shape) // values) * size


def write_gguf(path: Path, metadata: Mapping[str, object], tensors: Tensors, *, cut: int = 0) -> None:
    """A GGUF file of version 3 with a true header and a hole for its data."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def value(item: object) -> bytes:
        if isinstance(item, bool):
            return struct.pack("<I?", 7, item)
        if isinstance(item, int):
            return struct.pack("<II", 4, item)
        if isinstance(item, float):
            return struct.pack("<If", 6, item)
        if isinstance(item, str):
            return struct.pack("<I", 8) + text(item)
        assert isinstance(item, list)
        kind = 8 if item and isinstance(item[0], str) else 4
        inner = b"".join(text(x) if kind == 8 else struct.pack("<I", x) for x in item)
        return struct.pack("<IIQ", 9, kind, len(item)) + inner

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, item in metadata.items():
        out += text(key) + value(item)
    at = 0
    for name, (dtype, shape) in tensors.items():
        out += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        out += struct.pack("<IQ", GGML[dtype][0], at)
        at += gguf_bytes(dtype, shape)
    with path.open("wb") as file:
        file.write(out)
        file.truncate(len(out) + at - cut)


CONFIGS = Path(__file__).resolve().parents[2] / "tracescope" / "presets" / "models"


def preset_config(name: str) -> dict[str, Any]:
    """The config that a built-in model is made from."""
    config: dict[str, Any] = json.loads((CONFIGS / f"{name}.json").read_text())
    return config


def as_published(name: str) -> Tensors:
    """The tensors of a preset's checkpoint."""
    if name == "gpt-oss-20b":
        return gpt_oss(2880, 2880, 24, 64, 8, 64, 201_088, 32)
    if name == "opt-6.7b":
        return plain(opt(4096, 16_384, 32, 50_272, 2048), "F16")
    if name == "deepseek-v3":
        return plain(deepseek(preset_config(name)))
    shapes = {
        "llama-3-8b": llama(4096, 14_336, 32, 32, 8, 128, 128_256),
        "qwen3-8b": qwen3(4096, 12_288, 36, 32, 8, 128, 151_936),
        "qwen3-32b": qwen3(5120, 25_600, 64, 64, 8, 128, 151_936),
        "gemma-2-9b": gemma(3584, 14_336, 42, 16, 8, 256, 256_000, qk_norm=False),
        "gemma-3-12b": gemma(3840, 15_360, 48, 16, 8, 256, 262_208, qk_norm=True),
        "mixtral-8x7b": mixtral(4096, 14_336, 32, 32, 8, 128, 32_000, 8),
    }
    return plain(shapes[name])


PUBLISHED = (
    "llama-3-8b",
    "qwen3-8b",
    "qwen3-32b",
    "gemma-2-9b",
    "gemma-3-12b",
    "opt-6.7b",
    "mixtral-8x7b",
    "gpt-oss-20b",
    "deepseek-v3",
)


SMALL: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 512,
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


def small() -> Tensors:
    return plain(llama(256, 512, 2, 4, 2, 64, 1000))


def refusal(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        load_model(str(path))
    assert len(caught.value.lines()) <= 2
    return " ".join(caught.value.lines())


def without(*words: str) -> Tensors:
    return {name: tensor for name, tensor in small().items() if not any(word in name for word in words)}
