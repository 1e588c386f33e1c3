"""Traces of decoders whose layers differ: their bytes are the model's, state and index keys in columns of their own."""

import numpy as np
import pytest

from tests.kit.decoder_configs import GEMMA_3N_E4B, GRANITE_4_H_TINY
from tracescope.analysis.check import check
from tracescope.analysis.steps import step_series
from tracescope.core.category import Category, Op
from tracescope.core.errors import TraceError
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.request_stream import RequestStream
from tracescope.floor.dependence import dependence_cost
from tracescope.floor.step_ops import step_totals
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.models.config import spec_from_config
from tracescope.synth.decode import synthesize
from tracescope.synth.serving import serve_requests

H200 = make_basis(load_hardware("h200-sxm"))
CONFIGS = {"granite": GRANITE_4_H_TINY, "gemma-3n": GEMMA_3N_E4B}


def model(name: str) -> ModelSpec:
    return spec_from_config(CONFIGS[name], name=name, file=name) if name in CONFIGS else load_model(name)


@pytest.mark.parametrize("name", ["granite", "gemma-3n", "deepseek-v3.2", "llama-4-scout"])
def test_every_step_moves_what_the_model_says(name: str) -> None:
    spec, first, steps = model(name), 8180, 24  # a chunk of 8,192 tokens ends between them
    trace = synthesize(spec, H200, Workload(3, first), steps=steps, profile="ideal", seed=1)
    series = step_series(trace, H200)
    totals = [step_totals(spec, Workload(3, first + step)) for step in range(steps)]
    assert series.kv_read.tolist() == [total.kv_read for total in totals]
    assert series.kv_append.tolist() == [total.kv_append for total in totals]
    assert check(trace, H200).findings == ()
    work, events = trace.work, trace.events
    for column, field in ((work.index_read, "index_read"), (work.state_read, "state_read")):
        for step in (0, steps - 1):
            inside = events.work[(events.step == step) & (events.work > 0)]
            assert int(column[inside].sum()) == getattr(totals[step], field)


def test_state_is_drawn_with_the_reads_of_the_cache() -> None:
    trace = synthesize(model("granite"), H200, Workload(2, 100), steps=2, profile="ideal", seed=1)
    state = trace.events.op == Op.STATE
    assert state.sum() == 2 * 36
    assert set(trace.events.category[state].tolist()) == {Category.KV_READ}


@pytest.mark.parametrize("name", ["granite", "gemma-3n"])
def test_requests_of_any_length_are_served(name: str) -> None:
    spec, rng = model(name), np.random.default_rng(5)
    stream = RequestStream(
        arrival=np.arange(12, dtype=np.int64) * 3_000_000,
        prompt=rng.integers(100, 900, 12),
        output=rng.integers(5, 40, 12),
    )
    trace = serve_requests(spec, H200, Workload(), stream, max_batch=5, profile="ideal", seed=1).trace
    assert check(trace, H200).ok
    assert not [f for f in check(trace, H200).findings if f.rule.endswith("_bytes")]
    assert set(np.unique(trace.steps.batch).tolist()) - {0, 1}


def test_requests_that_arrive_are_refused_where_chunks_make_no_sum() -> None:
    stream = RequestStream(np.zeros(2, np.int64), np.full(2, 10), np.full(2, 10))
    with pytest.raises(TraceError, match="running chunk"):
        serve_requests(load_model("llama-4-scout"), H200, Workload(), stream, max_batch=2, profile="ideal", seed=1)


def test_all_tokens_at_once_would_write_a_state_once() -> None:
    """The state alone: 100 dependent steps move it a hundred times, a machine without dependence once."""
    spec = model("granite")
    few, many = (dependence_cost(spec, Workload(batch, 0), H200) for batch in (1, 512))
    assert few is not None
    assert many is not None
    assert 1 < many.factor < 100
    state = step_totals(spec, Workload(512, 0)).state_read
    assert many.serial_s > 100 * 2 * state / H200.bandwidth_bytes_per_s
