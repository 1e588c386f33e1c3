"""Generated configs: closed formulas for the good ones, one TraceError for the bad ones, never anything else."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracescope.core.errors import TraceError
from tracescope.core.model import Workload
from tracescope.floor.step_ops import kv_bytes_per_token, step_totals, stored_bytes
from tracescope.models.config import spec_from_config
from tracescope.models.families import ALIASES, DIFFERENT, FAMILIES

SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")


@st.composite
def dense_configs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, int]]:
    """A complete Llama-like config under any spelling, maybe nested, and its plain values."""
    kv_heads = draw(st.integers(1, 8))
    values = {
        "hidden_size": draw(st.integers(1, 512)),
        "num_hidden_layers": draw(st.integers(1, 5)),
        "num_attention_heads": kv_heads * draw(st.integers(1, 4)),
        "num_key_value_heads": kv_heads,
        "head_dim": draw(st.integers(1, 128)),
        "intermediate_size": draw(st.integers(1, 700)),
        "vocab_size": draw(st.integers(1, 3000)),
    }
    flags = {key: draw(st.booleans()) for key in ("tie_word_embeddings", "attention_bias", "mlp_bias")}
    config: dict[str, Any] = {draw(st.sampled_from(ALIASES[key])): value for key, value in values.items()}
    config |= {**flags, "model_type": "llama"}
    dtype_key = draw(st.sampled_from(ALIASES["dtype"]))
    dtype = draw(st.sampled_from(["bfloat16", "float16", "torch.float32"]))
    if draw(st.booleans()):
        config = {"text_config": config, dtype_key: dtype, "vision_config": {"hidden_size": 9, "num_hidden_layers": 27}}
    else:
        config[dtype_key] = dtype
    numbers = {**values, **{key: int(flag) for key, flag in flags.items()}, "bytes": 2}
    return config, numbers


@given(dense_configs(), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=150)
def test_complete_configs_follow_the_formulas(
    drawn: tuple[dict[str, Any], dict[str, int]], batch: int, context: int
) -> None:
    config, v = drawn
    spec = spec_from_config(config, name="drawn", file="drawn.json")
    assert all("vision_config" in note or "float32" in note for note in spec.assumptions)
    d, f, b = v["hidden_size"], v["intermediate_size"], v["bytes"]
    query, key = v["num_attention_heads"] * v["head_dim"], v["num_key_value_heads"] * v["head_dim"]
    layer = 2 * d * query + 2 * d * key + 3 * d * f + 2 * d
    layer += (query + 2 * key + d) * v["attention_bias"] + (2 * f + d) * v["mlp_bias"]
    read = b * (v["num_hidden_layers"] * layer + d + v["vocab_size"] * d)
    assert step_totals(spec, Workload(batch, context)).weight_read == read
    assert stored_bytes(spec) == read + (0 if v["tie_word_embeddings"] else b * v["vocab_size"] * d)
    assert kv_bytes_per_token(spec) == v["num_hidden_layers"] * 2 * key * b


BASE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 512,
    "vocab_size": 1000,
}
KEYS = sorted(
    {name for names in ALIASES.values() for name in names}
    | {"model_type", "layer_types", "quantization_config", "text_config", "attn_config", "multi_query", "rope_scaling"}
    | {"sliding_window", "use_sliding_window", "num_experts", "kv_lora_rank", "tie_word_embeddings", "attention_bias"}
    | {"parallel_attn", "new_decoder_architecture", "num_ln_in_parallel_attn", "expansion_ratio", "ffn_config"}
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(sorted(FAMILIES) + sorted(DIFFERENT) + ["gptq", "fp8", "compressed-tensors", "re:((a+)+)+$"])
)
quantization_keys = st.sampled_from(
    ["quant_method", "bits", "group_size", "ignore", "ignored_layers", "config_groups", "weights", "weight_block_size"]
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | quantization_keys, inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=6))
@settings(max_examples=250)
def test_anything_else_is_a_model_or_one_clear_refusal(changes: dict[str, Any]) -> None:
    refused: TraceError | None = None
    try:
        spec = spec_from_config({**BASE, **changes}, name="drawn", file="drawn.json")
    except TraceError as error:
        refused = error
    if refused is not None:
        assert "drawn.json" in refused.what
        assert all(len(line) < 400 for line in refused.lines())
        return
    total = step_totals(spec, Workload(2, 3))
    assert total.weight_read > 0
    windows = spec.windows or (None,) * spec.layers
    assert sum(window != 0 for window in windows) * total.kv_read == total.kv_append * sum(
        3 if window is None else min(3, max(0, window - 1)) for window in windows
    )
