"""Splitting over ranks: what engines refuse, what is kept twice, and how many all-reduces a layer needs."""

import pytest

from tracescope.core.category import Op
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.step_floor import step_floor
from tracescope.floor.step_ops import step_ops
from tracescope.floor.sweep import sweep
from tracescope.floor.tensor_parallel import split_notes
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.models.config import spec_from_config
from tracescope.synth.decode import synthesize

H100 = make_basis(load_hardware("h100-sxm"))


def falcon(heads: int, layers: int, **keys: object) -> ModelSpec:
    config = {
        "model_type": "falcon",
        "hidden_size": heads * 64,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": 65024,
        "torch_dtype": "bfloat16",
        **keys,
    }
    return spec_from_config(config, name="falcon", file="config.json")


FALCON_40B = falcon(128, 60, new_decoder_architecture=True, num_kv_heads=8)
FALCON_7B = falcon(71, 32, multi_query=True, parallel_attn=True)


def reduces(model: ModelSpec, ranks: int) -> int:
    return sum(op.op is Op.ALL_REDUCE for op in step_ops(model, Workload(tensor_parallel=ranks)))


def test_parallel_attention_and_mlp_need_one_all_reduce_a_layer() -> None:
    assert reduces(FALCON_40B, 2) == 60
    assert reduces(falcon(128, 60, parallel_attn=False), 2) == 120
    assert reduces(load_model("llama-3-70b"), 8) == 160
    neox = {"model_type": "gpt_neox", "hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8,
            "vocab_size": 50432, "intermediate_size": 2048, "torch_dtype": "float16"}  # fmt: skip
    assert reduces(spec_from_config(neox, name="neox", file="c"), 2) == 6
    assert reduces(spec_from_config({**neox, "use_parallel_residual": False}, name="neox", file="c"), 2) == 12


def test_heads_that_do_not_divide_are_refused_everywhere() -> None:
    workload = Workload(1, 16, tensor_parallel=2)
    for price in (
        lambda: step_floor(FALCON_7B, workload, H100),
        lambda: sweep(FALCON_7B, workload, H100, [1], [16]),
        lambda: synthesize(FALCON_7B, H100, workload, steps=1),
    ):
        with pytest.raises(TraceError, match="71 attention heads do not divide over 2 ranks") as refused:
            price()
        assert "use one of 1, 71 ranks (--tp)" in str(refused.value.action)


def test_what_is_kept_twice_or_padded_is_said() -> None:
    llama = load_model("llama-3-8b")
    assert split_notes(llama, 1) == split_notes(llama, 8) == ()
    assert split_notes(llama, 16) == ("8 KV heads on 16 ranks: each is kept, with its cache, on 2 of them",)
    assert "latent cache" in split_notes(load_model("deepseek-v3"), 8)[0]
    assert any("do not divide by 32" in note for note in split_notes(load_model("qwen2.5-7b"), 4)) is False
    with pytest.raises(TraceError, match="KV heads"):
        split_notes(load_model("qwen2.5-7b"), 7)
    assert any("kept, with its cache" in note for note in step_floor(llama, Workload(tensor_parallel=16), H100).notes)
