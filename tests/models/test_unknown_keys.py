"""What is not understood is refused by name: keys of unknown model types, structures that a family does not have."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.kit.checkpoints import preset_config, write_gguf
from tests.kit.decoder_configs import DECODERS
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.step_ops import step_totals, stored_bytes
from tracescope.models import load_model, model_presets
from tracescope.models.config import spec_from_config
from tracescope.models.families import DIFFERENT
from tracescope.models.known_keys import refuse_unknown_keys
from tracescope.models.layered_families import LAYERED

BASE: dict[str, Any] = {
    "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
    "intermediate_size": 512, "vocab_size": 1000, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


def read(**changes: Any) -> ModelSpec:
    return spec_from_config({**BASE, **changes}, name="x", file="x.json")


HARMLESS: dict[str, Any] = {
    "architectures": ["BrandNewForCausalLM"], "bos_token_id": 1, "eos_token_id": [2, 3], "rope_theta": 1e6,
    "rope_scaling": {"rope_type": "linear", "factor": 2.0}, "attention_dropout": 0.1, "initializer_range": 0.02,
    "rms_norm_eps": 1e-6, "use_cache": True, "transformers_version": "5.0.0", "max_position_embeddings": 4096,
    "hidden_act": "silu", "auto_map": {"AutoConfig": "x.y"}, "router_aux_loss_coef": 0.001, "temperature": 0.7,
    "partial_rotary_factor": 0.5, "attention_bias": True, "_name_or_path": "somewhere", "pretraining_tp": 1,
    "final_logit_softcapping": 30.0, "sliding_window": None, "use_sliding_window": False, "mup_enabled": True,
}  # fmt: skip


def test_a_model_type_that_is_not_known_is_priced_when_every_key_is_harmless() -> None:
    spec = read(model_type="brand_new", **HARMLESS)
    assert any("brand_new" in note for note in spec.assumptions)
    plain = step_totals(read(model_type="llama", attention_bias=True), Workload(2, 300))
    assert step_totals(spec, Workload(2, 300)) == plain


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sparse_pattern", [1, 0]), ("ssm_heads", 8), ("window_schedule", "every other"), ("num_loops", 4),
        ("kv_compression", 4), ("layer_types", ["full_attention", "mamba"]), ("hidden_act", "relu2"),
        ("hidden_act", "gelu"), ("n_memory_slots", 16), ("my_own_switch", True), ("head_dims", [64, 128]),
        ("layer_types", ["linear_attention", "full_attention"]),
    ],
)  # fmt: skip
def test_a_key_that_is_not_known_is_refused_by_name_in_an_unknown_model_type(key: str, value: Any) -> None:
    with pytest.raises(TraceError) as caught:
        read(model_type="brand_new", **{**HARMLESS, key: value})
    assert key in caught.value.what
    assert len(caught.value.lines()) <= 3
    read(model_type="brand_new", **{**HARMLESS, "my_own_switch": None, "ssm_heads": 0, "sparse_pattern": []})


@pytest.mark.parametrize("model_type", ["llama", "qwen3", "mistral", "gemma3_text", "deepseek_v3", "minicpm"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sparse_config", {"topk": 64}), ("sparse_attention_config", {"sparse_topk_blocks": 16}),
        ("attn_type_list", [0, 1]), ("layer_group_size", 5), ("linear_attn_config", {"kda_layers": [0]}),
        ("global_head_dim", 512), ("num_global_key_value_heads", 4), ("attention_chunk_size", 512),
        ("num_kv_shared_layers", 1), ("use_cla", True), ("block_configs", [{}]), ("ssm_state_size", 128),
        ("compress_ratios", [4, 128]), ("swa_head_dim", 192), ("full_attention_interval_linear", 2),
        ("moba_block_size", 512), ("hybrid_layer_pattern", [0, 1]), ("layer_types", ["ring_attention"] * 2),
        ("layer_types", ["mamba", "full_attention"]),
    ],
)  # fmt: skip
def test_a_structure_that_a_known_family_does_not_have_is_refused_by_name(
    model_type: str, key: str, value: Any
) -> None:
    changes = {"head_dim": 64, key: value}
    if model_type == "deepseek_v3":
        changes |= {"kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32}
    with pytest.raises(TraceError) as caught:
        read(model_type=model_type, **changes)
    assert key in caught.value.what


def test_a_list_of_layers_that_are_all_of_attention_changes_nothing() -> None:
    assert read(model_type="llama", attn_type_list=[1, 1]) == read(model_type="llama")


def test_keys_that_only_look_like_structures_change_nothing() -> None:
    """As published: positions of windowed layers, factors of a Mamba part, norms without weights."""
    gemma = {"model_type": "gemma3_text", "head_dim": 64, "sliding_window": 128}
    assert read(**gemma, rope_local_base_freq=10_000.0) == read(**gemma)
    falcon = DECODERS["falcon-h1-7b"].config
    factors = {"ssm_multipliers": [0.3, 0.2], "ssm_in_multiplier": 1.25, "mamba_norm_before_gate": False}
    assert spec_from_config({**falcon, **factors}, name="x", file="x") == spec_from_config(falcon, name="x", file="x")
    scout = preset_config("llama-4-scout")
    normed = spec_from_config({**scout, "use_qk_norm": True, "attn_scale": 0.1}, name="x", file="x")
    assert normed == spec_from_config(scout, name="x", file="x")
    glm = {"model_type": "glm_moe_dsa", "kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32,
           "v_head_dim": 32, "index_topk": 64, "index_n_heads": 4, "index_head_dim": 32}  # fmt: skip
    assert read(**glm, indexer_rope_interleave=True) == read(**glm)


def test_every_preset_passes_as_its_family_and_says_so_by_name() -> None:
    for preset in model_presets():
        assert preset.spec is not None, preset.refusal
    refuse_unknown_keys({"sparse_config": None, "ssm_cfg": {}, "use_cla": False}, frozenset(), "x")


def test_an_indexer_without_latent_attention_is_refused() -> None:
    with pytest.raises(TraceError, match="index_topk"):
        read(model_type="llama", index_topk=64, index_n_heads=4, index_head_dim=32)
    with pytest.raises(TraceError, match="index_n_heads"):
        read(model_type="deepseek_v32", index_topk=64, kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32,
             v_head_dim=32)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("qwen/qwen3-8b", "qwen3-8b"),
        ("QWEN3-8B", "qwen3-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek-v3.2"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("moonshotai/Kimi-K2-Instruct", "kimi-k2"),
        ("zai-org/GLM-4.5-Air", "glm-4.5-air"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4-scout"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "qwen3-next-80b-a3b"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral-small-24b"),
    ],
)
def test_names_of_the_hub_in_any_case_find_a_preset(name: str, preset: str) -> None:
    assert load_model(name).name == preset


def test_every_model_but_an_invented_one_has_a_name_on_the_hub() -> None:
    seen: dict[str, str] = {}
    for preset in model_presets():
        assert bool(preset.hub) is not preset.invented, preset.name
        for name in preset.names:
            assert seen.setdefault(name, preset.name) == preset.name


def test_a_folder_of_that_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "Qwen" / "Qwen3-8B"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**BASE, "model_type": "llama"}))
    assert load_model("Qwen/Qwen3-8B").hidden == 256
    assert load_model("qwen3-8b").hidden == 4096


@pytest.mark.parametrize("key", ["num_experts_per_tok", "top_k", "moe_top_k", "num_experts_per_topk", "moe_k"])
def test_spellings_of_how_many_experts_are_chosen(key: str) -> None:
    spec = read(model_type="mixtral", num_local_experts=8, **{key: 2})
    assert spec.experts is not None
    assert spec.experts.chosen == 2


def test_sampling_settings_choose_no_expert() -> None:
    spec = read(model_type="mixtral", num_local_experts=8, num_experts_per_tok=2, top_k=50)
    assert spec.experts is not None
    assert spec.experts.chosen == 2


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "torch.float8_e4m3fn", "float8_e5m2"])
def test_a_checkpoint_in_8_bit_keeps_16_bit_around_its_weights(dtype: str) -> None:
    spec, plain = read(model_type="llama", torch_dtype=dtype), read(model_type="llama")
    linear = 2 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512)
    assert (spec.weights, spec.lm_head, spec.kv) == ("fp8-raw", "bf16", "bf16")
    assert stored_bytes(plain) - stored_bytes(spec) == linear
    assert any("8 bit" in note for note in spec.assumptions)


def test_a_checkpoint_in_32_bit_is_served_in_16_and_that_is_said() -> None:
    spec = read(model_type="llama", torch_dtype="float32")
    assert any("16 bit" in note for note in spec.assumptions)
    assert step_totals(spec, Workload(3, 10)) == step_totals(read(model_type="llama"), Workload(3, 10))


def test_gemma_3_as_published_leaves_out_what_its_class_knows() -> None:
    """The 4B config: neither vocabulary nor heads stand in it."""
    text = {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024,
    }  # fmt: skip
    spec = spec_from_config(
        {"model_type": "gemma3", "text_config": text, "torch_dtype": "bfloat16"}, name="x", file="x"
    )
    assert (spec.vocab, spec.heads, spec.kv_heads, spec.head_dim) == (262_208, 8, 4, 256)
    assert stored_bytes(spec) / 2 == pytest.approx(3.88e9, rel=0.01)
    for key in ("vocab_size", "num_attention_heads", "num_key_value_heads"):
        assert any(key in note for note in spec.assumptions)


def test_a_draft_model_has_a_head_of_its_own_size() -> None:
    spec, plain = read(model_type="llama", draft_vocab_size=100), read(model_type="llama")
    assert step_totals(plain, Workload()).weight_read - step_totals(spec, Workload()).weight_read == 2 * 900 * 256
    assert stored_bytes(plain) - stored_bytes(spec) == 2 * 900 * 256


@pytest.mark.parametrize(
    ("quantization", "weights", "words"),
    [
        ({"group_size": 64, "bits": 8}, "int8-g64", ""),
        ({"group_size": 32, "bits": 6}, "int6-g32", ""),
        ({"group_size": 16, "bits": 4, "mode": "nvfp4"}, "nvfp4", ""),
        ({"group_size": 64, "bits": 4, "lm_head": {"bits": 6, "group_size": 64}}, "int4-g64", "lm_head"),
        ({"group_size": 64, "bits": 4, "model.layers.0.mlp.down_proj": False}, "int4-g64", ""),
    ],
)
def test_formats_of_mlx(quantization: dict[str, Any], weights: str, words: str) -> None:
    spec = read(model_type="llama", quantization=quantization)
    assert spec.weights == weights
    assert bool(spec.assumptions) is bool(words)
    assert all(words in note for note in spec.assumptions)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("quantization", {"group_size": 64, "bits": 99}, "quantization"),
        ("quantization", {"group_size": "wide", "bits": 4}, "quantization"),
        ("compression_config", [1], "quantization_config must be an object"),
        ("quantization_config", {"quant_algo": "FP8", "kv_cache_quant_algo": "FP3"}, "KV cache"),
        ("quantization_config", {"quant_algo": "FP8", "kv_cache_scheme": "wide"}, "KV cache"),
    ],
)
def test_formats_that_cannot_be(key: str, value: Any, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        read(model_type="llama", **{key: value})


METADATA: dict[str, Any] = {
    "general.architecture": "llama", "llama.embedding_length": 256, "llama.block_count": 2,
    "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2, "llama.feed_forward_length": 512,
    "llama.vocab_size": 1000,
}  # fmt: skip


def gguf(path: Path, **more: Any) -> Path:
    tensors: dict[str, Any] = {"token_embd.weight": ("f16", (1000, 256)), "output_norm.weight": ("f32", (256,))}
    for layer in range(2):
        for name, shape in (
            ("attn_q", (256, 256)), ("attn_k", (128, 256)), ("attn_v", (128, 256)), ("attn_output", (256, 256)),
            ("ffn_gate", (512, 256)), ("ffn_up", (512, 256)), ("ffn_down", (256, 512)),
        ):  # fmt: skip
            tensors[f"blk.{layer}.{name}.weight"] = ("f16", shape)
    renamed = {f"llama.{key.replace('__', '.')}": value for key, value in more.items()}
    write_gguf(path, {**METADATA, **renamed}, tensors)
    return path


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssm__state_size", 128), ("attention__indexer__top_k", 2048), ("attention__shared_kv_layers", 2),
        ("full_attention_interval", 4), ("attention__key_length_swa", 64), ("shortconv__l_cache", 3),
        ("altup__num_inputs", 4), ("attention__chunk_size", 512),
    ],
)  # fmt: skip
def test_gguf_keys_reach_the_same_refusals(key: str, value: int, tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        load_model(str(gguf(tmp_path / "m.gguf", **{key: value})))
    assert key.replace("__", ".") in caught.value.what
    load_model(str(gguf(tmp_path / "zero.gguf", **{key: 0})))


def test_a_window_pattern_of_a_gguf_file(tmp_path: Path) -> None:
    spec = load_model(str(gguf(tmp_path / "m.gguf", attention__sliding_window=64, attention__sliding_window_pattern=2)))
    assert spec.windows == (64, None)


def test_an_unknown_architecture_of_a_gguf_file_needs_keys_that_are_known(tmp_path: Path) -> None:
    path = gguf(tmp_path / "m.gguf", rope__freq_base=10_000.0, my_switch=3)
    load_model(str(path))  # a family that is known may have keys of its own
    data = path.read_bytes().replace(b"llama", b"newer")
    path.write_bytes(data)
    with pytest.raises(TraceError, match="my_switch"):
        load_model(str(path))
    assert struct.unpack("<I", data[4:8]) == (3,)


def test_the_page_on_models_names_every_family_that_is_not_plain() -> None:
    text = (Path(__file__).parents[2] / "docs" / "MODELS.md").read_text(encoding="utf-8")
    for model_type in (*LAYERED, *DIFFERENT):
        assert f"`{model_type}`" in text, model_type
