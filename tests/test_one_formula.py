"""The window's panel, the command line and the formulas say the same: one implementation, asked in four ways."""

import json
from typing import Any

import pytest

from tracescope.analysis.constraints import ThreeConstraints, three_constraints
from tracescope.cli.app import run
from tracescope.core import units
from tracescope.core.model import Workload
from tracescope.floor.capacity import capacity
from tracescope.floor.step_floor import StepFloor, step_floor
from tracescope.floor.step_ops import step_totals
from tracescope.floor.verdict import crossovers, verdict
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.ui.panels.constraints import bandwidth_lines, capacity_lines

CASES = [
    ("llama-3-8b", "h100-sxm", 16, 4096),
    ("llama-3-8b", "h100-sxm", 115, 4096),
    ("lesson-20gb", "lesson-1tbs", 1, 0),
    ("lesson-20gb", "lesson-1tbs", 4, 100),
    ("gemma-2-9b", "a100-80gb-sxm", 8, 9000),
    ("mixtral-8x7b", "h200-sxm", 4, 2000),
    ("deepseek-v3", "mi300x", 2, 500),
    ("qwen3-8b", "h100-sxm", 128, 4096),
]


class Asked:
    """One case asked of the command line (``floor`` and a cell of ``sweep``), of a trace's panel, and of the core."""

    def __init__(self, case: tuple[str, str, int, int], capsys: pytest.CaptureFixture[str]) -> None:
        model_name, machine, batch, context = case
        options = ["--model", model_name, "--hardware", machine, "--batch", str(batch), "--context", str(context)]
        self.floor, self.cell = (self._document([command, *options], capsys) for command in ("floor", "sweep"))
        self.cell = self.cell["rows"][0]
        self.model, self.basis = load_model(model_name), make_basis(load_hardware(machine))
        self.workload = Workload(batch, context)
        self.core: StepFloor = step_floor(self.model, self.workload, self.basis)
        trace = synthesize(self.model, self.basis, self.workload, steps=1)
        self.panel: ThreeConstraints = three_constraints(trace, self.basis, 0)

    @staticmethod
    def _document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        assert run([*arguments, "--json"]) in (0, 3)
        found = json.loads(capsys.readouterr().out)
        assert isinstance(found, dict)
        return found


@pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case)))
def asked(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(request.param, capsys)


def test_bytes_and_floors(asked: Asked) -> None:
    total, memory = step_totals(asked.model, asked.workload), asked.panel.memory
    for document in (asked.floor, asked.cell):
        assert document["weight_read_bytes"] == memory.weight_read_bytes == total.weight_read
        assert document["kv_read_bytes"] == memory.kv_read_bytes == total.kv_read
        assert document["kv_append_bytes"] == memory.kv_append_bytes == total.kv_append
        assert document["bandwidth_bytes_per_s"] == memory.bandwidth_bytes_per_s
        assert document["floor_weight_s"] * 1e9 == pytest.approx(memory.floor_weight_ns, abs=0.51)
        assert document["floor_memory_s"] * 1e9 == pytest.approx(memory.floor_memory_ns, abs=0.51)
        assert document["floor_ops_s"] * 1e9 == pytest.approx(memory.floor_ops_ns, abs=1)
        assert document["floor_ops_s"] == pytest.approx(asked.core.floor_ops_s, rel=1e-9)
    assert memory.duration_ns == pytest.approx(memory.floor_ops_ns, abs=1)


def test_capacity(asked: Asked) -> None:
    assert asked.basis.hardware is not None
    found = capacity(asked.model, asked.basis.hardware, asked.workload)
    assert asked.panel.capacity == asked.core.capacity == found
    for document in (asked.floor, asked.cell):
        for key, value in document["capacity"].items():
            assert value == getattr(found, key), key
    assert asked.cell["fits"] == found.fits


def test_what_binds_and_why(asked: Asked) -> None:
    expected = verdict(asked.model, asked.workload, asked.basis, asked.core.capacity)
    assert asked.panel.verdict == asked.core.verdict == expected
    assert expected is not None
    for document in (asked.floor, asked.cell):
        assert document["verdict"]["binds"] == expected.binds
        assert document["verdict"]["why"] == expected.why
    assert asked.cell["binds"] == expected.binds


def test_crossovers(asked: Asked) -> None:
    expected = crossovers(asked.model, asked.workload, asked.basis, asked.core.capacity)
    assert asked.panel.crossovers == asked.core.crossovers == expected
    for document in (asked.floor, asked.cell):
        for key, value in document["crossovers"].items():
            assert value == getattr(expected, key), key


def test_what_the_panel_writes(asked: Asked) -> None:
    document = asked.floor
    head, lines = capacity_lines(asked.panel)
    used = document["stored_bytes"] + document["capacity"]["kv_stored_bytes"]
    assert head.startswith(units.size(used))
    assert ("does not fit" in head) == (not document["capacity"]["fits"])
    assert units.size(document["capacity"]["kv_stored_bytes"]) in lines[0]
    head, lines = bandwidth_lines(asked.panel)
    moved = document["weight_read_bytes"] + document["kv_read_bytes"] + document["kv_append_bytes"]
    assert lines[0].startswith(units.size(moved))
    mbu = document["floor_memory_s"] * 1e9 / asked.panel.memory.duration_ns
    assert head == f"MBU {units.percent(mbu, 1)}"
