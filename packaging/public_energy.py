"""Public measurements of energy a token, as points for the fit; the file of them is cited and not shipped."""

import json
import re
from pathlib import Path
from typing import Any

from energy_fit import EnergyPoint
from public_runs import MACHINES, MODELS

from tracescope.core.model import Workload
from tracescope.floor.step_ops import kv_bytes_per_token, step_totals, weight_read_bytes
from tracescope.models import load_hardware, load_model


def public_points(file: Path) -> dict[str, list[EnergyPoint]]:
    """Points of each machine out of the measured rows that carry joules a token."""
    found: dict[str, list[EnergyPoint]] = {machine: [] for machine in MACHINES.values()}
    for row in json.loads(file.read_text())["rows"]:
        if "J_per_token" in row:
            machine, point = _point(row)
            found[machine].append(point)
    return found


def _point(row: dict[str, Any]) -> tuple[str, EnergyPoint]:
    """One row: its floor says how many bytes a step moved, the weights are known, the rest is KV: hence the context."""
    match = re.fullmatch(r"(\d+)x (\w+)", row["hw"])
    assert match is not None
    devices, machine = int(match[1]), MACHINES[match[2]]
    model, batch = load_model(MODELS[row["model"]]), float(row["batch"])
    moved = row["floor_ms"] / 1e3 * load_hardware(machine).bandwidth_bytes_per_s * devices
    weights = weight_read_bytes(model)
    context = round((moved - weights) / (batch * kv_bytes_per_token(model)))
    one = step_totals(model, Workload(1, context))
    point = EnergyPoint(
        model=row["model"],
        devices=devices,
        memory_bytes=weights + batch * (one.kv_read + one.kv_append),
        flops=batch * one.flops,
        seconds=row["step_ms_from_throughput"] / 1e3,
        joules=row["J_per_token"] * batch,
    )
    return machine, point
