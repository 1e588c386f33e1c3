"""Bytes and FLOPs against closed formulas and against the published exact rows."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.layered import windowed
from tracescope.core.category import Category, Op
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.experts import expected_distinct
from tracescope.floor.step_ops import (
    OpWork,
    counted_ops,
    kv_bytes_per_token,
    kv_bytes_per_token_per_layer,
    layer_matrices,
    lm_head_work,
    scale_bytes,
    step_ops,
    step_totals,
    stored_bytes,
    weight_read_bytes,
)
from tracescope.models import load_model

PRESET = {"Llama-2-7B": "llama-2-7b", "Llama-3-8B": "llama-3-8b", "Llama-3-70B": "llama-3-70b"}
EXACT = {**PRESET, "Mistral-7B": "mistral-7b"}


def test_llama_3_8b_by_hand() -> None:
    layer = 4096 * 4096 * 2 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    assert layer == 218_103_808
    elements = 32 * layer + 128_256 * 4096 + 65 * 4096
    assert weight_read_bytes(load_model("llama-3-8b")) == 2 * elements == 15_009_849_344


def test_program_order_of_a_step() -> None:
    ops = step_ops(load_model("llama-3-8b"), Workload(16, 4096))
    assert len(ops) == 10 * 32 + 6
    assert [op.op for op in ops[:3]] == [Op.LAUNCH, Op.EMBED, Op.BLOCK_TABLE]
    layer = [Op.NORM, Op.QKV, Op.ROPE, Op.KV_APPEND, Op.ATTENTION, Op.O, Op.NORM, Op.GATE_UP, Op.ACT, Op.DOWN]
    assert [op.op for op in ops[3:13]] == layer
    assert {op.layer for op in ops[3:13]} == {0}
    assert [op.op for op in ops[-3:]] == [Op.NORM, Op.LM_HEAD, Op.SAMPLE]


def test_ops_without_physics_move_nothing() -> None:
    for op in step_ops(load_model("llama-3-8b"), Workload(16, 4096)):
        if op.op in (Op.ROPE, Op.ACT, Op.BLOCK_TABLE, Op.LAUNCH, Op.SAMPLE):
            assert (op.memory_bytes, op.flops, op.link) == (0, 0, 0)


def test_every_exact_row(shared: Callable[[str], Path]) -> None:
    rows = json.loads(shared("reference/exact.json").read_text())["rows"]
    checked = 0
    for row in rows:
        model = load_model(EXACT[row["model"]], weights=row["weights"], lm_head="bf16", kv=row["kv"])
        total = step_totals(model, Workload(row["B"], row["S"]))
        assert total.weight_read == row["weight_read_bytes"]
        assert total.embedding_gather == row["embed_gather"]
        assert total.kv_read == row["kv_read"]
        assert total.kv_append == row["kv_append"]
        assert total.flops == row["flops_linear"] + row["flops_attn"]
        checked += 1
    assert checked == len(rows) == 144


def test_mixtures_read_the_experts_that_are_expected(shared: Callable[[str], Path]) -> None:
    golden = json.loads(shared("reference/golden.json").read_text())
    mixtral, deepseek = load_model("mixtral-8x7b"), load_model("deepseek-v3")
    for batch, size in golden["Mixtral_W_read_bf16"].items():
        assert weight_read_bytes(mixtral, 1, int(batch)) == size
        assert step_totals(mixtral, Workload(int(batch), 100)).weight_read == size
        assert sum(op.weight_read for op in step_ops(mixtral, Workload(int(batch), 100))) == size
    for batch, elements in golden["DeepSeekV3_W_read_elems"].items():
        # One byte an element: the expectation is rounded once, at the total.
        by_byte = replace(deepseek, weights="int8-raw", lm_head="int8-raw")
        plain = weight_read_bytes(by_byte, 1, int(batch)) - weight_read_bytes(by_byte)
        assert plain == elements - golden["DeepSeekV3_W_read_elems"]["1"]
        assert abs(weight_read_bytes(deepseek, 1, int(batch)) - 2 * elements) <= 1
    assert stored_bytes(mixtral) == 2 * golden["Mixtral_total_params"]
    assert stored_bytes(deepseek) == 2 * golden["DeepSeekV3_total_params_main_model"]


def test_expected_distinct_experts(shared: Callable[[str], Path]) -> None:
    for name, values in json.loads(shared("reference/golden.json").read_text())["moe_expected_distinct"].items():
        match = re.search(r"E=(\d+) k=(\d+)", name)
        assert match is not None
        for batch, distinct in values.items():
            assert float(expected_distinct(int(match[1]), int(match[2]), int(batch))) == pytest.approx(
                distinct, abs=5e-4
            )
    assert expected_distinct(8, 2, 1) == 2
    assert expected_distinct(8, 8, 3) == 8


def test_flops_of_a_mixture_are_those_of_the_chosen_experts() -> None:
    """Each token computes with the experts it chose, however many of them are distinct."""
    d, f, layers, experts, chosen, batch, context = 4096, 14_336, 32, 8, 2, 16, 100
    attention = 2 * 4096 * 4096 + 2 * 4096 * 1024
    linear = layers * (attention + d * experts + chosen * 3 * d * f) + 32_000 * d
    expected = 2 * batch * linear + layers * 4 * batch * (context + 1) * 4096
    assert step_totals(load_model("mixtral-8x7b"), Workload(batch, context)).flops == expected


def test_latent_attention(shared: Callable[[str], Path]) -> None:
    golden = json.loads(shared("reference/golden.json").read_text())["DeepSeekV3_MLA"]
    model = load_model("deepseek-v3")
    matrices = {m.module.removeprefix("self_attn."): m.elements for m in layer_matrices(model) if "attn" in m.module}
    names = {"q_a": "q_a_proj", "q_b": "q_b_proj", "kv_a": "kv_a_proj_with_mqa", "kv_b": "kv_b_proj", "o": "o_proj"}
    for key, name in names.items():
        assert matrices[name] == golden["weights_per_layer"][key]
    assert sum(matrices.values()) == golden["weights_per_layer"]["sum"]
    assert kv_bytes_per_token_per_layer(model) == 2 * golden["kv_elems_per_token_layer"]
    assert kv_bytes_per_token(model) == golden["kv_bytes_token_bf16"]
    assert kv_bytes_per_token(load_model("deepseek-v3", kv="fp8-ds-mla")) == golden["kv_bytes_token_fp8_ds_mla"]
    with pytest.raises(TraceError, match="latent attention"):
        load_model("llama-3-8b", kv="fp8-ds-mla")
    past, none = (step_totals(model, Workload(3, context)).flops for context in (1000, 0))
    assert past - none == 61 * 2 * 3 * 128 * 1088 * 1000
    # The latent cache is the same on every rank, the heads are split.
    assert kv_bytes_per_token(model, 8) == kv_bytes_per_token(model)
    shared_out = {m.module: m.n_out for m in layer_matrices(model, 8)}
    assert shared_out["self_attn.q_a_proj"] == 1536
    assert shared_out["self_attn.q_b_proj"] == 128 * 192 // 8


def test_a_window_bounds_what_is_read(shared: Callable[[str], Path]) -> None:
    golden = json.loads(shared("reference/golden.json").read_text())["Mistral_SWA_kv_read"]
    for context, size in golden.items():
        assert step_totals(load_model("mistral-7b"), Workload(1, int(context))).kv_read == size


def test_layers_alternate_between_windows_and_everything() -> None:
    """Gemma 2 and gpt-oss begin with a window, Gemma 3 has one layer of six without."""
    batch, context = 3, 5000
    for name, window, every, token in (
        ("gemma-2-9b", 4096, 2, 2 * 8 * 256 * 2),
        ("gemma-3-12b", 1024, 6, 2 * 8 * 256 * 2),
        ("gpt-oss-20b", 128, 2, 2 * 8 * 64 * 2),
    ):
        model = load_model(name)
        reads = [op.kv_read for op in step_ops(model, Workload(batch, context)) if op.op is Op.ATTENTION]
        expected = [context if (i + 1) % every == 0 else window - 1 for i in range(model.layers)]
        assert reads == [batch * tokens * token for tokens in expected], name
        assert model.windows[:2] == (window, None if every == 2 else window)


def test_pinned_weights_are_not_read_again() -> None:
    model = load_model("lesson-20gb")
    whole = step_ops(model, Workload(2, 100))
    part = step_ops(model, Workload(2, 100, pinned_bytes=5_000_000_000))
    assert sum(op.weight_read for op in part) == 15_000_000_000
    for before, after in zip(whole, part, strict=True):
        assert after.weight_read == pytest.approx(before.weight_read * 0.75, abs=1)
        assert replace(after, weight_read=0) == replace(before, weight_read=0)
    everything = step_totals(model, Workload(2, 100, pinned_bytes=10**12))
    assert everything.weight_read == 0
    assert everything.kv_read == step_totals(model, Workload(2, 100)).kv_read


def test_a_shared_prefix_is_read_once_only_by_a_kernel_that_knows_it() -> None:
    model, token = load_model("llama-3-8b"), 131_072
    blind = Workload(10, 1000, prefix=600, prefix_group=4)
    assert step_totals(model, blind).kv_read == 10 * 1000 * token
    aware = replace(blind, prefix_aware=True)
    assert step_totals(model, aware).kv_read == (3 * 600 + 10 * 400) * token
    # Of a window of 512 tokens 400 are a request's own, and the 111 before them are shared.
    bounded = windowed(model, (512,) * 32)
    assert step_totals(bounded, aware).kv_read == (3 * 111 + 10 * 400) * token


def test_layers_without_a_cache_append_and_read_nothing() -> None:
    model = windowed(load_model("llama-3-8b"), (0,) * 8 + (None,) * 24)
    total = step_totals(model, Workload(2, 50))
    assert total.kv_append == 2 * 24 * 4096
    assert total.kv_read == 50 * total.kv_append
    assert total.weight_read == weight_read_bytes(load_model("llama-3-8b"))


def test_ranks_split_experts_and_repeat_the_router() -> None:
    model = load_model("mixtral-8x7b")
    one, four = (step_ops(model, Workload(1, 0, tensor_parallel=t)) for t in (1, 4))

    def read(ops: tuple[OpWork, ...], op: Op) -> int:
        return sum(o.weight_read for o in ops if o.op is op)

    assert read(four, Op.EXPERTS) * 4 == read(one, Op.EXPERTS)
    assert read(four, Op.ROUTER) == read(one, Op.ROUTER) == 32 * 8 * 4096 * 2
    assert len([o for o in four if o.op is Op.ALL_REDUCE]) == 64


def test_the_work_of_groups_of_layers_is_the_work_of_all() -> None:
    for name in ("mixtral-8x7b", "gpt-oss-20b", "gemma-3-12b", "deepseek-v3", "mistral-7b"):
        model = load_model(name)
        for workload in (Workload(5, 3000), Workload(3, 200, tensor_parallel=2), Workload(2, 10, pinned_bytes=10**9)):
            ops, total = step_ops(model, workload), step_totals(model, workload)
            for field in ("weight_read", "kv_read", "kv_append", "flops", "link", "activation", "embedding_gather"):
                assert sum(getattr(op, field) for op in ops) == getattr(total, field), (name, field)
            assert sum(n for _, n in counted_ops(model, workload)) == len(ops)


@pytest.mark.parametrize("name", PRESET)
def test_golden_sizes(name: str, shared: Callable[[str], Path]) -> None:
    golden = json.loads(shared("reference/golden.json").read_text())[name]
    preset = PRESET[name]
    model = load_model(preset)
    assert weight_read_bytes(model) == golden["W_read_bf16"]
    assert stored_bytes(model) == golden["stored_bytes_bf16"]
    assert kv_bytes_per_token(model) == golden["kv_bytes_per_token_bf16"]
    assert lm_head_work(model).weight_read == golden["lm_head_bytes"]
    for dtype, key in (
        ("int8", "W_int8_perchannel_fp16scale_head_bf16"),
        ("int4-g128", "W_int4_g128_fp16scale_fp16zero_head_bf16"),
        ("gptq-int4", "W_int4_g128_fp16scale_int4zero_head_bf16"),
        ("int4-g128-sym", "W_int4_g128_fp16scale_sym_head_bf16"),
        ("int4-g32", "W_int4_g32_bf16scale_bf16zero_head_bf16"),
    ):
        assert weight_read_bytes(load_model(preset, weights=dtype)) == golden[key], dtype
    for point, values in golden["points"].items():
        batch, context = (int(part[1:]) for part in point.split("_"))
        total = step_totals(model, Workload(batch, context))
        assert total.kv_read == values["kv_read"]
        assert total.kv_append == values["kv_append"]
        assert total.streamed_bytes == values["total_rw"]
        assert total.flops == values["flops_linear"] + values["flops_attn"]


def test_unfused_activations(shared: Callable[[str], Path]) -> None:
    golden = json.loads(shared("reference/golden.json").read_text())["act_unfused_bytes_step"]
    for batch, expected in golden.items():
        assert step_totals(load_model("llama-3-8b"), Workload(int(batch), 512)).activation == expected


def test_one_rank_of_eight(shared: Callable[[str], Path]) -> None:
    golden = json.loads(shared("reference/golden.json").read_text())["Llama-3-70B"]["tp8_per_gpu"]
    model = load_model("llama-3-70b")
    ops = step_ops(model, Workload(1, 512, tensor_parallel=8))
    reduces = [op for op in ops if op.op is Op.ALL_REDUCE]
    assert len(reduces) == golden["allreduce_per_step"]
    assert sum(op.link for op in reduces) == golden["ring_bytes_sent_per_gpu_B1"]
    assert kv_bytes_per_token(model, 8) == golden["kv_token_bytes"]
    expected = golden["linear"] + golden["head"] + golden["norm_replicated"]
    assert weight_read_bytes(model, 8) == expected


def test_kv_heads_are_replicated_past_their_number() -> None:
    model = load_model("llama-3-8b")
    assert kv_bytes_per_token(model, 8) == kv_bytes_per_token(model, 16) == 2 * 128 * 2 * 32


def test_the_lesson_reads_twenty_gigabytes_whatever_the_batch() -> None:
    model = load_model("lesson-20gb")
    one, four = step_totals(model, Workload(1, 1024)), step_totals(model, Workload(4, 1024))
    assert one.weight_read == four.weight_read == 20_000_000_000
    assert four.kv_read == 4 * one.kv_read
    assert four.kv_append == 4 * one.kv_append


def test_opt_has_positions_biases_and_one_table() -> None:
    model = load_model("opt-6.7b")
    assert stored_bytes(model) == 2 * 6_658_473_984
    assert step_totals(model, Workload(3)).embedding_gather == 3 * 2 * 4096 * 2
    assert stored_bytes(model) - weight_read_bytes(model) == 2 * 2050 * 4096


def test_gpt2_xl_parameters() -> None:
    d, f, layers = 1600, 6400, 48
    layer = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d
    read = layers * layer + 2 * d + 50_257 * d
    model = load_model("gpt2-xl")
    assert weight_read_bytes(model) == 2 * read
    assert stored_bytes(model) == 2 * (read + 1024 * d) == 2 * 1_557_611_200


def test_qwen3_norms_its_queries_and_keys() -> None:
    model = load_model("qwen3-8b")
    layer = 4096 * 4096 * 2 + 2 * 4096 * 1024 + 3 * 4096 * 12288 + 2 * 4096 + 2 * 128
    assert weight_read_bytes(model) == 2 * (36 * layer + 4096 + 151_936 * 4096) == 15_136_811_008
    assert 32_785 * kv_bytes_per_token(model) == 4_834_344_960


def test_scaled_kv_adds_one_fp32_per_token_and_head() -> None:
    plain, scaled = load_model("llama-3-8b", kv="fp8"), load_model("llama-3-8b", kv="fp8-scaled")
    assert kv_bytes_per_token(plain) == 32 * 2 * 8 * 128
    assert kv_bytes_per_token(scaled) - kv_bytes_per_token(plain) == 32 * 2 * 8 * 4


dims = st.integers(1, 12)


@st.composite
def specs(draw: st.DrawFn) -> ModelSpec:
    kv_heads, share = draw(dims), draw(st.integers(1, 4))
    return ModelSpec(
        name="drawn",
        source="test",
        hidden=draw(st.integers(1, 400)),
        layers=draw(st.integers(1, 6)),
        heads=kv_heads * share,
        kv_heads=kv_heads,
        head_dim=draw(st.integers(1, 130)),
        ffn=draw(st.integers(1, 600)),
        vocab=draw(st.integers(1, 5000)),
        tied=draw(st.booleans()),
        gated=draw(st.booleans()),
        norm=draw(st.sampled_from(["rms", "layer", "layer-no-bias"])),
        norms_per_layer=draw(st.sampled_from([1, 2, 4])),
        qkv_bias=draw(st.booleans()),
        o_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        qk_norm=draw(st.booleans()),
        position_rows=draw(st.sampled_from([0, 77])),
    )


@given(specs(), st.integers(1, 64), st.integers(0, 5000))
def test_sums_over_ops_equal_closed_formulas(m: ModelSpec, batch: int, context: int) -> None:
    d, h, f = m.hidden, m.head_dim, m.ffn
    linear = d * m.heads * h + 2 * d * m.kv_heads * h + m.heads * h * d + (3 if m.gated else 2) * d * f
    bias = (m.heads + 2 * m.kv_heads) * h * m.qkv_bias + d * m.o_bias
    bias += ((2 if m.gated else 1) * f + d) * m.mlp_bias
    norm = (2 if m.norm == "layer" else 1) * d
    layer = linear + bias + norm * m.norms_per_layer + 2 * h * m.qk_norm
    read = 2 * (m.layers * layer + norm + m.vocab * d)
    total = step_totals(m, Workload(batch, context))
    assert total.weight_read == read == weight_read_bytes(m)
    assert total.embedding_gather == 2 * batch * d * (2 if m.position_rows else 1)
    assert total.kv_read == batch * context * m.layers * 2 * m.kv_heads * h * 2
    assert total.kv_append == batch * m.layers * 2 * m.kv_heads * h * 2
    attention = 4 * batch * (context + 1) * m.heads * h * m.layers
    assert total.flops == 2 * batch * (m.layers * linear + m.vocab * d) + attention
    assert stored_bytes(m) == read + 2 * d * ((0 if m.tied else m.vocab) + m.position_rows)
    assert scale_bytes(m) == 0
    assert total == step_totals(replace(m, name="renamed", title="other"), Workload(batch, context))


@given(specs(), st.sampled_from(["int8", "int4-g128", "gptq-int4", "mxfp4", "nvfp4", "fp8", "q4_0"]))
def test_scales_are_what_quantized_weights_weigh_above_their_values(m: ModelSpec, dtype: str) -> None:
    quantized = replace(m, weights=dtype)
    raw = replace(m, weights="int8-raw" if dtype in ("int8", "fp8") else "int4-raw")
    assert weight_read_bytes(quantized) - scale_bytes(quantized) == weight_read_bytes(raw)
    assert scale_bytes(quantized) > 0


def test_roles_say_which_bytes_an_op_moves() -> None:
    for op in step_ops(load_model("llama-3-8b"), Workload(2, 5, tensor_parallel=2)):
        assert op.roles & op.category.role
        assert bool(op.weight_read or op.embedding_gather) == bool(op.roles & Category.WEIGHT_READ.role)
        assert bool(op.kv_read) == bool(op.roles & Category.KV_READ.role)
        assert bool(op.kv_append) == bool(op.roles & Category.KV_APPEND.role)
        assert bool(op.link) == bool(op.roles & Category.COMMUNICATION.role)
