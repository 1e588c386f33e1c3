"""What a decode simulation leaves out, by formula: reading the prompts, which experts are chosen, static batching."""

from typing import Any, Final

from tracescope.analysis.step_workload import ranks_of
from tracescope.core import units
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.experts import distinct_of, expectation_note
from tracescope.floor.prefill import prefill_floor

LABEL: Final = "not simulated"


def not_simulated(trace: Trace, basis: Basis) -> dict[str, Any]:
    """Comparison context for the requests of ``trace``, each part labelled, with its formula in a sentence."""
    out: dict[str, Any] = {}
    r, model = trace.requests, trace.meta.model
    prompts = r.prompt_tokens[r.prompt_tokens > 0]
    if model is not None and len(prompts):
        rate = _arrival_rate(trace)
        found = prefill(model, basis, round(float(prompts.mean())), rate, ranks_of(trace))
        out |= {} if found is None else {"prefill": found}
    decode = trace.steps.batch[trace.steps.batch > 0]
    if model is not None and model.experts is not None and len(decode):
        batch = max(1, round(float(decode.mean())))
        out["experts"] = {
            "label": LABEL,
            "batch": batch,
            "expected_distinct": float(distinct_of(model.experts, batch)),
            "text": expectation_note(model.experts, batch),
        }
    outputs = r.generated_tokens[r.generated_tokens > 0]
    if len(outputs) > 1 and len(decode):
        out["static_batching"] = static_batching(outputs.tolist(), int(decode.max()))
    return out


def _arrival_rate(trace: Trace) -> float | None:
    arrival = trace.requests.arrival[trace.requests.arrival != UNKNOWN]
    span = int(arrival.max() - arrival.min()) if len(arrival) > 1 else 0
    return (len(arrival) - 1) / span * 1e9 if span > 0 else None


def prefill(
    model: ModelSpec, basis: Basis, prompt: int, requests_per_s: float | None, ranks: int = 1
) -> dict[str, Any] | None:
    """Reading one prompt of ``prompt`` tokens in a pass of its own, one rank's share; None for an empty one."""
    found = prefill_floor(model, basis, prompt, ranks)
    if found is None:
        return None
    floor_s = found.floor_s
    share = None if floor_s is None or requests_per_s is None else floor_s * requests_per_s
    text = found.sentence or "the floor of a prompt needs a bandwidth and a peak"
    if requests_per_s is not None and share is not None:
        rate = units.significant(requests_per_s)
        text += f"; at {rate} requests/s prompts alone would take {share:.1%} of the machine's time"
    return {
        "label": LABEL,
        "prompt_tokens": prompt,
        "flops": found.flops,
        "compute_s": found.compute_s,
        "memory_s": found.memory_s,
        "floor_s": floor_s,
        "share_of_time": share,
        "text": text,
    }


def static_batching(outputs: list[int], batch: int) -> dict[str, Any]:
    """Steps for the same tokens if each batch, in order of arrival, ran until its longest request was done."""
    tokens = sum(outputs)
    rows = [outputs[i : i + batch] for i in range(0, len(outputs), batch)]
    static = sum(max(row) for row in rows)
    longest = max(outputs)
    least = max(-(-tokens // batch), longest)
    return {
        "label": LABEL,
        "batch": batch,
        "static_steps": static,
        "continuous_steps_least": least,
        "text": (
            f"static batches of {batch:,}: sum over batches of the longest output = {static:,} steps; continuous "
            f"batching: at least max({tokens:,} tokens / {batch:,}, longest {longest:,}) = {least:,} steps "
            f"({units.significant(static / least, 3)} times fewer)"
        ),
    }
