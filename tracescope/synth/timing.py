"""Timing profiles: how long each op of a plan takes, and how long the device waits before it.

Every profile is checked against the floor: no op is ever shorter than its own floor, rounded to nanoseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.core.category import Op
from tracescope.core.columns import I64, U8, Bool
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.floor.pricing import F64, datasheet_share, round_cumulatively
from tracescope.synth.calibrated import CalibratedLaw, HostOverhead, calibrated_law, vllm_host
from tracescope.synth.demand import Demand, demand_of, exchanged_bytes
from tracescope.synth.plan import COMPUTE, Plan

IDEAL: Final = "ideal"
REALISTIC: Final = "realistic"
CALIBRATED: Final = "calibrated"
PROFILES: Final = (IDEAL, REALISTIC, CALIBRATED)


@dataclass(frozen=True, eq=False)
class Timing:
    """``wait`` (the gap before an op) and ``duration``, both int64 ns [steps, ops]: one op after the other."""

    wait: I64
    duration: I64


@dataclass(frozen=True, slots=True)
class Kernel:
    """How one kind of op runs: ``max(least_ns, ramp_ns + floor / reach)``, times 1 ± ``spread``.

    ``reach``: share of the datasheet bandwidth once streaming; ``ramp_ns``: launch, fill and drain of one kernel;
    ``least_ns``: what it takes however little it moves. One op in twelve draws up to ``tail`` on top. ``activations``:
    whether it moves its activations besides, which no floor counts; a matrix product hides them behind its weights.
    """

    reach: float
    ramp_ns: float
    least_ns: float
    spread: float
    tail: float
    why: str
    activations: bool = False


_WEIGHTS = Kernel(
    0.94, 1_600, 4_000, 0.012, 0.03,
    "Matrix products at small batch stream their weights: public H100 profiles reach 0.75 of the datasheet for 33 MB "
    "and 0.89 for 940 MB (vidur compute profiles); 0.94 with 1.6 µs of ramp is a well-tuned engine: 0.79 and 0.93.",
)  # fmt: skip
_ATTENTION = Kernel(
    0.85, 2_000, 5_000, 0.03, 0.20,
    "Paged KV is read in scattered blocks and split over the SMs unevenly: 0.81 of the datasheet at 268 MB, towards "
    "0.85 above (public H100 decode-attention rows: 0.74 to 0.93); the tail is the imbalance between requests.",
)  # fmt: skip
_SMALL = Kernel(
    0.60, 1_200, 1_880, 0.06, 0.05,
    "Norm, rope, activation, append and gather finish before the memory system is busy: public H100 profiles list "
    "2 to 7 µs with eager launch inside, about 2 µs inside a replayed graph. Large batches make them move megabytes.",
    activations=True,
)  # fmt: skip
_SAMPLE = Kernel(
    0.60, 1_200, 28_000, 0.05, 0.10,
    "Soft-max and top-k over the vocabulary and the copy of the chosen tokens to the host: some 20 to 40 µs.",
)  # fmt: skip
_LAUNCH = Kernel(
    1.0, 0, 44_000, 0.10, 0.25,
    "The host schedules the step, fills the block tables and starts one graph: tens of µs in a compiled engine loop.",
)  # fmt: skip
_LINK = Kernel(
    1.0, 0, 0, 0.05, 0.20,
    "An all-reduce takes what the law fitted to public rows says (2.8 to 26 µs below 1 MiB on 2 to 8 GPUs): its fixed "
    "time is no floor, and its floor no time.",
)  # fmt: skip

KERNELS: Final[dict[Op, Kernel]] = {
    **dict.fromkeys((Op.QKV, Op.Q, Op.K, Op.V, Op.O, Op.GATE_UP, Op.GATE, Op.UP, Op.DOWN, Op.LM_HEAD), _WEIGHTS),
    **dict.fromkeys((Op.ROUTER, Op.EXPERTS, Op.OTHER), _WEIGHTS),
    **dict.fromkeys((Op.EMBED, Op.BLOCK_TABLE, Op.NORM, Op.ROPE, Op.KV_APPEND, Op.ACT), _SMALL),
    **dict.fromkeys((Op.ATTENTION, Op.STATE, Op.INDEXER), _ATTENTION),
    Op.SAMPLE: _SAMPLE,
    Op.LAUNCH: _LAUNCH,
    Op.ALL_REDUCE: _LINK,
}
"""The realistic profile. Reaches are shares of the datasheet rate; times do not scale with the machine."""

COMPUTE_REACH: Final = 0.75
"""Share of the dense peak where FLOPs bind: large matrix products hold 0.7 to 0.8 of the datasheet rate."""
GRAPH_START_NS: Final = 3_000
"""From the end of the host's launch call to the first kernel of the graph."""
GAP_NS: Final = (300, 420)
"""Between two kernels of a replayed graph (range): node to node, some tenths of a µs on CUDA."""
HICCUP_SHARE, HICCUP_NS = 1 / 400, 4_000
"""One gap in 400 is longer by this much: a dependency that is resolved late."""
MEAN_GAP_NS: Final = (GAP_NS[0] + GAP_NS[1]) / 2 + HICCUP_SHARE * HICCUP_NS
FIRST_USE_NS: Final = (800_000, 1_200_000)
"""The first launch loads the module of each kind of kernel (lazy loading), about a millisecond apiece."""
STALL_SHARE, STALL_NS = 1 / 96, (600_000, 2_600_000)
"""One step in 96 finds the host busy elsewhere (garbage collection, the scheduler) for this range."""

MEMORY_KINDS: Final = ("weight_read", "embedding_gather", "kv_read", "kv_append")

_BLOCK = 1 << 17  # ops drawn at once: the random numbers of a block stay in the cache, and memory stays flat


def time_plan(
    plan: Plan,
    basis: Basis,
    profile: str,
    seed: int,
    *,
    batch: I64 | int = 1,
    delays: bool = True,
    host: HostOverhead | None = None,
) -> Timing:
    """Waits and durations of every op of ``plan`` under ``profile``; the same seed gives the same numbers.

    ``batch`` is the number of requests, of every step or int64[steps]: the ``host`` of the calibrated profile asks
    (None: vLLM's).
    Without ``delays`` the host never stalls and has loaded its kernels before: who asks has counted that already.
    Raises TraceError for a profile that does not exist.
    """
    if profile not in PROFILES:
        raise TraceError(f"there is no profile {profile!r}", action="use one of: " + ", ".join(PROFILES))
    floor = _rounded_floors(plan)
    if profile == IDEAL:
        return Timing(np.zeros_like(floor), floor)
    requests = np.broadcast_to(np.asarray(batch, np.int64), (plan.steps,))
    launch_ns = (host or vllm_host()).ns(requests)
    return _jittered(plan, basis, profile, floor, launch_ns, seed=seed, delays=delays)


def _rounded_floors(plan: Plan) -> I64:
    """Whole-ns floors [steps, ops], rounded cumulatively inside each step as the analysis rounds them."""
    out = np.empty((plan.steps, plan.ops), np.int64)
    for rows in _blocks(plan):
        out[rows] = round_cumulatively(plan.floor_ns[plan.work[rows]])
    return out


def _jittered(plan: Plan, basis: Basis, profile: str, floor: I64, launch_ns: F64, *, seed: int, delays: bool) -> Timing:
    per_op = np.random.Generator(np.random.PCG64([seed, 0]))
    per_step = np.random.Generator(np.random.PCG64([seed, 1]))
    law, jitter = _law(profile, plan.op, basis), Jitter.of(plan.op)
    table = plan.table
    moved = sum(np.maximum(getattr(table, name), 0) for name in MEMORY_KINDS)
    demand = demand_of(
        basis,
        plan.floor_ns,
        plan.engine == COMPUTE,
        memory=moved,
        flops=table.flops,
        link=exchanged_bytes(table.link, table.link_reduced),
        activation=table.activation,
    )
    wait, duration = np.empty_like(floor), np.empty_like(floor)
    for rows in _blocks(plan):
        # Only sums and products of uniform numbers: the same bits on every machine and every numpy.
        draw = per_op.random((rows.stop - rows.start, plan.ops, 3))
        work = plan.work[rows]
        time = law.steady_ns(demand.take(work))
        if profile == CALIBRATED:
            time[:, plan.host] = launch_ns[rows][:, None]
            time /= jitter.mean  # the fits are of mean times
        time *= jitter.factor(draw)
        duration[rows] = np.maximum(np.rint(time), floor[rows])
        late = draw[..., 2] > 1 - HICCUP_SHARE
        wait[rows] = np.rint(GAP_NS[0] + (GAP_NS[1] - GAP_NS[0]) * draw[..., 2] + HICCUP_NS * late)
    wait[:, plan.host] = 0
    after_launch = np.flatnonzero(plan.host) + 1
    wait[:, after_launch[after_launch < plan.ops]] += GRAPH_START_NS
    if delays and profile == REALISTIC:
        _load_kernels(duration, plan, per_step)
        _stall_host(duration, plan, per_step)
    return Timing(wait, duration)


@dataclass(frozen=True, eq=False)
class KernelLaw:
    """The table of kernels for a row of ops, float64[ops] each: how long one runs before the draw of its jitter."""

    ramp: F64
    least: F64
    slowdown: F64
    moves: Bool
    link: F64
    """What the time of a message at the link rate is multiplied by; 0 for what sends nothing."""

    def steady_ns(self, demand: Demand) -> F64:
        """Durations without jitter, ns."""
        slower = np.where(demand.compute, 1 / COMPUTE_REACH, self.slowdown)
        moving = (demand.floor_ns + self.moves * demand.activation_ns) * slower
        moving = np.where(self.link > 0, demand.link_ns * self.link, moving)
        return np.maximum(self.least, self.ramp + moving)


def kernel_law(op: U8, basis: Basis) -> KernelLaw:
    """How the kernels of ``op`` (an Op each) run in the realistic profile on ``basis``."""
    kernels = [KERNELS[Op(o)] for o in op.tolist()]
    ramp, least, reach = (
        np.array([getattr(k, name) for k in kernels], np.float64) for name in ("ramp_ns", "least_ns", "reach")
    )
    slowdown = 1 / np.minimum(1, reach * datasheet_share(basis))
    sends = np.equal(op, Op.ALL_REDUCE)
    sending = calibrated_law(np.array([Op.ALL_REDUCE], np.uint8), basis, MEAN_GAP_NS)
    return KernelLaw(
        np.where(sends, sending.fixed[0], ramp),
        least,
        slowdown,
        np.array([k.activations for k in kernels], bool),
        np.where(sends, sending.link[0], 0.0),
    )


def _law(profile: str, op: U8, basis: Basis) -> KernelLaw | CalibratedLaw:
    return kernel_law(op, basis) if profile == REALISTIC else calibrated_law(op, basis, MEAN_GAP_NS)


@dataclass(frozen=True, eq=False)
class Jitter:
    """How far the times of ops scatter, float64[ops] each: a symmetric part, and a tail of one draw in twelve."""

    spread: F64
    tail: F64

    @classmethod
    def of(cls, op: U8) -> "Jitter":
        """That of the table of kernels; nothing public says how the calibrated ones scatter."""
        kernels = [KERNELS[Op(o)] for o in op.tolist()]
        return cls(np.array([k.spread for k in kernels]), np.array([k.tail for k in kernels]))

    def factor(self, draw: F64) -> F64:
        """What to multiply by, for uniform draws [..., ops, 2 or more]."""
        symmetric = self.spread * (draw[..., 0] + draw[..., 1] - 1)
        return 1 + symmetric + self.tail * np.maximum(12 * draw[..., 1] - 11, 0)

    @property
    def mean(self) -> F64:
        """What a duration is multiplied by on average: the symmetric part nothing, the tail 1/24 of itself."""
        return 1 + self.tail / 24


def expected_ns(  # noqa: PLR0917
    profile: str, basis: Basis, op: U8, demand: Demand, batch: int = 1, host: HostOverhead | None = None
) -> F64:
    """Mean time of each op of a step of ``batch`` requests with the gap before it, float64 ns [..., ops].

    ``op`` holds an Op each. Stalls and first uses are not in it: see :func:`host_delays`.
    """
    if profile == IDEAL:
        return demand.floor_ns
    launch = np.equal(op, Op.LAUNCH)
    mean = _law(profile, op, basis).steady_ns(demand)
    if profile == REALISTIC:
        mean = mean * Jitter.of(op).mean
    elif launch.any():
        mean = np.where(launch, (host or vllm_host()).ns(np.array([batch])), mean)
    mean = np.maximum(mean, demand.floor_ns)
    return mean + np.where(launch, GRAPH_START_NS, MEAN_GAP_NS)  # one launch a step: the graph starts once


def host_delays(profile: str, steps: int, kinds: int, random: np.random.Generator, *, first: bool) -> I64:
    """What the host adds to each of the next ``steps`` steps, int64 ns: stalls, and the first use of ``kinds`` kernels.

    ``random`` goes on where it stopped, so that blocks of any size give the same numbers.
    """
    if profile != REALISTIC:  # the calibrated host's term is fitted to medians of steps that were warm
        return np.zeros(steps, np.int64)
    draw = random.random((steps, 2))
    low, high = STALL_NS
    late = np.where(draw[:, 0] < STALL_SHARE, np.rint(low + (high - low) * draw[:, 1]), 0).astype(np.int64)
    if first and steps:
        late[0] = int(kinds * sum(FIRST_USE_NS) / 2)
    return late


def _blocks(plan: Plan) -> Iterator[slice]:
    size = max(1, _BLOCK // plan.ops)
    for first in range(0, plan.steps, size):
        yield slice(first, min(first + size, plan.steps))


def fitted(timing: Timing, plan: Plan, step_duration: I64, delay: I64) -> Timing:
    """``timing`` with each step made to last ``step_duration`` ns, of which the host loses ``delay``; int64[steps].

    The delay is the launch's. For the rest, what each operation takes above its floor is stretched or shrunk in
    proportion, so that none falls below its floor; what rounding leaves, nanoseconds, is the longest operation's.
    """
    duration = timing.duration.copy()
    launch = int(np.flatnonzero(plan.host)[0]) if plan.host.any() else 0
    duration[:, launch] += delay
    for rows in _blocks(plan):
        block, waits = duration[rows], timing.wait[rows].sum(axis=1)
        floor = np.ceil(plan.floor_ns[plan.work[rows]]).astype(np.int64)
        above = np.maximum(block - floor, 0)
        above[:, launch] -= delay[rows]
        spare = above.sum(axis=1)
        more = step_duration[rows] - waits - block.sum(axis=1)
        stretch = np.where(spare > 0, np.maximum(-1.0, more / np.maximum(spare, 1)), 0.0)
        block += np.rint(above * stretch[:, None]).astype(np.int64)
        left = step_duration[rows] - waits - block.sum(axis=1)
        block[np.arange(len(block)), block.argmax(axis=1)] += left
    return Timing(timing.wait, duration)


def _stall_host(duration: I64, plan: Plan, random: np.random.Generator) -> None:
    """Make the host's launch late in a few steps, never in the first, which is slow enough."""
    draw = random.random((plan.steps, 2))
    low, high = STALL_NS
    late = np.where(draw[:, 0] < STALL_SHARE, np.rint(low + (high - low) * draw[:, 1]), 0).astype(np.int64)
    late[0] = 0
    launches = np.flatnonzero(plan.host)
    if len(launches):
        duration[:, launches[0]] += late


def _load_kernels(duration: I64, plan: Plan, random: np.random.Generator) -> None:
    """Let the first launch load the module of each kind of op that runs on the device."""
    launches = np.flatnonzero(plan.host)
    kinds = len(np.unique(plan.op[~plan.host]))
    low, high = FIRST_USE_NS
    if len(launches):
        duration[0, launches[0]] += int(np.rint(low + (high - low) * random.random(kinds)).sum())
