"""A node of a graph is one op, whichever replay ran it: what most of its replays are read as, all of them are."""

from collections import Counter
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tracescope.core.arguments import recorded_arguments
from tracescope.core.columns import I32, I64
from tracescope.core.raw import RawTrace
from tracescope.core.report import Inference
from tracescope.core.units import plural
from tracescope.recognise.ops.op_events import OpEvents
from tracescope.recognise.ops.reading import Reading

_NODE: Final = ("graph node id", "graph_node_id")
_GRAPH: Final = ("graph id", "graph_id")
_READ: Final = ("layer", "op", "category", "section", "ordinal", "main")


def same_node_same_op(raw: RawTrace, op_events: OpEvents, reading: Reading, step: I32) -> Reading:
    """``reading`` with one place and op for all replays of a node, in the steps; as it is where no node is recorded."""
    e = raw.events
    used = np.unique(e.detail[op_events.row]).tolist()
    node_of = np.full(len(raw.details) + 1, -1, np.int64)
    nodes: dict[tuple[Any, Any], int] = {}
    for code in used:
        named = _node(raw.details[code])
        if named is not None:
            node_of[code] = nodes.setdefault(named, len(nodes))
    if not nodes:
        return reading
    node = node_of[e.detail[op_events.row]]
    inside = np.flatnonzero((node >= 0) & (step >= 0))
    read = np.stack([getattr(reading, name)[inside] for name in _READ], axis=1).astype(np.int64)
    kinds, kind = np.unique(read, axis=0, return_inverse=True)
    chosen = _most_frequent(node[inside] * (len(raw.names) + 1) + e.name[op_events.row[inside]], kind.reshape(-1))
    changed = int((chosen != kind.reshape(-1)).sum())
    if not changed:
        return reading
    columns = {name: getattr(reading, name).copy() for name in _READ}
    for at, column in enumerate(columns.values()):
        column[inside] = kinds[chosen, at].astype(column.dtype)
    what = f"{plural(changed, 'kernel')} read as what most replays of its graph's node are"
    note = Inference(what, "same node, same op", 0.85)
    return replace(reading, **columns, inferred=(*reading.inferred, note))


def _most_frequent(group: I64, kind: I64) -> I64:
    """For each row the most frequent ``kind`` of its ``group``; of equally frequent ones the first."""
    chosen = kind.copy()
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.diff(group[order], prepend=-1, append=-1))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = order[low:high]
        if (kind[rows] != kind[rows[0]]).any():
            chosen[rows] = Counter(kind[rows].tolist()).most_common(1)[0][0]
    return chosen


def _node(text: str) -> tuple[Any, Any] | None:
    """(graph, node) of a kernel with the recorded arguments ``text``; None where it is in no graph."""
    if not any(f'"{key}"' in text for key in _NODE):
        return None
    said = recorded_arguments(text)
    if said is None:
        return None
    node = next((said[key] for key in _NODE if isinstance(said.get(key), int)), 0)
    graph = next((said[key] for key in _GRAPH if isinstance(said.get(key), int)), 0)
    return (graph, node) if node else None
