"""The config reader: dense families by closed formulas, handed cases, hostile files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracescope.cli.app import run
from tracescope.core.category import Op
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.capacity import capacity
from tracescope.floor.step_ops import kv_bytes_per_token, layer_matrices, scale_bytes, step_totals, stored_bytes
from tracescope.models import load_hardware, load_model

BASE: dict[str, Any] = {
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

Read = Callable[..., ModelSpec]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """``read(key=value, …)``: the model of the base config with keys replaced; None takes a key away."""

    def call(**changes: Any) -> ModelSpec:
        config = {key: value for key, value in {**BASE, **changes}.items() if value is not None}
        path = tmp_path / "small.json"
        path.write_text(json.dumps(config))
        return load_model(str(path))

    return call


def refusal(action: Callable[[], object]) -> str:
    """The message of the TraceError that ``action`` raises."""
    with pytest.raises(TraceError) as caught:
        action()
    assert len(caught.value.lines()) <= 2
    return " ".join(caught.value.lines())


def test_a_complete_config_needs_no_assumption(read: Read) -> None:
    spec = read()
    assert spec.assumptions == ()
    assert (spec.name, spec.source) == ("small", "small.json")
    layer = 256 * 256 * 2 + 2 * 256 * 128 + 3 * 256 * 512 + 2 * 256
    assert step_totals(spec, Workload()).weight_read == 2 * (2 * layer + 256 + 1000 * 256)


def test_case_49_head_dim(shared: Callable[[str], Path]) -> None:
    folder = shared("cases/49-head-dim-not-hidden-over-heads")
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    spec = load_model(str(folder / "explicit.json"))
    assert spec.assumptions == ()
    assert spec.head_dim == expected["explicit.json"]["head_dim"]
    assert kv_bytes_per_token(spec) == expected["explicit.json"]["kv_bytes_per_token"]
    attention = [m for m in layer_matrices(spec) if m.op in (Op.QKV, Op.O)]
    assert attention[0].n_out == expected["explicit.json"]["q_out"]
    assert sum(m.elements for m in attention) == expected["explicit.json"]["attention_params_per_layer"]
    text = refusal(lambda: load_model(str(folder / "indivisible_no_head_dim.json")))
    assert all(word in text for word in expected["indivisible_no_head_dim.json"]["message_mentions"])


def test_case_51_nested_language_models(shared: Callable[[str], Path]) -> None:
    folder = shared("cases/51-nested-text-config")
    specs = {path.name: load_model(str(path)) for path in folder.glob("*.json") if path.name != "expected.json"}
    assert {spec.layers for spec in specs.values()} == {2}
    assert {spec.hidden for spec in specs.values()} == {1024}
    assert specs["text_config.json"].source == "text_config"
    assert specs["thinker.json"].source == "thinker_config.text_config"
    assert specs["llm_config.json"].source == "llm_config"
    assert any("top level says 5" in note for note in specs["top_and_nested_disagree.json"].assumptions)
    # The dtype and the tying of the whole model count for its text part as well.
    assert not any("dtype" in note for note in specs["text_config.json"].assumptions)


def test_case_53_older_names(shared: Callable[[str], Path]) -> None:
    folder = shared("cases/53-gpt2-style-names")
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    for name, elements in expected["kv_elements_per_token"].items():
        spec = load_model(str(folder / name))
        shape = {
            "layers": spec.layers,
            "hidden": spec.hidden,
            "heads": spec.heads,
            "head_dim": spec.head_dim,
            "ffn": spec.ffn,
        }
        assert shape == expected["all"], name
        assert kv_bytes_per_token(spec) == 2 * elements, name
        assert not spec.gated
        assumed = any("torch_dtype" in note for note in spec.assumptions)
        assert assumed is (name in ("gpt2.json", "multi_query.json")), name


def test_case_55_quantized_with_exceptions(shared: Callable[[str], Path]) -> None:
    folder = shared("cases/55-quantised-with-exceptions")
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    for name, size in expected["weight_bytes_without_scales"].items():
        spec = load_model(str(folder / name))
        assert stored_bytes(spec) - scale_bytes(spec) == size, name
        quantized = name not in ("null.json", "empty.json")
        assert bool(scale_bytes(spec)) is quantized, name
    for name in ("gptq4.json", "bnb4_null_skip.json"):
        assert any("lm_head" in note for note in load_model(str(folder / name)).assumptions)
    assert expected["unknown.json"]["warning"] in load_model(str(folder / "unknown.json")).assumptions


def test_case_57_windows(shared: Callable[[str], Path]) -> None:
    folder = shared("cases/57-sliding-window-mixtures")
    expected = json.loads((folder / "expected.json").read_text())["expected"]

    def stored(name: str) -> int:
        spec = load_model(str(folder / name))
        return capacity(spec, load_hardware("h100-sxm"), Workload(1, 4096, block=1)).kv_stored_bytes

    for name, size in expected["kv_bytes_at_context_4096"].items():
        assert stored(name) == size, name
    for name in ("window_null.json", "use_false.json", "all_layers.json"):
        assert load_model(str(folder / name)).assumptions == ()
    unknown = expected["unknown_type.json"]
    assert stored("unknown_type.json") == unknown["kv_bytes_at_context_4096"]
    assert any(unknown["warning"] in note for note in load_model(str(folder / "unknown_type.json")).assumptions)
    for name in ("length_mismatch.json", "window_zero.json"):
        text = refusal(lambda name=name: load_model(str(folder / name)))
        assert all(word in text for word in expected[name]["message_mentions"])


def test_case_59_rope_changes_nothing(shared: Callable[[str], Path]) -> None:
    folder = shared("cases/59-rope-scaling-spellings")
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    plain = step_totals(load_model(str(folder / "null.json")), Workload(2, 100))
    for path in folder.glob("*.json"):
        if path.name == "expected.json":
            continue
        spec = load_model(str(path))
        assert step_totals(spec, Workload(2, 100)) == plain
        assert spec.max_positions == 8192
        assert bool(spec.assumptions) is (path.name in expected["warnings_for"]), path.name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": -5}, "hidden_size is -5"),
        ({"hidden_size": "256"}, 'hidden_size must be a whole number, got "256"'),
        ({"hidden_size": 256.5}, "hidden_size must be a whole number"),
        ({"hidden_size": [256]}, "hidden_size must be a whole number, got a list"),
        ({"vocab_size": True}, "vocab_size must be a whole number, got true"),
        ({"vocab_size": None}, "vocab_size is missing"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": 10**400}, "num_hidden_layers"),
        ({"num_key_value_heads": 3}, "num_key_value_heads 3"),
        ({"num_key_value_heads": [1, 2]}, "num_key_value_heads must be a whole number, got a list"),
        ({"intermediate_size": None}, "intermediate_size is missing"),
        ({"n_embd": 77}, "hidden_size is 256 but n_embd is 77"),
        ({"dtype": "float16"}, 'dtype is "float16" but torch_dtype is "bfloat16"'),
        ({"torch_dtype": "int3"}, "torch_dtype"),
        ({"torch_dtype": 16}, "torch_dtype"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings must be true or false"),
        ({"attention_bias": 1}, "attention_bias must be true or false"),
        ({"model_type": ["llama"]}, "model_type must be text"),
        ({"model_type": "mamba2"}, "state-space"),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim is missing"),
        ({"kv_lora_rank": "all"}, "kv_lora_rank must be a whole number"),
        ({"num_experts": 8}, "num_experts is 8 but num_experts_per_tok is missing"),
        ({"num_experts": 8, "num_experts_per_tok": 9}, "num_experts_per_tok is 9 but num_experts is only 8"),
        (
            {"num_experts": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
            "num_local_experts is 4 but num_experts",
        ),
        ({"num_local_experts": "many"}, "num_local_experts"),
        ({"num_experts": 8, "num_experts_per_tok": 2, "mlp_only_layers": "all"}, "mlp_only_layers"),
        ({"num_experts": 8, "num_experts_per_tok": 2, "moe_layer_freq": [1]}, "moe_layer_freq"),
        ({"sliding_window": -1}, "sliding_window is -1"),
        ({"sliding_window": "wide"}, "sliding_window must be a whole number"),
        ({"sliding_window": 8, "sliding_window_pattern": 0}, "sliding_window_pattern"),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_window is missing"),
        ({"ffn_config": {"moe_num_experts": 16}}, "ffn_config"),
        ({"attention_chunk_size": 8192}, "attention_chunk_size"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"layer_types": "full_attention"}, "layer_types must be a list"),
        ({"layer_types": [{}, 3]}, "layer_types"),
        ({"layer_types": ["full_attention"] * 3}, "3 layers"),
        ({"quantization_config": [1]}, "quantization_config must be an object"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 99}}, "bits is 99"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": -7}}, "group_size"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 1]}}, "weight_block_size"),
        ({"quantization_config": {"quant_method": "fp8", "ignored_layers": "lm_head"}}, "ignored_layers"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "load_in_4bit"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "config_groups"),
        ({"quantization_config": {"quant_algo": "W9A9"}}, "quant_algo"),
        ({"word_embed_proj_dim": 128}, "word_embed_proj_dim"),
    ],
)
def test_contradictions_and_unknown_structures_name_their_key(read: Read, changes: dict[str, Any], words: str) -> None:
    text = refusal(lambda: read(**changes))
    assert words in text
    assert "small.json" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"torch_dtype": None}, "torch_dtype"),
        ({"tie_word_embeddings": None}, "tie_word_embeddings"),
        ({"num_key_value_heads": None}, "num_key_value_heads"),
        ({"model_type": None}, "model_type"),
        ({"model_type": "brand_new"}, "brand_new"),
        ({"model_type": "qwen3"}, "head_dim"),
        ({"rope_scaling": 4}, "rope_scaling"),
        ({"quantization_config": {"quant_method": "gptq", "group_size": 64}}, "bits"),
        ({"quantization_config": {"quant_method": "fp8", "ignore": ["re:(a|b)+$", "lm_head"]}}, "(a|b)+$"),
    ],
)
def test_what_was_missing_is_listed(read: Read, changes: dict[str, Any], words: str) -> None:
    assert any(words in note for note in read(**changes).assumptions)


def test_an_explicit_null_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "null.json"
    path.write_text(json.dumps({**BASE, "num_key_value_heads": None, "head_dim": None}))
    spec = load_model(str(path))
    assert (spec.kv_heads, spec.head_dim, spec.assumptions) == (4, 64, ())


def test_skipped_modules_are_matched_by_name(read: Read) -> None:
    def weights(*skipped: str) -> int:
        spec = read(quantization_config={"quant_method": "fp8", "modules_to_not_convert": ["lm_head", *skipped]})
        return step_totals(spec, Workload()).weight_read - scale_bytes(spec)

    none = weights()
    attention = 256 * 256 * 2 + 2 * 256 * 128
    assert weights("model.layers.0.self_attn") - none == attention
    assert weights("layers.1.mlp.down_proj") - none == 512 * 256
    assert weights("self_attn.qkv_proj") - none == 2 * (256 * 256 + 2 * 256 * 128)
    assert weights("re:.*self_attn.*") - none == 2 * attention
    assert weights("*mlp*") - none == 2 * 3 * 256 * 512
    assert weights("model.language_model.layers.0.self_attn.o_proj") - none == 256 * 256
    for elsewhere in ("visual.blocks.0.attn", "vision_tower.encoder.layers.0.self_attn", "model.layers.10.mlp"):
        assert weights(elsewhere) == none, elsewhere


@pytest.mark.parametrize(
    ("config", "weights", "head"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq-int4", "bf16"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, "gptq-int8-g32", "bf16"),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, "gptq-int4-g64", "bf16"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bnb-int8", "bf16"),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            "nf4-double",
            "bf16",
        ),
        ({"quant_method": "mxfp4"}, "mxfp4", "bf16"),
        ({"quant_algo": "NVFP4"}, "nvfp4", "bf16"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}},
            },
            "int4-g128-sym",
            "int4-g128-sym",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "ignore": ["re:.*lm_head"],
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}},
            },
            "fp8-channel",
            "bf16",
        ),
    ],
)
def test_quantization_methods(read: Read, config: dict[str, Any], weights: str, head: str) -> None:
    spec = read(quantization_config=config)
    assert (spec.weights, spec.lm_head, spec.kv) == (weights, head, "bf16")
    assert scale_bytes(spec) > 0


def test_four_separate_dtypes(read: Read, tmp_path: Path) -> None:
    read(torch_dtype="float16")
    spec = load_model(str(tmp_path / "small.json"), weights="int8", kv="fp8")
    assert (spec.weights, spec.lm_head, spec.kv, spec.activations) == ("int8", "fp16", "fp8", "fp16")
    assert load_model("llama-3-8b", lm_head="int8").lm_head == "int8"


@pytest.mark.parametrize(
    ("config", "layer", "outside"),
    [
        # GPT-J: one norm, no attention bias, an lm_head bias.
        ({"model_type": "gptj"}, 2 * 256 + 512 + 256, 2 * 256 + 1000),
        # Pythia: two layer norms and every bias.
        ({"model_type": "gpt_neox"}, 4 * 256 + (4 + 2 * 4) * 64 + 256 + 512 + 256, 2 * 256),
        # BLOOM: a norm after the embedding.
        ({"model_type": "bloom"}, 4 * 256 + (4 + 2 * 4) * 64 + 256 + 512 + 256, 2 * 2 * 256),
        # Falcon 7B: one shared layer norm, no biases.
        ({"model_type": "falcon"}, 2 * 256, 2 * 256),
        ({"model_type": "falcon", "parallel_attn": False, "bias": True}, 4 * 256 + 768 + 256 + 512 + 256, 2 * 256),
        ({"model_type": "mpt"}, 2 * 256, 256),
    ],
)
def test_families_without_grouped_heads(read: Read, config: dict[str, Any], layer: int, outside: int) -> None:
    spec = read(num_key_value_heads=None, **config)
    matrices = 4 * 256 * 256 + 2 * 256 * 512
    expected = 2 * (2 * (matrices + layer) + outside + 1000 * 256)
    assert step_totals(spec, Workload()).weight_read == expected


def test_qwen2_has_biases_on_queries_keys_and_values(read: Read) -> None:
    plain, biased = read(), read(model_type="qwen2")
    extra = step_totals(biased, Workload()).weight_read - step_totals(plain, Workload()).weight_read
    assert extra == 2 * 2 * (4 + 2 * 2) * 64


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "not-json": b"hello",
    "cut": b'{"hidden_size": 25',
    "nan": b'{"hidden_size": NaN}',
    "list": b"[1, 2]",
    "number": b"17",
    "null": b"null",
    "deep": b"[" * 100_000,
    "deep-object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "utf-16": '{"hidden_size": 1}'.encode("utf-16"),
    "binary": bytes(range(256)),
    "long-number": b'{"hidden_size": ' + b"9" * 9000 + b"}",
    "huge-float": b'{"hidden_size": 1e999}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{name}.json"
    path.write_bytes(HOSTILE[name])
    assert run(["floor", "--model", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert name in captured.err
    assert len(captured.err.splitlines()) <= 3


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(BASE).encode())
    assert load_model(str(path)).hidden == 256


def test_a_place_that_is_no_file(tmp_path: Path) -> None:
    assert "no config.json" in refusal(lambda: load_model(str(tmp_path)))
    assert "missing.json" in refusal(lambda: load_model(str(tmp_path / "missing.json")))
    (tmp_path / "config.json").mkdir()
    assert "config.json" in refusal(lambda: load_model(str(tmp_path)))
    assert "no model is called" in refusal(lambda: load_model("nonsense"))
    refusal(lambda: load_model("a\0b"))
    refusal(lambda: load_model("x" * 5000))


def test_a_directory_is_read_through_its_config(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(BASE))
    assert load_model(str(folder)).name == "my-model"
    assert load_model(str(folder / "config.json")).name == "my-model"
