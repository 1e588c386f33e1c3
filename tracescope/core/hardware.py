"""A machine as decode sees it, and the basis on which a trace is priced."""

from dataclasses import dataclass, field
from typing import Final

EXTRAPOLATED: Final = 2
"""How many times as wide the error of an energy fit is taken on a machine that none of its runs were on."""

ASSUMED_ERROR: Final = EXTRAPOLATED * 0.23
"""Relative error of an energy fit that says none of its own: that of the widest built-in one, extrapolated."""


@dataclass(frozen=True, slots=True)
class EnergyModel:
    """Energy coefficients as three alternative fits, of which the middle one is used; they bound nothing.

    ``memory_pj_per_bit`` is charged per bit moved from or to memory, ``flop_pj`` per FLOP at 16 bit, ``static_w`` over
    the trace's own time. ``level`` is ``device`` (DRAM only) or ``board`` (all-in). ``source`` names the basis.
    ``error`` is relative, half the width of the range; ``error_source`` says how often that range holds. Without an
    error of its own a fit is ``extrapolated``, and so taken twice as wide as one that has been tried.
    """

    memory_pj_per_bit: tuple[float, float, float]
    flop_pj: tuple[float, float, float]
    static_w: tuple[float, float, float]
    level: str
    source: str
    link_pj_per_bit: float | None = None
    error: float = ASSUMED_ERROR
    error_source: str = ""
    extrapolated: bool = True
    invented: bool = False

    @property
    def word(self) -> str:
        """``invented`` or ``extrapolated``, which belongs beside every number of this fit; empty where neither is."""
        return "invented" if self.invented else "extrapolated" if self.extrapolated else ""


@dataclass(frozen=True, slots=True)
class HardwareSpec:
    """One device. Rates are decimal and dense; capacity is what the device has.

    ``flops_per_s`` maps a compute dtype (``bf16``, ``fp8``, ``int8``) to its dense rate; a dtype that is absent has no
    native rate and computes at the 16-bit one. ``switch_reduces``: the switch between the ranks adds up what they send
    in an all-reduce, so that each sends its message once. ``sustained_bytes_per_s`` is None where nobody measured it.
    """

    name: str
    title: str
    bandwidth_bytes_per_s: int
    capacity_bytes: int
    flops_per_s: dict[str, int]
    source: str
    tdp_w: float | None = None
    link_bytes_per_s: int | None = None
    switch_reduces: bool = False
    sustained_bytes_per_s: int | None = None
    sustained_source: str = ""
    llc_bytes: int | None = None
    year: int | None = None
    invented: bool = False
    approximate: bool = False
    energy: EnergyModel | None = None


@dataclass(frozen=True, slots=True)
class Basis:
    """What turns bytes into time and joules: a bandwidth with its source, a peak, an energy model; each may be unknown.

    ``bandwidth_source`` is one of ``datasheet``, ``sustained``, ``user``, ``file`` or ``unknown``. ``peak_flops_per_s``
    is the dense rate of ``compute_dtype``.
    """

    hardware: HardwareSpec | None = None
    bandwidth_bytes_per_s: int | None = None
    bandwidth_source: str = "unknown"
    peak_flops_per_s: int | None = None
    compute_dtype: str = "bf16"
    link_bytes_per_s: int | None = None
    switch_reduces: bool = False
    energy: EnergyModel | None = None
    notes: tuple[str, ...] = field(default=())
    """Sentences that belong under any number made from this basis, such as a dtype without a native rate."""

    @property
    def tdp_w(self) -> float | None:
        """What the board may draw, W; None where not known."""
        return self.hardware.tdp_w if self.hardware is not None else None
