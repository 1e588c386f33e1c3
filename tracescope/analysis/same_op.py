"""One op beside its twins: the same op of the same step in every layer."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.breakdown import StepBreakdown
from tracescope.analysis.work_sums import grouped
from tracescope.core.category import Op
from tracescope.core.columns import I64, Bool
from tracescope.core.trace import Trace


@dataclass(frozen=True, eq=False, slots=True)
class SameOp:
    """``layers`` int64[k] in order; ``exposed_ns``, ``floor_ns`` int64[k], ``floor_known`` bool[k] summed over the
    events of the op in that layer; ``current``: the row of the event asked about, -1 where it has no layer.
    """

    layers: I64
    exposed_ns: I64
    floor_ns: I64
    floor_known: Bool
    current: int


def same_op_in_layers(trace: Trace, breakdown: StepBreakdown, event: int) -> SameOp:
    """Compare ``event`` (an id of this step) with the same op in every layer; without an op, with the same name."""
    events, ids = trace.events, breakdown.events
    op = events.op[event]
    alike = events.op[ids] == op if op != Op.NONE else events.name[ids] == events.name[event]
    rows = np.flatnonzero(alike & (events.layer[ids] >= 0))
    layers, group = np.unique(events.layer[ids[rows]].astype(np.int64), return_inverse=True)
    sums = grouped(group, len(layers))
    current = np.flatnonzero(layers == events.layer[event])
    return SameOp(
        layers,
        sums(breakdown.exposed_ns[rows]),
        sums(breakdown.floor_ns[rows]),
        sums(breakdown.floor_known[rows]) > 0,
        int(current[0]) if len(current) else -1,
    )
