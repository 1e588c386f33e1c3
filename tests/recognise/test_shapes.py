"""Bytes and FLOPs from recorded shapes, and what is not to be believed."""

import json
from typing import Any

import pytest

from tracescope.recognise.names.shapes import ShapeKind, read_shape

BF16, F32 = "c10::BFloat16", "float"


def shape(name: str, dims: Any, types: Any, concrete: Any = ()) -> Any:
    return read_shape(name, json.dumps({"Input Dims": dims, "Input type": types, "Concrete Inputs": list(concrete)}))


def test_a_matrix_product_reads_its_second_operand_once_whatever_the_batch() -> None:
    for rows in (1, 2, 64):
        read = shape("aten::mm", [[rows, 256], [256, 704]], [BF16, BF16])
        assert read.weight == 256 * 704 * 2
        assert read.flops == 2 * rows * 256 * 704
    assert shape("aten::linear", [[2, 1, 256], [704, 256], []], [F32, F32, ""]).weight == 256 * 704 * 4


def test_a_bias_is_read_with_its_weights() -> None:
    assert shape("aten::addmm", [[10], [2, 8], [8, 10]], [BF16] * 3).weight == (8 * 10 + 10) * 2
    assert shape("aten::linear", [[2, 8], [10, 8], [10]], [BF16] * 3).weight == (8 * 10 + 10) * 2


def test_attention_reads_keys_and_values_of_the_kv_heads_only() -> None:
    dims = [[2, 8, 1, 32], [2, 2, 16, 32], [2, 2, 16, 32]]
    read = shape("aten::scaled_dot_product_attention", dims, [BF16] * 3)
    assert read.kv == 2 * 16 * (2 * 2 * 32) * 2
    assert (read.batch, read.queries, read.keys) == (2, 1, 16)
    assert read.flops == 4 * 2 * 8 * 16 * 32


def test_a_batched_product_is_not_yet_attention_and_an_outer_product_says_nothing() -> None:
    read = shape("aten::bmm", [[16, 1, 32], [16, 32, 40]], [BF16, BF16])
    assert (read.kind, read.weight, read.kv) == (ShapeKind.BATCHED, -1, 16 * 32 * 40 * 2)
    assert (read.rows, read.inner, read.columns) == (16, 32, 40)
    assert shape("aten::bmm", [[1, 16, 1], [1, 1, 12]], [F32, F32]) is None


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("aten::_scaled_dot_product_flash_attention", [2, 8, 1, 64]),
        ("aten::_flash_attention_forward", [2, 1, 8, 64]),
        ("aten::_efficient_attention_forward", [2, 1, 8, 64]),
    ],
)
def test_the_query_tokens_are_where_the_operator_has_them(name: str, dims: list[int]) -> None:
    keys = [2, 8, 40, 64] if dims[1] == 8 else [2, 40, 8, 64]
    read = shape(name, [dims, keys, keys], [BF16] * 3)
    assert (read.batch, read.heads, read.queries, read.keys) == (2, 8, 1, 40)
    assert read.kv == 2 * 40 * 8 * 128 * 2
    assert read.flops == 4 * 2 * 8 * 40 * 64


def test_attention_backwards_reads_no_cache() -> None:
    dims = [[2, 8, 16, 64]] * 4
    assert shape("aten::_scaled_dot_product_flash_attention_backward", dims, [BF16] * 4) is None


@pytest.mark.parametrize("past", [[2, 2, 15, 32], [0]], ids=["grows", "was empty"])
def test_joining_past_and_new_along_the_tokens_is_an_append_of_the_new_part(past: list[int]) -> None:
    read = shape("aten::cat", [[past, [2, 2, 1, 32]], []], ["TensorList", "Scalar"], ["", "-2"])
    assert (read.kind, read.append_elements, read.append) == (ShapeKind.APPEND, 2 * 2 * 32, -1)


def test_joining_along_another_axis_is_no_append() -> None:
    halves = [[2, 8, 1, 16], [2, 8, 1, 16]]
    assert shape("aten::cat", [halves, []], ["TensorList", "Scalar"], ["", "-1"]) is None


def test_writing_into_a_static_cache_appends_what_is_written() -> None:
    dims = [[2, 2, 128, 32], [], [1], [2, 2, 1, 32]]
    assert shape("aten::index_copy_", dims, [F32, "Scalar", "long int", F32], ["", "2", "", ""]).append == 512
    assert shape("aten::index_copy_", [[128], [], [1], [1]], [F32, "Scalar", "long int", F32]) is None


def test_an_embedding_gathers_rows_not_the_table() -> None:
    assert shape("aten::embedding", [[2048, 256], [2, 1]], [BF16, "long int"]).gather == 2 * 256 * 2


def test_an_unknown_type_gives_unknown_bytes_and_known_flops() -> None:
    read = shape("aten::mm", [[2, 8], [8, 4]], ["c10::Strange", "c10::Strange"])
    assert (read.weight, read.flops) == (-1, 2 * 2 * 8 * 4)


@pytest.mark.parametrize(
    "detail",
    [
        "",
        "[]",
        "{",
        '{"Input Dims": "[[2, 8]]", "Input type": []}',
        '{"Input Dims": [[2, 8]], "Input type": ["float"]}',
        '{"Input Dims": [[2, 8], [9, 4]], "Input type": ["float", "float"]}',
        '{"Input Dims": [[2, -8], [-8, 4]], "Input type": ["float", "float"]}',
        '{"Input Dims": [null, 7], "Input type": ["float", "float"]}',
    ],
)
def test_damaged_or_contradictory_shapes_say_nothing(detail: str) -> None:
    assert read_shape("aten::mm", detail) is None


def test_the_oldest_spelling_of_the_keys_is_read_too() -> None:
    assert read_shape("aten::mm", '{"Input dims": [[2, 8], [8, 4]], "Input type": ["float", "float"]}') is not None
