"""How long requests wait for a place in the batch: seeded runs of the very queue that ``synth`` simulates."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.core import units
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.request_stream import RequestStream
from tracescope.synth.batching import KvRoom, kv_room, serve
from tracescope.synth.distributions import Arrivals, Lengths, draw_requests
from tracescope.synth.step_times import StepTimes
from tracescope.synth.timing import IDEAL

REQUESTS: Final = 1000
"""Requests of one run, as many as ``synth`` draws where it is not told: a run and this estimate mean the same thing."""
RUNS: Final = 16
_TIMES_OVER: Final = 4

_T_99: Final = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
)  # fmt: skip
"""Student's t for 99 % on both sides, by degrees of freedom from 1."""


@dataclass(frozen=True, slots=True)
class QueueWait:
    """The wait of requests before their first step, and what the estimate is worth.

    ``utilisation`` is the rate of arrivals over what the machine can serve; from 1 on the queue grows without end and
    ``wait_s`` is None. ``wait_s`` is the mean over ``runs`` runs of ``requests`` requests each, from an empty machine;
    one more such run has its mean wait between ``low_s`` and ``high_s`` with 99 % probability. ``refused`` is the share
    of requests that are too large for the machine; they count in neither.
    """

    utilisation: float
    wait_s: float | None
    low_s: float | None
    high_s: float | None
    refused: float
    requests: int
    runs: int

    @property
    def stable(self) -> bool:
        """Whether the machine serves what arrives."""
        return self.utilisation < 1

    @property
    def text(self) -> str:
        """The interval in a sentence."""
        if self.wait_s is None:
            return "unbounded: more arrives than can be served" if not self.stable else "no request can be served"
        return (
            f"mean of {self.runs} simulated runs of {self.requests:,} requests; another run lies between "
            f"{units.seconds(self.low_s)} and {units.seconds(self.high_s)} (99 %)"
        )


def queue_wait(
    model: ModelSpec,
    basis: Basis,
    workload: Workload,
    *,
    arrivals: Arrivals,
    prompt: Lengths,
    output: Lengths,
    max_batch: int,
    requests: int = REQUESTS,
    runs: int = RUNS,
    profile: str = IDEAL,
    seed: int = 0,
) -> QueueWait:
    """Estimate the mean wait for a place under ``max_batch`` and the memory of ``basis``; ``workload`` as for synth.

    The policy is :func:`tracescope.synth.batching.serve`, the same code. The same arguments give the same estimate.
    Raises TraceError where the weights do not fit, the basis cannot price a step, or for fewer than two runs.
    """
    if not 2 <= runs <= len(_T_99) + 1:
        raise TraceError(f"an interval from {runs} runs is not known", action=f"use 2 to {len(_T_99) + 1} runs")
    times = StepTimes(model, basis, workload, profile)
    streams = [draw_requests(arrivals, prompt, output, count=requests, seed=_seed(seed, run)) for run in range(runs)]
    rooms = [kv_room(model, basis.hardware, workload, stream) for stream in streams]
    refused = float(np.mean([room.too_large.mean() for room in rooms]))
    if refused == 1:
        return QueueWait(0.0, None, None, None, refused, requests, runs)
    capacity = served_per_s(streams[0], rooms[0], times, max_batch=max_batch, profile=profile, seed=_seed(seed, 0))
    utilisation = arrivals.rate_per_s * (1 - refused) / capacity
    if utilisation >= 1:
        return QueueWait(utilisation, None, None, None, refused, requests, runs)
    waits = []
    for run, (stream, room) in enumerate(zip(streams, rooms, strict=True)):
        done = serve(stream, room, times, max_batch=max_batch, profile=profile, seed=_seed(seed, run))
        waits.append((done.start - stream.arrival)[~done.refused])
    means = np.array([wait.mean() for wait in waits if len(wait)]) / 1e9
    # Mean waits of runs are skewed, so the interval is one of their logarithms: one more run varies as these do, and
    # the middle of these varies besides. A run in which nobody waited counts as a nanosecond.
    logs = np.log(np.maximum(means, 1e-9))
    reach = _T_99[len(logs) - 2] * float(logs.std(ddof=1)) * float(np.sqrt(1 + 1 / len(logs)))
    low, high = (float(np.exp(logs.mean() + side * reach)) for side in (-1, 1))
    mean = float(means.mean())
    return QueueWait(utilisation, mean, min(low, mean), max(high, mean), refused, requests, runs)


def _seed(seed: int, run: int) -> int:
    """Seeds far from those a person types, so that the runs of an estimate are not the run it is compared with."""
    return (1 << 40) + seed * 1_000_003 + run


def _crowd(stream: RequestStream, room: KvRoom, max_batch: int) -> tuple[RequestStream, KvRoom]:
    """Requests like those of ``stream``, all there at once, enough to fill the machine several times over."""
    fitting = np.flatnonzero(~room.too_large)
    places = max_batch
    if room.budget is not None:
        places = min(places, int(room.budget // room.need[fitting].mean()) + 1)
    chosen = np.resize(fitting, max(len(fitting), _TIMES_OVER * places))
    crowd = RequestStream(np.zeros(len(chosen), np.int64), stream.prompt[chosen], stream.output[chosen])
    return crowd, KvRoom(room.need[chosen], room.budget)


def served_per_s(
    stream: RequestStream, room: KvRoom, times: StepTimes, *, max_batch: int, profile: str = IDEAL, seed: int = 0
) -> float:
    """Requests/s that the machine serves while requests like those of ``stream``, all there at once, stand in line.

    Afterwards the batch empties, which is no fault of the machine. Requests that are too large do not count.
    """
    crowd, crowded = _crowd(stream, room, max_batch)
    done = serve(crowd, crowded, times, max_batch=max_batch, profile=profile, seed=seed)
    full = np.flatnonzero(done.queue_depth > 0)
    last = int(full[-1]) + 1 if len(full) else done.steps
    tokens, ns = int(done.batch[:last].sum()), int(done.step_duration[:last].sum())
    return tokens / float(crowd.output.mean()) / ns * 1e9
