"""A trace as Chrome trace JSON, for Perfetto and other viewers; our own reader gets the same integers back."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np

from tracescope.core.arguments import recorded_arguments
from tracescope.core.category import Category, EdgeKind, EventFlag, Op, TrackKind
from tracescope.core.columns import F64, I64
from tracescope.core.exported import AMOUNTS, KEY, SUB_LANE, VERSION, ExportedTrack, ExportHeader
from tracescope.core.hardware import Basis
from tracescope.core.trace import StepTable, Trace
from tracescope.floor.pricing import work_floor_ns
from tracescope.io.atomic import write_atomically

STEPS: Final = "steps"
"""The process that holds one slice a step and the counters."""

_BATCH: Final = 20_000
_DEVICE: Final = (TrackKind.DEVICE_STREAM, TrackKind.ENGINE)
_STREAM: Final = re.compile(r"^stream (\d{1,5})$")
_KEPT: Final = EventFlag.UNFINISHED | EventFlag.WARM_UP | EventFlag.ALLOCATED_KV | EventFlag.SUSPECT_TIME
"""Flags that the events themselves do not show."""
_FIRST_THREAD: Final = 200_000
"""Threads are numbered from here on, above the numbers of streams."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Where one lane is drawn."""

    pid: int
    tid: int
    title: str
    kind: TrackKind


def write_chrome(path: Path, trace: Trace, basis: Basis) -> None:
    """Write ``trace`` to ``path``: slices, launches as flows, steps, counters of the bandwidth reached and the floor.

    Times are µs with three digits, so exact to the nanosecond, from ``baseTimeNanoseconds`` on. Events that overlap on
    one stream stand on rows of their own. Raises TraceError where the file cannot be written; nothing is changed then.
    """

    def write(file: BinaryIO) -> None:
        writer = _Writer(trace, basis)
        file.write(_head(trace, writer.rows))
        first = True
        for batch in _batches(writer.events()):
            file.write((b"" if first else b",\n") + b",\n".join(batch))
            first = False
        file.write(b"\n]}\n")

    write_atomically(path, write)


def _batches(events: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch = []
    for event in events:
        batch.append(event)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _head(trace: Trace, rows: Sequence["_Row"]) -> bytes:
    meta = trace.meta
    ranks = {t.rank for t in trace.tracks if t.rank >= 0}
    header: dict[str, Any] = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": meta.base_ns,
        "traceName": meta.source.name or meta.created_by,
        "deviceProperties": [
            {"id": d.device, "name": d.name} for d in {d.device: d for d in meta.devices if d.device >= 0}.values()
        ],
    }
    if len(ranks) == 1:
        header["distributedInfo"] = {"rank": ranks.pop()}
    header[KEY] = _own_header(trace, rows)
    return msgspec.json.encode(header)[:-1] + b',"traceEvents":[\n'


def _own_header(trace: Trace, rows: Sequence["_Row"]) -> ExportHeader:
    """What the events do not say: which track each row is, and the steps."""
    ids = {int(track): row for track, row in reversed(list(zip(trace.lanes.track.tolist(), rows, strict=True)))}
    steps = trace.steps
    columns = {f.name: getattr(steps, f.name).astype(np.int64).tolist() for f in fields(StepTable) if f.name != "label"}
    return ExportHeader(
        export=VERSION,
        base_ns=trace.meta.base_ns,
        resolution_ns=trace.meta.resolution_ns,
        tracks=[
            ExportedTrack(
                int(t.kind), t.name, t.process, t.device, t.rank, *((ids[i].pid, ids[i].tid) if i in ids else ())
            )
            for i, t in enumerate(trace.tracks)
        ],
        labels=[trace.names[n] for n in steps.label.tolist()],
        steps=columns,
        notes=list(trace.meta.notes),
    )


def _micros(ns: int) -> bytes:
    """``12345`` → ``12.345``, exactly."""
    sign = b"-" if ns < 0 else b""
    return sign + b"%d.%03d" % divmod(abs(ns), 1000)


class _Writer:
    """Yields one JSON object an event."""

    def __init__(self, trace: Trace, basis: Basis) -> None:
        self.trace = trace
        self.basis = basis
        self.names = [msgspec.json.encode(name) for name in trace.names]
        floors, known = work_floor_ns(trace.work, basis)
        self.floor_ns = np.where(known, floors, np.nan)
        self.rows = self._rows()
        d = trace.dependencies
        launches = np.flatnonzero(d.kind == EdgeKind.LAUNCH)
        self.launch_source = d.source[launches].astype(np.int64)
        self.correlation = np.full(len(trace.events), -1, np.int64)
        self.correlation[d.target[launches]] = self.launch_source + 1
        self.launches = np.unique(self.launch_source)
        self.correlation[self.launches] = self.launches + 1

    def _rows(self) -> list[_Row]:
        """The row of each lane. Pids count processes, so that two ranks never share one."""
        trace = self.trace
        pids: dict[tuple[int, int, str], int] = {}
        rows = []
        for track, depth in zip(trace.lanes.track.tolist(), trace.lanes.depth.tolist(), strict=True):
            t = trace.tracks[track]
            pid = pids.setdefault((t.rank, t.device, t.process), len(pids) + 1)
            own = t.kind in _DEVICE and depth > 0
            stream = _STREAM.match(t.name)
            number = int(stream[1]) if stream and t.kind in _DEVICE else track + _FIRST_THREAD
            tid = number + (SUB_LANE * depth if own else 0)
            rows.append(_Row(pid, tid, t.name + (f" · lane {depth + 1}" if own else ""), t.kind))
        return rows

    def events(self) -> Iterator[bytes]:
        """Metadata, then slices lane by lane, flows, steps and counters."""
        yield from self._metadata()
        for lane, row in enumerate(self.rows):
            yield from self._lane(lane, row)
        yield from self._flows()
        yield from self._steps()
        yield from self._counters()

    def _metadata(self) -> Iterator[bytes]:
        trace = self.trace
        named: set[tuple[int, int]] = set()
        for row, track in zip(self.rows, trace.lanes.track.tolist(), strict=True):
            process = trace.tracks[track].process or trace.tracks[track].name
            if (row.pid, -1) not in named:
                named.add((row.pid, -1))
                yield _named("process_name", row.pid, 0, process)
            if (row.pid, row.tid) not in named:
                named.add((row.pid, row.tid))
                yield _named("thread_name", row.pid, row.tid, row.title)
        yield _named("process_name", 0, 0, STEPS)

    def _lane(self, lane: int, row: _Row) -> Iterator[bytes]:
        e = self.trace.events
        low, high = int(self.trace.lanes.offset[lane]), int(self.trace.lanes.offset[lane + 1])
        track = self.trace.tracks[int(self.trace.lanes.track[lane])]
        columns = zip(
            range(low, high),
            e.start[low:high].tolist(),
            e.duration[low:high].tolist(),
            e.name[low:high].tolist(),
            e.flags[low:high].tolist(),
            strict=True,
        )
        on_device = row.kind in _DEVICE
        for event, start, duration, name, flags in columns:
            tid = row.tid
            if flags & EventFlag.OVERLAPPING and not on_device:
                tid += SUB_LANE
            args = self._arguments(event)
            if flags & EventFlag.INSTANT:
                yield b'{"ph":"i","s":"t","name":%s,"pid":%d,"tid":%d,"ts":%s,"args":%s}' % (
                    self.names[name], row.pid, row.tid, _micros(start), msgspec.json.encode(args),
                )  # fmt: skip
                continue
            if on_device:
                args.setdefault("device", track.device)
            yield (
                b'{"ph":"X","cat":"%s","name":%s,"pid":%d,"tid":%d,"ts":%s,"dur":%s,"args":%s}'
                % (
                    self._category(event, row.kind, track.name),
                    self.names[name],
                    row.pid,
                    tid,
                    _micros(start),
                    _micros(duration),
                    msgspec.json.encode(args),
                )
            )

    def _category(self, event: int, kind: TrackKind, track: str) -> bytes:
        """The profiler's word for what ran there, by which it is recognised again."""
        e = self.trace.events
        if kind in _DEVICE:
            return b"gpu_memcpy" if e.category[event] == Category.COPY else b"kernel"
        if kind is TrackKind.ANNOTATION:
            return b"user_annotation"
        if track.endswith("Python"):
            return b"python_function"
        if self.correlation[event] >= 0:
            return b"cuda_runtime"
        name = self.trace.names[int(e.name[event])]
        return b"cpu_op" if e.op[event] != Op.NONE or "::" in name[:40] else b"host"

    def _arguments(self, event: int) -> dict[str, Any]:
        e, work = self.trace.events, self.trace.work
        args: dict[str, Any] = {}
        detail = self.trace.details[int(e.detail[event])]
        if detail:
            recorded = recorded_arguments(detail)
            args |= {"recorded": detail} if recorded is None else recorded
        if self.correlation[event] >= 0:
            args["correlation"] = int(self.correlation[event])
        op = Op(int(e.op[event])).label
        if op is not None:
            args["op"] = op
        category, roles, flags = Category(int(e.category[event])), int(e.roles[event]), int(e.flags[event]) & _KEPT
        if category is not Category.HOST:
            args["category"] = category.label
        if roles != category.role:
            args["roles"] = roles
        if flags:
            args["flags"] = flags
        for name, column in (("step", e.step), ("layer", e.layer)):
            if column[event] >= 0:
                args[name] = int(column[event])
        row = int(e.work[event])
        if row:
            for name, argument in AMOUNTS.items():
                amount = int(getattr(work, name)[row])
                if amount >= 0:
                    args[argument] = amount
            args["bytes_from"] = int(work.bytes_from[row])
            if np.isfinite(self.floor_ns[row]):
                args["floor_ns"] = round(float(self.floor_ns[row]))
        return args

    def _flows(self) -> Iterator[bytes]:
        """One arrow from each launch to what it launched."""
        e, lane_of = self.trace.events, self.trace.event_lane
        d = self.trace.dependencies
        targets = d.target[d.kind == EdgeKind.LAUNCH].tolist()
        for flow, (source, target) in enumerate(zip(self.launch_source.tolist(), targets, strict=True), 1):
            for phase, event in ((b's"', source), (b'f","bp":"e"', target)):
                row = self.rows[int(lane_of[event])]
                yield b'{"ph":"%s,"cat":"ac2g","name":"ac2g","id":%d,"pid":%d,"tid":%d,"ts":%s}' % (
                    phase, flow, row.pid, row.tid, _micros(int(e.start[event])),
                )  # fmt: skip

    def _steps(self) -> Iterator[bytes]:
        steps = self.trace.steps
        ranks = self._rank_of_step()
        for rank in np.unique(ranks).tolist():
            yield _named("thread_name", 0, rank + 2, STEPS if rank < 0 else f"{STEPS} of rank {rank}")
        for i, (start, duration) in enumerate(zip(steps.start.tolist(), steps.duration.tolist(), strict=True)):
            kind = self._kind(i)
            # Instants, so that what was a slice when the trace was read is one when it is read again.
            yield (
                b'{"ph":"b","cat":"step","name":%s,"id":%d,"pid":0,"tid":%d,"ts":%s}'
                % (msgspec.json.encode(f"step {i} · {kind}"), i, int(ranks[i]) + 2, _micros(start))
            )
            yield (
                b'{"ph":"e","cat":"step","name":%s,"id":%d,"pid":0,"tid":%d,"ts":%s}'
                % (msgspec.json.encode(f"step {i} · {kind}"), i, int(ranks[i]) + 2, _micros(start + duration))
            )

    def _kind(self, step: int) -> str:
        from_label = self.trace.names[int(self.trace.steps.label[step])]
        return from_label.replace("execute_", "").replace("step[", "")[:60]

    def _rank_of_step(self) -> I64:
        trace = self.trace
        result = np.full(len(trace.steps), -1, np.int64)
        if len({t.rank for t in trace.tracks}) > 1:
            inside = np.flatnonzero(trace.events.step >= 0)
            ranks = np.array([t.rank for t in trace.tracks], np.int64)
            result[trace.events.step[inside]] = ranks[trace.lanes.track[trace.event_lane[inside]]]
        return result

    def _counters(self) -> Iterator[bytes]:
        """GB/s that the device reached, from the bytes of its events, and the rate that the floor assumes."""
        trace = self.trace
        times, rates = bandwidth_reached(trace)
        for time, rate in zip(times.tolist(), rates.tolist(), strict=True):
            yield _counter(b"bandwidth reached GB/s", time, rate)
        bandwidth = self.basis.bandwidth_bytes_per_s
        if bandwidth:
            for start, duration in zip(trace.steps.start.tolist(), trace.steps.duration.tolist(), strict=True):
                yield _counter(b"bandwidth of the floor GB/s", start, bandwidth / 1e9)
                yield _counter(b"bandwidth of the floor GB/s", start + duration, 0.0)
        names = [msgspec.json.encode(t.name)[1:-1] for t in trace.tracks]
        s = trace.samples
        for track, time, value in zip(s.track.tolist(), s.time.tolist(), s.value.tolist(), strict=True):
            yield _counter(names[track], time, value)


def _named(what: str, pid: int, tid: int, name: str) -> bytes:
    return msgspec.json.encode({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})


def _counter(name: bytes, time: int, value: float) -> bytes:
    return b'{"ph":"C","name":"%s","pid":0,"tid":0,"ts":%s,"args":{"value":%s}}' % (
        name, _micros(time), msgspec.json.encode(round(value, 3)),
    )  # fmt: skip


def bandwidth_reached(trace: Trace) -> tuple[I64, F64]:
    """Times (ns, rising) at which the rate of memory traffic changes, and the rate in GB/s from then on.

    Each event spreads its known bytes evenly over its time; events at once add up. Unknown bytes count as none.
    """
    e, work = trace.events, trace.work
    amounts = sum(np.maximum(getattr(work, n), 0) for n in ("weight_read", "embedding_gather", "kv_read", "kv_append"))
    own = np.flatnonzero(trace.on_device[trace.event_lane] & (e.duration > 0))
    own = own[np.asarray(amounts)[e.work[own]] > 0]
    rate = np.asarray(amounts)[e.work[own]] / e.duration[own]
    moments = np.concatenate([e.start[own], e.end[own]])
    times, at = np.unique(moments, return_inverse=True)
    change = np.zeros(len(times))
    np.add.at(change, at.reshape(-1), np.concatenate([rate, -rate]))
    reached = np.cumsum(change)
    reached[np.abs(reached) < 1e-6] = 0.0
    return times, reached
