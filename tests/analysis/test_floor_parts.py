"""The parts of a floor: what moves is in its kind, what computes beyond it is computing, and they add up exactly."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.traces import BASIS, NO_BASIS, Ev, St, make_trace
from tracescope.analysis.floor_parts import NAMES, FloorParts, floor_parts
from tracescope.analysis.steps import step_series
from tracescope.core.category import Category, Op
from tracescope.core.hardware import Basis
from tracescope.core.model import Workload
from tracescope.core.trace import Trace
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize

LINKED = replace(BASIS, link_bytes_per_s=500_000_000)
"""Two ns a byte sent; one ns a byte read and a ns a thousand FLOPs, as in BASIS."""


def parts_of(trace: Trace, basis: Basis) -> FloorParts:
    return floor_parts(trace, basis, step_series(trace, basis))


def one(trace: Trace, basis: Basis = LINKED, step: int = 0) -> dict[str, int]:
    found = parts_of(trace, basis)
    return {name: int(getattr(found, name)[step]) for name in NAMES if getattr(found, name)[step]}


def test_each_amount_is_in_its_kind_and_only_what_computes_longer_is_computing() -> None:
    events = [
        Ev(0, 900, op=Op.QKV, category=Category.WEIGHT_READ, weight_read=100, flops=250_000),  # 150 ns beyond bytes
        Ev(900, 900, op=Op.ATTENTION, category=Category.KV_READ, kv_read=80, kv_append=5, flops=40_000),
        Ev(1800, 900, op=Op.ALL_REDUCE, category=Category.COMMUNICATION, link=30),
    ]
    trace = make_trace(events, [St(0, 2700)])
    assert one(trace) == {"weight_read": 100, "kv_read": 80, "kv_append": 5, "compute": 150, "link": 60}


def test_of_a_step_with_unknown_bytes_only_what_is_priced_has_parts() -> None:
    events = [
        Ev(0, 900, op=Op.QKV, category=Category.WEIGHT_READ, weight_read=100),
        Ev(900, 900, op=Op.EXPERTS, category=Category.WEIGHT_READ, unknown=True),
        Ev(1800, 900, op=Op.ALL_REDUCE, category=Category.COMMUNICATION, link=30),
    ]
    trace = make_trace(events, [St(0, 2700)])
    assert one(trace) == {"weight_read": 100, "link": 60}
    assert one(trace, BASIS) == {"weight_read": 100}, "without a link rate the transfer has no floor"
    assert one(trace, NO_BASIS) == {}


amounts = st.integers(0, 10**6)
works = st.builds(
    Ev,
    st.just(0),
    st.just(10),
    weight_read=amounts,
    kv_read=amounts,
    kv_append=amounts,
    link=amounts,
    flops=st.integers(0, 10**10),
    unknown=st.booleans(),
)


@given(st.lists(st.lists(works, min_size=1, max_size=6), min_size=1, max_size=4), st.integers(1, 10**10))
def test_parts_are_never_negative_and_add_up_to_the_floor(steps: list[list[Ev]], bandwidth: int) -> None:
    events = [
        replace(event, start=1000 * number + 10 * place, step=number)
        for number, inside in enumerate(steps)
        for place, event in enumerate(inside)
    ]
    trace = make_trace(events, [St(1000 * number, 900) for number in range(len(steps))])
    basis = replace(LINKED, bandwidth_bytes_per_s=bandwidth)
    found = np.stack([getattr(parts_of(trace, basis), field.name) for field in fields(FloorParts)])
    assert (found >= 0).all()
    assert found.sum(axis=0).tolist() == np.maximum(step_series(trace, basis).floor_ops_ns, 0).tolist()


@pytest.mark.parametrize(("batch", "ranks"), [(16, 1), (512, 1), (64, 4), (2048, 8)])
def test_of_a_synthesized_run_they_are_the_divisions_themselves(batch: int, ranks: int) -> None:
    basis = make_basis(load_hardware("h100-sxm"))
    trace = synthesize(load_model("llama-3-8b"), basis, Workload(batch, 512, tensor_parallel=ranks), steps=3)
    series, found = step_series(trace, basis), parts_of(trace, basis)
    assert found.weight_read.tolist() == series.floor_weight_ns.tolist()
    assert np.abs(found.kv_read - series.floor_kv_read_ns).max() <= 1
    assert basis.link_bytes_per_s is not None
    assert np.abs(found.link - series.link_reduced * 1e9 / basis.link_bytes_per_s).max() <= 1
    assert (found.compute > 0).tolist() == [batch > 64] * 3
    assert sum(getattr(found, name) for name in NAMES).tolist() == series.floor_ops_ns.tolist()
