"""What a decode simulation leaves out, by formula: reading the prompts, which experts are chosen, static batching."""

from typing import Any, Final

import numpy as np

from tracescope.analysis.step_workload import ranks_that_fit
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import UNKNOWN, Trace
from tracescope.floor.experts import distinct_of, expectation_note
from tracescope.floor.layer_weights import lm_head_work
from tracescope.floor.step_ops import step_totals

LABEL: Final = "not simulated"


def not_simulated(trace: Trace, basis: Basis) -> dict[str, Any]:
    """Comparison context for the requests of ``trace``, each part labelled, with its formula in a sentence."""
    out: dict[str, Any] = {}
    r, model = trace.requests, trace.meta.model
    prompts = r.prompt_tokens[r.prompt_tokens > 0]
    if model is not None and len(prompts):
        rate = _arrival_rate(trace)
        out["prefill"] = prefill(model, basis, round(float(prompts.mean())), rate, _ranks(trace, model))
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


def _ranks(trace: Trace, model: ModelSpec) -> int:
    first = trace.step_events(0) if len(trace.steps) else np.empty(0, np.int64)
    read = int(np.maximum(trace.work.weight_read[trace.events.work[first]], 0).sum())
    return ranks_that_fit(model, read, bool((trace.work.link > 0).any()))


def prefill(
    model: ModelSpec, basis: Basis, prompt: int, requests_per_s: float | None, ranks: int = 1
) -> dict[str, Any]:
    """The floor of reading one prompt of ``prompt`` tokens in a pass of its own: FLOPs over peak against weights.

    Every token goes through the linear weights and attends to half the prompt on average; only the last one needs the
    output head. Work is one rank's share.
    """
    total = step_totals(model, Workload(batch=prompt, context=prompt // 2, tensor_parallel=ranks))
    flops = total.flops - 2 * (prompt - 1) * lm_head_work(model, ranks).elements
    compute = flops / basis.peak_flops_per_s if basis.peak_flops_per_s else None
    weights = total.weight_read / basis.bandwidth_bytes_per_s if basis.bandwidth_bytes_per_s else None
    floor = None if compute is None or weights is None else max(compute, weights)
    share = None if floor is None or requests_per_s is None else floor * requests_per_s
    text = "the floor of a prompt needs a bandwidth and a peak"
    if compute is not None and weights is not None and floor is not None:
        text = (
            f"a prompt of {prompt:,} tokens (the mean): max({flops / 1e12:.4g} TFLOP / peak = {compute * 1e3:.4g} ms, "
            f"{total.weight_read / 1e9:.4g} GB of weights / bandwidth = {weights * 1e3:.4g} ms) = {floor * 1e3:.4g} ms"
        )
        if share is not None:
            text += f"; at {requests_per_s:.4g} requests/s prompts alone would take {share:.1%} of the machine's time"
    return {
        "label": LABEL,
        "prompt_tokens": prompt,
        "flops": flops,
        "compute_s": compute,
        "weights_s": weights,
        "floor_s": floor,
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
            f"({static / least:.3g} times fewer)"
        ),
    }
