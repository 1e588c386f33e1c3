"""Attention needs a softmax or its own kernel, a KV append a cache that grows, a prompt more than one query."""

import numpy as np
import pytest

from tests.kit.layered import windowed
from tests.kit.recordings import ADD, APPEND, ATTENTION, GEMM, NORM, Recording, decode_kernels
from tracescope.core.category import Category, Op, StepKind
from tracescope.core.model import ModelSpec
from tracescope.core.trace import Trace
from tracescope.recognise.names.kernel_rules import Family, Rule
from tracescope.recognise.recognise import recognise

BF16 = "c10::BFloat16"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>"
LOG_SOFTMAX = "void cunn_SoftMaxForward<4, float, float, float, at::native::LogSoftMaxForwardEpilogue>"
CAT = "void at::native::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 4, 64, 64>"
WRITE = "void at::native::index_elementwise_kernel<128, 4>"
HEADS, WIDTH, KEYS = 8, 64, 40

Operators = list[tuple[str, list[list[int]], str]]
"""Name, dims and kernel of each."""


def step_of(operators: Operators, on_device: bool) -> Trace:
    """One step of operators (name, dims, kernel), each launching one kernel, or without a device."""
    r = Recording()
    r.add("ProfilerStep#1", "user_annotation", 0, 10_000)
    for k, (name, dims, kernel) in enumerate(operators):
        r.operator(name, 10 + 100 * k, 90, dims, [BF16] * len(dims))
        if on_device:
            r.launch(20 + 100 * k, [kernel])
    return recognise(r.raw())


def written_out(between: tuple[str, str] = ("aten::_softmax", SOFTMAX), values: int = KEYS) -> Operators:
    queries = 1
    scores = [HEADS, queries, KEYS]
    return [
        ("aten::bmm", [[HEADS, queries, WIDTH], [HEADS, WIDTH, KEYS]], GEMM),
        ("aten::mul", [scores, []], ADD),
        (between[0], [scores, [], []], between[1]),
        ("aten::bmm", [[HEADS, queries, values], [HEADS, values, WIDTH]], GEMM),
    ]


def kv_read(trace: Trace) -> int:
    return int(np.maximum(trace.work.kv_read[trace.events.work], 0).sum())


@pytest.mark.parametrize("on_device", [True, False])
def test_two_products_around_a_softmax_attend(on_device: bool) -> None:
    trace = step_of(written_out(), on_device)
    assert kv_read(trace) == 2 * HEADS * WIDTH * KEYS * 2
    assert int((trace.events.op == Op.ATTENTION).sum()) == 2
    assert trace.steps.kind.tolist() == [StepKind.DECODE]


@pytest.mark.parametrize("on_device", [True, False])
@pytest.mark.parametrize(
    "operators",
    [
        written_out(between=("aten::relu", ADD)),
        written_out(between=("aten::_log_softmax", LOG_SOFTMAX)),
        written_out(values=KEYS + 1),
        [written_out()[0], written_out()[2], ("aten::mm", [[4, 96], [96, 32]], GEMM), written_out()[3]],
        written_out()[:3],
    ],
    ids=["no softmax", "a logarithm", "other sizes", "a product between", "one product"],
)
def test_other_batched_products_do_not(operators: Operators, on_device: bool) -> None:
    trace = step_of(operators, on_device)
    assert kv_read(trace) == 0
    assert not (trace.events.category == Category.KV_READ).any()
    assert trace.steps.kind.tolist() == [StepKind.OTHER]


def attends(queries: int, keys: int) -> tuple[str, list[list[int]], str]:
    dims = [[2, HEADS, queries, WIDTH], [2, HEADS, keys, WIDTH], [2, HEADS, keys, WIDTH]]
    return ("aten::scaled_dot_product_attention", dims, ATTENTION)


def joins(past: list[int], new: list[int]) -> Recording:
    r = Recording()
    r.add("ProfilerStep#1", "user_annotation", 0, 10_000)
    join(r, 10, past, new)
    return r


def join(r: Recording, at: int, past: list[int], new: list[int]) -> None:
    axis = str(len(new) - 2)
    r.operator("aten::cat", at, 90, [[past, new], []], ["TensorList", "Scalar"], concrete=["", axis])
    r.launch(at + 10, [CAT])


def attend(r: Recording, at: int, queries: int, keys: int) -> None:
    name, dims, kernel = attends(queries, keys)
    r.operator(name, at, 90, dims, [BF16] * 3)
    r.launch(at + 10, [kernel])


def appends(r: Recording) -> int:
    return int((recognise(r.raw()).events.category == Category.KV_APPEND).sum())


def test_a_class_token_is_no_cache() -> None:
    r = joins([2, 1, 512], [2, 196, 512])
    attend(r, 200, 197, 197)
    assert appends(r) == 0
    assert recognise(r.raw()).steps.kind.tolist() == [StepKind.OTHER]


def test_text_and_image_joined_for_attention_are_no_cache() -> None:
    for past, new in ((77, 1024), (1024, 77)):
        r = joins([2, HEADS, past, WIDTH], [2, HEADS, new, WIDTH])
        attend(r, 200, past + new, past + new)
        assert appends(r) == 0


def test_a_cache_is_seen_by_the_attention_behind_it() -> None:
    r = joins([2, HEADS, 39, WIDTH], [2, HEADS, 1, WIDTH])
    attend(r, 200, 1, 40)
    assert appends(r) == 1


def test_a_cache_is_what_the_next_one_begins_with() -> None:
    r = joins([0], [2, HEADS, 12, WIDTH])
    join(r, 200, [2, HEADS, 12, WIDTH], [2, HEADS, 1, WIDTH])
    join(r, 400, [2, HEADS, 13, WIDTH], [2, HEADS, 1, WIDTH])
    r.launch(700, [ATTENTION])
    assert appends(r) == 3


def test_nothing_is_appended_where_nothing_attends() -> None:
    r = Recording()
    dims = [[16, 128, 64], [], [4, 128, 64]]
    r.operator("aten::index_put_", 10, 90, dims, [BF16, "", BF16])
    r.launch(20, [WRITE])
    r.launch(200, ["void at::native::index_copy_kernel_impl<float>"])
    assert appends(r) == 0
    assert recognise(r.raw()).meta.report.unclassified_ns == 0
    # A kernel that says cache is believed, and so is the user.
    r.launch(400, [APPEND])
    assert appends(r) == 1
    trace = recognise(r.raw(), rules=(Rule(Family.APPEND, "index_copy"),))
    assert int((trace.events.category == Category.KV_APPEND).sum()) == 2


def products(r: Recording, at: int, rows: list[int]) -> None:
    for k, m in enumerate(rows):
        r.operator("aten::mm", at + 50 * k, 40, [[m, 64], [64, 64]], [BF16] * 2)
        r.launch(at + 50 * k + 5, [GEMM])


@pytest.mark.parametrize(
    ("layers", "last", "kind"),
    [(512, 4, StepKind.PREFILL), (4, 4, StepKind.DECODE), (8, 5, StepKind.DECODE)],
    ids=["a prompt", "one token each", "a padded graph"],
)
def test_the_rows_of_its_products_tell_a_prompt(layers: int, last: int, kind: StepKind) -> None:
    r = Recording()
    r.add("ProfilerStep#1", "user_annotation", 0, 10_000)
    for layer in range(2):
        products(r, 100 + 1_000 * layer, [layers])
        r.launch(300 + 1_000 * layer, [NORM, APPEND, ATTENTION])
        products(r, 400 + 1_000 * layer, [layers, layers])
    products(r, 5_000, [last])
    trace = recognise(r.raw())
    assert trace.steps.kind.tolist() == [kind]


def test_a_long_pass_is_a_prompt_where_the_run_generates() -> None:
    def run(queries: list[int]) -> list[int]:
        r = Recording()
        for k, q in enumerate(queries):
            r.add(f"ProfilerStep#{k}", "user_annotation", 1_000 * k, 900)
            attend(r, 1_000 * k + 10, q, 12 + k)
        kinds: list[int] = recognise(r.raw()).steps.kind.tolist()
        return kinds

    assert run([12, 1, 1]) == [StepKind.PREFILL, StepKind.DECODE, StepKind.DECODE]
    assert run([12, 12]) == [StepKind.OTHER, StepKind.OTHER]


def test_windowed_layers_of_a_mixed_step_count_the_rows_that_decode() -> None:

    model = windowed(ModelSpec("small", "made", 64, 2, 4, 2, 16, 128, 1000, False), (32, None))
    r = Recording()
    text = "execute_514_context_1(sq512sk512sqsq9sqsk9)_generation_2(sq2sk400sqsq2sqsk400)"
    r.add(text, "user_annotation", 0, 1_000)
    r.launch(100, decode_kernels(2))
    trace = recognise(r.raw(), model=model)
    e = trace.events
    token = 2 * 2 * 16 * 2
    read = {int(e.layer[i]): int(trace.work.kv_read[e.work[i]]) for i in np.flatnonzero(e.op == Op.ATTENTION)
            if trace.work.kv_read[e.work[i]] > 0}  # fmt: skip
    assert trace.steps.kind.tolist() == [StepKind.MIXED]
    assert read == {0: 2 * 31 * token, 1: 400 * token}
