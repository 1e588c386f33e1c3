"""A sweep as tables: one row a cell, batch by batch, and one row a context for the frontiers."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.table import Column, Table
from tracescope.core.columns import I64
from tracescope.floor.pricing import F64, memory_s
from tracescope.floor.sweep import NEVER, Sweep


@dataclass(frozen=True, eq=False, slots=True)
class Queue:
    """Requests that wait for a place in each cell, float64[b, c] each, NaN where not known or without end.

    ``utilisation`` is arrivals over what can be served; ``wait_s`` the mean wait, between ``low_s`` and ``high_s``.
    """

    utilisation: F64
    wait_s: F64
    low_s: F64
    high_s: F64

    @classmethod
    def of(cls, shape: tuple[int, int]) -> "Queue":
        """Nothing known yet."""
        return cls(*(np.full(shape, np.nan) for _ in cls.__slots__))


def sweep_table(swept: Sweep, queue: Queue | None = None, predicted_s: F64 | None = None) -> Table:
    """Bytes, floors, rates, energy and what binds of every cell; ``predicted_s`` [b, c] stands beside the floor."""
    rows, columns = swept.shape
    weight_s, streaming_s = (memory_s(count, swept.basis) for count in (swept.weight_read, swept.streamed_bytes))
    floor, batch = swept.floor_ops_s, swept.batch[:, None]
    rate = None if floor is None else batch / floor
    ranks = swept.workload.tensor_parallel  # they generate the tokens together
    low, mid, high = (None, None, None) if swept.energy_j is None else swept.energy_j * ranks / batch
    fit = swept.basis.energy
    word = None if swept.energy_j is None or fit is None else bool(fit.word)
    binds = [swept.binding(*cell) for cell in np.ndindex(rows, columns)]
    fits = None if swept.fits is None else swept.fits.ravel()
    return Table(
        (
            Column("batch", np.repeat(swept.batch, columns), "batch"),
            Column("context", np.tile(swept.context, rows), "context"),
            Column("weight_read_bytes", swept.weight_read.ravel(), "weights", "B"),
            Column("kv_read_bytes", swept.kv_read.ravel(), "KV read", "B"),
            Column("kv_append_bytes", swept.kv_append.ravel(), "", "B"),
            Column("flops", swept.flops.ravel(), "", "FLOP"),
            _floats("floor_weight_s", weight_s, swept, unit="s"),
            _floats("floor_memory_s", streaming_s, swept, unit="s"),
            _floats("floor_ops_s", floor, swept, "floor", "s"),
            _floats("predicted_s", predicted_s, swept, "predicted", "s"),
            _floats("generated_tokens_per_s_max", rate, swept, "generated tokens at most", "/s"),
            _floats("energy_j_per_token", mid, swept, "energy a token", "J"),
            _floats("energy_low_j_per_token", low, swept, unit="J"),
            _floats("energy_high_j_per_token", high, swept, unit="J"),
            Column("energy_extrapolated", [word] * (rows * columns)),
            Column("binds", binds, "binds"),
            Column("fits", [None] * (rows * columns) if fits is None else fits, "fits"),
            *_queue_columns(queue, swept),
        )
    )


def _queue_columns(queue: Queue | None, swept: Sweep) -> tuple[Column, ...]:
    if queue is None:
        return ()
    return (
        _floats("utilisation", queue.utilisation, swept, "utilisation"),
        _floats("queue_wait_s", queue.wait_s, swept, "queue wait", "s"),
        _floats("queue_wait_low_s", queue.low_s, swept, "from", "s"),
        _floats("queue_wait_high_s", queue.high_s, swept, "to", "s"),
    )


def _floats(key: str, values: F64 | None, swept: Sweep, title: str = "", unit: str = "") -> Column:
    """A column of one number a cell; not known where there are no values or they are NaN."""
    if values is None:
        return Column(key, [None] * (swept.shape[0] * swept.shape[1]), title, unit)
    return Column(key, values.ravel(), title, unit, known=~np.isnan(values.ravel()))


def frontier_table(swept: Sweep) -> Table:
    """One row a context: the largest batch that fits, that keeps the deadline, and where the regime changes."""
    found = [
        Column("context", swept.context, "context"),
        _batches("capacity_batch", swept.max_batch, "fits up to batch"),
    ]
    if swept.deadline_batch is not None:
        found.append(_batches("deadline_batch", swept.deadline_batch, "keeps the deadline up to batch"))
        known = swept.max_batch != NEVER
        both = np.where(known, np.minimum(swept.max_batch, swept.deadline_batch), swept.deadline_batch)
        found.append(_batches("largest_batch", both, "largest batch"))
    found.append(_batches("kv_passes_weights_batch", swept.kv_passes_weights, "KV passes weights at batch"))
    found.append(_batches("compute_passes_memory_batch", swept.compute_passes_memory, "compute passes memory at batch"))
    found.append(_batches("compute_binds_batch", swept.compute_binds, "compute binds from batch"))
    return Table(tuple(found))


def _batches(key: str, values: I64, title: str) -> Column:
    return Column(key, values, title, known=values != NEVER)
