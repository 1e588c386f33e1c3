"""Requests drawn from distributions: the rate and lengths that were asked for, one seed, clear refusals."""

from collections.abc import Callable

import numpy as np
import pytest

from tracescope.core.errors import TraceError
from tracescope.synth.distributions import draw_requests, parse_arrivals, parse_lengths


def lengths(text: str, n: int = 20_000) -> np.ndarray:
    return parse_lengths(text).tokens(np.random.Generator(np.random.PCG64(1)), n, 1)


def test_lengths_have_the_shape_they_are_named_after() -> None:
    assert set(lengths("256")) == set(lengths("fixed:256")) == {256}
    flat = lengths("uniform:100:102")
    assert np.bincount(flat)[100:103] == pytest.approx([6667, 6667, 6667], rel=0.05)
    assert lengths("exponential:300").mean() == pytest.approx(300, rel=0.03)
    bell = lengths("lognormal:1000:0.8")
    assert np.median(bell) == pytest.approx(1000, rel=0.03)
    assert np.log(bell).std() == pytest.approx(0.8, rel=0.03)
    assert lengths("uniform:0:0").min() == 1, "a request generates at least one token"


def test_arrivals_come_at_the_rate() -> None:
    random = np.random.Generator(np.random.PCG64(1))
    times = parse_arrivals("poisson:2.5").times_ns(random, 20_000)
    assert times[0] == 0
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(0.4e9, rel=0.03)
    assert gaps.std() == pytest.approx(0.4e9, rel=0.05)
    assert parse_arrivals("constant:4").times_ns(random, 3).tolist() == [0, 250_000_000, 500_000_000]


def test_one_seed_gives_the_same_requests_and_each_part_can_be_varied_alone() -> None:
    def draw(arrivals: str, prompt: str, output: str, seed: int) -> tuple[list[int], list[int], list[int]]:
        made = draw_requests(
            parse_arrivals(arrivals), parse_lengths(prompt), parse_lengths(output), count=50, seed=seed
        )
        return made.arrival.tolist(), made.prompt.tolist(), made.output.tolist()

    first = draw("poisson:3", "uniform:1:900", "exponential:50", 7)
    assert first == draw("poisson:3", "uniform:1:900", "exponential:50", 7)
    assert first != draw("poisson:3", "uniform:1:900", "exponential:50", 8)
    other = draw("poisson:3", "512", "exponential:50", 7)
    assert (other[0], other[2]) == (first[0], first[2])


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_lengths, t) for t in ("", "x", "fixed", "fixed:1.5", "-5", "uniform:5", "uniform:9:1", "lognormal:1",
                                       "lognormal:0:1", "lognormal:5:99", "exponential:0", "fixed:nan", "1:2")),
        *((parse_arrivals, t) for t in ("", "5", "poisson", "poisson:0", "poisson:-1", "poisson:1:2", "weekly:3")),
    ],
)  # fmt: skip
def test_what_is_no_distribution_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(TraceError, match="is not a"):
        parse(text)


def test_absurd_sizes_are_refused() -> None:
    one, slow = parse_lengths("1"), parse_arrivals("poisson:0.000000001")
    with pytest.raises(TraceError, match="out of range"):
        draw_requests(parse_arrivals("poisson:1"), one, one, count=10**12, seed=0)
    with pytest.raises(TraceError, match="73 years"):
        draw_requests(slow, one, one, count=1000, seed=0)
