"""The trace model: an immutable bundle of numpy columns, lane-major, times in int64 ns relative to the trace's base."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from tracescope.core.category import EventFlag, StepKind, TrackKind
from tracescope.core.columns import I16, I32, I64, U8, U16, U32, Bool, empty_columns, freeze_columns
from tracescope.core.hardware import HardwareSpec
from tracescope.core.model import ModelSpec
from tracescope.core.report import ImportReport, Source
from tracescope.core.samples import SampleTable
from tracescope.core.work_table import UNKNOWN, WorkTable


@dataclass(frozen=True, slots=True)
class Track:
    """One row group of the timeline: a device stream, a synthesised engine, a host thread or an annotation row."""

    kind: TrackKind
    name: str
    process: str = ""
    device: int = -1
    rank: int = -1


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator of the trace, as the file names it; the name may be empty."""

    device: int
    rank: int
    name: str


@dataclass(frozen=True, eq=False)
class Lanes:
    """Lane k is ``(track[k], depth[k])`` and owns the events ``offset[k]:offset[k+1]``, which never overlap.

    ``track`` u32[n], ``depth`` u16[n]; ``offset`` int64[n + 1].
    """

    track: U32
    depth: U16
    offset: np.ndarray[tuple[int], np.dtype[np.int64]]

    def __post_init__(self) -> None:
        freeze_columns(self)
        offset = np.ascontiguousarray(self.offset, dtype=np.int64)
        if len(offset) != len(self.track) + 1 or (np.diff(offset) < 0).any() or (len(offset) and offset[0] != 0):
            raise ValueError("lane offsets must start at 0, never decrease and be one longer than the lanes")
        offset.flags.writeable = False
        object.__setattr__(self, "offset", offset)

    def __len__(self) -> int:
        return len(self.track)

    def of_event(self, event: int) -> int:
        """The lane that holds event ``event``."""
        return int(np.searchsorted(self.offset, event, side="right")) - 1


@dataclass(frozen=True, eq=False)
class EventTable:
    """One row an event, sorted by (track, depth, start, end, source order); the row index is the event's id.

    ``start``, ``duration`` int64 ns relative to the trace's base; ``category`` a Category; ``roles`` a bitmask of
    categories; ``op`` an Op; ``name`` indexes ``Trace.names``; ``layer`` and ``step`` are -1 where none; ``work`` and
    ``detail`` index ``Trace.work`` and ``Trace.details``; ``flags`` is an EventFlag. 40 bytes a row.
    """

    start: I64
    duration: I64
    category: U8
    roles: U16
    op: U16
    name: U32
    layer: I16
    step: I32
    work: U32
    detail: U32
    flags: U8

    def __post_init__(self) -> None:
        freeze_columns(self)
        if len(self.duration) and self.duration.min() < 0:
            raise ValueError("an event has a negative duration")

    def __len__(self) -> int:
        return len(self.start)

    def flagged(self, flag: EventFlag) -> int:
        """How many events carry ``flag``."""
        return int(np.count_nonzero(self.flags & flag))

    @cached_property
    def end(self) -> I64:
        """``start + duration``, int64 ns."""
        return self.start + self.duration


@dataclass(frozen=True, eq=False)
class StepTable:
    """One row a step (decode, prefill, mixed, verify ...), in time order; ``EventTable.step`` indexes it.

    ``label`` indexes ``Trace.names`` (the marker's own text); ``kind`` a StepKind; ``start``, ``duration`` int64 ns;
    ``host_wait`` ns, ``batch``, ``padded_batch``, ``context_tokens`` (summed over requests, before the step),
    ``generated_tokens``, ``queue_depth`` are -1 where not known; ``all_accepted``: every generated token is known to
    have been accepted.
    """

    label: U32
    kind: U8
    start: I64
    duration: I64
    host_wait: I64
    batch: I32
    padded_batch: I32
    context_tokens: I64
    generated_tokens: I64
    queue_depth: I32
    all_accepted: Bool
    warm_up: Bool

    def __post_init__(self) -> None:
        freeze_columns(self)

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def empty(cls) -> Self:
        """A table without steps."""
        return cls(**empty_columns(cls))

    @property
    def decode(self) -> Bool:
        """Which rows are decode or mixed steps."""
        return np.isin(self.kind, (StepKind.DECODE, StepKind.MIXED))


@dataclass(frozen=True, eq=False)
class RequestTable:
    """One row a request: times int64 ns relative to the base, tokens int64, -1 where not known."""

    arrival: I64
    start: I64
    finish: I64
    prompt_tokens: I64
    generated_tokens: I64
    kv_peak_bytes: I64

    def __post_init__(self) -> None:
        freeze_columns(self)

    def __len__(self) -> int:
        return len(self.arrival)

    @classmethod
    def empty(cls) -> Self:
        """A table without requests."""
        return cls(**empty_columns(cls))


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Typed edges between events, sorted by ``target``: event ``source`` must end before ``target`` may start.

    ``source``, ``target`` event ids; ``kind`` an EdgeKind; ``recorded`` False where the edge was inferred.
    """

    source: U32
    target: U32
    kind: U8
    recorded: Bool

    def __post_init__(self) -> None:
        freeze_columns(self)
        if (self.target[1:] < self.target[:-1]).any():
            raise ValueError("dependencies must be sorted by target")

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def empty(cls) -> Self:
        """A table without edges."""
        return cls(**empty_columns(cls))

    def into(self, event: int) -> slice:
        """The rows whose target is ``event``."""
        low, high = np.searchsorted(self.target, [event, event + 1])
        return slice(int(low), int(high))


@dataclass(frozen=True, eq=False)
class GraphNodes:
    """Which node of a captured graph each replayed kernel is, where the recorder says so; sorted by ``event``.

    ``event`` event ids; ``node`` the recorder's id: the same node is the same operation in every replay.
    """

    event: U32
    node: I64

    def __post_init__(self) -> None:
        freeze_columns(self)
        if (self.event[1:] <= self.event[:-1]).any():
            raise ValueError("graph nodes must be sorted by event, one an event")

    def __len__(self) -> int:
        return len(self.event)

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        return cls(**empty_columns(cls))


@dataclass(frozen=True, slots=True)
class TraceMeta:
    """What is known about a trace as a whole.

    ``base_ns``: absolute time of relative 0 (as the source counts, never rebased on output); ``resolution_ns``: the
    coarsest step of the source's clock; ``tensor_parallel``: over how many ranks the model is split, 0 where nobody
    said; ``profile``: the synthesis profile, empty for a recorded trace;
    ``bandwidth_bytes_per_s`` and ``bandwidth_source``: what the trace was priced with when it was made, if anything.
    """

    created_by: str = ""
    source: Source = field(default_factory=Source)
    report: ImportReport = field(default_factory=ImportReport)
    model: ModelSpec | None = None
    hardware: HardwareSpec | None = None
    bandwidth_bytes_per_s: int | None = None
    bandwidth_source: str = "unknown"
    compute_dtype: str = "bf16"
    base_ns: int = 0
    resolution_ns: int = 1
    tensor_parallel: int = 0
    profile: str = ""
    seed: int | None = None
    devices: tuple[Device, ...] = ()
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def synthetic(self) -> bool:
        """Whether the times are modelled rather than measured."""
        return bool(self.profile)


@dataclass(frozen=True, eq=False)
class Trace:
    """A whole trace. Validated once, never changed; ``details[0]`` and ``names[...]`` are plain text from the source.

    ``details`` are deduplicated JSON objects of recorded arguments (grid, block, shapes ...), ``""`` for none at 0.
    """

    meta: TraceMeta
    tracks: tuple[Track, ...]
    lanes: Lanes
    events: EventTable
    names: tuple[str, ...]
    work: WorkTable = field(default_factory=WorkTable.unknown)
    details: tuple[str, ...] = ("",)
    steps: StepTable = field(default_factory=StepTable.empty)
    requests: RequestTable = field(default_factory=RequestTable.empty)
    dependencies: Dependencies = field(default_factory=Dependencies.empty)
    samples: SampleTable = field(default_factory=SampleTable.empty)
    graph_nodes: GraphNodes = field(default_factory=GraphNodes.empty)

    def __post_init__(self) -> None:
        n = len(self.events)
        if int(self.lanes.offset[-1]) != n:
            raise ValueError(f"lanes cover {int(self.lanes.offset[-1])} events, the table has {n}")
        if len(self.lanes) and int(self.lanes.track.max()) >= len(self.tracks):
            raise ValueError("a lane names a track that does not exist")
        e = self.events
        for column, limit in ((e.name, len(self.names)), (e.work, len(self.work)), (e.detail, len(self.details))):
            if n and int(column.max()) >= limit:
                raise ValueError("an event points past the end of a table")
        if n and (int(e.step.max()) >= len(self.steps) or int(e.step.min()) < -1):
            raise ValueError("an event names a step that does not exist")
        self._check_lanes_in_order()
        d = self.dependencies
        if len(d) and max(int(d.source.max()), int(d.target.max())) >= n:
            raise ValueError("a dependency names an event that does not exist")
        if len(self.graph_nodes) and int(self.graph_nodes.event[-1]) >= n:
            raise ValueError("a graph node names an event that does not exist")
        sampled = np.unique(self.samples.track).tolist()
        if any(t >= len(self.tracks) or self.tracks[t].kind is not TrackKind.COUNTER for t in sampled):
            raise ValueError("a sample is of a track that is no counter")

    def _check_lanes_in_order(self) -> None:
        e = self.events
        if len(e) < 2:
            return
        early = e.start[1:] < e.start[:-1] + e.duration[:-1]  # not e.end, which would stay in memory
        inner = self.lanes.offset[1:-1]
        early[inner[(inner > 0) & (inner < len(e))] - 1] = False
        if early.any():
            raise ValueError(f"events {int(early.argmax())} and the next overlap on one lane")

    @cached_property
    def event_lane(self) -> U32:
        """The lane of each event, u32[events]."""
        return np.repeat(np.arange(len(self.lanes), dtype=np.uint32), np.diff(self.lanes.offset))

    @cached_property
    def span(self) -> tuple[int, int]:
        """First start and last end of all events that have a time, ns relative to the base; (0, 0) without any."""
        timed = (self.events.flags & EventFlag.SUSPECT_TIME) == 0
        start = self.events.start[timed]
        return (int(start.min()), int(self.events.end[timed].max())) if len(start) else (0, 0)

    @cached_property
    def on_device(self) -> Bool:
        """Which lanes count as the device: streams and engines; where the trace has neither, the host threads that
        run steps (interpreter frames lie on threads of their own and never belong to a step), else all of them.
        """
        kinds = np.array([t.kind for t in self.tracks], np.uint8)[self.lanes.track]
        device = np.isin(kinds, (TrackKind.DEVICE_STREAM, TrackKind.ENGINE))
        if device.any():
            return device
        host = np.equal(kinds, TrackKind.HOST_THREAD)
        stepped = np.zeros(len(self.lanes), bool)
        stepped[self.event_lane[self.events.step >= 0]] = True
        running = host & np.isin(self.lanes.track, self.lanes.track[stepped & host])
        return running if running.any() else host

    @cached_property
    def nested(self) -> bool:
        """Whether the device lanes are host threads, whose operators contain each other, rather than kernels."""
        kinds = {self.tracks[t].kind for t in np.unique(self.lanes.track[self.on_device]).tolist()}
        return kinds == {TrackKind.HOST_THREAD}

    @cached_property
    def step_rank(self) -> I64:
        """The rank whose events each step holds, int64[steps]: steps of several ranks run at once; -1 not known."""
        result = np.full(len(self.steps), UNKNOWN, np.int64)
        ranks = np.array([t.rank for t in self.tracks], np.int64)[self.lanes.track]
        if len(np.unique(ranks)) < 2:
            result[:] = ranks[0] if len(ranks) else UNKNOWN
            return result
        for lane in np.flatnonzero(self.on_device).tolist():
            own = self.events.step[self.lanes.offset[lane] : self.lanes.offset[lane + 1]]
            result[own[own >= 0]] = ranks[lane]
        return result

    @cached_property
    def next_step(self) -> I64:
        """The step that follows each one on its rank, int64[steps]; -1 for the last."""
        result = np.full(len(self.steps), -1, np.int64)
        order = np.lexsort((np.arange(len(self.steps)), self.step_rank))
        follows = self.step_rank[order][1:] == self.step_rank[order][:-1]
        result[order[:-1][follows]] = order[1:][follows]
        return result

    @cached_property
    def step_runs(self) -> tuple[I64, I64, I64]:
        """Device events as runs of one lane and one step: (low, high) rows sorted by step, and an offset per step."""
        n = len(self.events)
        step = self.events.step
        cut = np.zeros(n + 1, bool)
        cut[0] = cut[n] = True
        cut[1:n] = step[1:] != step[:-1]
        cut[self.lanes.offset] = True
        edges = np.flatnonzero(cut)
        low, high = edges[:-1], edges[1:]
        keep = np.zeros(len(low), bool)
        if n:
            keep = (step[low] >= 0) & self.on_device[self.event_lane[low]]
        low, high = low[keep], high[keep]
        order = np.argsort(step[low], kind="stable")
        low, high = low[order], high[order]
        offset = np.searchsorted(step[low], np.arange(len(self.steps) + 1))
        return low, high, offset

    def step_events(self, step: int) -> I64:
        """Ids of the device events of one step, int64, sorted by (start, end, id)."""
        low, high, offset = self.step_runs
        rows = slice(*offset[step : step + 2])
        parts = [np.arange(a, b) for a, b in zip(low[rows], high[rows], strict=True)]
        ids = np.concatenate([np.empty(0, np.int64), *parts])
        return ids[np.lexsort((ids, self.events.end[ids], self.events.start[ids]))]
