"""Which kernel of an operator has its bytes, and what a kernel without a rule takes from its operator."""

from typing import Any

import numpy as np
import pytest

from tests.kit.recordings import ADD, APPEND, ATTENTION, COMBINE, GEMM, NORM, Recording
from tracescope.core.category import Category, Op
from tracescope.core.trace import Trace
from tracescope.recognise.recognise import recognise

BF16 = "c10::BFloat16"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>"
CAST = "void at::native::elementwise_kernel<bfloat16tofloat32_copy_kernel>"
SPLIT = "void cublasLt::splitKreduce_kernel<32, 16, int, float>"
UNKNOWN_NAME = "kernel_cake_9f81b2"

ATTENTION_OPERATOR = ("aten::_scaled_dot_product_flash_attention", [[2, 8, 16, 64]] * 3)
KV = 2 * 16 * 8 * 128 * 2
PRODUCT = ("aten::mm", [[4, 96], [96, 32]])
WEIGHT = 96 * 32 * 2


def launched(operator: tuple[str, Any], kernels: list[tuple[str, int]], inner: tuple[str, Any] | None = None) -> Trace:
    """One step in which one operator launches ``kernels`` (name, ns), from ``inner`` where that is given."""
    r = Recording()
    r.add("ProfilerStep#1", "user_annotation", 0, 1_000)
    name, dims = operator
    r.operator(name, 10, 200, dims, [BF16] * len(dims))
    if inner is not None:
        r.operator(inner[0], 15, 180, inner[1], [BF16] * len(inner[1]))
    for k, (kernel, took) in enumerate(kernels):
        r.launch(20 + 10 * k, [kernel], took)
    return recognise(r.raw())


def amounts(trace: Trace, column: str) -> dict[str, int]:
    e = trace.events
    rows = np.flatnonzero(trace.on_device[trace.event_lane])
    rows = rows[np.argsort(e.start[rows])]
    return {trace.names[e.name[i]]: int(getattr(trace.work, column)[e.work[i]]) for i in rows.tolist()}


def category(trace: Trace, name: str) -> Category:
    [row] = np.flatnonzero(np.array(trace.names)[trace.events.name] == name)
    return Category(int(trace.events.category[row]))


@pytest.mark.parametrize("first", [FILL, CAST, "Memcpy DtoD (Device -> Device)"])
def test_what_prepares_gets_nothing_of_attention(first: str) -> None:
    trace = launched(ATTENTION_OPERATOR, [(first, 900), (ATTENTION, 140)])
    assert amounts(trace, "kv_read") == {first: 0, ATTENTION: KV}
    assert category(trace, first) in (Category.COMPUTE, Category.COPY)
    assert category(trace, ATTENTION) is Category.KV_READ


def test_of_kernels_whose_names_say_nothing_the_longest_carries() -> None:
    other = UNKNOWN_NAME + "_prologue"
    trace = launched(ATTENTION_OPERATOR, [(FILL, 500), (other, 20), (UNKNOWN_NAME, 140)])
    assert amounts(trace, "kv_read") == {FILL: 0, other: 0, UNKNOWN_NAME: KV}


def test_of_kernels_of_the_operators_family_the_longest_carries() -> None:
    trace = launched(PRODUCT, [(GEMM, 20), (GEMM + "_main", 200), (SPLIT, 10), (CAST, 300)])
    assert amounts(trace, "weight_read") == {GEMM: 0, GEMM + "_main": WEIGHT, SPLIT: 0, CAST: 0}


def test_an_operator_inside_one_about_the_same_thing_has_its_bytes_once() -> None:
    linear = ("aten::linear", [[4, 96], [32, 96], []])
    trace = launched(linear, [(CAST, 300), (UNKNOWN_NAME, 20)], PRODUCT)
    assert amounts(trace, "weight_read") == {CAST: 0, UNKNOWN_NAME: WEIGHT}


def test_a_kernel_of_another_family_keeps_its_own_unknown_bytes() -> None:
    trace = launched(ATTENTION_OPERATOR, [(APPEND, 20), (ATTENTION, 140)])
    assert amounts(trace, "kv_append") == {APPEND: -1, ATTENTION: 0}
    assert amounts(trace, "kv_read")[ATTENTION] == KV


def test_a_concatenation_may_be_a_copy() -> None:
    past, new = [2, 8, 15, 64], [2, 8, 1, 64]
    copy = "Memcpy DtoD (Device -> Device)"
    for kernels, carrier in (([(copy, 90)], copy), ([(copy, 90), (ADD, 20)], ADD)):
        r = Recording()
        r.add("ProfilerStep#1", "user_annotation", 0, 1_000)
        dims = [[past, new], []]
        r.operator("aten::cat", 10, 200, dims, ["TensorList", "Scalar"], concrete=["", "2"])
        for k, (kernel, took) in enumerate(kernels):
            r.launch(20 + 10 * k, [kernel], took)
        r.operator(ATTENTION_OPERATOR[0], 300, 90, [[2, 8, 1, 64], [2, 8, 16, 64], [2, 8, 16, 64]], [BF16] * 3)
        r.launch(310, [ATTENTION])
        found = amounts(recognise(r.raw()), "kv_append")
        assert {name for name, amount in found.items() if amount > 0} == {carrier}
        assert found[carrier] == 2 * 8 * 64 * 2


def test_a_scale_by_a_vector_is_no_norm() -> None:
    trace = launched(("aten::mul", [[4, 96], [96]]), [(ADD, 20)])
    assert amounts(trace, "weight_read") == {ADD: -1}
    assert category(trace, ADD) is Category.COMPUTE


@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        ("aten::cudnn_convolution", Category.WEIGHT_READ),
        ("vllm::unified_attention_with_output", Category.KV_READ),
        ("aten::cumsum", Category.COMPUTE),
        ("c10d::allreduce_", Category.COMMUNICATION),
        ("aten::_flash_attention_backward", Category.COMPUTE),
        ("my::operator", Category.OTHER),
    ],
)
def test_a_kernel_without_a_rule_takes_the_class_of_its_operator_and_the_report_says_so(
    operator: str, wanted: Category
) -> None:
    trace = launched((operator, []), [(UNKNOWN_NAME, 140)])
    assert category(trace, UNKNOWN_NAME) is wanted
    said = [i.what for i in trace.meta.report.inferred if i.rule == "kernels by their operator"]
    assert len(said) == (wanted is not Category.OTHER)
    assert trace.meta.report.unclassified_ns == (140 if wanted is Category.OTHER else 0)
    assert all(text.startswith("1 kernel of 1 name without a rule") for text in said)


def test_the_innermost_operator_that_is_known_decides() -> None:
    trace = launched(("aten::mm", []), [(UNKNOWN_NAME, 140)], ("my::operator", []))
    assert category(trace, UNKNOWN_NAME) is Category.WEIGHT_READ
    assert amounts(trace, "weight_read") == {UNKNOWN_NAME: -1}


@pytest.mark.parametrize(
    ("kernels", "part", "known"),
    [
        ([ATTENTION, COMBINE], COMBINE, True),
        ([COMBINE], COMBINE, False),
        ([ATTENTION, GEMM, COMBINE], COMBINE, False),
        ([GEMM, SPLIT], SPLIT, True),
        ([GEMM, NORM, SPLIT], SPLIT, False),
        ([SPLIT, GEMM], SPLIT, False),
    ],
)
def test_a_part_has_no_bytes_only_beside_the_kernel_that_has_them(kernels: list[str], part: str, known: bool) -> None:
    r = Recording()
    r.add("ProfilerStep#1", "user_annotation", 0, 1_000)
    r.launch(10, kernels)
    column = "kv_read" if part == COMBINE else "weight_read"
    assert amounts(recognise(r.raw()), column)[part] == (0 if known else -1)
    loose = Recording()
    loose.launch(10, kernels)
    assert amounts(recognise(loose.raw()), column)[part] == -1


def test_a_product_known_by_name_alone_is_not_known_to_leave_the_cache_alone() -> None:
    r = Recording()
    r.launch(10, [GEMM])
    trace = recognise(r.raw())
    assert amounts(trace, "weight_read") == amounts(trace, "kv_read") == {GEMM: -1}
    assert trace.events.op[trace.events.name == trace.names.index(GEMM)].tolist() == [Op.OTHER]
