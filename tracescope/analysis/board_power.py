"""What a board can draw of each step's energy, at any time: the same shares at every zoom."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.steps import StepSeries
from tracescope.analysis.work_energy import drawn_of_rows
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis
from tracescope.core.trace import StepTable
from tracescope.floor.energy import ALL, Drawn
from tracescope.floor.pricing import F64


@dataclass(frozen=True, eq=False, slots=True)
class DrawnOverTime:
    """Shares that are constant between ``knots`` (ns, sorted); ``moved`` and ``static`` are what of each ns is *not*
    drawn, summed up to each knot. Empty where the board can draw all.
    """

    knots: I64
    moved: F64
    static: F64

    def between(self, edges: F64) -> Drawn:
        """The mean shares between neighbouring ``edges`` (ns, rising), float64[len(edges) - 1] each."""
        if not len(self.knots):
            return ALL
        moved, static = (np.diff(np.interp(edges, self.knots, lost)) for lost in (self.moved, self.static))
        return Drawn(1.0 - moved / np.diff(edges), 1.0 - static / np.diff(edges))


def drawn_over_time(steps: StepTable, series: StepSeries, basis: Basis) -> DrawnOverTime:
    """The shares of the steps over time: their mean where several ranks run steps at once, all where none runs."""
    nothing = DrawnOverTime(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    if basis.energy is None or basis.tdp_w is None or not len(steps):
        return nothing
    of_step = drawn_of_rows(series, steps.duration, basis)
    end = steps.start + steps.duration
    knots = np.unique(np.concatenate([steps.start, end]))
    first, last = np.searchsorted(knots, steps.start), np.searchsorted(knots, end)

    def level(of_each: F64) -> F64:
        changes = np.zeros(len(knots))
        np.add.at(changes, first, of_each)
        np.subtract.at(changes, last, of_each)
        return np.cumsum(changes)[:-1]

    running = np.maximum(level(np.ones(len(steps))), 1.0)

    def lost(share: F64) -> F64:
        return np.concatenate([[0.0], np.cumsum(level(1.0 - share) / running * np.diff(knots))])

    return DrawnOverTime(knots, lost(np.asarray(of_step.moved)), lost(np.asarray(of_step.static)))
