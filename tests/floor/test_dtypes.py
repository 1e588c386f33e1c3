"""Effective bits of storage formats, and matrices whose sides are not whole groups."""

import pytest

from tracescope.core.errors import TraceError
from tracescope.floor.dtypes import KV_DTYPES, WEIGHT_NAMES, kv_dtype, weight_dtype


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("bf16", 16),
        ("fp32", 32),
        ("int4-g128", 4.25),
        ("gptq-int4", 4.15625),
        ("int4-g128-sym", 4.125),
        ("int4-g32", 5.0),
        ("mxfp4", 4.25),
        ("nvfp4", 4.5),
        ("fp8", 8 + 32 / 128**2),
        ("q4_0", 4.5),
        ("q8_0", 8.5),
        ("q4_k", 4.5),
        ("q6_k", 6.5625),
        ("nf4", 4.5),
        ("int8-raw", 8),
        ("int4-raw", 4),
    ],
)
def test_effective_bits(name: str, bits: float) -> None:
    assert weight_dtype(name).effective_bits(4096, 4096) == pytest.approx(bits, abs=1e-12)


def test_int8_adds_two_bytes_an_output() -> None:
    assert weight_dtype("int8").side_bytes(4096, 11) == 22


def test_groups_are_counted_whole() -> None:
    dtype = weight_dtype("int4-g128")
    assert dtype.side_bytes(130, 3) == 2 * 3 * 4
    assert dtype.value_bytes(3, 3) == 5
    assert weight_dtype("fp8").side_bytes(129, 1) == 2 * 4
    assert weight_dtype("fp8-tensor").side_bytes(129, 77) == 4


def test_every_listed_name_is_known_and_spellings_are_accepted() -> None:
    for name in WEIGHT_NAMES:
        assert weight_dtype(name).name == name
    assert weight_dtype("BFloat16").name == "bf16"
    assert weight_dtype("Q4_K").name == "q4_k"
    assert weight_dtype("gptq-int4-g32").side_bytes(64, 1) == 5  # two groups of 16 + 4 bits


@pytest.mark.parametrize("name", ["int5", "", "int4", "int4-g0", "int4-g", "bf16 ", "int4-g99999999"])
def test_unknown_weights(name: str) -> None:
    with pytest.raises(TraceError, match="weight dtype"):
        weight_dtype(name)


def test_kv() -> None:
    assert [kv_dtype(name).token_bytes(8, 128) for name in ("bf16", "fp8", "fp8-scaled")] == [2048, 1024, 1056]
    assert set(KV_DTYPES) >= {"bf16", "fp16", "fp32", "fp8", "int8", "fp8-scaled", "int8-scaled"}
    with pytest.raises(TraceError, match="KV dtype"):
        kv_dtype("fp9")
