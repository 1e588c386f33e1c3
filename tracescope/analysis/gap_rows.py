"""Which operations of a step are off their floor, and by how much. The rows are those of ``layers``."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.layers import LayerRows, layer_rows
from tracescope.core.category import Category, Op
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN


@dataclass(frozen=True, slots=True)
class GapRow:
    """An op in a layer of a step. ``layer`` -1 outside the layers; a floor, bytes or a share that is unknown is None.

    ``event`` is the longest of the row's ``events``. ``name``: the op, else the name that all its events share, else
    the category. Floor and gap are of the events that have a floor, ``unknown_ns`` is the time of the others;
    ``memory_bytes``: of all events. ``share_of_gap``: its gap by the step's.
    """

    layer: int
    op: Op
    category: Category
    event: int
    events: int
    name: str
    took_ns: int
    floor_ns: int | None
    gap_ns: int | None
    unknown_ns: int
    memory_bytes: int | None
    share_of_gap: float | None


def gap_rows(trace: Trace, basis: Basis, step: int) -> tuple[GapRow, ...]:
    """The rows of one step, largest gap first; their gaps and the idle time sum to the step's gap."""
    rows = layer_rows(trace, basis, np.array([step]))
    total = rows.total_gap_ns
    moved, longest = rows.work.memory_bytes, _longest(trace, rows)
    found = []
    for row, event in enumerate(longest.tolist()):
        op, category, gap = Op(int(rows.op[row])), Category(int(rows.category[row])), rows.gap_of(row)
        found.append(
            GapRow(
                layer=int(rows.layer[row]),
                op=op,
                category=category,
                event=event,
                events=int(rows.events[row]),
                name=_name(trace, rows, row, op, category),
                took_ns=int(rows.exposed_ns[row]),
                floor_ns=_known(rows.floor_ns[row]),
                gap_ns=gap,
                unknown_ns=int(rows.unknown_ns[row]),
                memory_bytes=_known(moved[row]),
                share_of_gap=gap / total if gap is not None and total is not None and total > 0 else None,
            )
        )
    return tuple(found)


def _longest(trace: Trace, rows: LayerRows) -> I64:
    """The longest event of each row, the earliest of several, int64 ids."""
    order = np.lexsort((-trace.events.duration[rows.ids], rows.row))
    first = np.flatnonzero(np.diff(rows.row[order], prepend=-1))
    return rows.ids[order[first]]


def _name(trace: Trace, rows: LayerRows, row: int, op: Op, category: Category) -> str:
    if op not in (Op.NONE, Op.OTHER):
        return str(op.label)
    names = np.unique(trace.events.name[rows.ids[rows.row == row]])
    return trace.names[int(names[0])] if len(names) == 1 else category.label.replace("_", " ")


def _known(value: np.int64) -> int | None:
    return None if value == UNKNOWN else int(value)
