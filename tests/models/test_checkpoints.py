"""Models tensor by tensor: the formulas against written-out shapes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kit.checkpoints import (
    PUBLISHED,
    SMALL,
    as_published,
    nbytes,
    preset_config,
    write_model,
)
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.layer_weights import prediction_bytes
from tracescope.floor.step_floor import step_floor
from tracescope.floor.step_ops import stored_bytes, weight_read_bytes
from tracescope.models import load_model, make_basis
from tracescope.models.config import spec_from_config


def is_embedding(name: str) -> bool:
    return "embed_tokens" in name or "embed_positions" in name


@pytest.mark.parametrize("name", PUBLISHED)
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


@pytest.mark.parametrize("name", PUBLISHED)
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
