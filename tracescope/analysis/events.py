"""Single events as rows: what each is, what it moved, and how much of its step's time it owns."""

from dataclasses import dataclass

import numpy as np

from tracescope.analysis.breakdown import require_step, row_times
from tracescope.analysis.table import Column, Table, known_column
from tracescope.analysis.work_sums import labels_of_roles
from tracescope.core.category import BytesFrom, Category, EventFlag, Op
from tracescope.core.columns import I64
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.pricing import work_floor_ns


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events to list; None does not restrict. ``category`` is a JSON name such as ``kv_read``; ``instants``:
    moments instead of slices.
    """

    step: int | None = None
    layer: int | None = None
    category: str | None = None
    limit: int | None = None
    instants: bool = False


EVERY_EVENT = EventFilter()


def events_table(trace: Trace, basis: Basis, wanted: EventFilter = EVERY_EVENT) -> Table:
    """The ``events`` listing, in order of start, then id. TraceError for a step or a category that does not exist."""
    ids = select(trace, wanted)
    events, work = trace.events, trace.work
    exposed, floor = _times(trace, basis, ids)
    lane = trace.event_lane[ids]
    tracks = [trace.tracks[t] for t in trace.lanes.track[lane].tolist()]
    row = events.work[ids]
    roles = {value: labels_of_roles(value) for value in np.unique(events.roles[ids]).tolist()}
    flags = {value: EventFlag(value).labels() for value in np.unique(events.flags[ids]).tolist()}
    return Table((
        Column("id", ids, "id"),
        Column("track", [t.name for t in tracks], "track"),
        Column("track_kind", [t.kind.label for t in tracks]),
        known_column("rank", np.array([t.rank for t in tracks], np.int64)),
        Column("name", [trace.names[n] for n in events.name[ids].tolist()], "name"),
        Column("op", [Op(o).label for o in events.op[ids].tolist()], "op"),
        Column("category", [Category(c).label for c in events.category[ids].tolist()], "category"),
        Column("roles", [roles[r] for r in events.roles[ids].tolist()]),
        Column("flags", [flags[f] for f in events.flags[ids].tolist()]),
        known_column("layer", events.layer[ids], "layer"),
        known_column("step", events.step[ids], "step"),
        Column("start_ns", events.start[ids] + trace.meta.base_ns, "start", "ns", exact=True),
        Column("duration_ns", events.duration[ids], "took", "ns"),
        known_column("exposed_ns", exposed, "exposed", "ns"),
        Column("depth", trace.lanes.depth[lane].astype(np.int64)),
        known_column("weight_read_bytes", work.weight_read[row], "weights", "B"),
        known_column("kv_read_bytes", work.kv_read[row], "KV read", "B"),
        known_column("kv_append_bytes", work.kv_append[row], "KV append", "B"),
        known_column("flops", work.flops[row], "FLOPs", "FLOP"),
        known_column("recorded_bytes", work.recorded[row], "recorded", "B"),
        Column("bytes_from", [BytesFrom(b).label for b in work.bytes_from[row].tolist()]),
        known_column("floor_ns", floor, "floor", "ns"),
    ))  # fmt: skip


def select(trace: Trace, wanted: EventFilter) -> I64:
    """Ids of the events that pass, int64, in order of start, then id."""
    events = trace.events
    keep = ((events.flags & EventFlag.INSTANT) != 0) == wanted.instants
    if wanted.step is not None:
        require_step(trace, wanted.step)
        keep &= events.step == wanted.step
    if wanted.layer is not None:
        keep &= events.layer == wanted.layer
    if wanted.category is not None:
        keep &= events.category == _category(wanted.category)
    ids = np.flatnonzero(keep)
    ids = ids[np.lexsort((ids, events.start[ids]))]
    return ids if wanted.limit is None else ids[: max(0, wanted.limit)]


def _category(label: str) -> Category:
    for category in Category:
        if category.label == label:
            return category
    known = " ".join(c.label for c in Category)
    raise TraceError(f"there is no category {label!r}", action=f"one of: {known}")


def _times(trace: Trace, basis: Basis, ids: I64) -> tuple[I64, I64]:
    """Exposed time and floor in ns of each event, -1 where it has none (host work beside a device, no step, no bytes).

    Inside a step floors are rounded together, so that they add up; outside one, each by itself.
    """
    exposed = np.full(len(ids), UNKNOWN)
    floor = np.full(len(ids), UNKNOWN)
    device = trace.on_device[trace.event_lane[ids]]
    alone, known = work_floor_ns(trace.work, basis)
    work = trace.events.work[ids]
    priced = device & known[work]
    floor[priced] = np.rint(alone[work[priced]]).astype(np.int64)
    steps = np.unique(trace.events.step[ids]).astype(np.int64)
    times = row_times(trace, basis, steps[steps >= 0])
    by_id = np.argsort(times.rows.ids)
    inside = device & (trace.events.step[ids] >= 0)
    row = by_id[np.searchsorted(times.rows.ids[by_id], ids[inside])]
    exposed[inside] = times.exposed[row]
    floor[inside] = np.where(times.known[row], times.floor[row], UNKNOWN)
    return exposed, floor
