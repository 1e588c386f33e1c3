"""The laws of the calibration as durations: what each kind of op takes on a machine, before the draw of its jitter."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.core.category import Op
from tracescope.core.columns import I64, U8
from tracescope.core.hardware import Basis
from tracescope.floor.pricing import F64, datasheet_share
from tracescope.synth.calibration import ALL_REDUCE, ATTENTION, PRODUCTS, Fit, calibration
from tracescope.synth.demand import Demand

KINDS: Final[dict[Op, tuple[str, ...]]] = {
    **dict.fromkeys((Op.QKV, Op.Q, Op.K, Op.V, Op.O, Op.GATE_UP, Op.GATE, Op.UP, Op.DOWN), (PRODUCTS,)),
    **dict.fromkeys((Op.LM_HEAD, Op.ROUTER, Op.EXPERTS), (PRODUCTS,)),
    Op.OTHER: (PRODUCTS,),
    **dict.fromkeys((Op.ATTENTION, Op.STATE, Op.INDEXER), (ATTENTION,)),  # a state and index keys are streamed alike
    Op.ALL_REDUCE: (ALL_REDUCE,),
    Op.NORM: ("norm", "add"),  # each norm of the chain carries the residual addition before it
    Op.ROPE: ("rope",),
    Op.ACT: ("act",),
    Op.EMBED: ("embed",),
    Op.KV_APPEND: ("add",),  # no rows of its own: the smallest kernel that has
    Op.BLOCK_TABLE: ("add",),
}
"""The kinds of kernel that one op is made of; launch and token selection are none of them."""

SAMPLE_NS: Final = 28_000.0
"""Token selection has no public rows: as in the realistic profile."""
SMALL_REACH: Final = 0.60
"""Share of the bandwidth at which small kernels move megabytes, as in the realistic profile: the rows stop before."""

_BACK_TO_BACK: Final = frozenset({PRODUCTS, ATTENTION, ALL_REDUCE})


@dataclass(frozen=True, eq=False, slots=True)
class CalibratedLaw:
    """Fixed times and what bytes, FLOPs and link bytes take in terms of their rates, float64[ops] each."""

    fixed: F64
    memory: F64
    compute: F64
    link: F64
    activation: F64

    def steady_ns(self, demand: Demand) -> F64:
        """Durations without jitter, ns; a small kernel takes its fixed time or moves its activations."""
        moving = np.hypot(demand.memory_ns * self.memory, demand.compute_ns * self.compute)
        moving = moving + demand.link_ns * self.link
        return np.maximum(self.fixed + moving, demand.activation_ns * self.activation)


def calibrated_law(op: U8, basis: Basis, gap_ns: float) -> CalibratedLaw:
    """The law of each of ``op`` (an Op each) on the machine of ``basis``.

    Kernels that were measured in a row have the gap between two of them, ``gap_ns``, in their time: it is taken out.
    """
    machine = None if basis.hardware is None else basis.hardware.name
    share = datasheet_share(basis)
    by_op = {o: _terms(Op(o), machine, share, gap_ns) for o in np.unique(op).tolist()}
    columns = np.array([by_op[o] for o in op.tolist()], np.float64).reshape(-1, 5)
    return CalibratedLaw(*columns.T)


def _terms(op: Op, machine: str | None, share: float, gap_ns: float) -> tuple[float, float, float, float, float]:
    """Fixed time, and what to multiply the times for bytes, FLOPs, link bytes and activations by."""
    table = calibration()
    fits = [table.fit(kind, machine) for kind in KINDS.get(op, ())]
    fixed = sum(_fixed_ns(fit, gap_ns) for fit in fits)
    products = table.fit(PRODUCTS, machine)
    streaming = next((fit for fit in fits if fit.kind in _BACK_TO_BACK), None)
    if op == Op.SAMPLE:
        fixed = SAMPLE_NS
    if streaming is None:
        slow = 1 / min(1.0, SMALL_REACH * share)
        return fixed, 1.0, 1.0, 1.0, slow
    if streaming.kind == ALL_REDUCE:
        return fixed, 1.0, 1.0, 1 / streaming.reach, 0.0
    return fixed, 1 / min(1.0, streaming.reach * share), 1 / products.compute_reach, 1.0, 0.0


def _fixed_ns(fit: Fit, gap_ns: float) -> float:
    return max(0.0, fit.fixed_ns - gap_ns) if fit.kind in _BACK_TO_BACK else fit.fixed_ns


@dataclass(frozen=True, slots=True)
class HostOverhead:
    """What an engine's host adds to a step, ns: ``step_ns``, and ``request_ns`` a request; ``name`` says whose."""

    name: str
    step_ns: float
    request_ns: float

    def ns(self, batch: I64) -> F64:
        """For a step of each ``batch``, float64 ns."""
        return self.step_ns + self.request_ns * batch.astype(np.float64)


NO_HOST: Final = HostOverhead("none", 0.0, 0.0)
"""A compiled loop without a server."""


def vllm_host() -> HostOverhead:
    """That of vLLM, as fitted to whole steps."""
    host = calibration().host
    return HostOverhead("vllm", host.step_ns, host.request_ns)


def calibration_notes(basis: Basis, host: HostOverhead) -> tuple[str, ...]:
    """What the numbers of this profile stand on, as sentences."""
    machine = None if basis.hardware is None else basis.hardware.name
    table = calibration()
    own: list[str] = []
    foreign: list[str] = []
    for kind in (PRODUCTS, ATTENTION, ALL_REDUCE, "norm"):
        fit = table.fit(kind, machine)
        name = {"norm": "small kernels"}.get(kind, kind.replace("_", "-"))
        (own if fit.machine == machine else foreign).append(name)
    fitted = [f"fitted to public measurements of this machine: {', '.join(own)}"] if own else []
    pooled = [f"without measurements of this machine, from others: {', '.join(foreign)}"] if foreign else []
    whose = {
        "vllm": "the host's share is that of a serving engine, fitted to whole steps",
        "none": "no host's share is counted",
    }.get(host.name, f"the host's share is {host.name} a request and step, as given")
    return (
        *fitted,
        *pooled,
        f"{whose}; token selection and the gaps between kernels have no public rows and are typical figures",
        "all-reduces of more than 1 MiB are beyond what was measured",
    )
