"""The energy fit: it finds what made the points, and foretells public models that it has not seen."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from energy_fit import (
    Coefficients,
    EnergyPoint,
    LeftOut,
    band,
    fit_energy,
    foretell,
    leave_one_model_out,
    mean_absolute_error,
)
from fit_energy import foretold, stored_error, summary, with_errors
from hypothesis import given
from hypothesis import strategies as st
from public_energy import public_points

from tracescope.core.hardware import EnergyModel
from tracescope.models import load_hardware

coefficient = st.one_of(st.just(0.0), st.floats(0.1, 50))


def points(truth: Coefficients) -> list[EnergyPoint]:
    """Steps of several shapes that draw exactly what ``truth`` says."""
    shapes = [
        (1e9, 1e9, 0.001, 1),
        (2e10, 1e11, 0.01, 1),
        (5e10, 9e12, 0.02, 2),
        (1.5e11, 2e12, 0.06, 4),
        (3e9, 5e12, 0.004, 1),
    ]
    empty = [EnergyPoint(f"m{i}", n, size, flops, seconds, 1.0) for i, (size, flops, seconds, n) in enumerate(shapes)]
    return [EnergyPoint(p.model, p.devices, p.memory_bytes, p.flops, p.seconds, truth.joules(p)) for p in empty]


@given(coefficient, coefficient, st.floats(10, 400))
def test_a_fit_finds_the_coefficients_that_made_the_points(bit: float, flop: float, static: float) -> None:
    truth = Coefficients(bit, flop, static)
    found = fit_energy(points(truth))
    assert found.memory_pj_per_bit == pytest.approx(bit, rel=1e-6, abs=1e-6)
    assert found.flop_pj == pytest.approx(flop, rel=1e-6, abs=1e-6)
    assert found.static_w == pytest.approx(static, rel=1e-6, abs=1e-6)
    assert mean_absolute_error(leave_one_model_out(points(truth))) == pytest.approx(0, abs=1e-6)


def test_no_coefficient_is_negative() -> None:
    honest = points(Coefficients(5, 1, 100))
    odd = [
        EnergyPoint(p.model, p.devices, p.memory_bytes, p.flops, p.seconds, p.joules / (1 + i))
        for i, p in enumerate(honest)
    ]
    found = fit_energy(odd)
    assert min(found.memory_pj_per_bit, found.flop_pj, found.static_w) >= 0


def test_one_model_alone_foretells_nothing() -> None:
    only = points(Coefficients(5, 1, 100))[:1]
    assert leave_one_model_out(only) == ()
    assert mean_absolute_error(()) is None
    with pytest.raises(ValueError, match="nothing to fit"):
        fit_energy([])


@pytest.mark.parametrize(("machine", "count", "error"), [("h100-sxm", 11, 0.118), ("b200-sxm", 9, 0.060)])
def test_public_models_left_out_are_foretold_within_a_fifth(
    machine: str, count: int, error: float, shared: Callable[[str], Path]
) -> None:
    measured = public_points(shared("reference/measured.json"))[machine]
    found = leave_one_model_out(measured)
    assert len(found) == len(measured) == count
    mean = mean_absolute_error(found)
    assert mean is not None
    assert mean == pytest.approx(error, abs=0.001)
    assert {one.point.model for one in found} == {point.model for point in measured}
    capped = mean_absolute_error(leave_one_model_out(measured, load_hardware(machine).tdp_w))
    assert capped is not None
    assert capped <= mean


def test_ranges_hold_for_public_models_that_neither_fit_nor_error_has_seen(shared: Callable[[str], Path]) -> None:
    runs = [run for found in foretold(public_points(shared("reference/measured.json"))).values() for run in found]
    held = summary(runs)
    assert held.count == 20
    assert held.holding >= 0.85
    assert held.width <= 0.25
    assert held.mean_error <= 0.093  # the mean of the two machines without the cap at the board's power


def test_the_presets_hold_what_comes_out_of_the_public_runs(shared: Callable[[str], Path]) -> None:
    points = public_points(shared("reference/measured.json"))
    for name, runs in points.items():
        machine = load_hardware(name)
        assert machine.energy is not None
        assert machine.energy.error == stored_error(runs, machine)
        mid = Coefficients(*(fits[1] for fits in _three_fits(machine.energy)))
        held = [abs(run.joules / mid.joules(run, machine.tdp_w) - 1) <= machine.energy.error for run in runs]
        assert sum(held) >= 0.9 * len(held)


def _three_fits(energy: EnergyModel) -> tuple[tuple[float, float, float], ...]:
    return energy.memory_pj_per_bit, energy.flop_pj, energy.static_w


def test_a_band_knows_nothing_of_the_model_it_is_put_around() -> None:
    runs = points(Coefficients(5, 1, 100))
    odd = [
        replace(p, joules=p.joules * (2.0 if p.model == "m0" else 1 + 0.01 * i)) for i, p in enumerate(runs)
    ]  # fmt: skip
    odder = [replace(p, joules=p.joules * (5.0 if p.model == "m0" else 1.0)) for p in odd]
    first, second = (next(f for f in foretell(made) if f.left_out.point.model == "m0") for made in (odd, odder))
    assert first.error == second.error
    assert first.left_out.predicted_j == second.left_out.predicted_j
    assert not second.holds
    assert foretell(runs[:2]) == ()


def test_a_band_is_the_ninetieth_percentile_of_what_the_range_must_reach() -> None:
    left_out = [LeftOut(EnergyPoint("m", 1, 1, 1, 1, 1 + share / 100), 1.0) for share in range(11)]
    assert band(left_out) == pytest.approx(0.09)
    assert band(()) is None


def test_errors_are_written_beside_the_fit_and_nothing_else_changes() -> None:
    text = '[energy.one]\nlevel = "board"\nerror = 0.99\n\n[energy.two]\nlevel = "board"\nsource = "x"\n'
    written = with_errors(text, {"one": 0.2, "two": 0.104})
    found = tomllib.loads(written)["energy"]
    assert found["one"] == {"level": "board", "error": 0.2, "error_source": "9 of 10 public runs"}
    assert found["two"] == {"level": "board", "source": "x", "error": 0.1, "error_source": "9 of 10 public runs"}
    assert with_errors(written, {"one": 0.2, "two": 0.104}) == written
    with pytest.raises(ValueError, match="three"):
        with_errors(text, {"three": 0.1})
