"""Layers and op names read off the order of families, for the layer shapes that engines launch."""

import numpy as np
import pytest

from tracescope.core.category import Op
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.ops.layer_spans import find_layers
from tracescope.recognise.ops.ops import Pattern, read_pattern

LETTERS = {
    "N": Family.NORM,
    "G": Family.GEMM,
    "g": Family.GEMM_PART,
    "R": Family.ROPE,
    "K": Family.APPEND,
    "A": Family.ATTENTION,
    "a": Family.ATTENTION_PART,
    "S": Family.ACT,
    "E": Family.EMBED,
    "x": Family.EXPERTS,
    "r": Family.ROUTING,
    "e": Family.ELEMENTWISE,
    "T": Family.SAMPLE,
    "X": Family.COMMUNICATION,
}


def read(sequence: str) -> Pattern:
    return read_pattern(np.array([LETTERS[c] for c in sequence], np.uint8))


def ops(sequence: str) -> list[str]:
    return [Op(o).name for o in read(sequence).op.tolist()]


# Name, what comes before the layers, one layer, what comes after, GEMM ops of a layer.
SHAPES = [
    ("fused engine", "E", "NGRKAaGNGSG", "NGT", ["QKV", "O", "GATE_UP", "DOWN"]),
    ("qk-norm after qkv", "eE", "NGeNeNRKAaGNGSG", "NGeT", ["QKV", "O", "GATE_UP", "DOWN"]),
    ("split GEMMs", "E", "NGgRKAGgNGgSGg", "NGgT", ["QKV", "O", "GATE_UP", "DOWN"]),
    ("eager, q k v apart", "E", "NGGGeRKKAGeNGSGeGe", "NGT", ["Q", "K", "V", "O", "GATE", "UP", "DOWN"]),
    ("eager, no norm kernels", "Eee", "eeGGGRKKAGeeeGSGeGe", "eeGT", ["Q", "K", "V", "O", "GATE", "UP", "DOWN"]),
    ("append fused into attention", "E", "NGRAaGNGSG", "NGT", ["QKV", "O", "GATE_UP", "DOWN"]),
    ("activation fused into the GEMM", "E", "NGRKAGNGG", "NGT", ["QKV", "O", "GATE_UP", "DOWN"]),
    ("sandwich norms", "E", "NGRKAGNNGSGN", "NGT", ["QKV", "O", "GATE_UP", "DOWN"]),
    ("experts", "E", "NGRKAaGNGerrrrxxr", "NGT", ["QKV", "O", "ROUTER"]),
    ("two ranks", "E", "NGRKAGXNGSGX", "NGT", ["QKV", "O", "GATE_UP", "DOWN"]),
    ("append after attention", "E", "NGRAKGNGSG", "NGT", ["QKV", "O", "GATE_UP", "DOWN"]),
    ("append after attention, no norms, two ranks", "Ee", "GAKGX", "eGT", ["QKV", "O"]),
]


@pytest.mark.parametrize(("name", "before", "layer", "after", "gemms"), SHAPES, ids=[s[0] for s in SHAPES])
@pytest.mark.parametrize("layers", [2, 3, 36])
def test_every_layer_is_found_and_its_gemms_named(
    *, name: str, before: str, layer: str, after: str, gemms: list[str], layers: int
) -> None:
    sequence = before + layer * layers + after
    pattern = read(sequence)
    assert pattern.layers == layers, name
    for k in range(layers):
        inside = [i for i, c in enumerate(sequence) if c == "G" and pattern.layer[i] == k]
        assert [Op(int(pattern.op[i])).name for i in inside] == gemms
    outside = [i for i, c in enumerate(sequence) if c == "G" and pattern.layer[i] < 0]
    assert [Op(int(pattern.op[i])).name for i in outside] == ["LM_HEAD"]


@pytest.mark.parametrize(("name", "before", "layer", "after"), [s[:4] for s in SHAPES], ids=[s[0] for s in SHAPES])
def test_layers_do_not_overlap_and_begin_where_the_one_before_ended(
    name: str, before: str, layer: str, after: str
) -> None:
    spans = find_layers([LETTERS[c] for c in before + layer * 4 + after])
    assert [s.layer for s in spans] == [0, 1, 2, 3], name
    assert [s.high for s in spans[:-1]] == [s.low for s in spans[1:]]


def test_companions_carry_no_bytes_and_one_kernel_of_each_op_does() -> None:
    sequence = "E" + "NGgRKAaGNGSG" * 2 + "NGT"
    pattern = read(sequence)
    for letter in "ga":
        assert not any(pattern.main[i] for i, c in enumerate(sequence) if c == letter)
    inside = pattern.layer == 0
    for op in (Op.QKV, Op.ATTENTION, Op.KV_APPEND, Op.O):
        assert int((pattern.main & inside & (pattern.op == op)).sum()) == 1


def test_the_reduction_of_a_split_gemm_takes_its_op() -> None:
    assert ops("E" + "NGgRKAGgNGgSGg" * 2 + "NGg")[2:4] == ["QKV", "QKV"]
    assert ops("E" + "NGgRKAGgNGgSGg" * 2 + "NGg")[-2:] == ["LM_HEAD", "LM_HEAD"]


def test_a_gather_behind_the_first_layer_is_no_embedding_and_a_softmax_inside_one_selects_no_token() -> None:
    named = ops("E" + "NGRKATGNGSG" * 2 + "NEGT")
    assert named.count("EMBED") == 1
    assert named.count("SAMPLE") == 1
    assert named[-1] == "SAMPLE"


@pytest.mark.parametrize("sequence", ["", "e", "GGG", "NGRKAGNGSG", "TTT", "NNNN"])
def test_too_little_for_layers_names_none(sequence: str) -> None:
    pattern = read(sequence)
    assert pattern.layers == 0
    assert (pattern.layer == -1).all()
