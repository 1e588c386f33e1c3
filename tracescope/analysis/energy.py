"""Energy of rows of work: low, mid and high joules with the level they are at, or unknown."""

from tracescope.analysis.tables import Cell
from tracescope.core.columns import I64
from tracescope.core.energy import Energy, energy_j
from tracescope.core.hardware import Basis


def energy_of(memory: int, flops: int, link: int, duration_ns: int, basis: Basis) -> Energy | None:
    """Joules of moving ``memory`` and ``link`` bytes and computing ``flops`` in ``duration_ns``; None where unknown.

    -1 stands for an unknown amount. Link bytes count only where the basis has a coefficient for them.
    """
    model = basis.energy
    if model is None or memory < 0 or flops < 0:
        return None
    if link < 0 and model.link_pj_per_bit is not None:
        return None
    return energy_j(memory, flops, max(link, 0), duration_ns / 1e9, model)


def energy_cells(memory: I64, flops: I64, link: I64, duration_ns: I64, basis: Basis) -> list[Cell]:
    """``energy_j`` cells, one a row: ``{"low", "mid", "high", "level"}`` or None."""
    if basis.energy is None:
        return [None] * len(memory)
    rows = zip(memory.tolist(), flops.tolist(), link.tolist(), duration_ns.tolist(), strict=True)
    return [energy_cell(energy_of(*row, basis)) for row in rows]


def energy_cell(energy: Energy | None) -> Cell:
    """One energy as JSON shows it."""
    if energy is None:
        return None
    return {"low": energy.low, "mid": energy.mid, "high": energy.high, "level": energy.level}
