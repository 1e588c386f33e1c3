"""One row a request: how long it waited and decoded; and what all of them add up to."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracescope.analysis.not_simulated import not_simulated
from tracescope.analysis.table import Column, Table, known_column
from tracescope.core.columns import I64, Bool
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN

PERCENTILES: Final = (50, 95, 99)


def requests_table(trace: Trace, basis: Basis) -> Table:
    """The ``requests`` listing, with percentiles, means over time and what was not simulated beside the rows.

    A request that never started has no wait, one that never finished no latency. Percentiles are values that occurred.
    """
    r = trace.requests
    started, finished = np.not_equal(r.start, UNKNOWN), np.not_equal(r.finish, UNKNOWN)
    arrived = np.not_equal(r.arrival, UNKNOWN)
    wait = np.where(arrived & started, r.start - r.arrival, UNKNOWN)
    latency = np.where(arrived & finished, r.finish - r.arrival, UNKNOWN)
    tokens = np.maximum(r.generated_tokens, 1)
    spaced = started & finished & (r.generated_tokens > 0)
    per_token = np.where(spaced, np.rint((r.finish - r.start) / tokens).astype(np.int64), UNKNOWN)
    base = trace.meta.base_ns
    columns = (
        Column("request", np.arange(len(r)), "request"),
        Column("arrival_ns", r.arrival + base, "arrival", "ns", known=arrived, exact=True),
        Column("start_ns", r.start + base, "start", "ns", known=started, exact=True),
        Column("finish_ns", r.finish + base, "finish", "ns", known=finished, exact=True),
        known_column("wait_ns", wait, "wait", "ns"),
        known_column("latency_ns", latency, "latency", "ns"),
        known_column("prompt_tokens", r.prompt_tokens, "prompt", "tokens"),
        known_column("generated_tokens", r.generated_tokens, "generated", "tokens"),
        known_column("time_per_output_token_ns", per_token, "per token", "ns"),
        known_column("kv_peak_bytes", r.kv_peak_bytes, "KV peak", "B"),
    )
    summary: dict[str, Any] = {
        "count": len(r),
        "finished": int(finished.sum()),
        "unfinished": int((started & ~finished).sum()),
        "not_started": int((~started).sum()),
        "generated_tokens": int(np.maximum(r.generated_tokens, 0).sum()),
        "wait_ns": spread(wait),
        "time_per_output_token_ns": spread(per_token),
        "latency_ns": spread(latency),
        "over_time": over_time(trace, started & arrived),
        "not_simulated": not_simulated(trace, basis),
        "notes": list(trace.meta.notes),
    }
    return Table(columns, summary)


def spread(values: I64) -> dict[str, int] | None:
    """Mean, percentiles (nearest rank) and maximum of the known of ``values``; None where none is."""
    known = values[values != UNKNOWN]
    if not len(known):
        return None
    at = np.percentile(known, PERCENTILES, method="inverted_cdf")
    ranks = {f"p{p}": int(v) for p, v in zip(PERCENTILES, at, strict=True)}
    return {"mean": round(float(known.mean())), **ranks, "max": int(known.max())}


def over_time(trace: Trace, served: Bool) -> dict[str, float | int | None]:
    """Means over time from the first arrival to the last finish, each by the steps and by the requests.

    Little's law says that the pairs are equal: the mean number waiting (or in the system) is the rate of arrivals
    times the mean time spent so. Keys that cannot be known are None.
    """
    r, steps = trace.requests, trace.steps
    rows = np.flatnonzero(served)
    names = ("queue_by_steps", "queue_by_requests", "system_by_steps", "system_by_requests", "batch_mean", "batch_max",
             "queue_max", "requests_per_s", "generated_tokens_per_s")  # fmt: skip
    if not len(rows) or not len(steps) or (steps.batch == UNKNOWN).any():
        return dict.fromkeys(names)
    end = int((steps.start + steps.duration)[-1])
    begin = int(r.arrival[rows].min())
    span = max(1, end - begin)
    finish = np.where(r.finish[rows] == UNKNOWN, end, r.finish[rows])
    duration = steps.duration.astype(np.float64)
    batch, depth = float(steps.batch @ duration) / span, None
    if (steps.queue_depth != UNKNOWN).all():
        depth = float(steps.queue_depth @ duration) / span
    return {
        "queue_by_steps": depth,
        "queue_by_requests": _sum(r.start[rows] - r.arrival[rows]) / span,
        "system_by_steps": None if depth is None else depth + batch,
        "system_by_requests": _sum(finish - r.arrival[rows]) / span,
        "batch_mean": batch * span / float(duration.sum()) if duration.any() else None,
        "batch_max": int(steps.batch.max()),
        "queue_max": None if depth is None else int(steps.queue_depth.max()),
        "requests_per_s": len(rows) / span * 1e9,
        "generated_tokens_per_s": float(np.maximum(steps.generated_tokens, 0).sum()) / span * 1e9,
    }


def _sum(values: NDArray[np.int64]) -> float:
    return float(values.astype(np.float64).sum())
