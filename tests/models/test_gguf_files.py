"""GGUF files tensor by tensor, hostile ones, and damaged headers of both kinds of file."""

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.checkpoints import (
    SMALL,
    Tensors,
    gguf_bytes,
    nbytes,
    plain,
    refusal,
    small,
    without,
    write_gguf,
    write_model,
    write_safetensors,
)
from tracescope.cli.app import run
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.step_ops import step_ops, step_totals, stored_bytes, weight_read_bytes
from tracescope.models import load_model

METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "Small",
    "llama.embedding_length": 256,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": [2, 2],
    "llama.feed_forward_length": 512,
    "llama.context_length": 4096,
    "llama.rope.dimension_count": 64,
    "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.tokens": [f"t{i}" for i in range(1000)],
    "tokenizer.ggml.add_bos_token": True,
}


def gguf_small() -> Tensors:
    found: Tensors = {
        "token_embd.weight": ("q4_k", (1000, 256)),
        "output_norm.weight": ("f32", (256,)),
        "output.weight": ("q6_k", (1000, 256)),
    }
    for i in range(2):
        found |= {
            f"blk.{i}.attn_norm.weight": ("f32", (256,)),
            f"blk.{i}.ffn_norm.weight": ("f32", (256,)),
            f"blk.{i}.attn_q.weight": ("q4_k", (256, 256)),
            f"blk.{i}.attn_k.weight": ("q4_k", (128, 256)),
            f"blk.{i}.attn_v.weight": ("q6_k", (128, 256)),
            f"blk.{i}.attn_output.weight": ("q4_k", (256, 256)),
            f"blk.{i}.ffn_gate.weight": ("q4_k", (512, 256)),
            f"blk.{i}.ffn_up.weight": ("q4_k", (512, 256)),
            f"blk.{i}.ffn_down.weight": ("q6_k", (256, 512)),
        }
    return found


def gguf_total(tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
    return sum(gguf_bytes(dtype, shape) for dtype, shape in tensors.values())


def test_a_gguf_file_is_read_tensor_by_tensor(tmp_path: Path) -> None:
    path, tensors = tmp_path / "small.gguf", gguf_small()
    write_gguf(path, METADATA, tensors)
    for place in (path, tmp_path):
        spec = load_model(str(place))
        assert (spec.hidden, spec.layers, spec.heads, spec.kv_heads, spec.vocab) == (256, 2, 4, 2, 1000)
        assert (spec.weights, spec.lm_head, spec.kv, spec.title) == ("q4_k", "q6_k", "fp16", "Small")
        assert not spec.tied
        assert stored_bytes(spec) == gguf_total(tensors)
        read = gguf_total({name: tensor for name, tensor in tensors.items() if "token_embd" not in name})
        assert weight_read_bytes(spec) == read
        assert step_totals(spec, Workload(3)).embedding_gather == 3 * 144
    del tensors["output.weight"]
    write_gguf(path, METADATA, tensors)
    tied = load_model(str(path))
    assert tied.tied
    assert weight_read_bytes(tied) == gguf_total(tensors)


def test_experts_of_a_gguf_file(tmp_path: Path) -> None:
    """Each layer's experts lie in three tensors; one token reads two of four, whole."""
    experts: Tensors = {}
    for name, tensor in gguf_small().items():
        if "ffn_" not in name or "norm" in name:
            experts[name] = tensor
    for i in range(2):
        experts |= {
            f"blk.{i}.ffn_gate_inp.weight": ("f32", (4, 256)),
            f"blk.{i}.ffn_gate_exps.weight": ("q4_k", (4, 512, 256)),
            f"blk.{i}.ffn_up_exps.weight": ("q4_k", (4, 512, 256)),
            f"blk.{i}.ffn_down_exps.weight": ("q6_k", (4, 256, 512)),
        }
    path = tmp_path / "experts.gguf"
    write_gguf(path, changed(llama__expert_count=4, llama__expert_used_count=2), experts)
    spec = load_model(str(path))
    routed = gguf_total({name: tensor for name, tensor in experts.items() if "_exps" in name})
    always = gguf_total({n: t for n, t in experts.items() if "_exps" not in n and "token_embd" not in n})
    assert weight_read_bytes(spec) == always + routed // 2
    assert weight_read_bytes(spec, 1, 4096) == always + routed
    assert stored_bytes(spec) == gguf_total(experts)


def test_norms_that_a_file_has_more_or_less_of_are_counted_as_they_are(tmp_path: Path) -> None:
    for name, tensors in (
        ("none", without("input_layernorm", "post_attention_layernorm")),
        ("odd", small() | plain({f"model.layers.{i}.extra_norm.weight": (3,) for i in range(2)})),
    ):
        spec = load_model(str(write_model(tmp_path / name, SMALL, tensors)))
        ops = step_ops(spec, Workload())
        assert min(op.weight_read for op in ops) >= 0
        read = nbytes(v for k, v in tensors.items() if "embed_tokens" not in k)
        assert sum(op.weight_read for op in ops) == weight_read_bytes(spec) == read


def test_parts_of_a_gguf_model_are_read_together(tmp_path: Path) -> None:
    tensors = gguf_small()
    first = {name: tensor for name, tensor in tensors.items() if "blk.1" not in name}
    second = {name: tensor for name, tensor in tensors.items() if "blk.1" in name}
    write_gguf(tmp_path / "m-00001-of-00002.gguf", METADATA, first)
    assert "this part of the model is not there" in refusal(tmp_path / "m-00001-of-00002.gguf")
    write_gguf(tmp_path / "m-00002-of-00002.gguf", {"split.no": 1}, second)
    for place in (tmp_path, tmp_path / "m-00002-of-00002.gguf"):
        assert stored_bytes(load_model(str(place))) == gguf_total(tensors)


def changed(**metadata: Any) -> dict[str, Any]:
    renamed = {key.replace("__", "."): value for key, value in metadata.items()}
    return {key: value for key, value in {**METADATA, **renamed}.items() if value is not None}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (changed(general__architecture=None), "general.architecture is missing"),
        (changed(llama__embedding_length=None), "hidden_size is missing"),
        (changed(llama__attention__head_count_kv=[2, 4]), "attention.head_count_kv differs from layer to layer"),
        (changed(general__architecture="rwkv", rwkv__block_count=2), "recurrent"),
        (changed(llama__block_count=3), "layer 2 of num_hidden_layers 3"),
    ],
)
def test_gguf_metadata_that_says_too_little(metadata: dict[str, Any], words: str, tmp_path: Path) -> None:
    write_gguf(tmp_path / "bad.gguf", metadata, gguf_small())
    assert words in refusal(tmp_path / "bad.gguf")


def start(version: int, tensors: int, keys: int) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


HOSTILE_GGUF: dict[str, bytes] = {
    "empty": b"",
    "magic-only": b"GGUF",
    "other-magic": b"GGML" + bytes(100),
    "old-version": start(1, 0, 0),
    "many-keys": start(3, 0, 1 << 60),
    "many-tensors": start(3, 1 << 60, 0),
    "long-key": start(3, 0, 1) + struct.pack("<Q", 1 << 60),
    "cut-key": start(3, 0, 1) + struct.pack("<Q", 100) + b"abc",
    "unknown-type": start(3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<I", 99),
    "array-of-arrays": start(3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 9, 5),
    "endless-array": start(3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 4, 1 << 60),
    "long-array": start(3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 10, 1 << 23),
    "many-dimensions": start(3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<I", 200),
    "huge-tensor": start(3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<IQQIQ", 2, 1 << 40, 1 << 40, 0, 0),
    "tensor-type": start(3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<IQIQ", 1, 4, 77, 0),
    "tensor-outside": start(3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<IQIQ", 1, 4, 0, 1 << 40),
}


@pytest.mark.parametrize("name", HOSTILE_GGUF)
def test_hostile_gguf(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(HOSTILE_GGUF[name])
    assert run(["floor", "--model", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hostile.gguf" in captured.err
    assert len(captured.err.splitlines()) <= 3


@pytest.fixture
def loads(tmp_path: Path) -> Callable[[str, bytes], ModelSpec | None]:
    folder = write_model(tmp_path / "m", SMALL, small())

    def call(name: str, data: bytes) -> ModelSpec | None:
        path = folder / name
        path.write_bytes(data)
        refused: TraceError | None = None
        try:
            return load_model(str(path))
        except TraceError as error:
            refused = error
        assert all(len(line) < 500 for line in refused.lines())
        return None

    return call


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_damaged_headers_give_a_model_or_one_refusal(
    data: st.DataObject, loads: Callable[[str, bytes], ModelSpec | None], tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    if data.draw(st.booleans()):
        write_safetensors(whole, small())
        name = "model.safetensors"
    else:
        write_gguf(whole, METADATA, gguf_small())
        name = "model.gguf"
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 9000) - 1))] = data.draw(st.integers(0, 255))
    spec = loads(name, bytes(content))
    assert spec is None or weight_read_bytes(spec) > 0
