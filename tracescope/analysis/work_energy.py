"""Energy of recorded work: joules of the three fits and where they go, or unknown."""

from typing import Protocol

import numpy as np

from tracescope.analysis.table import Cell
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.floor.energy import Energy, EnergySplit, energy_j, energy_split
from tracescope.floor.pricing import sent_bytes

Joules = tuple[Energy, EnergySplit]
"""The three totals, and the parts of the middle one; the parts add up to it."""


class Amounts(Protocol):
    """Columns of bytes and FLOPs, int64 each, -1 where not known: a work table, sums over events, a step series."""

    @property
    def weight_read(self) -> I64: ...
    @property
    def kv_read(self) -> I64: ...
    @property
    def kv_append(self) -> I64: ...
    @property
    def flops(self) -> I64: ...
    @property
    def link(self) -> I64: ...
    @property
    def link_reduced(self) -> I64: ...


def energy_of(work: Amounts, row: int, duration_ns: int, basis: Basis) -> Joules | None:
    """Joules of one row of ``work`` in ``duration_ns``; None where an amount that counts is not known.

    The bytes are weights, KV reads and appends, like those of T_mem: the embedding rows that a step looks up are not in
    it. Link bytes count only where the basis has a coefficient for them.
    """
    model = basis.energy
    if model is None:
        return None
    columns = (
        work.weight_read, work.kv_read, work.kv_append, work.flops, sent_bytes(work.link, work.link_reduced, basis)
    )  # fmt: skip
    weights, read, append, flops, link = (int(column[row]) for column in columns)
    if min(weights, read, append, flops) < 0 or (link < 0 and model.link_pj_per_bit is not None):
        return None
    seconds, kv, link = duration_ns / 1e9, read + append, max(link, 0)
    return (
        energy_j(weights + kv, flops, link, seconds, model),
        energy_split(weights, kv, flops, link, seconds, model),
    )


def energy_of_event(trace: Trace, event: int, basis: Basis) -> Joules | None:
    """Joules of one event over the time that it took; None where not known."""
    events = trace.events
    return energy_of(trace.work, int(events.work[event]), int(events.duration[event]), basis)


def energy_cells(work: Amounts, duration_ns: I64, basis: Basis) -> list[Cell]:
    """``energy_j`` cells, one a row: ``{"low", "mid", "high", "level"}`` or None."""
    if basis.energy is None:
        return [None] * len(duration_ns)
    found = (energy_of(work, row, took, basis) for row, took in enumerate(np.asarray(duration_ns).tolist()))
    return [None if joules is None else energy_cell(joules[0]) for joules in found]


def energy_cell(energy: Energy | None) -> Cell:
    """One energy as JSON shows it."""
    if energy is None:
        return None
    return {"low": energy.low, "mid": energy.mid, "high": energy.high, "level": energy.level}
