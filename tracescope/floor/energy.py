"""Energy of a step from its bytes, its FLOPs and its time: three alternative fits, the level always named."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tracescope.core.hardware import EnergyModel

Joules = TypeVar("Joules", np.float64, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules: ``mid`` of the middle fit; ``low`` and ``high`` the smallest and largest of the three totals.

    ``level`` is ``device`` (DRAM only) or ``board`` (all-in).
    """

    low: float
    mid: float
    high: float
    level: str


def worth_a_range(energy: Energy) -> bool:
    """Whether low and high differ by enough to be told apart: by 2 % of the middle or more."""
    return energy.high - energy.low >= 0.02 * abs(energy.mid)


@dataclass(frozen=True, slots=True)
class EnergySplit:
    """Joules of the middle fit by source; ``link`` is None where no link energy is known, and is then not counted."""

    weights: float
    kv: float
    compute: float
    static: float
    link: float | None = None

    @property
    def total(self) -> float:
        """The sum of the parts, which is ``Energy.mid`` of the same work."""
        return self.weights + self.kv + self.compute + self.static + (self.link or 0.0)


def energy_j(memory_bytes: int, flops: int, link_bytes: int, seconds: float, model: EnergyModel) -> Energy:
    """Energy of work that moved ``memory_bytes`` and ``link_bytes`` and computed ``flops`` in ``seconds``.

    E = e_mem · 8 · bytes + e_f · FLOP + e_link · 8 · link bytes + P_static · T, once for each fit. ``seconds`` is the
    trace's own time; with a floor time instead the result is a lower bound.
    """
    parts = (np.float64(memory_bytes), np.float64(flops), np.float64(link_bytes), np.float64(seconds))
    low, mid, high = (float(joules) for joules in fitted_j(*parts, model=model))
    return Energy(min(low, mid, high), mid, max(low, mid, high), model.level)


def fitted_j(memory: Joules, flops: Joules, link: Joules, seconds: Joules, model: EnergyModel) -> tuple[Joules, ...]:
    """Joules of each of the three fits, for numbers or arrays of one shape: bytes, FLOPs, link bytes, seconds."""
    moved = (model.link_pj_per_bit or 0.0) * 8e-12 * link
    return tuple(
        bit * 8e-12 * memory + flop * 1e-12 * flops + moved + static * seconds
        for bit, flop, static in zip(model.memory_pj_per_bit, model.flop_pj, model.static_w, strict=True)
    )


def energy_split(  # noqa: PLR0917  the same order as energy_j, with the memory bytes told apart
    weight_bytes: int, kv_bytes: int, flops: int, link_bytes: int, seconds: float, model: EnergyModel
) -> EnergySplit:
    """Where the middle fit's joules go: weight reads, KV reads and appends, FLOPs, the static part, the link."""
    bit = model.memory_pj_per_bit[1] * 8e-12
    link = None if model.link_pj_per_bit is None else model.link_pj_per_bit * 8e-12 * link_bytes
    return EnergySplit(
        bit * weight_bytes, bit * kv_bytes, model.flop_pj[1] * 1e-12 * flops, model.static_w[1] * seconds, link
    )


def power_note(energy: Energy, seconds: float, tdp_w: float | None) -> str | None:
    """A sentence where the middle fit draws more than the board may: the fits hold for memory-bound decode only."""
    if tdp_w is None or seconds <= 0 or energy.mid / seconds <= tdp_w:
        return None
    return (
        f"the energy fit draws {energy.mid / seconds:.0f} W at this rate, above the board's {tdp_w:.0f} W: "
        "it holds for memory-bound decode only"
    )
