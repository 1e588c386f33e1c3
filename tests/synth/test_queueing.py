"""The estimate of a wait: it agrees with the simulation it stands for, and an overloaded machine gets no number."""

import numpy as np
import pytest

from tracescope.core.errors import TraceError
from tracescope.core.model import Workload
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.batching import kv_room
from tracescope.synth.distributions import draw_requests, parse_arrivals, parse_lengths
from tracescope.synth.queueing import QueueWait, queue_wait, served_per_s
from tracescope.synth.serving import serve_requests
from tracescope.synth.step_times import StepTimes

LLAMA = load_model("llama-3-8b")
H100 = make_basis(load_hardware("h100-sxm"))
N, FEW = 1000, 200


def estimate(
    rate: float, max_batch: int, prompt: str = "1024", output: str = "64", *, profile: str = "ideal", n: int = FEW
) -> QueueWait:
    return queue_wait(
        LLAMA, H100, Workload(), arrivals=parse_arrivals(f"poisson:{rate}"), prompt=parse_lengths(prompt),
        output=parse_lengths(output), max_batch=max_batch, requests=n, profile=profile,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "max_batch", "prompt", "output", "profile"),
    [
        (8.0, 4, "1024", "64", "ideal"),
        (20.0, 16, "uniform:10:4000", "exponential:64", "realistic"),
        (60.0, 64, "8192", "uniform:1:64", "ideal"),
    ],
)
def test_a_run_of_synth_lies_in_the_interval(
    rate: float, max_batch: int, *, prompt: str, output: str, profile: str
) -> None:
    expected = estimate(rate, max_batch, prompt, output, profile=profile, n=N)
    assert expected.stable
    assert expected.low_s is not None
    assert expected.high_s is not None
    inside = 0
    for seed in range(5):
        stream = draw_requests(
            parse_arrivals(f"poisson:{rate}"), parse_lengths(prompt), parse_lengths(output), count=N, seed=seed
        )
        trace = serve_requests(LLAMA, H100, Workload(), stream, max_batch=max_batch, profile=profile, seed=seed).trace
        wait_s = float((trace.requests.start - trace.requests.arrival).mean()) / 1e9
        inside += expected.low_s <= wait_s <= expected.high_s
    assert inside >= 4, expected


def test_more_load_means_more_waiting_until_there_is_no_number() -> None:
    waits = [estimate(rate, 4) for rate in (2, 6, 10)]
    assert [w.stable for w in waits] == [True] * 3
    assert waits[0].wait_s < waits[1].wait_s < waits[2].wait_s  # stable: all are numbers
    assert waits[0].utilisation == pytest.approx(waits[2].utilisation / 5, rel=1e-6)
    crowded = estimate(40, 4)
    assert (crowded.stable, crowded.wait_s, crowded.low_s, crowded.high_s) == (False, None, None, None)
    assert crowded.utilisation > 1
    assert "unbounded" in crowded.text


def test_the_capacity_is_the_full_batch_over_its_step() -> None:
    times = StepTimes(LLAMA, H100, Workload(), "ideal")
    stream = draw_requests(parse_arrivals("poisson:1"), parse_lengths("1000"), parse_lengths("101"), count=400, seed=0)
    rate = served_per_s(stream, kv_room(LLAMA, H100.hardware, Workload(), stream), times, max_batch=8)
    step_ns = times.step_ns(8, [8 * 1050])
    assert rate == pytest.approx(8 / 101 / step_ns * 1e9, rel=0.002)


def test_memory_limits_the_capacity_too() -> None:
    # 28,000 tokens a request: 17 of them fit, whatever the batch is allowed to be.
    few, many = (estimate(1, b, prompt="28000") for b in (17, 4096))
    assert many.utilisation == pytest.approx(few.utilisation, rel=0.05)


def test_what_never_fits_is_not_waited_for() -> None:
    none = estimate(1, 4, prompt="10000000")
    assert (none.refused, none.wait_s, none.utilisation) == (1.0, None, 0.0)
    assert "no request" in none.text
    some = estimate(1, 4, prompt="lognormal:100000:2")
    assert 0 < some.refused < 1


def test_one_seed_one_estimate() -> None:
    first = estimate(5, 4)
    assert first == estimate(5, 4)
    assert np.isfinite(first.high_s or np.nan)


def test_an_interval_needs_two_runs() -> None:
    with pytest.raises(TraceError, match="runs"):
        queue_wait(
            LLAMA, H100, Workload(), arrivals=parse_arrivals("poisson:1"), prompt=parse_lengths("1"),
            output=parse_lengths("1"), max_batch=1, runs=1,
        )  # fmt: skip
