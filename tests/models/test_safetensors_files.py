"""Headers of safetensors files against the formulas, and the files that are refused."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.checkpoints import (
    PUBLISHED,
    SMALL,
    Tensors,
    as_published,
    nbytes,
    plain,
    preset_config,
    refusal,
    small,
    without,
    write_model,
    write_safetensors,
)
from tracescope.cli.app import run
from tracescope.core.model import Workload
from tracescope.floor.step_ops import OpWork, scale_bytes, step_ops, step_totals, stored_bytes, weight_read_bytes
from tracescope.models import load_model


def comparable(op: OpWork) -> OpWork:
    return replace(op, activation=0)


@pytest.mark.parametrize("name", [n for n in PUBLISHED if n != "deepseek-v3"])
def test_headers_give_the_same_bytes_as_the_formulas(name: str, tmp_path: Path) -> None:
    config = {key: value for key, value in preset_config(name).items() if not key.startswith("_")}
    folder = write_model(tmp_path / name, config, as_published(name), shards=3)
    spec, formula = load_model(str(folder)), load_model(name)
    assert spec.tensors is not None
    assert spec.assumptions == ()
    assert (spec.weights, spec.lm_head) == (formula.weights, formula.lm_head)
    assert stored_bytes(spec) == stored_bytes(formula)
    assert scale_bytes(spec, 1, 7) == scale_bytes(formula, 1, 7)
    workload = Workload(7, 300)
    assert step_totals(spec, workload) == step_totals(formula, workload)
    assert list(map(comparable, step_ops(spec, workload))) == list(map(comparable, step_ops(formula, workload)))
    # One rank's bytes are by formula, and another dtype is a question about another checkpoint.
    two = Workload(2, 5, tensor_parallel=2)
    assert step_totals(spec, two) == step_totals(replace(spec, tensors=None), two)
    assert load_model(str(folder), weights="fp8").tensors is None


def test_a_packed_checkpoint_weighs_what_its_tensors_do(tmp_path: Path) -> None:
    """GPTQ: packed values, packed zeros, scales and an index of groups for each linear weight."""
    tensors: Tensors = {}
    for name, (dtype, shape) in small().items():
        if ".layers." not in name or "norm" in name:
            tensors[name] = (dtype, shape)
            continue
        n_out, n_in = shape
        base = name.removesuffix(".weight")
        tensors |= {
            f"{base}.qweight": ("I32", (n_in // 8, n_out)),
            f"{base}.qzeros": ("I32", (n_in // 128, n_out // 8)),
            f"{base}.scales": ("F16", (n_in // 128, n_out)),
            f"{base}.g_idx": ("I32", (n_in,)),
        }
    config = {**SMALL, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    spec = load_model(str(write_model(tmp_path / "packed", config, tensors)))
    by_formula = replace(spec, tensors=None)
    assert spec.weights == "gptq-int4"
    indices = nbytes(v for k, v in tensors.items() if k.endswith("g_idx"))
    assert weight_read_bytes(spec) - weight_read_bytes(by_formula) == indices
    assert scale_bytes(spec) - scale_bytes(by_formula) == indices
    assert stored_bytes(spec) == nbytes(tensors.values())


def test_what_no_step_reads_is_stored_only(tmp_path: Path) -> None:
    extra = plain(
        {
            "vision_tower.blocks.0.attn.qkv.weight": (96, 32),
            "model.layers.2.self_attn.q_proj.weight": (256, 256),  # a layer that predicts later tokens
            "model.layers.0.self_attn.rotary_emb.inv_freq": (32,),
        }
    )
    folder = write_model(tmp_path / "more", SMALL, small() | extra)
    spec = load_model(str(folder))
    assert spec.assumptions == ()
    predicting = nbytes(v for k, v in extra.items() if ".layers.2." in k)
    assert stored_bytes(spec) == nbytes(small().values()) + nbytes(extra.values()) - predicting
    assert spec.prediction_layers == 1
    assert weight_read_bytes(spec) == weight_read_bytes(replace(spec, tensors=None))


def test_differences_from_the_config_are_said(tmp_path: Path) -> None:
    tensors = small() | plain({"model.embed_tokens.weight": (1024, 256), "lm_head.weight": (1024, 256)})
    tensors |= plain({"model.layers.1.mlp.adapter.weight": (3, 3)})
    notes = load_model(str(write_model(tmp_path / "padded", SMALL, tensors))).assumptions
    assert any("vocab_size is 1,000 but the embedding has 1,024 rows" in note for note in notes)
    assert any("1 tensors are stored but taken as not read" in note and "adapter" in note for note in notes)
    wide = {name: ("F32", shape) for name, (_, shape) in small().items()}
    spec = load_model(str(write_model(tmp_path / "wide", SMALL, wide)))
    assert spec.weights == "bf16"
    assert stored_bytes(spec) == nbytes(small().values())
    assert any("served" in note or "serve them in 16 bit" in note for note in spec.assumptions)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (without("layers.1."), "layer 1 of num_hidden_layers 2 has no weights of its attention"),
        (without("layers.0.mlp.down"), "layer 0 of num_hidden_layers 2 has no weights of its MLP"),
        (without("embed_tokens"), "no tensor is an input embedding"),
        (small() | plain({"model.layers.0.mlp.experts.0.up_proj.weight": (4, 4)}), "layer 0 has experts"),
    ],
)
def test_tensors_that_contradict_the_config(tensors: Tensors, words: str, tmp_path: Path) -> None:
    assert words in refusal(write_model(tmp_path / "bad", SMALL, tensors))


def test_shards_that_are_missing_cut_or_double(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", SMALL, small(), shards=2)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert "00002-of-00002.safetensors: the index names this file" in refusal(folder)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../elsewhere.safetensors"}}))
    assert "not a file beside it" in refusal(folder)
    index.write_text(json.dumps({"weight_map": [1]}))
    assert "weight_map" in refusal(folder)
    index.unlink()
    write_safetensors(folder / "model-00001-of-00002.safetensors", small(), cut=10)
    assert "lies outside the file" in refusal(folder)
    write_safetensors(folder / "model-00001-of-00002.safetensors", small())
    write_safetensors(folder / "model-00002-of-00002.safetensors", small())
    assert "in another shard as well" in refusal(folder)


def header(text: bytes, length: int | None = None, data: int = 64) -> bytes:
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(data)


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "short": b"\x01\x02",
    "zero": header(b"", 0),
    "longer-than-the-file": header(b"{}", 1 << 62),
    "not-json": header(b"hello"),
    "list": header(b"[]"),
    "deep": header(b'{"a":' + b"[" * 100_000),
    "no-offsets": header(b'{"a": {"dtype": "F32", "shape": [1]}}'),
    "unknown-dtype": header(b'{"a": {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}}'),
    "negative": header(b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}'),
    "huge-shape": header(b'{"a": {"dtype": "U8", "shape": [9999999999, 9999999999], "data_offsets": [0, 4]}}'),
    "wrong-size": header(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}'),
    "backwards": header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}}'),
    "outside": header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [64, 68]}}'),
    "bad-text": header(b'{"\xff": 1}'),
    "float-shape": header(b'{"a": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}}'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_safetensors(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_model(tmp_path / "m", SMALL, {})
    path = folder / "model.safetensors"
    path.write_bytes(HOSTILE[name])
    for argument in (folder, path):
        assert run(["floor", "--model", str(argument)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "safetensors" in captured.err
        assert len(captured.err.splitlines()) <= 3
