"""Decoders whose layers differ: sizes against the public, bytes of a step against formulas written out here.

Each formula is arithmetic on the published numbers of one model; none of it uses the product's code.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kit.decoder_configs import BF16, DECODERS, GEMMA_4_31B, NEMOTRON_H_8B, OPENELM_270M, QWEN3_5_35B
from tracescope.core.category import Op
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.capacity import capacity
from tracescope.floor.parameters import parameters
from tracescope.floor.prefill import prefill_floor
from tracescope.floor.step_floor import step_floor
from tracescope.floor.step_ops import kv_bytes_per_token, step_ops, step_totals, stored_bytes
from tracescope.floor.sweep import sweep
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.models.config import spec_from_config


def read(config: dict[str, Any], **changes: Any) -> ModelSpec:
    return spec_from_config({**config, **changes}, name="x", file="x.json")


@dataclass(frozen=True)
class Step:
    """What one request adds to a step: bytes read of caches at a context, state, bytes appended a token."""

    cache: Callable[[int], int]
    token: int
    state: int = 0
    index: int = 0


MB = 1 << 20
STEPS: dict[str, Step] = {
    # 30 delta layers: 32 matrices of 128 × 128 in fp32 and 3 columns of 8192 in bf16; 10 of 2 KV heads of 256.
    "qwen3.5-35b-a3b": Step(lambda s: 10 * s * 2048, 10 * 2048, 30 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)),
    "nemotron-h-8b": Step(lambda s: 4 * s * 4096, 4 * 4096, 24 * (128 * 64 * 128 * 4 + 3 * (8192 + 2 * 8 * 128) * 2)),
    "nemotron-3-nano-30b": Step(
        lambda s: 6 * s * 1024, 6 * 1024, 23 * (64 * 64 * 128 * 4 + 3 * (4096 + 2 * 8 * 128) * 2)
    ),
    "granite-4.0-h-tiny": Step(lambda s: 4 * s * 2048, 4 * 2048, 36 * (48 * 64 * 128 * 4 + 3 * (3072 + 2 * 128) * 2)),
    "falcon-h1-7b": Step(lambda s: 44 * s * 1024, 44 * 1024, 44 * (24 * 128 * 256 * 4 + 3 * (3072 + 2 * 256) * 2)),
    "jamba-v0.1": Step(lambda s: 4 * s * 4096, 4 * 4096, 28 * (8192 * 16 * 4 + 3 * 8192 * 2)),
    "lfm2-1.2b": Step(lambda s: 6 * s * 2048, 6 * 2048, 10 * 2 * 2048 * 2),
    "minimax-m1": Step(lambda s: 10 * s * 4096, 10 * 4096, 70 * 64 * 128 * 128 * 4),
    # 20 layers keep a cache (16 windowed, 4 whole); 15 more read one (12 windowed, 3 whole). 2 KV heads of 256.
    "gemma-3n-e4b": Step(lambda s: (28 * min(s, 511) + 7 * s) * 2048, 20 * 2048),
    "openelm-270m": Step(lambda s: (5 * 3 + 7 * 4 + 4 * 5) * 256 * s, (5 * 3 + 7 * 4 + 4 * 5) * 256),
    "dbrx": Step(lambda s: 40 * s * 4096, 40 * 4096),
    "glm-4-9b": Step(lambda s: 40 * s * 1024, 40 * 1024),
    "hunyuan-a13b": Step(lambda s: 32 * s * 4096, 32 * 4096),
    "gemma-4-31b": Step(lambda s: 50 * min(s, 1023) * 16384 + 10 * s * 8192, 50 * 16384 + 10 * 8192),
    # 3 of 4 layers see their chunk of 8192 tokens alone.
    "llama-4-scout": Step(lambda s: (36 * (s % 8192) + 12 * s) * 4096, 48 * 4096),
    "qwen3-next-80b-a3b": Step(lambda s: 12 * s * 2048, 12 * 2048, 36 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)),
    # 576 values of the latent vector of 2,048 tokens, and one index key of 128 bytes of every token.
    "deepseek-v3.2": Step(lambda s: 61 * (min(s, 2048) * 1152 + s * 128), 61 * (1152 + 128), index=61 * 128),
}


def model(name: str) -> ModelSpec:
    return read(DECODERS[name].config) if name in DECODERS else load_model(name)


@pytest.mark.parametrize("name", DECODERS)
def test_stored_parameters_are_those_of_the_public(name: str) -> None:
    spec = model(name)
    assert parameters(spec).stored == pytest.approx(DECODERS[name].total, rel=0.01)
    assert stored_bytes(spec) == 2 * parameters(spec).stored
    assert spec.assumptions == ()


PRESETS = {  # in billions, by Hugging Face's count of tensors, llama.cpp's, or the card
    "llama-3.1-8b": 8.03, "llama-3.1-70b": 70.55, "llama-4-scout": 107.77, "llama-4-maverick": 400.71,
    "qwen3-30b-a3b": 30.53, "qwen3-235b-a22b": 235.09, "qwen3-next-80b-a3b": 79.67, "gpt-oss-120b": 116.83,
    "kimi-k2": 1026.4, "glm-4.5": 355, "glm-4.5-air": 106, "minimax-m2": 228.7, "gemma-3-27b": 27.01,
    "mistral-small-24b": 23.57, "phi-4": 14.66, "deepseek-v3.2": 671.9,
}  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
def test_presets_of_today_have_the_size_that_is_published(name: str) -> None:
    assert parameters(load_model(name)).stored == pytest.approx(PRESETS[name] * 1e9, rel=0.01)


def test_what_the_hub_counts_of_deepseek_v3_2_holds_its_layer_that_predicts() -> None:
    """685.4 B tensors: the main model, one more layer, and that layer's copies of the embedding and the head."""
    found = parameters(load_model("deepseek-v3.2"))
    assert found.stored + found.prediction + 2 * 129_280 * 7168 == pytest.approx(685.4e9, rel=0.001)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("context", [0, 100, 2047, 8192, 131_071])
def test_what_a_step_reads_and_appends(name: str, context: int) -> None:
    spec, step = model(name), STEPS[name]
    assert kv_bytes_per_token(spec) == step.token
    for batch in (1, 7):
        total = step_totals(spec, Workload(batch, context))
        assert total.kv_read == batch * (step.cache(context) + step.state)
        assert (total.state_read, total.state_write) == (batch * step.state,) * 2
        assert total.index_read == batch * step.index * context
        assert total.kv_append == batch * (step.token + step.state)
        assert total.weight_read == step_totals(spec, Workload(batch, 0)).weight_read


@pytest.mark.parametrize("name", STEPS)
def test_ops_sums_and_sweeps_say_the_same(name: str) -> None:
    spec, basis = model(name), make_basis(load_hardware("h100-sxm"))
    swept = sweep(spec, Workload(), basis, [1, 5], [300, 9000])
    for row, batch in enumerate((1, 5)):
        for column, context in enumerate((300, 9000)):
            one = step_floor(spec, Workload(batch, context), basis)
            cell = swept.cell(row, column)
            assert cell.totals == one.totals
            assert cell.floor_ops_s == pytest.approx(one.floor_ops_s, rel=1e-9)
            ops = step_ops(spec, Workload(batch, context))
            for field in ("weight_read", "kv_read", "kv_append", "flops", "index_read", "state_read"):
                assert sum(getattr(op, field) for op in ops) == getattr(one.totals, field)


def test_sparse_attention_reads_far_less_than_dense() -> None:
    sparse, dense = (step_totals(load_model(name), Workload(1, 32_768)) for name in ("deepseek-v3.2", "deepseek-v3"))
    assert dense.kv_read == 61 * 1152 * 32_768
    assert sparse.kv_read == 61 * (1152 * 2048 + 128 * 32_768)
    assert sparse.kv_read < dense.kv_read / 5
    assert sparse.weight_read - dense.weight_read == 2 * 61 * (1536 * 64 * 128 + 7168 * (128 + 64) + 2 * 128)


def test_parameters_read_are_those_of_the_chosen_experts() -> None:
    for name, billions in (("qwen3-30b-a3b", 3.3), ("qwen3-235b-a22b", 22), ("glm-4.5", 32), ("gpt-oss-120b", 5.1)):
        found, spec = parameters(load_model(name)).read, load_model(name)
        embedded = 0 if spec.tied else spec.vocab * spec.hidden  # counted as active by some, gathered by a step
        assert found <= billions * 1.03e9
        assert found + embedded >= billions * 0.97e9


@pytest.mark.parametrize("ranks", [2, 4])
def test_one_rank_of_several_has_its_share_of_the_state(ranks: int) -> None:
    spec = read(NEMOTRON_H_8B)
    one, part = (step_totals(spec, Workload(3, 50, tensor_parallel=t)) for t in (1, ranks))
    assert part.state_read * ranks == one.state_read
    assert part.kv_read * ranks == one.kv_read
    assert sum(op.op is Op.ALL_REDUCE for op in step_ops(spec, Workload(tensor_parallel=ranks))) == 52


def test_a_state_takes_room_whatever_the_context() -> None:
    spec, machine = read(QWEN3_5_35B), load_hardware("h200-sxm")
    state = STEPS["qwen3.5-35b-a3b"].state
    empty, full = (capacity(spec, machine, Workload(8, context, block=1)) for context in (0, 1000))
    assert empty.kv_stored_bytes == empty.state_bytes == 8 * state
    assert full.kv_stored_bytes == 8 * (state + 1000 * 20_480)
    usable = full.usable_bytes - full.stored_bytes
    assert full.max_batch == usable // (state + 1000 * 20_480)
    fits = capacity(spec, machine, Workload(full.max_batch, 1000, block=1))
    assert fits.fits
    assert not capacity(spec, machine, Workload(full.max_batch + 1, 1000, block=1)).fits


def test_layers_of_two_sizes_share_memory_in_blocks_of_the_smaller() -> None:
    held = capacity(read(GEMMA_4_31B), load_hardware("h200-sxm"), Workload(2, 5000, block=16))
    assert held.block_bytes == 16 * 8192
    assert held.kv_stored_bytes == 2 * (50 * 64 * 16 * 16384 + 10 * -(-5000 // 16) * 16 * 8192)


def test_a_prompt_is_read_in_chunks_and_keeps_its_last_state() -> None:
    basis = make_basis(load_hardware("h100-sxm"))
    scout, prompt = load_model("llama-4-scout"), 20_000
    found = prefill_floor(scout, basis, prompt)
    whole = prefill_floor(replace(scout, kinds=(), pattern=()), basis, prompt)
    assert found is not None
    assert whole is not None
    rest = prompt - 2 * 8192
    fewer = prompt * (prompt + 1) // 2 - 2 * (8192 * 8193 // 2) - rest * (rest + 1) // 2
    assert whole.flops - found.flops == 36 * 4 * 40 * 128 * fewer


def test_openelm_rounds_the_width_of_each_layer() -> None:
    """OpenELM-270M by hand: ffn = multiplier × 1280 to the nearest multiple of 256, never 10 % less."""
    widths = [768, 1024, 1280, 1536, 1792, 2048, 2560, 2816, 3072, 3328, 3584, 3840, 4352, 4608, 4864, 5120]
    spec = read(OPENELM_270M)
    assert [spec.layer(i).ffn for i in range(16)] == widths


BLOCKS: list[dict[str, Any]] = [
    {"attention": {"n_heads_in_group": 8, "no_op": False, "replace_with_linear": False}, "ffn": {"ffn_mult": 2.625}},
    {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 1.0, "no_op": False}},
    {"attention": {"replace_with_linear": True}, "ffn": {"ffn_mult": 5.25}},
    {"attention": {"n_heads_in_group": 16}, "ffn": {"no_op": True}},
    {"attention": {"no_op": True}, "ffn": {"replace_with_linear": True}},
]
NAS: dict[str, Any] = {
    "model_type": "nemotron-nas", "hidden_size": 1024, "num_hidden_layers": 5, "num_attention_heads": 16,
    "block_configs": BLOCKS, "vocab_size": 1000, "tie_word_embeddings": False, **BF16,
}  # fmt: skip


def test_blocks_of_a_searched_architecture() -> None:
    d, head = 1024, 64
    mlp = [3 * d * -(-int(2 * f * d / 3) // 256) * 256 for f in (2.625, 1.0, 5.25)]
    layers = [
        2 * d * d + 2 * d * 2 * head + mlp[0] + 2 * d,
        mlp[1] + d,
        d * d + mlp[2] + 2 * d,
        2 * d * d + 2 * d * head + d,
        d * d + d,
    ]
    spec = read(NAS)
    assert step_totals(spec, Workload()).weight_read == 2 * (sum(layers) + d + 1000 * d)
    assert kv_bytes_per_token(spec) == 2 * 2 * head * (2 + 1)
    assert stored_bytes(spec) == step_totals(spec, Workload()).weight_read + 2 * 1000 * d
    deci = {**NAS, "model_type": "deci", "block_configs": None, "intermediate_size": 2048}
    listed = read(deci, num_key_value_heads_per_layer=[4, 2, 1, 1, 8])
    assert kv_bytes_per_token(listed) == 2 * 2 * head * 16


@pytest.mark.parametrize(
    ("config", "changes", "words"),
    [
        (NAS, {"block_configs": BLOCKS[:4]}, "block_configs lists 4 layers"),
        (NAS, {"block_configs": [{"attention": {"sparsify": [1], "no_op": True}, "ffn": {}}] * 5}, "sparsify"),
        (NAS, {"block_configs": [{"attention": {"n_heads_in_group": 7}, "ffn": {}}] * 5}, "n_heads_in_group"),
        (OPENELM_270M, {"num_query_heads": [12] * 3}, "num_query_heads lists 3 layers"),
        (OPENELM_270M, {"ffn_multipliers": ["wide"] * 16}, "ffn_multipliers"),
        (NEMOTRON_H_8B, {"hybrid_override_pattern": "M-M*"}, "hybrid_override_pattern"),
        (NEMOTRON_H_8B, {"hybrid_override_pattern": "X" * 52}, 'hybrid_override_pattern has "X"'),
        (NEMOTRON_H_8B, {"ssm_state_size": None}, "ssm_state_size is missing"),
        (NEMOTRON_H_8B, {"moe_latent_size": 1024}, "moe_latent_size"),
        (QWEN3_5_35B, {"layer_types": ["linear_attention"] * 39 + ["ring_attention"]}, "ring_attention"),
        (QWEN3_5_35B, {"mamba_ssm_dtype": "float7"}, "mamba_ssm_dtype"),
        (GEMMA_4_31B, {"enable_moe_block": True}, "enable_moe_block"),
        (GEMMA_4_31B, {"num_kv_shared_layers": 60}, "num_kv_shared_layers"),
        (DECODERS["hunyuan-a13b"].config, {"moe_topk": [8] * 31 + [4]}, "moe_topk differs from layer to layer"),
        (DECODERS["jamba-v0.1"].config, {"sliding_window": 4096}, "sliding_window"),
        (DECODERS["glm-4-9b"].config, {"padded_vocab_size": None}, "padded_vocab_size"),
    ],
)
def test_what_a_family_does_not_have_is_refused(config: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(config, **changes)
    assert words in caught.value.what


def test_layers_that_share_a_cache_across_layers() -> None:
    """Hunyuan: of two layers the second has no keys and values of its own, and reads those of the first."""
    config = DECODERS["hunyuan-a13b"].config
    shared, plain = read(config, use_cla=True), read(config)
    assert kv_bytes_per_token(shared) * 2 == kv_bytes_per_token(plain)
    assert step_totals(shared, Workload(1, 500)).kv_read == step_totals(plain, Workload(1, 500)).kv_read
    without = 16 * 2 * (2 * 4096 * 1024 + 128)
    assert stored_bytes(plain) - stored_bytes(shared) == without


def test_a_state_in_the_dtype_that_the_config_gives() -> None:
    half = read(QWEN3_5_35B, mamba_ssm_dtype="bfloat16")
    assert step_totals(half, Workload()).state_read == 30 * (32 * 128 * 128 * 2 + 3 * 8192 * 2)


@pytest.mark.parametrize("name", [*DECODERS, "deepseek-v3.2", "llama-4-maverick"])
def test_a_model_of_layers_is_stored_and_read_back(name: str) -> None:
    spec = model(name)
    assert msgspec.json.decode(msgspec.json.encode(spec), type=ModelSpec) == spec


def test_a_config_on_disk_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"text_config": QWEN3_5_35B, "model_type": "qwen3_5_moe"}))
    assert replace(load_model(str(path)), name="x", title="x", source="x") == replace(
        read(QWEN3_5_35B), name="x", title="x", source="x"
    )
