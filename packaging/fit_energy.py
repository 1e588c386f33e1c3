"""Work out the error of each energy fit from public runs, store it with its preset, and show how well it holds.

    python packaging/fit_energy.py MEASURED.json [--check]

MEASURED.json has ``rows`` with ``J_per_token``: whole steps of a serving engine, which are cited and not shipped. The
coefficients of the presets stay as they are; ``error`` and ``error_source`` of those that have runs are written into
presets/hardware.toml. With ``--check`` nothing is written, and the exit code is 1 where what is stored is not what
comes out.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median

from energy_fit import (
    Coefficients,
    EnergyPoint,
    Foretold,
    band,
    fit_energy,
    foretell,
    leave_one_model_out,
    mean_absolute_error,
)
from public_energy import public_points

from tracescope.core.hardware import HardwareSpec
from tracescope.models import load_hardware

PRESETS = Path(__file__).resolve().parents[1] / "tracescope" / "presets" / "hardware.toml"
FITS = {"h100-sxm": "h100-sxm-board", "b200-sxm": "b200-sxm-board"}
"""The energy preset of each machine that has public runs."""

SOURCE = "9 of 10 public runs"


@dataclass(frozen=True, slots=True)
class Held:
    """How well ranges hold over points: of ``count`` the share ``holding``, and the half-width in the middle."""

    count: int
    holding: float
    width: float
    mean_error: float


def stored_error(points: Sequence[EnergyPoint], machine: HardwareSpec) -> float:
    """The error of a preset: the band of every model left out in turn, rounded up to whole percent."""
    found = band(leave_one_model_out(points, machine.tdp_w))
    if found is None:
        raise ValueError(f"{machine.name}: runs of one model alone tell no error")
    return ceil(found * 100) / 100


def foretold(points: Mapping[str, Sequence[EnergyPoint]]) -> dict[str, tuple[Foretold, ...]]:
    """Every run of each machine, foretold without its model."""
    return {name: foretell(runs, load_hardware(name).tdp_w) for name, runs in points.items()}


def summary(runs: Iterable[Foretold]) -> Held:
    """How well the ranges of ``runs`` hold."""
    found = list(runs)
    mean = mean_absolute_error([run.left_out for run in found])
    if mean is None:
        raise ValueError("no runs")
    return Held(len(found), sum(run.holds for run in found) / len(found), median(run.error for run in found), mean)


def with_errors(text: str, errors: Mapping[str, float]) -> str:
    """The text of hardware.toml with ``error`` and its source set in the tables of ``errors``, the rest untouched."""
    for fit, error in errors.items():
        head, table = re.escape(f"[energy.{fit}]\n"), r"(?:[^\[\n][^\n]*\n)*"
        found = re.search(f"{head}{table}", text)
        if found is None:
            raise ValueError(f"no [energy.{fit}] in the table")
        kept = [line for line in found[0].splitlines() if not re.match(r"error(_source)? =", line)]
        lines = [*kept, f"error = {error:.2f}", f'error_source = "{SOURCE}"']
        text = text.replace(found[0], "\n".join(lines) + "\n")
    return text


def show(name: str, points: Sequence[EnergyPoint], runs: Sequence[Foretold]) -> None:
    """One machine: its fit, its preset, and every run foretold without its model."""
    machine = load_hardware(name)
    fit, left_out = fit_energy(points), leave_one_model_out(points, machine.tdp_w)
    print(
        f"{name}: {len(points)} runs, {fit.memory_pj_per_bit:.1f} pJ/bit, {fit.flop_pj:.2f} pJ/FLOP, "
        f"{fit.static_w:.0f} W; models left out are missed by {mean_absolute_error(left_out):.1%} in the mean, "
        f"9 of 10 by at most {stored_error(points, machine):.0%}"
    )
    energy = machine.energy
    if energy is not None:
        preset = Coefficients(energy.memory_pj_per_bit[1], energy.flop_pj[1], energy.static_w[1])
        ratios = [point.joules / preset.joules(point, machine.tdp_w) for point in points]
        held = sum(abs(ratio - 1) <= energy.error for ratio in ratios)
        mean = sum(abs(1 / ratio - 1) for ratio in ratios) / len(ratios)
        print(
            f"  preset: misses them by {mean:.1%} in the mean; its ± {energy.error:.0%} holds {held} of {len(ratios)}"
        )
    for run in runs:
        one, wide = run.left_out, run.error
        low, high = max(0.0, 1 - wide) * one.predicted_j, (1 + wide) * one.predicted_j
        said = "holds" if run.holds else "MISSES"
        print(
            f"  {one.point.model:34} {one.point.devices} × {one.point.joules:6.2f} J measured, foretold "
            f"{one.predicted_j:6.2f} J, {low:6.2f} to {high:6.2f} (± {wide:3.0%}): {said}"
        )


def main(arguments: list[str]) -> int:
    """Work out, show, and write or check."""
    files = [argument for argument in arguments if argument != "--check"]
    if len(files) != 1:
        print(__doc__)
        return 2
    points = public_points(Path(files[0]))
    runs = foretold(points)
    for name, found in runs.items():
        show(name, points[name], found)
    held = summary(run for found in runs.values() for run in found)
    print(
        f"all: {held.holding:.0%} of {held.count} runs lie in the range foretold without their model, "
        f"median width ± {held.width:.1%}, mean error {held.mean_error:.1%}"
    )
    text = PRESETS.read_text(encoding="utf-8")
    errors = {FITS[name]: stored_error(found, load_hardware(name)) for name, found in points.items()}
    wanted = with_errors(text, errors)
    if "--check" in arguments:
        print("the presets say the same" if wanted == text else "the presets say something else")
        return int(wanted != text)
    PRESETS.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
