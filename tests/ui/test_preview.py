"""The preview of a run that the form describes says what ``tracescope floor`` says."""

from pathlib import Path

import pytest

from tracescope.core.model import Workload
from tracescope.floor.step_floor import step_floor
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.view.document import Document
from tracescope.view.preview import preview
from tracescope.view.step_facts import step_facts


@pytest.mark.parametrize(
    ("model", "machine", "workload", "letters"),
    [
        ("llama-3-8b", "h100-sxm", Workload(512, 128), "WWKAC"),
        ("llama-3-8b", "h100-sxm", Workload(16, 4096), "WWKA"),
        ("llama-3-8b", "a100-80gb-sxm", Workload(64, 512, tensor_parallel=4), "WWKAX"),
        ("llama-3-70b", "h100-sxm", Workload(2048, 64, tensor_parallel=8), "WWKACX"),
        ("lesson-20gb", "lesson-1tbs", Workload(1, 0), "WWAC"),
        ("mixtral-8x7b", "a100-80gb-sxm", Workload(64, 2048), "WWKA"),
        ("gpt2-xl", "l4", Workload(300, 900), "WWKA"),
    ],
)
def test_rates_and_floor_are_those_of_the_floor_command(
    model: str, machine: str, workload: Workload, letters: str
) -> None:
    spec, hardware = load_model(model), load_hardware(machine)
    basis = make_basis(hardware)
    shown, floor = preview(spec, hardware, basis, workload), step_floor(spec, workload, basis)
    assert floor.floor_ops_s is not None
    assert shown.floor_ns == pytest.approx(floor.floor_ops_s * 1e9, rel=1e-12)
    assert shown.tokens_per_s == pytest.approx(floor.generated_tokens_per_s_max, rel=1e-12)
    assert shown.ops == floor.ops
    assert "".join(part.letter for part in shown.parts) == letters
    assert sum(part.ns for part in shown.parts) == pytest.approx(shown.floor_ns, rel=1e-12)
    assert shown.memory == floor.capacity
    # The same parts in the same words as in the bar of the step, once there is one.
    document = Document(synthesize(spec, basis, workload, steps=1), basis, Path("made.tscope.h5"))
    facts = step_facts(document, 0)
    assert sum(part.ns for part in facts.parts) == facts.floor_ns
    assert [part.letter for part in facts.parts] == [part.letter for part in shown.parts]
    for drawn, foretold in zip(facts.parts, shown.parts, strict=True):
        assert drawn.ns == pytest.approx(foretold.ns, abs=2)


def test_where_compute_binds_the_headline_does_not_promise_what_the_bytes_alone_allow() -> None:
    hardware = load_hardware("h100-sxm")
    shown = preview(load_model("llama-3-8b"), hardware, make_basis(hardware), Workload(512, 128))
    assert "49,441 tok/s at most" in shown.headline
