"""The handed cases of model configs: the right number where it is modelled, else one refusal that names the key."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracescope.cli.app import run

Shared = Callable[[str], Path]


@pytest.fixture
def floor(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """``floor(path, context)``: the document of one step of one request on an H100, with exit code and stderr."""

    def call(path: Path, context: int) -> dict[str, Any]:
        arguments = ["floor", "--model", str(path), "--hardware", "h100-sxm", "--context", str(context), "--json"]
        code = run(arguments)
        captured = capsys.readouterr()
        assert code in (0, 2, 3)
        assert len(captured.err.splitlines()) <= 3 or code == 3
        document = json.loads(captured.out) if captured.out else {}
        return {**document, "code": code, "err": captured.err}

    return call


def want(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text())["expected"]


def test_81_sparse_attention_is_not_dense(floor: Callable[..., dict[str, Any]], shared: Shared) -> None:
    folder = shared("cases/81-sparse-attention-is-not-dense")
    expected = want(folder)
    plain, sparse = floor(folder / "plain.json", 4096), floor(folder / "sparse.json", 4096)
    assert plain["kv_read_bytes"] == expected["plain.json"]["kv_read_bytes(batch 1, context 4096)"]
    value = expected["sparse.json"]["value"]
    assert sparse["index_key_read_bytes"] == value["index_key_read_bytes_at_1_byte"]
    assert sparse["kv_read_bytes"] - sparse["index_key_read_bytes"] == value["latent_read_bytes"]
    assert sparse["kv_bytes_per_token"] - plain["kv_bytes_per_token"] == 4 * 64  # index keys are appended too


@pytest.mark.parametrize("name", ["apertus-8b.json", "afm-4.5b.json"])
def test_201_mlp_without_a_gate(name: str, floor: Callable[..., dict[str, Any]], shared: Shared) -> None:
    folder = shared("cases/201-mlp-without-a-gate")
    found, expected = floor(folder / name, 8192), want(folder)[name]
    assert found["parameters"]["stored"] == expected["total_parameters"]
    assert found["weight_read_bytes"] == expected["weight_read_bytes"]


@pytest.mark.parametrize("name", ["quantization_only.json", "both_keys.json", "mxfp4_mode.json", "folder"])
def test_203_mlx_quantization(name: str, floor: Callable[..., dict[str, Any]], shared: Shared) -> None:
    folder = shared("cases/203-mlx-quantization-key")
    expected = want(folder)
    key = {"both_keys.json": "quantization_only.json", "folder": "folder/"}.get(name, name)
    found = floor(folder / name, 4096)
    assert found["weight_read_bytes"] == pytest.approx(expected[key]["weight_read_bytes"], rel=expected["tolerance"])
    assert found["weights"] == ("mxfp4" if "mxfp4" in name else "int4-g64")
    assert "sizes assume" not in found["err"]


@pytest.mark.parametrize("name", ["modelopt_folder", "compression_config.json"])
def test_205_format_said_in_another_place(name: str, floor: Callable[..., dict[str, Any]], shared: Shared) -> None:
    folder = shared("cases/205-format-said-in-another-place")
    expected = want(folder)
    found = floor(folder / name, 4096)
    wanted = expected.get(name) or expected[f"{name}/"]
    assert found["weight_read_bytes"] == pytest.approx(wanted["weight_read_bytes"], rel=expected["tolerance"])
    assert (found["kv"], found["kv_bytes_per_token"]) == ("fp8", 65_536)


def test_206_linear_layers(floor: Callable[..., dict[str, Any]], shared: Shared) -> None:
    folder = shared("cases/206-linear-layers-under-other-keys")
    expected = want(folder)
    found = floor(folder / "minimax-m1.json", 8192)
    assert found["kv_bytes_per_token"] == expected["minimax-m1.json"]["kv_bytes_per_token"]
    assert found["state_read_bytes"] == found["state_write_bytes"] == 70 * 64 * 128 * 128 * 4
    for name, key in (("ring-mini-linear.json", "layer_group_size"), ("rwkv7-1.5b.json", "model_type")):
        refused = floor(folder / name, 8192)
        assert refused["code"] == 2
        assert key in refused["err"]


@pytest.mark.parametrize("context", [8192, 131_072])
def test_208_two_head_sizes(context: int, floor: Callable[..., dict[str, Any]], shared: Shared) -> None:
    folder = shared("cases/208-two-head-sizes-by-layer-type")
    whole = want(folder)
    found, expected = floor(folder / "gemma-4-31b.json", context), whole["gemma-4-31b.json"]
    assert found["kv_read_bytes"] == pytest.approx(
        expected[f"kv_read_bytes(context {context})"], rel=whole["tolerance"]
    )
    assert found["weight_read_bytes"] == pytest.approx(expected["weight_read_bytes"], rel=whole["tolerance"])
    more = floor(folder / "gemma-4-31b.json", context + 1)["kv_read_bytes"] - found["kv_read_bytes"]
    assert more == expected["kv_growth_bytes_per_token_beyond_the_window"]


@pytest.mark.parametrize(
    ("name", "key"), [("interval.gguf", "full_attention_interval"), ("lfm2.gguf", "attention.head_count_kv")]
)
def test_210_gguf_with_attention_in_some_layers(
    name: str, key: str, floor: Callable[..., dict[str, Any]], shared: Shared
) -> None:
    refused = floor(shared("cases/210-gguf-attention-in-some-layers") / name, 32_768)
    assert refused["code"] == 2
    assert key in refused["err"]
    assert "shard" not in refused["err"]


@pytest.mark.parametrize(
    ("name", "key"), [("minimax-m3.json", "sparse_attention_config"), ("minicpm4.1-8b.json", "sparse_config")]
)
def test_212_block_sparse_attention(name: str, key: str, floor: Callable[..., dict[str, Any]], shared: Shared) -> None:
    refused = floor(shared("cases/212-block-sparse-attention") / name, 131_072)
    assert refused["code"] == 2
    assert key in refused["err"]


def test_221_dense_layers_under_other_keys(floor: Callable[..., dict[str, Any]], shared: Shared) -> None:
    folder = shared("cases/221-dense-layers-under-other-keys")
    expected = want(folder)
    ernie = floor(folder / "ernie-4.5-21b-a3b.json", 8192)
    assert ernie["stored_bytes"] == expected["ernie-4.5-21b-a3b.json"]["stored_bytes"]
    exaone = floor(folder / "k-exaone-236b.json", 8192)
    assert exaone["parameters"]["stored"] == expected["k-exaone-236b.json"]["total_parameters_without_mtp"]
    assert any("multi-token prediction" in note for note in exaone["notes"])
    trinity = floor(folder / "trinity-mini.json", 8192)
    assert trinity["parameters"]["stored"] == expected["trinity-mini.json"]["total_parameters"]
