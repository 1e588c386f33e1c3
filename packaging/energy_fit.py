"""Fit the energy coefficients of a machine to measured points, and ask how well they foretell a model left out.

A board's power, where it is given, caps a prediction as it does in the product. It takes no part in the fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tracescope.core.hardware import EnergyModel
from tracescope.floor.energy import energy_j


@dataclass(frozen=True, slots=True)
class EnergyPoint:
    """One measured step: what ``devices`` together moved, computed and drew in ``seconds``; ``model`` names the group.

    ``memory_bytes`` and ``flops`` are of all devices together, ``joules`` too.
    """

    model: str
    devices: int
    memory_bytes: float
    flops: float
    seconds: float
    joules: float


@dataclass(frozen=True, slots=True)
class Coefficients:
    """pJ/bit of memory traffic, pJ/FLOP, and W of one device that does nothing."""

    memory_pj_per_bit: float
    flop_pj: float
    static_w: float

    def joules(self, point: EnergyPoint, tdp_w: float | None = None) -> float:
        """The energy that these coefficients give ``point``, on boards of ``tdp_w`` each."""
        three = (self.memory_pj_per_bit,) * 3, (self.flop_pj,) * 3, (self.static_w * point.devices,) * 3
        model = EnergyModel(*three, level="board", source="fit")
        power = None if tdp_w is None else tdp_w * point.devices
        return energy_j(round(point.memory_bytes), round(point.flops), 0, point.seconds, model, power).mid


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A point foretold by a fit to the other models' points alone."""

    point: EnergyPoint
    predicted_j: float

    @property
    def error(self) -> float:
        """Signed error of the prediction, relative to what was measured."""
        return self.predicted_j / self.point.joules - 1

    @property
    def residual(self) -> float:
        """By what share of the prediction the measurement lies above it: a range of ± this just holds it."""
        return self.point.joules / self.predicted_j - 1


def fit_energy(points: Sequence[EnergyPoint]) -> Coefficients:
    """Coefficients, none negative, with the least sum of squared relative errors over ``points``.

    Three unknowns: every set of those that are not zero is solved by itself and the best one taken.
    """
    if not points:
        raise ValueError("nothing to fit")
    rows = np.array([_row(point) for point in points], np.float64)
    wanted = np.ones(len(points))
    best, least = np.zeros(3), float(len(points))
    for size in (1, 2, 3):
        for used in combinations(range(3), size):
            columns = list(used)
            scale = np.abs(rows[:, columns]).max(axis=0)
            found = np.linalg.lstsq(rows[:, columns] / scale, wanted, rcond=None)[0] / scale
            error = float(((rows[:, columns] @ found - wanted) ** 2).sum())
            if (found >= 0).all() and error < least:
                best, least = np.zeros(3), error
                best[columns] = found
    return Coefficients(float(best[0]), float(best[1]), float(best[2]))


def _row(point: EnergyPoint) -> tuple[float, float, float]:
    """What one unit of each coefficient adds, as a share of the point's energy."""
    bits, flops, static = 8e-12 * point.memory_bytes, 1e-12 * point.flops, point.devices * point.seconds
    return bits / point.joules, flops / point.joules, static / point.joules


def leave_one_model_out(points: Sequence[EnergyPoint], tdp_w: float | None = None) -> tuple[LeftOut, ...]:
    """Each point foretold from the points of all other models; empty where there is only one model."""
    models = dict.fromkeys(point.model for point in points)
    found: list[LeftOut] = []
    for model in models if len(models) > 1 else ():
        fit = fit_energy([point for point in points if point.model != model])
        found += [LeftOut(point, fit.joules(point, tdp_w)) for point in points if point.model == model]
    return tuple(found)


def mean_absolute_error(left_out: Sequence[LeftOut]) -> float | None:
    """The mean of |error|, None for no points."""
    return float(np.mean([abs(one.error) for one in left_out])) if left_out else None


def band(left_out: Sequence[LeftOut]) -> float | None:
    """The 90th percentile of |residual|, interpolated between points; None for no points."""
    return float(np.quantile([abs(one.residual) for one in left_out], 0.9)) if left_out else None


@dataclass(frozen=True, slots=True)
class Foretold:
    """A point of a model of which neither the fit nor the error beside it knows anything."""

    left_out: LeftOut
    error: float

    @property
    def holds(self) -> bool:
        """Whether the range holds what was measured."""
        return abs(self.left_out.residual) <= self.error


def foretell(points: Sequence[EnergyPoint], tdp_w: float | None = None) -> tuple[Foretold, ...]:
    """Each point foretold from the other models' points, with the band of *their* residuals, each left out in turn.

    Empty where there are fewer than three models.
    """
    found: list[Foretold] = []
    for one in leave_one_model_out(points, tdp_w):
        others = [point for point in points if point.model != one.point.model]
        error = band(leave_one_model_out(others, tdp_w))
        if error is not None:
            found.append(Foretold(one, error))
    return tuple(found)
