"""What ops ask of a machine, in ns at its rates: what every timing profile starts from."""

from dataclasses import dataclass

import numpy as np

from tracescope.core.columns import U32, Bool
from tracescope.core.hardware import Basis
from tracescope.floor.pricing import F64, Amounts


@dataclass(frozen=True, eq=False, slots=True)
class Demand:
    """Floors and what they are made of, float64 ns in arrays that broadcast against each other.

    ``memory_ns``, ``compute_ns`` and ``link_ns`` are amounts over rates, without a latency; ``activation_ns`` is what
    unfused activations take besides; ``compute`` marks ops bound by FLOPs.
    """

    floor_ns: F64
    memory_ns: F64
    compute_ns: F64
    link_ns: F64
    activation_ns: F64
    compute: Bool

    def take(self, rows: U32) -> "Demand":
        """The demand of some work rows, in the shape of ``rows``."""
        return Demand(*(getattr(self, name)[rows] for name in self.__slots__))


def demand_of(
    basis: Basis, floor_ns: F64, compute: Bool, *, memory: Amounts, flops: Amounts, link: Amounts, activation: Amounts
) -> Demand:
    """The demand of ops that move these bytes and compute these FLOPs; -1 (not known) counts nothing."""
    bandwidth, peak = basis.bandwidth_bytes_per_s or 1, basis.peak_flops_per_s
    return Demand(
        floor_ns=floor_ns,
        memory_ns=np.maximum(memory, 0) / bandwidth * 1e9,
        compute_ns=np.maximum(flops, 0) / peak * 1e9 if peak else np.zeros_like(floor_ns),
        link_ns=np.maximum(link, 0) / (basis.link_bytes_per_s or 1) * 1e9,
        activation_ns=np.maximum(activation, 0) / bandwidth * 1e9,
        compute=compute,
    )


def datasheet_share(basis: Basis) -> float:
    """What to multiply a share of the datasheet rate by where the basis counts another one.

    A sustained rate has the memory's own losses in it already.
    """
    if basis.hardware is None or basis.bandwidth_bytes_per_s is None or basis.bandwidth_source != "sustained":
        return 1.0
    return basis.hardware.bandwidth_bytes_per_s / basis.bandwidth_bytes_per_s
