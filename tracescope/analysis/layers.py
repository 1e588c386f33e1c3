"""Op by layer: where the time of a step, or of all decode steps, went, largest gap first."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.analysis.breakdown import RowTimes, require_step, row_times
from tracescope.analysis.event_floors import known_sums
from tracescope.analysis.exposed_time import idle_ns
from tracescope.analysis.step_workload import ranks_of
from tracescope.analysis.table import Column, Table, known_column
from tracescope.analysis.work_energy import energy_columns
from tracescope.analysis.work_sums import WorkSums, grouped, main_category, work_sums
from tracescope.core.category import Category, Op
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN


@dataclass(frozen=True, eq=False, slots=True)
class LayerRows:
    """One row an op and layer, sorted by gap (largest first), int64 each; -1 where a layer or an amount is not known.

    ``floor_ns`` is that of the events that have one, -1 where none has (it counts 0 in the sums); ``gap_ns`` is their
    exposed time less their floor (0 where none has), ``unknown_ns`` the exposed time of the others.
    ``sum(gap_ns) + unknown + idle == step_ns - floor_ops_ns`` exactly, where ``floor_ops_ns`` is -1 (and counts 0) if
    no floor is known. ``ids`` are the device events of the steps, ``row`` the row of each.
    """

    layer: I64
    op: I64
    category: I64
    events: I64
    duration_ns: I64
    exposed_ns: I64
    floor_ns: I64
    gap_ns: I64
    unknown_ns: I64
    work: WorkSums
    idle_ns: int
    step_ns: int
    floor_ops_ns: int
    steps_counted: int
    ids: I64
    row: I64

    def __len__(self) -> int:
        return len(self.layer)

    def gap_of(self, row: int) -> int | None:
        """The gap of one row in ns, None where no floor of its events is known."""
        return int(self.gap_ns[row]) if self.floor_ns[row] != UNKNOWN else None

    @property
    def total_gap_ns(self) -> int | None:
        """The gap of the steps: those of all rows and the idle time; None where no floor is known."""
        return None if self.floor_ops_ns == UNKNOWN else int(self.gap_ns.sum()) + self.idle_ns


def counted_steps(trace: Trace) -> I64:
    """Ordinals of the steps that sums and means are over: decode and mixed steps after warm-up."""
    return np.flatnonzero(trace.steps.decode & ~trace.steps.warm_up)


BY: Final = ("layer", "op", "category")
"""What rows may be of: an op of a layer, an op over all layers, a category."""


def layer_rows(trace: Trace, basis: Basis, steps: I64, by: str = "layer") -> LayerRows:
    """Sums over ``steps`` (ordinals) of the device events, one row for each of what ``by`` (one of ``BY``) names.

    Events without an op are told apart by category.
    """
    times = row_times(trace, basis, steps)
    ids = times.rows.ids
    layer, op, category, group = _groups(trace, times, by)
    sums = grouped(group, len(layer))
    exposed, floor = sums(times.exposed), sums(times.floor)
    unknown = sums(np.where(times.known, 0, times.exposed))
    floored = sums(times.known) > 0 if basis.bandwidth_bytes_per_s else np.zeros(len(layer), bool)
    gap = exposed - unknown - floor
    # Rows without a floor have no gap: they stand among the others by what they took.
    order = np.lexsort((op, layer, np.where(floored, -gap, -exposed)))
    work = work_sums(trace, ids, sums)
    return LayerRows(
        layer=layer[order],
        op=op[order],
        category=category[order],
        events=sums(np.ones(len(ids), np.int64))[order],
        # An operator's time holds that of those it called, which are in a row of their own or in this one.
        duration_ns=exposed[order] if trace.nested else sums(trace.events.duration[ids])[order],
        exposed_ns=exposed[order],
        floor_ns=np.where(floored, floor, UNKNOWN)[order],
        gap_ns=np.where(floored, gap, 0)[order],
        unknown_ns=np.where(floored, unknown, exposed)[order],
        work=work.taken(order),
        idle_ns=int(idle_ns(times.rows).sum()),
        step_ns=int(times.rows.duration.sum()),
        floor_ops_ns=int(known_sums(times.floor.sum(keepdims=True), (~times.known).sum(keepdims=True), basis)[0]),
        steps_counted=len(steps),
        ids=ids,
        row=np.argsort(order)[group],
    )


def layers_table(trace: Trace, basis: Basis, step: int | None = None, by: str = "layer") -> Table:
    """The ``layers`` listing of one step, or of the decode steps after warm-up together. TraceError for a bad step."""
    if step is not None:
        require_step(trace, step)
    rows = layer_rows(trace, basis, counted_steps(trace) if step is None else np.array([step]), by)
    work = rows.work
    memory = work.memory_bytes
    floored = rows.exposed_ns - rows.unknown_ns
    ratio_known = (work.flops >= 0) & (memory > 0)
    return Table(
        (
            known_column("layer", rows.layer, "layer"),
            Column("op", [Op(o).label for o in rows.op.tolist()], "op"),
            Column("category", [Category(c).label for c in rows.category.tolist()], "category"),
            Column("events", rows.events, "events"),
            Column("duration_ns", rows.duration_ns),
            Column("exposed_ns", rows.exposed_ns, "took", "ns"),
            known_column("floor_ns", rows.floor_ns, "floor", "ns"),
            Column("gap_ns", rows.gap_ns, "gap", "ns", known=rows.floor_ns >= 0),
            Column("unknown_ns", rows.unknown_ns, "unknown" if rows.unknown_ns.any() else "", "ns"),
            Column(
                "floor_fraction", rows.floor_ns / np.maximum(floored, 1), "of floor",
                known=(rows.floor_ns >= 0) & (floored > 0),
            ),
            known_column("weight_read_bytes", work.weight_read, "weights", "B"),
            known_column("kv_read_bytes", work.kv_read, "KV read", "B"),
            known_column("kv_append_bytes", work.kv_append, "KV append", "B"),
            known_column("flops", work.flops, "FLOPs", "FLOP"),
            Column("intensity", work.flops / np.maximum(memory, 1), "FLOP/B", known=ratio_known),
            *energy_columns(work, rows.exposed_ns, basis, ranks_of(trace), of_ns=rows.step_ns),
        ),
        {
            "gap_ns": rows.total_gap_ns,
            "unknown_ns": int(rows.unknown_ns.sum()),
            "ranks": ranks_of(trace),
            "idle_ns": rows.idle_ns,
            "step_ns": rows.step_ns,
            "floor_ops_ns": rows.floor_ops_ns if rows.floor_ops_ns != UNKNOWN else None,
            "steps_counted": rows.steps_counted,
        },
    )  # fmt: skip


def _groups(trace: Trace, times: RowTimes, by: str) -> tuple[I64, I64, I64, I64]:
    """Layer, op and category of each group, and the group of each event, int64."""
    events, ids = trace.events, times.rows.ids
    none = np.zeros(len(ids), np.int64)
    layer = events.layer[ids].astype(np.int64) + 1 if by == "layer" else none
    op = events.op[ids].astype(np.int64) if by != "category" else none + Op.NONE
    category = events.category[ids]
    loose = (op == Op.NONE) | (op == Op.OTHER)
    key = (layer * len(Op) + op) * len(Category) + np.where(loose, category, 0)
    present = np.flatnonzero(np.bincount(key, minlength=1))
    index = np.zeros(int(present[-1]) + 1 if len(present) else 1, np.int64)
    index[present] = np.arange(len(present))
    group = index[key]
    main = main_category(category, group, len(present), times.floor, times.exposed)
    return present // len(Category) // len(Op) - 1, present // len(Category) % len(Op), main, group
