"""Comparison by formula: a prompt in one pass, and how a batch is kept full."""

import pytest

from tests.kit.layered import windowed
from tracescope.core.model import Workload
from tracescope.floor.prefill import SCHEDULING, prefill_floor
from tracescope.floor.step_ops import step_totals, weight_read_bytes
from tracescope.models import load_hardware, load_model, make_basis

H100 = make_basis(load_hardware("h100-sxm"))


@pytest.mark.parametrize("name", ["llama-3-8b", "mistral-7b", "mixtral-8x7b", "gemma-3-12b"])
def test_a_prompt_computes_what_its_tokens_would_one_by_one(name: str) -> None:
    """Except for the output head, which only the last of them needs."""
    model, tokens = load_model(name), 40
    for spec in (model, windowed(model, (16,) * model.layers)):
        found = prefill_floor(spec, H100, tokens)
        assert found is not None
        head = 2 * spec.hidden * spec.vocab
        one_by_one = sum(step_totals(spec, Workload(1, i)).flops for i in range(tokens))
        assert found.flops == one_by_one - (tokens - 1) * head
        appended = tokens * step_totals(spec, Workload(1, 0)).kv_append
        assert found.memory_bytes == weight_read_bytes(spec, 1, tokens) + appended


def test_a_long_prompt_is_bound_by_compute_and_a_short_one_by_memory() -> None:
    model = load_model("llama-3-8b")
    long, short = prefill_floor(model, H100, 4096), prefill_floor(model, H100, 16)
    assert long is not None
    assert short is not None
    assert long.floor_s == long.compute_s == long.flops / 989e12
    assert short.floor_s == short.memory_s == short.memory_bytes / 3.35e12
    assert "compute-bound" in str(long.sentence)
    assert "memory-bound" in str(short.sentence)
    assert "not simulated" in str(long.sentence)
    assert prefill_floor(model, H100, 0) is None
    unpriced = prefill_floor(model, make_basis(None), 16)
    assert unpriced is not None
    assert (unpriced.floor_s, unpriced.sentence) == (None, None)


def test_latent_attention_unpacks_keys_and_values_of_a_prompt() -> None:
    model, tokens = load_model("deepseek-v3"), 100
    found, none = prefill_floor(model, H100, tokens), prefill_floor(windowed(model, (1,) * 61), H100, tokens)
    assert found is not None
    assert none is not None
    seen = tokens * (tokens + 1) // 2 - tokens
    assert found.flops - none.flops == 61 * 2 * 128 * (128 + 64 + 128) * seen


def test_scheduling_is_said_not_to_be_simulated() -> None:
    assert "not simulated" in SCHEDULING
