"""The latency of all-reduces: real, measured, and in no floor, for a floor is what no machine can beat."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from tracescope.core import units
from tracescope.core.category import Op
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.step_ops import counted_ops
from tracescope.synth.calibration import ALL_REDUCE, calibration, records

TITLE: Final = "all-reduce latency"
NOT_IN_FLOOR: Final = "not part of the floor"


@dataclass(frozen=True, slots=True)
class Latency:
    """What ``count`` all-reduces take however little they send; ns of one.

    ``fixed_ns`` is the fixed time of the fitted law, ``low_ns`` and ``high_ns`` the least and the most that the
    smallest message took on any number of ranks. ``pooled``: measured on another machine.
    """

    count: int
    fixed_ns: float
    low_ns: float
    high_ns: float
    measured_on: str
    pooled: bool

    @property
    def seconds(self) -> float:
        """All of them together."""
        return self.count * self.fixed_ns * 1e-9

    @property
    def source(self) -> str:
        """Where it was measured, and whether that is another machine."""
        return f"{'not of this machine: ' if self.pooled else ''}measured on {self.measured_on}"

    @property
    def product(self) -> str:
        """The number of all-reduces times what one takes."""
        return f"{self.count:,} × {self.low_ns / 1e3:.1f}–{self.high_ns / 1e3:.1f} µs"

    @property
    def added(self) -> str:
        """What that comes to."""
        low, high = (self.count * ns / 1e6 for ns in (self.low_ns, self.high_ns))
        return f"+ {low:.2f}–{high:.2f} ms"

    @property
    def words(self) -> str:
        """Such as ``160 × 2.8–3.5 µs (measured on …) = + 0.45–0.56 ms (… by the law), not part of the floor``."""
        fitted = f"({units.seconds(self.seconds)} by the fitted law)"
        return f"{self.product} ({self.source}) = {self.added} {fitted}, {NOT_IN_FLOOR}"


def latency_of(count: int, basis: Basis) -> Latency | None:
    """The latency of ``count`` all-reduces on the machine of ``basis``; None for none, or on nobody knows what."""
    if count < 1 or basis.hardware is None:
        return None
    machine = basis.hardware.name
    fit = calibration().fit(ALL_REDUCE, machine)
    own = fit.machine == machine
    low, high, where = _measured(machine if own else None)
    return Latency(count, fit.fixed_ns, low, high, where, not own)


def step_latency(model: ModelSpec, workload: Workload, basis: Basis) -> Latency | None:
    """The latency of the all-reduces of one step; None for one rank."""
    return latency_of(sum(n for op, n in counted_ops(model, workload) if op.op == Op.ALL_REDUCE), basis)


@cache
def _measured(machine: str | None) -> tuple[float, float, str]:
    """Least and most ns of the smallest messages on ``machine`` (None: on any), and what was measured in words."""
    rows = [row for row in records(ALL_REDUCE) if machine in (None, row["machine"])]
    smallest = min(row["message_bytes"] for row in rows)
    taken = [row["us"] * 1e3 for row in rows if row["message_bytes"] == smallest]
    ranks = [row["ranks"] for row in rows]
    titles = ", ".join(dict.fromkeys(_title(row["machine"]) for row in rows))
    where = f"{titles}, {min(ranks)}–{max(ranks)} ranks, {units.binary_size(smallest)}"
    return min(taken), max(taken), where


def _title(machine: str) -> str:
    """``H100 SXM`` of ``h100-sxm``: the presets are not known here."""
    return machine.replace("-", " ").upper()
