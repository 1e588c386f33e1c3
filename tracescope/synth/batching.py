"""Continuous batching, first come first served: when each request waits, decodes and leaves, and every step between."""

import math
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Final

import numpy as np

from tracescope.core.columns import I64, Bool
from tracescope.core.errors import TraceError
from tracescope.core.hardware import HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.request_stream import RequestStream
from tracescope.floor.capacity import capacity, kv_stored_after
from tracescope.synth.step_times import StepTimes
from tracescope.synth.timing import host_delays

MAX_STEPS: Final = 10_000_000
_DELAYS: Final = 4096
_LONGEST_STRETCH: Final = 65_536
NOT_YET: Final = -1

ADMISSION_RULE: Final = (
    "first come first served: at the start of a step the longest-waiting request joins if the batch has a place and "
    "the KV blocks of its whole life are free; they are reserved, so that nothing is ever preempted"
)


@dataclass(frozen=True, eq=False)
class KvRoom:
    """The memory for KV caches and what requests take of it: bytes of one rank; ``budget`` None: not known, no limit.

    ``need`` int64, one a request: the whole blocks that it holds when its last token has been generated.
    """

    need: I64
    budget: int | None

    @property
    def too_large(self) -> Bool:
        """Requests that would not fit if they had the machine to themselves."""
        if self.budget is None:
            return np.zeros(len(self.need), bool)
        return self.need > self.budget


def kv_room(model: ModelSpec, hardware: HardwareSpec | None, workload: Workload, stream: RequestStream) -> KvRoom:
    """What the requests of ``stream`` need and what the machine has, by the rules of the capacity arithmetic.

    Raises TraceError where the weights alone do not fit.
    """
    one = replace(workload, batch=1)
    tokens, inverse = np.unique(stream.prompt + stream.output, return_inverse=True)
    held = [kv_stored_after(model, replace(one, context=int(t) - 1)) for t in tokens.tolist()]
    need = np.array(held, np.int64)[inverse] if len(stream) else np.zeros(0, np.int64)
    if hardware is None:
        return KvRoom(need, None)
    room = capacity(model, hardware, replace(one, context=0))
    free = room.usable_bytes - room.stored_bytes - room.other_bytes
    if free <= 0:
        raise TraceError(
            f"{model.name} does not fit: its weights and the reserve leave no room for a KV cache",
            action="use a machine with more memory, --tp, or a smaller --weights",
        )
    return KvRoom(need, free)


@dataclass(frozen=True, eq=False)
class Schedule:
    """What happened. Times int64 ns after the stream's base; -1 where a request never started or never finished.

    Per request: ``start`` (its first step's), ``finish`` (the end of its last step), ``generated`` tokens, ``refused``
    (too large for the machine). Per step: ``step_start``, ``step_duration``, ``batch``, ``context_tokens`` (cached
    before the step, summed), ``tokens_read`` int64[caps, steps], ``joined`` (how many requests began with it) and
    ``queue_depth``; ``delay`` is the part of ``step_duration`` that the host lost.
    """

    start: I64
    finish: I64
    generated: I64
    refused: Bool
    step_start: I64
    step_duration: I64
    batch: I64
    context_tokens: I64
    tokens_read: I64
    joined: I64
    queue_depth: I64
    delay: I64

    @property
    def steps(self) -> int:
        """How many steps were needed."""
        return len(self.step_start)


def serve(
    stream: RequestStream,
    room: KvRoom,
    times: StepTimes,
    *,
    max_batch: int,
    steps: int | None = None,
    profile: str = "ideal",
    seed: int = 0,
) -> Schedule:
    """Run ``stream`` through the machine, one token a request and step; ``steps`` ends it early.

    A request starts with its prompt cached at the first step that it may join and leaves after its last token. The
    same arguments give the same schedule. Raises TraceError for sizes beyond reason.
    """
    if max_batch < 1:
        raise TraceError(f"a batch of at most {max_batch} serves nothing", action="use --max-batch 1 or more")
    engine = _Engine(stream, room, times, max_batch)
    delays = _Delays(profile, times.kernel_kinds, seed)
    limit = MAX_STEPS if steps is None else steps
    while engine.admit():
        if engine.steps == limit:
            if steps is None:
                raise TraceError(
                    f"these requests need more than {MAX_STEPS:,} steps", action="use --steps, or fewer requests"
                )
            break
        engine.run(limit - engine.steps, delays)
    return engine.schedule()


class _Delays:
    """What the host adds to each step, in the order of the steps; the same however many are taken at once."""

    def __init__(self, profile: str, kinds: int, seed: int) -> None:
        self._profile, self._kinds = profile, kinds
        self._random = np.random.Generator(np.random.PCG64([seed, 2]))
        self._ready = host_delays(profile, _DELAYS, kinds, self._random, first=True)
        self._at = 0

    def ahead(self, n: int) -> I64:
        """The next ``n`` delays, int64 ns; :meth:`use` says how many of them were used."""
        while len(self._ready) - self._at < n:
            more = host_delays(self._profile, _DELAYS, self._kinds, self._random, first=False)
            self._ready = np.concatenate([self._ready[self._at :], more])
            self._at = 0
        return self._ready[self._at : self._at + n]

    def use(self, n: int) -> None:
        """Go ``n`` steps on."""
        self._at += n


@dataclass(frozen=True, eq=False, slots=True)
class _Stretch:
    """Steps that follow one another with the same requests: int64 ns, and what the first of them has."""

    now: int
    duration: I64
    batch: int
    context: int
    reads: list[I64]
    joined: int
    delay: I64


class _Engine:
    """The state between two steps, and the steps so far as stretches in which nobody joined or left."""

    def __init__(self, stream: RequestStream, room: KvRoom, times: StepTimes, max_batch: int) -> None:
        self._stream, self._times, self._max_batch = stream, times, max_batch
        self._refused = room.too_large
        self._ids = np.flatnonzero(~self._refused)
        ids = self._ids
        self._arrival = stream.arrival[ids].tolist()
        self._prompt = stream.prompt[ids].tolist()
        self._output = stream.output[ids].tolist()
        self._need = room.need[ids].tolist()
        self._free = room.budget if room.budget is not None else 1 << 62
        self._next = 0  # the request that has waited longest, or will arrive next
        self._now = 0
        self._active = 0
        self._context = 0
        self._leaving: list[tuple[int, int]] = []  # (step before which it leaves, request)
        self._caps = times.caps
        self._read = [0] * len(self._caps)
        self._growing = [0] * len(self._caps)
        self._filling: list[list[int]] = [[] for _ in self._caps]  # steps before which a request's window is full
        self._start = [NOT_YET] * len(ids)
        self._finish = [NOT_YET] * len(ids)
        self.steps = 0
        self._typical_ns = math.inf
        self._joining = 0
        self._stretches: list[_Stretch] = []

    def admit(self) -> bool:
        """Let in whoever may join the next step, waiting for an arrival if nobody is there; False: all are served."""
        before = self._next
        if self._active == 0:
            if self._next == len(self._arrival):
                return False
            self._now = max(self._now, self._arrival[self._next])
        while (
            self._next < len(self._arrival)
            and self._active < self._max_batch
            and self._arrival[self._next] <= self._now
            and self._need[self._next] <= self._free
        ):
            self._join(self._next)
            self._next += 1
        self._joining = self._next - before
        return True

    def _join(self, request: int) -> None:
        step, prompt, output = self.steps, self._prompt[request], self._output[request]
        self._start[request] = self._now
        self._active += 1
        self._free -= self._need[request]
        self._context += prompt
        heappush(self._leaving, (step + output, request))
        for k, cap in enumerate(self._caps):
            if cap is None or prompt < cap:
                self._read[k] += prompt
                self._growing[k] += 1
                if cap is not None and prompt + output > cap:
                    heappush(self._filling[k], step + cap - prompt)
            else:
                self._read[k] += cap

    def run(self, limit: int, delays: _Delays) -> None:
        """Make at most ``limit`` steps, until somebody may join, somebody leaves, or a window is full."""
        n = min(limit, _LONGEST_STRETCH, self._leaving[0][0] - self.steps)
        n = min([n, *(filling[0] - self.steps for filling in self._filling if filling)])
        arrival = self._next_to_join()
        age = np.arange(self._enough(arrival, n), dtype=np.int64)
        reads = [read + age * grown for read, grown in zip(self._read, self._growing, strict=True)]
        curves = self._times.curves(self._active)
        time = sum((curve.at(tokens) for curve, tokens in zip(curves, reads, strict=True)), np.zeros(len(age)))
        delay = delays.ahead(len(age))
        duration = np.maximum(np.rint(time).astype(np.int64), 1) + delay
        ends = self._now + np.cumsum(duration)
        if arrival is not None:
            n = min(len(age), int(ends.searchsorted(arrival)) + 1)
        self._stretches.append(
            _Stretch(
                now=self._now,
                duration=duration[:n],
                batch=self._active,
                context=self._context,
                reads=[tokens[:n] for tokens in reads],
                joined=self._joining,
                delay=delay[:n],
            )
        )
        delays.use(n)
        self._typical_ns = max(1.0, float(time[n - 1]))
        self._go_on(n, int(ends[n - 1]))

    def _next_to_join(self) -> int | None:
        """When somebody who could join arrives; None where nobody is left, or the next one must wait for a leaver."""
        n = self._next
        if n == len(self._arrival) or self._active == self._max_batch or self._need[n] > self._free:
            return None
        return int(self._arrival[n])

    def _enough(self, arrival: int | None, n: int) -> int:
        """Of the next ``n`` steps about as many as reach ``arrival``; another stretch follows where they do not."""
        if arrival is None:
            return n
        return min(n, int((arrival - self._now) / self._typical_ns) + 2)

    def _go_on(self, n: int, now: int) -> None:
        self.steps += n
        self._now = now
        self._context += n * self._active
        for k, filling in enumerate(self._filling):
            self._read[k] += n * self._growing[k]
            while filling and filling[0] == self.steps:
                heappop(filling)
                self._growing[k] -= 1
        while self._leaving and self._leaving[0][0] == self.steps:
            self._leave(heappop(self._leaving)[1])

    def _leave(self, request: int) -> None:
        total = self._prompt[request] + self._output[request]
        self._finish[request] = self._now
        self._active -= 1
        self._free += self._need[request]
        self._context -= total
        for k, cap in enumerate(self._caps):
            self._read[k] -= total if cap is None else min(total, cap)
            if cap is None or (self._prompt[request] < cap and total <= cap):
                self._growing[k] -= 1

    def schedule(self) -> Schedule:
        """Everything as arrays; requests that a cut left in the batch have generated a part."""
        steps = self.steps
        n = len(self._refused)
        start, finish, generated = np.full(n, NOT_YET), np.full(n, NOT_YET), np.zeros(n, np.int64)
        start[self._ids], finish[self._ids] = self._start, self._finish
        begun = np.flatnonzero((start >= 0) & (finish >= 0))
        generated[begun] = self._stream.output[begun]
        for leaves, request in self._leaving:
            first = leaves - self._output[request]
            generated[self._ids[request]] = steps - first
            if first == steps:  # admitted to a step that a cut took away
                start[self._ids[request]] = NOT_YET
        s = self._stretches
        lengths = np.array([len(x.duration) for x in s], np.int64)
        of = np.repeat(np.arange(len(s)), lengths)
        age = np.arange(steps) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        duration = _joined([x.duration for x in s])
        before = np.cumsum(duration) - duration
        now, batch, context, joined = (
            np.array([getattr(x, name) for x in s], np.int64)[of] for name in ("now", "batch", "context", "joined")
        )
        step_start = now + before - before[np.arange(steps) - age] if steps else before
        joined *= age == 0
        return Schedule(
            start=start,
            finish=finish,
            generated=generated,
            refused=self._refused,
            step_start=step_start,
            step_duration=duration,
            batch=batch,
            context_tokens=context + age * batch,
            tokens_read=np.array([_joined([x.reads[k] for x in s]) for k in range(len(self._caps))], np.int64).reshape(
                len(self._caps), steps
            ),
            joined=joined,
            delay=_joined([x.delay for x in s]),
            queue_depth=queue_depth(self._stream.arrival[self._ids], np.cumsum(joined), step_start, duration),
        )


def _joined(parts: list[I64]) -> I64:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def queue_depth(arrival: I64, started: I64, step_start: I64, step_duration: I64) -> I64:
    """Requests that wait during each step, whole numbers, int64[steps].

    ``arrival`` int64, sorted; ``started`` int64[steps]: requests that have begun by each step, in order of arrival.
    Arrivals during a step make its depth vary between two whole numbers; one of those from the least to the most is
    taken, the rest carried over to the steps after, so that depth times duration adds up to the time spent waiting.
    """
    end = step_start + step_duration
    least = np.searchsorted(arrival, step_start, side="right") - started
    most = np.searchsorted(arrival, end, side="left") - started
    least, most = np.maximum(least, 0), np.maximum(most, 0)
    depth: I64 = least.copy()
    varying = np.flatnonzero(most > least)
    if len(varying):
        # Waiting inside a step beyond those who wait all through it: each arrival waits from then to the step's end.
        # Sums of clock readings may leave int64 and come back: differences are taken modulo 2^64 and are small.
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(arrival)])
        low = np.searchsorted(arrival, step_start[varying], side="right")
        high = np.searchsorted(arrival, end[varying], side="left")
        extra = (high - low) * end[varying] - (sums[high] - sums[low])
        depth[varying] = _carried(least[varying], most[varying], extra, step_duration[varying])
    return depth


def _carried(least: I64, most: I64, extra: I64, duration: I64) -> list[int]:
    carry, out = 0, []
    for low, high, more, ns in zip(least.tolist(), most.tolist(), extra.tolist(), duration.tolist(), strict=True):
        owed = carry + more
        here = min(high - low, max(0, (2 * owed + ns) // (2 * ns)))
        carry = owed - here * ns
        out.append(low + here)
    return out
