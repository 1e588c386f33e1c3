"""What ops ask of a machine, in ns at its rates: what every timing profile starts from."""

from dataclasses import dataclass

import numpy as np

from tracescope.core.columns import U32, Bool
from tracescope.core.hardware import Basis
from tracescope.floor.pricing import F64, Amounts, compute_s, link_s, memory_s


@dataclass(frozen=True, eq=False, slots=True)
class Demand:
    """Floors and what they are made of, float64 ns in arrays that broadcast against each other.

    ``memory_ns`` and ``compute_ns`` are amounts over rates, ``link_ns`` what :func:`exchanged_bytes` takes at the link
    rate, without a latency; ``activation_ns`` is what
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


def exchanged_bytes(link: Amounts, link_reduced: Amounts) -> F64:
    """Bytes that one rank sends when it hands its whole message to each of the others: (t − 1) × the message.

    That is how engines reduce the small messages of decode: one exchange, whatever the floor could save. From what a
    ring sends, 2(t − 1)/t × the message, and the message itself: ring ÷ (2 − ring ÷ message). Equal amounts, as of two
    ranks or of other collectives, stay what they are.
    """
    ring, message = np.maximum(link, 0).astype(np.float64), np.maximum(link_reduced, 0).astype(np.float64)
    share = np.divide(ring, message, out=np.ones_like(ring), where=message > 0)
    exchanged: F64 = ring / (2 - share)
    return exchanged


def demand_of(
    basis: Basis, floor_ns: F64, compute: Bool, *, memory: Amounts, flops: Amounts, link: Amounts, activation: Amounts
) -> Demand:
    """The demand of ops that move these bytes and compute these FLOPs; -1 (not known) counts nothing."""
    times = (memory_s(memory, basis), compute_s(flops, basis), link_s(link, basis), memory_s(activation, basis))
    moving, computing, sending, unfused = (np.nan_to_num(seconds) * 1e9 for seconds in times)
    return Demand(floor_ns, moving, computing, sending, unfused, compute)
