"""What the message bar says of a trace that was just opened."""

from pathlib import Path

import pytest

from tests.kit.traces import St, kernel, make_trace
from tracescope.core.trace import UNKNOWN, Device
from tracescope.models import load_hardware, make_basis
from tracescope.view.arrival import arrival_notes, one_at_a_time


@pytest.mark.parametrize(("machine", "said"), [("mi300x", True), ("h100-sxm", False), (None, False)])
def test_a_machine_that_is_not_the_recorded_one_is_said(machine: str | None, *, said: bool) -> None:
    devices = (Device(0, UNKNOWN, "NVIDIA H100 80GB HBM3"),)
    trace = make_trace([kernel(0, 100, step=0)], [St(0, 100)], devices=devices)
    notes = arrival_notes(trace, make_basis(load_hardware(machine) if machine else None), foreign=False)
    wanted = "The trace was recorded on NVIDIA H100 80GB HBM3, but its floors are those of AMD Instinct MI300X."
    assert notes == ([wanted] if said else [])


def test_of_many_files_some_are_named() -> None:
    others = [Path(f"folder/{n}.json") for n in range(5)]
    assert one_at_a_time("a.json", others[:1]) == "a.json is shown, one trace at a time; 0.json is not open yet."
    assert one_at_a_time("a.json", others).endswith("0.json, 1.json, 2.json … are not open yet.")
