"""Headers of checkpoints whose layers differ: by the names that they are published with, the bytes of the formulas."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.checkpoints import nbytes, write_model
from tracescope.core.errors import TraceError
from tracescope.core.model import Workload
from tracescope.floor.step_ops import step_totals, stored_bytes
from tracescope.models import load_model

Shapes = dict[str, tuple[int, ...]]
BASE: dict[str, Any] = {
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96,
    "vocab_size": 100, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip
OUTSIDE: Shapes = {"model.embed_tokens.weight": (100, 64), "lm_head.weight": (100, 64), "model.norm.weight": (64,)}
ATTENTION: Shapes = {
    "self_attn.q_proj.weight": (64, 64), "self_attn.k_proj.weight": (32, 64), "self_attn.v_proj.weight": (32, 64),
    "self_attn.o_proj.weight": (64, 64),
}  # fmt: skip
MLP: Shapes = {"mlp.gate_proj.weight": (96, 64), "mlp.up_proj.weight": (96, 64), "mlp.down_proj.weight": (64, 96)}


def layers(*parts: Shapes, prefix: str = "model.layers") -> Shapes:
    return {f"{prefix}.{i}.{name}": shape for i, part in enumerate(parts) for name, shape in part.items()}


def qwen3_next() -> tuple[dict[str, Any], Shapes]:
    """Two value heads of 8 × 8 share each of two key heads."""
    norms: Shapes = {"input_layernorm.weight": (64,), "post_attention_layernorm.weight": (64,)}
    experts: Shapes = {
        "mlp.gate.weight": (4, 64), "mlp.shared_expert_gate.weight": (1, 64),
        "mlp.shared_expert.gate_proj.weight": (24, 64), "mlp.shared_expert.up_proj.weight": (24, 64),
        "mlp.shared_expert.down_proj.weight": (64, 24),
    }  # fmt: skip
    for i in range(4):
        experts |= {f"mlp.experts.{i}.{name}_proj.weight": (24, 64) for name in ("gate", "up")}
        experts[f"mlp.experts.{i}.down_proj.weight"] = (64, 24)
    delta: Shapes = {
        "linear_attn.in_proj_qkvz.weight": (2 * 2 * 8 + 2 * 4 * 8, 64), "linear_attn.in_proj_ba.weight": (8, 64),
        "linear_attn.conv1d.weight": (64, 1, 4), "linear_attn.dt_bias": (4,), "linear_attn.A_log": (4,),
        "linear_attn.norm.weight": (8,), "linear_attn.out_proj.weight": (64, 32),
    }  # fmt: skip
    full = {**ATTENTION, "self_attn.q_proj.weight": (128, 64)}
    full |= {"self_attn.q_norm.weight": (16,), "self_attn.k_norm.weight": (16,)}
    config = {
        **BASE, "model_type": "qwen3_next", "num_hidden_layers": 2, "full_attention_interval": 2,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 24,
    }  # fmt: skip
    return config, OUTSIDE | layers(norms | experts | delta, norms | experts | full)


def mamba2(prefix: str, heads: int, head_dim: int, groups: int, states: int) -> Shapes:
    inner = heads * head_dim
    convolved = inner + 2 * groups * states
    return {
        f"{prefix}.in_proj.weight": (inner + convolved + heads, 64), f"{prefix}.conv1d.weight": (convolved, 1, 4),
        f"{prefix}.conv1d.bias": (convolved,), f"{prefix}.dt_bias": (heads,), f"{prefix}.A_log": (heads,),
        f"{prefix}.D": (heads,), f"{prefix}.norm.weight": (inner,), f"{prefix}.out_proj.weight": (64, inner),
    }  # fmt: skip


def nemotron_h() -> tuple[dict[str, Any], Shapes]:
    norm: Shapes = {"norm.weight": (64,)}
    attention = {name.replace("self_attn", "mixer"): shape for name, shape in ATTENTION.items()}
    mlp: Shapes = {"mixer.up_proj.weight": (96, 64), "mixer.down_proj.weight": (64, 96)}
    config = {
        **BASE, "model_type": "nemotron_h", "num_hidden_layers": 3, "hybrid_override_pattern": "M*-",
        "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2, "ssm_state_size": 16, "conv_kernel": 4,
    }  # fmt: skip
    outside = {
        name.replace("model.", "backbone.").replace("embed_tokens", "embeddings"): s for name, s in OUTSIDE.items()
    }
    outside = {name.replace("backbone.norm", "backbone.norm_f"): shape for name, shape in outside.items()}
    return config, outside | layers(
        norm | mamba2("mixer", 4, 8, 2, 16), norm | attention, norm | mlp, prefix="backbone.layers"
    )


def falcon_h1() -> tuple[dict[str, Any], Shapes]:
    layer: Shapes = {"input_layernorm.weight": (64,), "pre_ff_layernorm.weight": (64,), **ATTENTION}
    layer |= {name.replace("mlp", "feed_forward"): shape for name, shape in MLP.items()}
    layer |= mamba2("mamba", 4, 8, 1, 16)
    config = {
        **BASE, "model_type": "falcon_h1", "num_hidden_layers": 2, "mamba_d_ssm": 32, "mamba_n_heads": 4,
        "mamba_d_head": 8, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_rms_norm": True,
    }  # fmt: skip
    return config, {k.replace("model.norm", "model.final_layernorm"): s for k, s in OUTSIDE.items()} | layers(
        layer, layer
    )


def lfm2() -> tuple[dict[str, Any], Shapes]:
    norms: Shapes = {"operator_norm.weight": (64,), "ffn_norm.weight": (64,)}
    mlp: Shapes = {
        "feed_forward.w1.weight": (96, 64),
        "feed_forward.w3.weight": (96, 64),
        "feed_forward.w2.weight": (64, 96),
    }
    conv: Shapes = {"conv.in_proj.weight": (192, 64), "conv.conv.weight": (64, 1, 3), "conv.out_proj.weight": (64, 64)}
    full = {name.replace("o_proj", "out_proj"): shape for name, shape in ATTENTION.items()}
    full |= {"self_attn.q_layernorm.weight": (16,), "self_attn.k_layernorm.weight": (16,)}
    config = {
        **BASE, "model_type": "lfm2", "num_hidden_layers": 2, "layer_types": ["conv", "full_attention"],
        "block_auto_adjust_ff_dim": False, "conv_L_cache": 3, "tie_word_embeddings": True,
    }  # fmt: skip
    tied = {"model.embed_tokens.weight": (100, 64), "model.embedding_norm.weight": (64,)}
    return config, tied | layers(norms | mlp | conv, norms | mlp | full)


def sparse() -> tuple[dict[str, Any], Shapes]:
    """Latent attention with an indexer, and a layer that predicts a second token behind the last one."""
    layer: Shapes = {
        "input_layernorm.weight": (64,), "post_attention_layernorm.weight": (64,), **MLP,
        "self_attn.q_a_proj.weight": (24, 64), "self_attn.q_a_layernorm.weight": (24,),
        "self_attn.q_b_proj.weight": (4 * 24, 24), "self_attn.kv_a_proj_with_mqa.weight": (40, 64),
        "self_attn.kv_a_layernorm.weight": (32,), "self_attn.kv_b_proj.weight": (4 * 32, 32),
        "self_attn.o_proj.weight": (64, 64), "self_attn.indexer.wq_b.weight": (2 * 8, 24),
        "self_attn.indexer.wk.weight": (8, 64), "self_attn.indexer.weights_proj.weight": (2, 64),
        "self_attn.indexer.k_norm.weight": (8,), "self_attn.indexer.k_norm.bias": (8,),
    }  # fmt: skip
    config = {
        **BASE, "model_type": "deepseek_v32", "num_hidden_layers": 2, "q_lora_rank": 24, "kv_lora_rank": 32,
        "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "index_topk": 4, "index_n_heads": 2,
        "index_head_dim": 8,
    }  # fmt: skip
    del config["head_dim"]
    return config, OUTSIDE | layers(layer, layer, {**layer, "eh_proj.weight": (64, 128)})


@pytest.mark.parametrize("make", [qwen3_next, nemotron_h, falcon_h1, lfm2, sparse])
def test_headers_give_the_same_bytes_as_the_formulas(make: Any, tmp_path: Path) -> None:
    config, shapes = make()
    tensors = {name: ("BF16", shape) for name, shape in shapes.items()}
    spec = load_model(str(write_model(tmp_path / "model", config, tensors)))
    by_formula = replace(spec, tensors=None)
    assert spec.tensors is not None
    assert spec.assumptions == ()
    predicting = nbytes(v for k, v in tensors.items() if ".layers.2." in k and config["num_hidden_layers"] == 2)
    assert stored_bytes(spec) == nbytes(tensors.values()) - predicting == stored_bytes(by_formula)
    for batch in (1, 3):
        assert step_totals(spec, Workload(batch, 50)) == step_totals(by_formula, Workload(batch, 50))


def test_a_state_whose_weights_are_missing_is_named(tmp_path: Path) -> None:
    config, shapes = nemotron_h()
    tensors = {name: ("BF16", shape) for name, shape in shapes.items() if ".0.mixer.out_proj" not in name}
    with pytest.raises(TraceError, match="layer 0 of num_hidden_layers 3 has no weights of its recurrent state"):
        load_model(str(write_model(tmp_path / "model", config, tensors)))
