"""Requests drawn from distributions: when they arrive, how long their prompts are, how many tokens they generate."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.core.columns import I64
from tracescope.core.errors import TraceError
from tracescope.core.request_stream import LARGEST_TOKENS, RequestStream

MAX_REQUESTS: Final = 10_000_000
_LONGEST_NS: Final = 2**61
_NUMBER: Final = re.compile(r"\d{1,12}(?:\.\d{1,9})?")

Draw = Callable[[np.random.Generator, int], np.ndarray[tuple[int], np.dtype[np.float64]]]


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of token counts: ``text`` as it was given, ``draw(random, n)`` float64[n] before rounding."""

    text: str
    draw: Draw

    def tokens(self, random: np.random.Generator, n: int, least: int) -> I64:
        """``n`` whole numbers of tokens, at least ``least`` and at most what one request may have."""
        whole: I64 = np.clip(np.rint(self.draw(random, n)), least, LARGEST_TOKENS).astype(np.int64)
        return whole


LENGTHS: Final = "N, fixed:N, uniform:LOW:HIGH, exponential:MEAN or lognormal:MEDIAN:SIGMA"
ARRIVALS: Final = "poisson:RATE or constant:RATE, in requests/s"


def parse_lengths(text: str) -> Lengths:
    """A distribution of lengths from ``256``, ``fixed:256``, ``uniform:100:900``, ``exponential:300`` or
    ``lognormal:1000:0.8`` (median and the deviation of the logarithm). Raises TraceError.
    """
    name, numbers = _parts(text)
    if name in ("", "fixed") and len(numbers) == 1 and numbers[0].is_integer():
        return Lengths(text, lambda random, n: np.full(n, numbers[0]))
    if name == "uniform" and len(numbers) == 2 and numbers[0] <= numbers[1]:
        low, high = numbers
        return Lengths(text, lambda random, n: np.floor(low + (high - low + 1) * random.random(n)))
    if name == "exponential" and len(numbers) == 1 and numbers[0] > 0:
        return Lengths(text, lambda random, n: -numbers[0] * np.log1p(-random.random(n)))
    if name == "lognormal" and len(numbers) == 2 and numbers[0] > 0 and numbers[1] <= 5:
        median, sigma = numbers
        return Lengths(text, lambda random, n: median * np.exp(sigma * random.standard_normal(n)))
    raise TraceError(f"'{text}' is not a distribution of lengths", action=f"Write {LENGTHS}.")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A process of arrivals: ``text`` as it was given, its rate in requests/s, and whether the gaps are random."""

    text: str
    rate_per_s: float
    random: bool

    def times_ns(self, random: np.random.Generator, n: int) -> I64:
        """``n`` arrivals in ns, the first at 0."""
        gap_ns = 1e9 / self.rate_per_s
        if n * gap_ns > _LONGEST_NS:
            raise TraceError("these requests would arrive over more than 73 years", action="use a higher rate")
        if not self.random:
            even: I64 = np.rint(np.arange(n) * gap_ns).astype(np.int64)
            return even
        gaps = -gap_ns * np.log1p(-random.random(n))
        gaps[:1] = 0
        times: I64 = np.rint(np.cumsum(gaps)).astype(np.int64)
        return times


def parse_arrivals(text: str) -> Arrivals:
    """Arrivals from ``poisson:2.5`` or ``constant:10`` (requests/s). Raises TraceError."""
    name, numbers = _parts(text)
    if name in ("poisson", "constant") and len(numbers) == 1 and numbers[0] > 0:
        return Arrivals(text, numbers[0], name == "poisson")
    raise TraceError(f"'{text}' is not a process of arrivals", action=f"Write {ARRIVALS}.")


def _parts(text: str) -> tuple[str, list[float]]:
    name, *rest = text.strip().split(":") if not text.strip()[:1].isdigit() else ("", text.strip())
    if not all(_NUMBER.fullmatch(part) for part in rest):
        return "?", []
    numbers = [float(part) for part in rest]
    return name, numbers if all(math.isfinite(x) for x in numbers) else []


def draw_requests(arrivals: Arrivals, prompt: Lengths, output: Lengths, *, count: int, seed: int) -> RequestStream:
    """``count`` requests; times, prompts and outputs come from streams of their own, so that each can be varied alone.

    The same arguments give the same requests. Raises TraceError for sizes beyond reason.
    """
    if not 1 <= count <= MAX_REQUESTS:
        raise TraceError(f"{count:,} requests are out of range", action=f"use 1 to {MAX_REQUESTS:,}")
    times, prompts, outputs = (np.random.Generator(np.random.PCG64([seed, 3, i])) for i in range(3))
    return RequestStream(
        arrival=arrivals.times_ns(times, count),
        prompt=prompt.tokens(prompts, count, 0),
        output=output.tokens(outputs, count, 1),
        description=f"{count:,} drawn with {arrivals.text}, prompt {prompt.text}, output {output.text}, seed {seed}",
    )
