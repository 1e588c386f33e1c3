"""A machine as decode sees it, and the basis on which a trace is priced."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EnergyModel:
    """Energy coefficients as three alternative fits (low, mid, high), not bounds of each term.

    ``memory_pj_per_bit`` is charged per bit moved from or to memory, ``flop_pj`` per FLOP at 16 bit, ``static_w`` over
    the trace's own time. ``level`` is ``device`` (DRAM only) or ``board`` (all-in). ``source`` names the basis.
    """

    memory_pj_per_bit: tuple[float, float, float]
    flop_pj: tuple[float, float, float]
    static_w: tuple[float, float, float]
    level: str
    source: str
    link_pj_per_bit: float | None = None


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
