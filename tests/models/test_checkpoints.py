"""Models tensor by tensor: the formulas against written-out shapes, and the headers of files against both."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.checkpoints import (
    Tensors,
    deepseek,
    gemma,
    gguf_bytes,
    gpt_oss,
    llama,
    mixtral,
    nbytes,
    opt,
    plain,
    preset_config,
    qwen3,
    write_gguf,
    write_model,
    write_safetensors,
)
from tracescope.cli.app import run
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.layer_weights import prediction_bytes
from tracescope.floor.step_floor import step_floor
from tracescope.floor.step_ops import OpWork, scale_bytes, step_ops, step_totals, stored_bytes, weight_read_bytes
from tracescope.models import load_model, make_basis
from tracescope.models.config import spec_from_config


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


NAMES = (
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


def is_embedding(name: str) -> bool:
    return "embed_tokens" in name or "embed_positions" in name


@pytest.mark.parametrize("name", NAMES)
def test_formulas_against_every_tensor(name: str) -> None:
    spec, tensors = load_model(name), as_published(name)
    assert stored_bytes(spec) == nbytes(tensors.values())
    routed = {k: v for k, v in tensors.items() if ".experts." in k}
    always = nbytes(v for k, v in tensors.items() if k not in routed and not is_embedding(k))
    if spec.tied:
        always += nbytes(v for k, v in tensors.items() if "embed_tokens" in k)
    if spec.experts is None:
        assert weight_read_bytes(spec) == always
        assert not routed
        return
    # One token reads the experts it chose, whole: a share of equal experts.
    chosen, experts = spec.experts.chosen, spec.experts.experts
    assert nbytes(routed.values()) * chosen % experts == 0
    assert weight_read_bytes(spec) == always + nbytes(routed.values()) * chosen // experts
    assert weight_read_bytes(spec, 1, 1 << 20) == always + nbytes(routed.values())


def test_known_totals() -> None:
    """Public parameter counts and sizes of checkpoints."""
    assert nbytes(as_published("gemma-2-9b").values()) == 2 * 9_241_705_984
    assert nbytes(as_published("opt-6.7b").values()) == 2 * 6_658_473_984
    assert nbytes(as_published("gpt-oss-20b").values()) == 13_761_264_768
    assert nbytes(as_published("deepseek-v3").values()) == 2 * 671_026_419_200


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

PUBLIC: dict[str, tuple[dict[str, Any], int]] = {
    "Qwen3-30B-A3B": (
        {
            "model_type": "qwen3_moe",
            "hidden_size": 2048,
            "num_hidden_layers": 48,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "intermediate_size": 6144,
            "moe_intermediate_size": 768,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "vocab_size": 151_936,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "use_sliding_window": False,
        },
        30_532_122_624,
    ),
    "OLMoE-1B-7B": (
        {
            "model_type": "olmoe",
            "hidden_size": 2048,
            "num_hidden_layers": 16,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 1024,
            "num_experts": 64,
            "num_experts_per_tok": 8,
            "vocab_size": 50_304,
        },
        6_919_161_856,
    ),
    "DeepSeek-V2-Lite": (
        {
            "model_type": "deepseek_v2",
            "hidden_size": 2048,
            "num_hidden_layers": 27,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 10_944,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "first_k_dense_replace": 1,
            "moe_layer_freq": 1,
            "vocab_size": 102_400,
            "q_lora_rank": None,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128,
            "v_head_dim": 128,
            "topk_method": "greedy",
        },
        15_706_484_224,
    ),
    "Qwen1.5-MoE-A2.7B": (
        {
            "model_type": "qwen2_moe",
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 5632,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "vocab_size": 151_936,
            "sliding_window": 32_768,
            "use_sliding_window": False,
        },
        14_315_784_192,
    ),
    "Phi-3.5-MoE": (
        {
            "model_type": "phimoe",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 6400,
            "num_local_experts": 16,
            "num_experts_per_tok": 2,
            "vocab_size": 32_064,
            "sliding_window": 131_072,
            "attention_bias": True,
        },
        41_873_153_344,
    ),
    "OLMo-2-7B": (
        {
            "model_type": "olmo2",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "intermediate_size": 11_008,
            "vocab_size": 100_352,
        },
        7_298_617_344,
    ),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_parameter_counts(name: str) -> None:
    config, parameters = PUBLIC[name]
    whole = {"torch_dtype": "bfloat16", "tie_word_embeddings": False, **config}
    spec = spec_from_config(whole, name=name, file=name)
    assert spec.assumptions == ()
    assert stored_bytes(spec) == 2 * parameters


def test_layers_that_predict_later_tokens_are_neither_read_nor_stored() -> None:
    config = {**preset_config("deepseek-v3"), "num_nextn_predict_layers": 1}
    more, plain_one = spec_from_config(config, name="x", file="x"), load_model("deepseek-v3")
    assert weight_read_bytes(more) == weight_read_bytes(plain_one)
    layer = {k: v for k, v in as_published("deepseek-v3").items() if k.startswith("model.layers.60.")}
    joining = 2 * (2 * 7168 * 7168 + 3 * 7168)
    assert stored_bytes(more) == stored_bytes(plain_one)
    assert prediction_bytes(more) == nbytes(layer.values()) + joining
    notes = step_floor(more, Workload(), make_basis(None)).notes
    assert any("multi-token prediction" in note for note in notes)


@pytest.mark.parametrize(
    ("changes", "windows"),
    [
        ({"model_type": "mistral", "sliding_window": 64}, (64,) * 6),
        ({"model_type": "gemma2", "sliding_window": 64}, (64, None) * 3),
        ({"model_type": "gemma3_text", "sliding_window": 64}, (64,) * 5 + (None,)),
        ({"model_type": "cohere2", "sliding_window": 64, "sliding_window_pattern": 3}, (64, 64, None) * 2),
        ({"model_type": "llama", "sliding_window": 64, "sliding_window_pattern": "LLG"}, (64, 64, None) * 2),
        ({"model_type": "qwen2", "sliding_window": 64}, ()),
        ({"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": True}, ()),
        (
            {"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": True, "max_window_layers": 4},
            (None,) * 4 + (64,) * 2,
        ),
        ({"model_type": "gemma2", "sliding_window": None}, ()),
        ({"sliding_window": 64, "layer_types": ["full_attention"] * 6}, ()),
    ],
)
def test_the_ways_of_saying_which_layers_have_a_window(
    changes: dict[str, Any], windows: tuple[int | None, ...]
) -> None:
    spec = spec_from_config({**SMALL, "num_hidden_layers": 6, "head_dim": 64, **changes}, name="x", file="x")
    assert spec.windows == windows
    assert spec.assumptions == ()


def test_a_window_of_unknown_reach_is_said() -> None:
    spec = spec_from_config({**SMALL, "sliding_window": 64}, name="x", file="x")
    assert spec.windows == (64, 64)
    assert any("sliding_window" in note for note in spec.assumptions)


def test_values_of_another_head_size_are_refused() -> None:
    with pytest.raises(TraceError, match="v_head_dim"):
        spec_from_config({**SMALL, "head_dim": 192, "v_head_dim": 128}, name="x", file="x")


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_stored_and_read_back(name: str, tmp_path: Path) -> None:
    spec = load_model(name)
    if name == "gpt-oss-20b":
        config = {key: value for key, value in preset_config(name).items() if not key.startswith("_")}
        spec = load_model(str(write_model(tmp_path / name, config, as_published(name))))
        assert spec.tensors is not None
    assert msgspec.json.decode(msgspec.json.encode(spec), type=ModelSpec) == spec
    old = msgspec.to_builtins(load_model("llama-3-8b"))
    new = ("kinds", "pattern", "sinks", "latent", "experts", "prediction_layers", "tensors", "qk_norm_wide")
    assert msgspec.convert({k: v for k, v in old.items() if k not in new}, type=ModelSpec) == load_model("llama-3-8b")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kinds": [{"attention": None, "ffn": 4}], "pattern": [0, 0, 0]}, "pattern of 3 layers in a model of 32"),
        ({"kinds": [{"attention": None, "ffn": 4}], "pattern": [1] * 32}, "not there"),
        (
            {
                "kinds": [{"attention": {"heads": 1, "kv_heads": 1, "head_dim": 1, "window": -5}, "ffn": 4}],
                "pattern": [0] * 32,
            },
            "window of -5",
        ),
        ({"experts": {"experts": 2, "chosen": 3, "ffn": 4}}, "3 of 2 experts"),
    ],
)
def test_a_stored_model_that_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    stored = {**msgspec.to_builtins(load_model("llama-3-8b")), **changes}
    with pytest.raises(msgspec.ValidationError, match=words):
        msgspec.convert(stored, type=ModelSpec)


def comparable(op: OpWork) -> OpWork:
    return replace(op, activation=0)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "deepseek-v3"])
def test_headers_give_the_same_bytes_as_the_formulas(name: str, tmp_path: Path) -> None:
    config = {key: value for key, value in preset_config(name).items() if not key.startswith("_")}
    folder = write_model(tmp_path / name, config, as_published(name), shards=3)
    spec, formula = load_model(str(folder)), load_model(name)
    assert spec.tensors is not None
    assert spec.assumptions == ()
    assert (spec.weights, spec.lm_head) == (formula.weights, formula.lm_head)
    assert stored_bytes(spec) == stored_bytes(formula)
    assert scale_bytes(spec, 1, 7) == scale_bytes(formula, 1, 7)
    workload = Workload(7, 300)
    assert step_totals(spec, workload) == step_totals(formula, workload)
    assert list(map(comparable, step_ops(spec, workload))) == list(map(comparable, step_ops(formula, workload)))
    # One rank's bytes are by formula, and another dtype is a question about another checkpoint.
    two = Workload(2, 5, tensor_parallel=2)
    assert step_totals(spec, two) == step_totals(replace(spec, tensors=None), two)
    assert load_model(str(folder), weights="fp8").tensors is None


def small() -> Tensors:
    return plain(llama(256, 512, 2, 4, 2, 64, 1000))


def test_a_packed_checkpoint_weighs_what_its_tensors_do(tmp_path: Path) -> None:
    """GPTQ: packed values, packed zeros, scales and an index of groups for each linear weight."""
    tensors: Tensors = {}
    for name, (dtype, shape) in small().items():
        if ".layers." not in name or "norm" in name:
            tensors[name] = (dtype, shape)
            continue
        n_out, n_in = shape
        base = name.removesuffix(".weight")
        tensors |= {
            f"{base}.qweight": ("I32", (n_in // 8, n_out)),
            f"{base}.qzeros": ("I32", (n_in // 128, n_out // 8)),
            f"{base}.scales": ("F16", (n_in // 128, n_out)),
            f"{base}.g_idx": ("I32", (n_in,)),
        }
    config = {**SMALL, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    spec = load_model(str(write_model(tmp_path / "packed", config, tensors)))
    by_formula = replace(spec, tensors=None)
    assert spec.weights == "gptq-int4"
    indices = nbytes(v for k, v in tensors.items() if k.endswith("g_idx"))
    assert weight_read_bytes(spec) - weight_read_bytes(by_formula) == indices
    assert scale_bytes(spec) - scale_bytes(by_formula) == indices
    assert stored_bytes(spec) == nbytes(tensors.values())


def test_what_no_step_reads_is_stored_only(tmp_path: Path) -> None:
    extra = plain(
        {
            "vision_tower.blocks.0.attn.qkv.weight": (96, 32),
            "model.layers.2.self_attn.q_proj.weight": (256, 256),  # a layer that predicts later tokens
            "model.layers.0.self_attn.rotary_emb.inv_freq": (32,),
        }
    )
    folder = write_model(tmp_path / "more", SMALL, small() | extra)
    spec = load_model(str(folder))
    assert spec.assumptions == ()
    predicting = nbytes(v for k, v in extra.items() if ".layers.2." in k)
    assert stored_bytes(spec) == nbytes(small().values()) + nbytes(extra.values()) - predicting
    assert spec.prediction_layers == 1
    assert weight_read_bytes(spec) == weight_read_bytes(replace(spec, tensors=None))


def test_differences_from_the_config_are_said(tmp_path: Path) -> None:
    tensors = small() | plain({"model.embed_tokens.weight": (1024, 256), "lm_head.weight": (1024, 256)})
    tensors |= plain({"model.layers.1.mlp.adapter.weight": (3, 3)})
    notes = load_model(str(write_model(tmp_path / "padded", SMALL, tensors))).assumptions
    assert any("vocab_size is 1,000 but the embedding has 1,024 rows" in note for note in notes)
    assert any("1 tensors are stored but taken as not read" in note and "adapter" in note for note in notes)
    wide = {name: ("F32", shape) for name, (_, shape) in small().items()}
    spec = load_model(str(write_model(tmp_path / "wide", SMALL, wide)))
    assert spec.weights == "bf16"
    assert stored_bytes(spec) == nbytes(small().values())
    assert any("served" in note or "serve them in 16 bit" in note for note in spec.assumptions)


def refusal(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        load_model(str(path))
    assert len(caught.value.lines()) <= 2
    return " ".join(caught.value.lines())


def without(*words: str) -> Tensors:
    return {name: tensor for name, tensor in small().items() if not any(word in name for word in words)}


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (without("layers.1."), "layer 1 of num_hidden_layers 2 has no weights of its attention"),
        (without("layers.0.mlp.down"), "layer 0 of num_hidden_layers 2 has no weights of its MLP"),
        (without("embed_tokens"), "no tensor is an input embedding"),
        (small() | plain({"model.layers.0.mlp.experts.0.up_proj.weight": (4, 4)}), "layer 0 has experts"),
    ],
)
def test_tensors_that_contradict_the_config(tensors: Tensors, words: str, tmp_path: Path) -> None:
    assert words in refusal(write_model(tmp_path / "bad", SMALL, tensors))


def test_shards_that_are_missing_cut_or_double(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", SMALL, small(), shards=2)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert "00002-of-00002.safetensors: the index names this file" in refusal(folder)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../elsewhere.safetensors"}}))
    assert "not a file beside it" in refusal(folder)
    index.write_text(json.dumps({"weight_map": [1]}))
    assert "weight_map" in refusal(folder)
    index.unlink()
    write_safetensors(folder / "model-00001-of-00002.safetensors", small(), cut=10)
    assert "lies outside the file" in refusal(folder)
    write_safetensors(folder / "model-00001-of-00002.safetensors", small())
    write_safetensors(folder / "model-00002-of-00002.safetensors", small())
    assert "in another shard as well" in refusal(folder)


def header(text: bytes, length: int | None = None, data: int = 64) -> bytes:
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(data)


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "short": b"\x01\x02",
    "zero": header(b"", 0),
    "longer-than-the-file": header(b"{}", 1 << 62),
    "not-json": header(b"hello"),
    "list": header(b"[]"),
    "deep": header(b'{"a":' + b"[" * 100_000),
    "no-offsets": header(b'{"a": {"dtype": "F32", "shape": [1]}}'),
    "unknown-dtype": header(b'{"a": {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}}'),
    "negative": header(b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}'),
    "huge-shape": header(b'{"a": {"dtype": "U8", "shape": [9999999999, 9999999999], "data_offsets": [0, 4]}}'),
    "wrong-size": header(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}'),
    "backwards": header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}}'),
    "outside": header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [64, 68]}}'),
    "bad-text": header(b'{"\xff": 1}'),
    "float-shape": header(b'{"a": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}}'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_safetensors(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_model(tmp_path / "m", SMALL, {})
    path = folder / "model.safetensors"
    path.write_bytes(HOSTILE[name])
    for argument in (folder, path):
        assert run(["floor", "--model", str(argument)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "safetensors" in captured.err
        assert len(captured.err.splitlines()) <= 3


METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "Small",
    "llama.embedding_length": 256,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": [2, 2],
    "llama.feed_forward_length": 512,
    "llama.context_length": 4096,
    "llama.rope.dimension_count": 64,
    "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.tokens": [f"t{i}" for i in range(1000)],
    "tokenizer.ggml.add_bos_token": True,
}


def gguf_small() -> Tensors:
    found: Tensors = {
        "token_embd.weight": ("q4_k", (1000, 256)),
        "output_norm.weight": ("f32", (256,)),
        "output.weight": ("q6_k", (1000, 256)),
    }
    for i in range(2):
        found |= {
            f"blk.{i}.attn_norm.weight": ("f32", (256,)),
            f"blk.{i}.ffn_norm.weight": ("f32", (256,)),
            f"blk.{i}.attn_q.weight": ("q4_k", (256, 256)),
            f"blk.{i}.attn_k.weight": ("q4_k", (128, 256)),
            f"blk.{i}.attn_v.weight": ("q6_k", (128, 256)),
            f"blk.{i}.attn_output.weight": ("q4_k", (256, 256)),
            f"blk.{i}.ffn_gate.weight": ("q4_k", (512, 256)),
            f"blk.{i}.ffn_up.weight": ("q4_k", (512, 256)),
            f"blk.{i}.ffn_down.weight": ("q6_k", (256, 512)),
        }
    return found


def gguf_total(tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
    return sum(gguf_bytes(dtype, shape) for dtype, shape in tensors.values())


def test_a_gguf_file_is_read_tensor_by_tensor(tmp_path: Path) -> None:
    path, tensors = tmp_path / "small.gguf", gguf_small()
    write_gguf(path, METADATA, tensors)
    for place in (path, tmp_path):
        spec = load_model(str(place))
        assert (spec.hidden, spec.layers, spec.heads, spec.kv_heads, spec.vocab) == (256, 2, 4, 2, 1000)
        assert (spec.weights, spec.lm_head, spec.kv, spec.title) == ("q4_k", "q6_k", "fp16", "Small")
        assert not spec.tied
        assert stored_bytes(spec) == gguf_total(tensors)
        read = gguf_total({name: tensor for name, tensor in tensors.items() if "token_embd" not in name})
        assert weight_read_bytes(spec) == read
        assert step_totals(spec, Workload(3)).embedding_gather == 3 * 144
    del tensors["output.weight"]
    write_gguf(path, METADATA, tensors)
    tied = load_model(str(path))
    assert tied.tied
    assert weight_read_bytes(tied) == gguf_total(tensors)


def test_experts_of_a_gguf_file(tmp_path: Path) -> None:
    """Each layer's experts lie in three tensors; one token reads two of four, whole."""
    experts: Tensors = {}
    for name, tensor in gguf_small().items():
        if "ffn_" not in name or "norm" in name:
            experts[name] = tensor
    for i in range(2):
        experts |= {
            f"blk.{i}.ffn_gate_inp.weight": ("f32", (4, 256)),
            f"blk.{i}.ffn_gate_exps.weight": ("q4_k", (4, 512, 256)),
            f"blk.{i}.ffn_up_exps.weight": ("q4_k", (4, 512, 256)),
            f"blk.{i}.ffn_down_exps.weight": ("q6_k", (4, 256, 512)),
        }
    path = tmp_path / "experts.gguf"
    write_gguf(path, changed(llama__expert_count=4, llama__expert_used_count=2), experts)
    spec = load_model(str(path))
    routed = gguf_total({name: tensor for name, tensor in experts.items() if "_exps" in name})
    always = gguf_total({n: t for n, t in experts.items() if "_exps" not in n and "token_embd" not in n})
    assert weight_read_bytes(spec) == always + routed // 2
    assert weight_read_bytes(spec, 1, 4096) == always + routed
    assert stored_bytes(spec) == gguf_total(experts)


def test_norms_that_a_file_has_more_or_less_of_are_counted_as_they_are(tmp_path: Path) -> None:
    for name, tensors in (
        ("none", without("input_layernorm", "post_attention_layernorm")),
        ("odd", small() | plain({f"model.layers.{i}.extra_norm.weight": (3,) for i in range(2)})),
    ):
        spec = load_model(str(write_model(tmp_path / name, SMALL, tensors)))
        ops = step_ops(spec, Workload())
        assert min(op.weight_read for op in ops) >= 0
        read = nbytes(v for k, v in tensors.items() if "embed_tokens" not in k)
        assert sum(op.weight_read for op in ops) == weight_read_bytes(spec) == read


def test_parts_of_a_gguf_model_are_read_together(tmp_path: Path) -> None:
    tensors = gguf_small()
    first = {name: tensor for name, tensor in tensors.items() if "blk.1" not in name}
    second = {name: tensor for name, tensor in tensors.items() if "blk.1" in name}
    write_gguf(tmp_path / "m-00001-of-00002.gguf", METADATA, first)
    assert "this part of the model is not there" in refusal(tmp_path / "m-00001-of-00002.gguf")
    write_gguf(tmp_path / "m-00002-of-00002.gguf", {"split.no": 1}, second)
    for place in (tmp_path, tmp_path / "m-00002-of-00002.gguf"):
        assert stored_bytes(load_model(str(place))) == gguf_total(tensors)


def changed(**metadata: Any) -> dict[str, Any]:
    renamed = {key.replace("__", "."): value for key, value in metadata.items()}
    return {key: value for key, value in {**METADATA, **renamed}.items() if value is not None}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (changed(general__architecture=None), "general.architecture is missing"),
        (changed(llama__embedding_length=None), "hidden_size is missing"),
        (changed(llama__attention__head_count_kv=[2, 4]), "attention.head_count_kv differs from layer to layer"),
        (changed(general__architecture="rwkv", rwkv__block_count=2), "recurrent"),
        (changed(llama__block_count=3), "layer 2 of num_hidden_layers 3"),
    ],
)
def test_gguf_metadata_that_says_too_little(metadata: dict[str, Any], words: str, tmp_path: Path) -> None:
    write_gguf(tmp_path / "bad.gguf", metadata, gguf_small())
    assert words in refusal(tmp_path / "bad.gguf")


def start(version: int, tensors: int, keys: int) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


HOSTILE_GGUF: dict[str, bytes] = {
    "empty": b"",
    "magic-only": b"GGUF",
    "other-magic": b"GGML" + bytes(100),
    "old-version": start(1, 0, 0),
    "many-keys": start(3, 0, 1 << 60),
    "many-tensors": start(3, 1 << 60, 0),
    "long-key": start(3, 0, 1) + struct.pack("<Q", 1 << 60),
    "cut-key": start(3, 0, 1) + struct.pack("<Q", 100) + b"abc",
    "unknown-type": start(3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<I", 99),
    "array-of-arrays": start(3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 9, 5),
    "endless-array": start(3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 4, 1 << 60),
    "long-array": start(3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 10, 1 << 23),
    "many-dimensions": start(3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<I", 200),
    "huge-tensor": start(3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<IQQIQ", 2, 1 << 40, 1 << 40, 0, 0),
    "tensor-type": start(3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<IQIQ", 1, 4, 77, 0),
    "tensor-outside": start(3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<IQIQ", 1, 4, 0, 1 << 40),
}


@pytest.mark.parametrize("name", HOSTILE_GGUF)
def test_hostile_gguf(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(HOSTILE_GGUF[name])
    assert run(["floor", "--model", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hostile.gguf" in captured.err
    assert len(captured.err.splitlines()) <= 3


@pytest.fixture
def loads(tmp_path: Path) -> Callable[[str, bytes], ModelSpec | None]:
    folder = write_model(tmp_path / "m", SMALL, small())

    def call(name: str, data: bytes) -> ModelSpec | None:
        path = folder / name
        path.write_bytes(data)
        refused: TraceError | None = None
        try:
            return load_model(str(path))
        except TraceError as error:
            refused = error
        assert all(len(line) < 500 for line in refused.lines())
        return None

    return call


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_damaged_headers_give_a_model_or_one_refusal(
    data: st.DataObject, loads: Callable[[str, bytes], ModelSpec | None], tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    if data.draw(st.booleans()):
        write_safetensors(whole, small())
        name = "model.safetensors"
    else:
        write_gguf(whole, METADATA, gguf_small())
        name = "model.gguf"
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 9000) - 1))] = data.draw(st.integers(0, 255))
    spec = loads(name, bytes(content))
    assert spec is None or weight_read_bytes(spec) > 0
