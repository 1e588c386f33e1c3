"""What one change would do to a decode step, a sentence each."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tracescope.core import units
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.capacity import Capacity
from tracescope.floor.dependence import dependence_cost
from tracescope.floor.pricing import ops_total_s
from tracescope.floor.verdict import Crossovers

FASTER: Final = 10
_SAME: Final = 1e-9


def one_change_sentences(
    model: ModelSpec, workload: Workload, basis: Basis, memory: Capacity | None, cross: Crossovers
) -> tuple[str, ...]:
    """One sentence for each change that could move the step, with what it would do."""
    return tuple(_sentences(model, workload, basis, memory, cross))


def _sentences(
    model: ModelSpec, workload: Workload, basis: Basis, memory: Capacity | None, cross: Crossovers
) -> Iterator[str]:
    context = f"at context {workload.context:,}"
    if memory is not None:
        yield f"{context}, batch {memory.max_batch + 1:,} is the first that does not fit"
    if cross.kv_passes_weights_batch is not None:
        yield f"{context}, KV reads pass the weights from batch {cross.kv_passes_weights_batch:,}"
    if cross.compute_passes_memory_batch is not None:
        yield f"{context}, the compute floor passes the memory floor from batch {cross.compute_passes_memory_batch:,}"
    elif cross.ridge_batch is not None:
        yield f"{context}, compute never passes memory: memory grows faster with the batch"
    if cross.compute_binds_batch is not None:
        yield f"{context}, ops bound by FLOPs make most of the op floor from batch {cross.compute_binds_batch:,}"
    now = ops_total_s(model, workload, basis)
    if now is None or not now:
        return
    if basis.peak_flops_per_s is not None:
        peak = replace(basis, peak_flops_per_s=basis.peak_flops_per_s * FASTER)
        yield _after(f"{FASTER} × the peak FLOPS alone", now, ops_total_s(model, workload, peak))
    if basis.bandwidth_bytes_per_s is not None:
        faster = replace(basis, bandwidth_bytes_per_s=basis.bandwidth_bytes_per_s * 2)
        yield _after("twice the bandwidth alone", now, ops_total_s(model, workload, faster))
    cost = dependence_cost(model, workload, basis)
    if cost is not None:
        yield (
            f"{cost.tokens} tokens of each request take at least {cost.tokens} × {units.seconds(now)} = "
            f"{units.seconds(cost.serial_s)}, one after another; a machine that could generate them all at once would "
            f"need {units.seconds(cost.at_once_s)}: dependence costs × {cost.factor:,.1f}"
        )


def _after(change: str, now: float, then: float | None) -> str:
    if then is None:
        return f"{change}: not known"
    if abs(then - now) <= _SAME:
        return f"{change} moves nothing: still {units.seconds(now)}"
    return f"{change}: {units.seconds(now)} becomes {units.seconds(then)}"
