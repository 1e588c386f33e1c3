"""Energy of recorded work: joules with their range and where they go, or unknown."""

from typing import Protocol

import numpy as np

from tracescope.analysis.table import Cell, Column
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis, EnergyModel
from tracescope.floor.energy import ALL, Drawn, Energy, EnergySplit, as_energy, drawn, energy_split, moved_j
from tracescope.floor.pricing import F64, sent_bytes

Joules = tuple[Energy, EnergySplit]
"""The energy, and the parts of its middle; the parts add up to it."""


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


def energy_of(work: Amounts, row: int, duration_ns: int, basis: Basis, share: Drawn | None = None) -> Joules | None:
    """Joules of one row of ``work`` in ``duration_ns``; None where an amount that counts is not known.

    The bytes are weights, KV reads and appends, like those of T_mem: the embedding rows that a step looks up are not in
    it. Link bytes count only where the basis has a coefficient for them. The board draws no more than it may, or the
    ``share`` of the whole that the row belongs to.
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
    if share is None:
        share = drawn(moved_j(weights + kv, flops, link, model), seconds, model, basis.tdp_w)
    split = energy_split(weights, kv, flops, link, seconds, model, share=share)
    return as_energy(split.total, model, capped=bool(min(share.moved, share.static) < 1)), split


def energy_of_group(work: Amounts, row: int, duration_ns: int, basis: Basis, ranks: int) -> Joules | None:
    """The same of ``ranks`` which all do this: what is shown wherever a model is split over several."""
    found = energy_of(work, row, duration_ns, basis)
    return None if found is None else (found[0].times(ranks), found[1].times(ranks))


def energy_columns(
    work: Amounts, duration_ns: I64, basis: Basis, ranks: int, of_ns: int | None = None
) -> tuple[Column, Column]:
    """``energy_j``, that of all ``ranks``, and ``energy_rank_j``, that of the one whose work it is; null if not known.

    With ``of_ns`` the rows are parts of work that took that long with its idle time: what the board cannot draw is
    taken from all of them alike, so that they add up to the energy of the whole less the static part of its idle time.
    """
    model = basis.energy
    if model is None:
        nothing: list[Cell] = [None] * len(duration_ns)
        return Column("energy_j", nothing), Column("energy_rank_j", nothing)
    share = None if of_ns is None else drawn(float(_moved(work, model, basis).sum()), of_ns / 1e9, model, basis.tdp_w)
    took = np.asarray(duration_ns).tolist()
    found = (energy_of(work, row, ns, basis, share) for row, ns in enumerate(took))
    each = [None if joules is None else joules[0] for joules in found]
    group = [energy_cell(None if energy is None else energy.times(ranks)) for energy in each]
    return Column("energy_j", group), Column("energy_rank_j", [energy_cell(energy) for energy in each])


def drawn_of_rows(work: Amounts, duration_ns: I64, basis: Basis) -> Drawn:
    """What the board can draw of each row of ``work``: shares as one number or float64[n]."""
    if basis.energy is None:
        return ALL
    return drawn(_moved(work, basis.energy, basis), duration_ns / 1e9, basis.energy, basis.tdp_w)


def _moved(work: Amounts, model: EnergyModel, basis: Basis) -> F64:
    """Joules of the bytes and FLOPs of each row, float64[n], as far as they are known."""
    sent = sent_bytes(work.link, work.link_reduced, basis)
    weights, read, append, flops, link = (
        np.maximum(column, 0).astype(np.float64)
        for column in (work.weight_read, work.kv_read, work.kv_append, work.flops, sent)
    )
    return np.asarray(moved_j(weights + read + append, flops, link, model))


def energy_cell(energy: Energy | None) -> Cell:
    """One energy as JSON shows it: ``{"low", "mid", "high", "level", "extrapolated"}``."""
    if energy is None:
        return None
    return {
        "low": energy.low,
        "mid": energy.mid,
        "high": energy.high,
        "level": energy.level,
        "extrapolated": energy.extrapolated,
    }
