"""The energy fit: it finds what made the points, and foretells public models that it has not seen."""

from collections.abc import Callable
from pathlib import Path

import pytest
from energy_fit import (
    Coefficients,
    EnergyPoint,
    fit_energy,
    leave_one_model_out,
    mean_absolute_error,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.floor.public_energy import public_points

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
    assert mean <= 0.20
    assert mean == pytest.approx(error, abs=0.001)
    assert {one.point.model for one in found} == {point.model for point in measured}
