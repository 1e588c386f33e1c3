"""Energy of a step from its bytes, its FLOPs and its time: a fit, the error of that fit, and the level it is at."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tracescope.core import units
from tracescope.core.hardware import EnergyModel
from tracescope.floor.pricing import F64

Numbers = float | F64
"""One number, or an array of them."""


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules: ``mid`` is what the fit says, ``low`` and ``high`` are where its error ends.

    ``level`` is ``device`` (DRAM only) or ``board`` (all-in). ``error_source`` says how often the range holds; ``word``
    is ``extrapolated`` or ``invented`` where no run of the machine stands behind it. ``capped``: the fit says more than
    the board can draw, and the number is what the board can.
    """

    low: float
    mid: float
    high: float
    level: str
    error_source: str = ""
    word: str = ""
    capped: bool = False

    @property
    def extrapolated(self) -> bool:
        """Whether no run of the machine stands behind the number."""
        return bool(self.word)

    def shared(self, among: int) -> "Energy":
        """One of ``among`` equal shares, such as that of a token."""
        return replace(self, low=self.low / among, mid=self.mid / among, high=self.high / among)

    def times(self, ranks: int) -> "Energy":
        """That of ``ranks`` which all do the same."""
        return replace(self, low=self.low * ranks, mid=self.mid * ranks, high=self.high * ranks)


def worth_a_range(energy: Energy) -> bool:
    """Whether low and high differ by enough to be told apart: by 2 % of the middle or more."""
    return energy.high - energy.low >= 0.02 * abs(energy.mid)


def energy_words(energy: Energy) -> str:
    """``4.6 J, 3.8–5.4 in 9 of 10 public runs``; the word beside it where the range is not founded on runs."""
    text = units.energy_range(energy.low, energy.mid, energy.high)
    text += f" in {energy.error_source}" if energy.error_source else ""
    return f"{text}, {energy.word}" if energy.word else text


def energy_facts(energy: Energy) -> list[str]:
    """What a heading over an energy has to say: that it is modelled, at which level, and whether the board is at its
    power limit.
    """
    return ["modelled", f"{energy.level} level", *(["at the power limit"] if energy.capped else [])]


def error_words(model: EnergyModel) -> str:
    """The same of the fit itself: ``± 22 % in 9 of 10 public runs``."""
    text = f"± {units.percent(model.error)}"
    text += f" in {model.error_source}" if model.error_source else ""
    return f"{text}, {model.word}" if model.word else text


@dataclass(frozen=True, slots=True)
class EnergySplit:
    """Joules by source; ``link`` is None where no link energy is known, and is then not counted."""

    weights: float
    kv: float
    compute: float
    static: float
    link: float | None = None

    @property
    def total(self) -> float:
        """The sum of the parts, which is ``Energy.mid`` of the same work."""
        return self.weights + self.kv + self.compute + self.static + (self.link or 0.0)

    def times(self, ranks: int) -> "EnergySplit":
        """That of ``ranks`` which all do the same."""
        link = None if self.link is None else self.link * ranks
        return EnergySplit(self.weights * ranks, self.kv * ranks, self.compute * ranks, self.static * ranks, link)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The shares of what a fit says that a board can have drawn, one number each or arrays; 1 where it can all be.

    ``moved`` is of bytes and FLOPs, ``static`` of the static part.
    """

    moved: Numbers
    static: Numbers


ALL: Final = Drawn(1.0, 1.0)


def drawn(moved_j: Numbers, seconds: Numbers, model: EnergyModel, tdp_w: float | None) -> Drawn:
    """What a board of ``tdp_w`` can draw of ``moved_j`` (bytes and FLOPs) and of the static part in ``seconds``.

    A fit above the board's power is the fit's fault. The static part gives way first: it is the part that the fits tell
    least from the rest. What bytes and FLOPs draw gives way only where that is not enough. Nothing is known of the
    power of work without a time.
    """
    if tdp_w is None:
        return ALL
    moved, static = np.asarray(moved_j, np.float64), model.static_w[1] * np.asarray(seconds, np.float64)
    limit = np.where(np.asarray(seconds) > 0, tdp_w * np.asarray(seconds), np.inf)
    room = np.maximum(limit - moved, 0.0)

    def share(of: F64, at_most: F64) -> F64:
        return np.divide(at_most, of, out=np.ones_like(at_most), where=of > at_most)

    return Drawn(share(moved, limit), share(static, room))


def moved_j(memory: Numbers, flops: Numbers, link: Numbers, model: EnergyModel) -> Numbers:
    """Joules of bytes, FLOPs and link bytes as the fit has them."""
    over_link = (model.link_pj_per_bit or 0.0) * 8e-12 * link
    return model.memory_pj_per_bit[1] * 8e-12 * memory + model.flop_pj[1] * 1e-12 * flops + over_link


def mid_j(  # noqa: PLR0917  the operands of one formula, in its order
    memory: Numbers, flops: Numbers, link: Numbers, seconds: Numbers, model: EnergyModel, tdp_w: float | None
) -> Numbers:
    """min(e_mem · 8 · bytes + e_f · FLOP + e_link · 8 · link bytes + P_static · T, TDP · T)."""
    moved = moved_j(memory, flops, link, model)
    share = drawn(moved, seconds, model, tdp_w)
    return share.moved * moved + share.static * (model.static_w[1] * seconds)


def around(mid: Numbers, model: EnergyModel) -> F64:
    """Low, mid and high, float64[3, …]: the error of the fit to either side of the middle; none is negative."""
    return np.stack([max(0.0, 1 - model.error) * mid, mid, (1 + model.error) * mid])


def energy_j(  # noqa: PLR0917  the same operands as mid_j
    memory_bytes: int, flops: int, link_bytes: int, seconds: float, model: EnergyModel, tdp_w: float | None = None
) -> Energy:
    """Energy of work that moved ``memory_bytes`` and ``link_bytes`` and computed ``flops`` in ``seconds``.

    ``seconds`` is the trace's own time; a floor's time makes it what a step costs that takes no longer. The board draws
    no more than ``tdp_w``, if that is given.
    """
    mid = float(mid_j(memory_bytes, flops, link_bytes, seconds, model, tdp_w))
    said = float(mid_j(memory_bytes, flops, link_bytes, seconds, model, None))
    return as_energy(mid, model, capped=mid < said)


def as_energy(mid: float, model: EnergyModel, *, capped: bool = False) -> Energy:
    """Joules that ``model`` gives, with its range and its words."""
    low, middle, high = around(mid, model).tolist()
    return Energy(low, middle, high, model.level, model.error_source, model.word, capped)


def energy_split(  # noqa: PLR0917  the same order as energy_j, with the memory bytes told apart
    weight_bytes: int,
    kv_bytes: int,
    flops: int,
    link_bytes: int,
    seconds: float,
    model: EnergyModel,
    tdp_w: float | None = None,
    *,
    share: Drawn | None = None,
) -> EnergySplit:
    """Where the joules go: weight reads, KV reads and appends, FLOPs, the static part, the link.

    The board draws no more than ``tdp_w``; or of each part the ``share`` that it draws of a whole that this belongs to.
    """
    if share is None:
        share = drawn(moved_j(weight_bytes + kv_bytes, flops, link_bytes, model), seconds, model, tdp_w)
    bit = model.memory_pj_per_bit[1] * 8e-12 * float(share.moved)
    link = None
    if model.link_pj_per_bit is not None:
        link = model.link_pj_per_bit * 8e-12 * link_bytes * float(share.moved)
    return EnergySplit(
        weights=bit * weight_bytes,
        kv=bit * kv_bytes,
        compute=model.flop_pj[1] * 1e-12 * flops * float(share.moved),
        static=model.static_w[1] * seconds * float(share.static),
        link=link,
    )


def power_note(  # noqa: PLR0917  the same operands as energy_j
    memory_bytes: int, flops: int, link_bytes: int, seconds: float, model: EnergyModel, tdp_w: float | None
) -> str | None:
    """A sentence where the fit says more than the board can draw, and what was done about it."""
    moved = float(moved_j(memory_bytes, flops, link_bytes, model))
    if tdp_w is None or seconds <= 0 or moved + model.static_w[1] * seconds <= tdp_w * seconds:
        return None
    rest = max(0.0, tdp_w - moved / seconds)
    fault = (
        f"the energy fit says {moved / seconds + model.static_w[1]:,.0f} W at this rate, above the board's "
        f"{tdp_w:,.0f} W, which is the fit's fault: its static part is taken as {rest:,.0f} of "
        f"{model.static_w[1]:,.0f} W"
    )
    if moved <= tdp_w * seconds:
        return f"{fault}, and the energy is that of {tdp_w:,.0f} W"
    return f"{fault}, what bytes and FLOPs draw is cut by the same fault, and the energy is that of {tdp_w:,.0f} W"
