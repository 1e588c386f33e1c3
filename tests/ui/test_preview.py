"""The preview of a run that the form describes says what ``tracescope floor`` says."""

import pytest

from tracescope.core.model import Workload
from tracescope.floor.step_floor import step_floor
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.view.preview import preview


@pytest.mark.parametrize(
    ("model", "machine", "batch", "context"),
    [
        ("llama-3-8b", "h100-sxm", 512, 128),
        ("llama-3-8b", "h100-sxm", 16, 4096),
        ("lesson-20gb", "lesson-1tbs", 1, 0),
        ("mixtral-8x7b", "a100-80gb-sxm", 64, 2048),
        ("gpt2-xl", "l4", 300, 900),
    ],
)
def test_rates_and_floor_are_those_of_the_floor_command(model: str, machine: str, batch: int, context: int) -> None:
    spec, hardware = load_model(model), load_hardware(machine)
    basis, workload = make_basis(hardware), Workload(batch, context)
    shown, floor = preview(spec, hardware, basis, workload), step_floor(spec, workload, basis)
    assert floor.floor_ops_s is not None
    assert shown.floor_ns == pytest.approx(floor.floor_ops_s * 1e9, rel=1e-12)
    assert shown.tokens_per_s == pytest.approx(floor.generated_tokens_per_s_max, rel=1e-12)
    assert shown.ops == floor.ops
    assert shown.weight_ns is not None
    assert shown.kv_ns is not None
    assert shown.rest_ns is not None
    assert shown.weight_ns + shown.kv_ns + shown.rest_ns == pytest.approx(shown.floor_ns)


def test_where_compute_binds_the_headline_does_not_promise_what_the_bytes_alone_allow() -> None:
    hardware = load_hardware("h100-sxm")
    shown = preview(load_model("llama-3-8b"), hardware, make_basis(hardware), Workload(512, 128))
    assert "49,441 tok/s at most" in shown.headline
