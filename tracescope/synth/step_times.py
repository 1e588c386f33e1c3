"""How long a decode step takes for a batch of requests of any lengths: the weights once, and every cached token."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tracescope.core.category import Op
from tracescope.core.columns import I64, Bool
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.pricing import F64, compute_binds, compute_s, floor_s, memory_s, ops_floor_s
from tracescope.floor.step_ops import OpWork, counted_ops
from tracescope.synth.calibrated import HostOverhead
from tracescope.synth.demand import demand_of, exchanged_bytes
from tracescope.synth.timing import expected_ns

FAR: Final = 1 << 40
"""More tokens than any batch holds: where a window that fills up at all has filled up."""
GROWING: Final = ("kv_read", "flops", "index_read")
"""What of an op may grow with the tokens that it reads."""
_TRIED: Final = (2, 3, 1000, 4097)
_KNOTS_PER_DOUBLING: Final = 4


@dataclass(frozen=True, slots=True)
class Growth:
    """How an op that reads the cache grows: by these amounts for each cached token that its window still covers.

    ``cap`` is the number of past tokens of one request that it reads at most; None: all of them.
    """

    cap: int | None
    kv_read: int
    flops: int
    index_read: int = 0

    def seen(self, context: int) -> int:
        """How many of ``context`` cached tokens are read."""
        return context if self.cap is None else min(context, self.cap)


Caps = tuple[int | None, ...]
"""The kinds of window of a model's layers: past tokens of a request that are read at most, None for all."""

_STILL: Final = Growth(None, 0, 0)


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """A time in ns as straight lines between ``knots`` (cached tokens that are read), with the slope after each."""

    knots: F64
    values: F64
    slopes: F64

    def at(self, tokens: I64) -> F64:
        """The time for each of ``tokens``, float64 ns."""
        i = self.knots.searchsorted(tokens, side="right") - 1
        return self.values[i] + self.slopes[i] * (tokens - self.knots[i])


def find_growth(model_ops: Callable[[int], Sequence[OpWork]], batch: int) -> dict[int, Growth]:
    """Which ops of ``batch`` requests grow with the context and how, by place; ``model_ops`` gives the ops of one."""
    empty, one, far = (model_ops(context) for context in (0, 1, FAR))
    growth = {}
    for i, (op, after, last) in enumerate(zip(empty, one, far, strict=True)):
        if op == last:
            continue
        read, full = after.kv_read - op.kv_read, last.kv_read - op.kv_read
        cap = None if full == read * FAR else (full // read if read else 0)
        index = after.index_read - op.index_read
        growth[i] = Growth(cap, read // batch, (after.flops - op.flops) // batch, index // batch)
    return growth


def check_growth(model_ops: Callable[[int], Sequence[OpWork]], batch: int) -> None:
    """Raise TraceError where the cache of one request depends on its neighbours, as with a shared prefix."""
    growth = find_growth(model_ops, batch)
    empty = model_ops(0)
    edges = {c + d for g in growth.values() if (c := g.cap) for d in (-1, 0, 1)}
    for context in (*_TRIED, *sorted(edges)):
        for i, (before, op) in enumerate(zip(empty, model_ops(context), strict=True)):
            grown = growth.get(i, _STILL)
            tokens = batch * grown.seen(context)
            parts = {name: getattr(before, name) + tokens * getattr(grown, name) for name in GROWING}
            if op != replace(before, **parts):
                raise TraceError(
                    f"the cache that {op.op.label} reads does not add up over requests",
                    action="requests of different lengths cannot be simulated with these options",
                )


class StepTimes:
    """The mean time of a step under a profile, for any batch and any lengths of its requests.

    ``caps`` are the kinds of window that the model's layers have, None for full attention; a step is told, for each,
    how many cached tokens its requests read. Ideal times are the sums of the op floors, exactly. Raises TraceError
    where the basis cannot price the model or the cache of one request depends on its neighbours.
    """

    def __init__(
        self, model: ModelSpec, basis: Basis, workload: Workload, profile: str, host: HostOverhead | None = None
    ) -> None:
        if basis.bandwidth_bytes_per_s is None:
            raise TraceError("a step needs a memory bandwidth", action="give --hardware or --bandwidth")
        if any(kind.attention is not None and kind.attention.chunk is not None for kind, _ in model.layer_kinds):
            raise TraceError(
                f"{model.name} reads the running chunk of each request, which is not a sum over their tokens",
                action="requests that arrive cannot be simulated for it; a fixed --batch and --context can",
            )
        self._model, self._basis, self._workload, self._profile = model, basis, workload, profile
        self._host = host
        ops = self._ops(1)
        self.kernel_kinds = len({op.op for op in ops(0)} - {Op.LAUNCH})
        for batch in (1, 3):
            check_growth(self._ops(batch), batch)
        growth = find_growth(ops, 1)
        self.caps: Caps = tuple(dict.fromkeys(g.cap for g in growth.values()))
        self._curves: dict[int, tuple[Curve, ...]] = {}

    def _counted(self, batch: int, context: int) -> tuple[tuple[OpWork, int], ...]:
        return counted_ops(self._model, replace(self._workload, batch=batch, context=context))

    def _ops(self, batch: int) -> Callable[[int], Sequence[OpWork]]:
        return lambda context: [op for op, _ in self._counted(batch, context)]

    def tokens_read(self, context: int) -> tuple[int, ...]:
        """Cached tokens that a request with ``context`` of them reads, one for each of ``caps``."""
        return tuple(context if cap is None else min(context, cap) for cap in self.caps)

    def curves(self, batch: int) -> tuple[Curve, ...]:
        """For each of ``caps`` the time against the tokens read; what does not depend on them is in the first."""
        if batch not in self._curves:
            self._curves[batch] = self._make_curves(batch)
        return self._curves[batch]

    def step_ns(self, batch: int, tokens: Sequence[int]) -> float:
        """Mean ns of a step of ``batch`` requests that read ``tokens`` of the cache, one sum for each of ``caps``."""
        return float(sum(curve.at(np.array([n]))[0] for curve, n in zip(self.curves(batch), tokens, strict=True)))

    def _make_curves(self, batch: int) -> tuple[Curve, ...]:
        counted = self._counted(batch, 0)
        ops, counts = [op for op, _ in counted], np.array([n for _, n in counted], np.float64)
        growth = find_growth(self._ops(batch), batch)
        fixed = np.array([i not in growth for i in range(len(ops))])
        own = float((self._times(ops, batch) * counts)[fixed].sum())
        curves = []
        for cap in self.caps:
            grown = [i for i, g in growth.items() if g.cap == cap]
            knots = self._knots([(ops[i], growth[i]) for i in grown])
            total = np.full(len(knots), own)
            for i in grown:
                total += counts[i] * self._grown_times(ops[i], growth[i], knots)
            slopes = np.diff(total) / np.diff(knots)
            curves.append(Curve(knots, total, np.append(slopes, slopes[-1])))
            own = 0.0
        return tuple(curves)

    def _knots(self, grown: list[tuple[OpWork, Growth]]) -> F64:
        """Numbers of tokens between which the time is taken as straight; where FLOPs take over is one of them."""
        doublings = FAR.bit_length() - 1
        knots = {0.0, *(2.0 ** (np.arange(_KNOTS_PER_DOUBLING * doublings) / _KNOTS_PER_DOUBLING)).tolist()}
        for op, growth in grown:
            slope = self._memory_over_compute_s(growth.kv_read, growth.flops)
            turn = -self._memory_over_compute_s(op.memory_bytes, op.flops) / slope if slope else 0.0
            knots.add(turn if 0 < turn < FAR else 0.0)
        return np.array(sorted(knots))

    def _memory_over_compute_s(self, memory: int, flops: int) -> float:
        """By how many seconds moving takes longer than computing; 0 where either has no rate."""
        moving, computing = memory_s(memory, self._basis), compute_s(flops, self._basis)
        return 0.0 if moving is None or computing is None else moving - computing

    def _times(self, ops: list[OpWork], batch: int) -> F64:
        floor, known = ops_floor_s(tuple(ops), self._basis)
        if not known.all():
            raise TraceError(
                "the floor of a link transfer is not known", action="use a machine whose link rate is known"
            )
        memory = np.array([op.memory_bytes for op in ops], np.float64)
        flops = np.array([op.flops for op in ops], np.float64)
        activation = np.array([op.activation for op in ops], np.float64)
        link = exchanged_bytes(np.array([op.link for op in ops]), np.array([op.link_reduced for op in ops]))
        kinds = np.array([op.op for op in ops], np.uint8)
        compute = self._compute_bound(memory, flops)
        demand = demand_of(
            self._basis, floor * 1e9, compute, memory=memory, flops=flops, link=link, activation=activation
        )
        return expected_ns(self._profile, self._basis, kinds, demand, batch, self._host)

    def _grown_times(self, op: OpWork, growth: Growth, tokens: F64) -> F64:
        """Times of one op that reads these many tokens, float64[tokens]."""
        memory, flops = op.memory_bytes + growth.kv_read * tokens, op.flops + growth.flops * tokens
        seconds, _ = floor_s(memory, flops, np.zeros_like(memory), self._basis)
        kind = np.array([op.op], np.uint8)
        demand = demand_of(
            self._basis,
            seconds[:, None] * 1e9,
            self._compute_bound(memory, flops)[:, None],
            memory=memory[:, None],
            flops=flops[:, None],
            link=np.zeros((1, 1)),
            activation=np.array([[op.activation]], np.float64),
        )
        return expected_ns(self._profile, self._basis, kind, demand)[:, 0]

    def _compute_bound(self, memory: F64, flops: F64) -> Bool:
        needs = flops > 0 if self._basis.peak_flops_per_s is None else np.ones_like(flops, bool)
        bound: Bool = (memory == 0) & needs | compute_binds(memory, flops, self._basis)
        return bound
