"""The events of a serving simulation: steps, operations and the phases of requests, and what depends on what."""

from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import Category, EdgeKind, EventFlag, Op, StepKind, TrackKind
from tracescope.core.columns import I64, U8
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.request_stream import RequestStream
from tracescope.core.trace import Dependencies, RequestTable, StepTable, Trace, TraceMeta, Track
from tracescope.core.work_table import WorkTable
from tracescope.floor.pricing import compute_s, link_s, memory_s, sent_bytes
from tracescope.synth.batching import NOT_YET, Schedule
from tracescope.synth.calibrated import HostOverhead
from tracescope.synth.mixed_plan import Load, plan_load, step_rows
from tracescope.synth.plan import COMPUTE, ENGINES, HOST, MEMORY, QUANTITIES, priced_table
from tracescope.synth.spans import Spans, event_table, places
from tracescope.synth.step_times import Caps
from tracescope.synth.timing import fitted, time_plan

DECODING, WAITING = "requests decoding", "requests waiting"
MOST_LANES: Final = 4096
"""Of requests that wait at once this many are drawn; the table of requests has all of them."""

_ROLES: Final = (Category.WEIGHT_READ, Category.KV_READ, Category.KV_APPEND, Category.COMPUTE, Category.COMMUNICATION)


class TraceMaker:
    """Gathers events of one trace: names, work rows and spans, until they are put together."""

    def __init__(self, model: ModelSpec, basis: Basis, workload: Workload, schedule: Schedule, caps: Caps) -> None:
        self._model, self._basis, self._workload, self._schedule = model, basis, workload, schedule
        self._load = Load(schedule.batch, schedule.tokens_read, caps)
        batches = np.unique(schedule.batch)
        self._names = [f"decode, batch {b:,}" for b in batches.tolist()]
        self._label = np.searchsorted(batches, schedule.batch).astype(np.uint32)
        self._details = [""]
        self._work: list[WorkTable] = [WorkTable.unknown()]
        self._parts: list[Spans] = []
        self._chain: list[tuple[I64, U8]] = []  # step and op column of device events, one entry a part
        self._warm_up = np.zeros(schedule.steps, bool)
        if schedule.steps >= 4:
            self._warm_up[0] = schedule.step_duration[0] > 2 * np.median(schedule.step_duration)

    def add_steps(self, except_for: slice) -> None:
        """One event for every step outside ``except_for``, on the engine that bounds it."""
        s = self._schedule
        ids = np.delete(np.arange(s.steps), except_for)
        load = Load(s.batch[ids], s.tokens_read[:, ids], self._load.caps)
        rows = step_rows(self._model, self._workload, load)
        table, _ = priced_table(np.concatenate([np.full((1, len(QUANTITIES)), -1, np.int64), rows]), self._basis)
        amount, seconds = _by_role(rows, self._basis)
        category = np.array(_ROLES, np.uint8)[seconds.argmax(axis=0)]
        memory = seconds[:3].sum(axis=0)
        roles = np.zeros(len(ids), np.uint16)
        for kind, moved in zip(_ROLES, amount, strict=True):
            roles |= np.where(moved > 0, kind.role, 0).astype(np.uint16)
        self._add_device(
            track=np.where(seconds[3] > memory, COMPUTE, MEMORY).astype(np.uint32),
            start=s.step_start[ids],
            duration=s.step_duration[ids],
            category=category,
            roles=roles,
            op=np.full(len(ids), Op.NONE, np.uint16),
            name=self._label[ids],
            layer=np.full(len(ids), -1, np.int16),
            step=ids,
            work=self._add_work(table) + np.arange(len(ids), dtype=np.uint32),
            column=np.zeros(len(ids), np.uint8),
        )

    def add_operations(self, rows: slice, profile: str, seed: int, host: HostOverhead | None = None) -> None:
        """Every operation of the steps in ``rows``."""
        steps = rows.stop - rows.start
        if not steps:
            return
        s = self._schedule
        plan = plan_load(self._model, self._basis, self._workload, self._load.part(rows))
        timing = time_plan(plan, self._basis, profile, seed, batch=s.batch[rows], delays=False, host=host)
        timing = fitted(timing, plan, s.step_duration[rows], s.delay[rows])
        ends = np.cumsum(timing.wait + timing.duration, axis=1) + s.step_start[rows, None]
        engine = plan.engine[plan.work]
        engine[:, plan.host] = HOST
        names = [Op(o).label or "" for o in plan.op.tolist()]
        name_of = {name: len(self._names) + i for i, name in enumerate(dict.fromkeys(names))}
        self._names += name_of
        column = np.tile(np.minimum(np.arange(plan.ops), 2).astype(np.uint8), steps)
        self._add_device(
            track=engine.ravel().astype(np.uint32),
            start=(ends - timing.duration).ravel(),
            duration=timing.duration.ravel(),
            category=np.tile(plan.category, steps),
            roles=np.tile(plan.roles, steps),
            op=np.tile(plan.op.astype(np.uint16), steps),
            name=np.tile(np.array([name_of[name] for name in names], np.uint32), steps),
            layer=np.tile(plan.layer, steps),
            step=np.repeat(np.arange(rows.start, rows.stop), plan.ops),
            work=plan.work.ravel() - 1 + self._add_work(plan.table),
            column=column,
        )

    def _add_work(self, table: WorkTable) -> np.uint32:
        """Append the rows of ``table`` after its first, which is always there; the id of its second row."""
        first = sum(len(part) for part in self._work)
        self._work.append(_without_first(table))
        return np.uint32(first)

    def _add_device(self, *, column: U8, step: I64, duration: I64, **columns: NDArray[Any]) -> None:
        n = len(step)
        empty, warm = np.uint8(EventFlag.ZERO_LENGTH), np.uint8(EventFlag.WARM_UP)
        flags = (duration == 0) * empty + self._warm_up[step] * warm
        self._parts.append(
            Spans(
                depth=np.zeros(n, np.uint16), detail=np.zeros(n, np.uint32), duration=duration,
                step=step.astype(np.int32), flags=flags, **columns,
            )
        )  # fmt: skip
        self._chain.append((step, column))

    def add_requests(self, stream: RequestStream) -> None:
        """One event for each phase of a request that took any time: waiting, then decoding."""
        s = self._schedule
        end = int((s.step_start + s.step_duration)[-1])
        seen = np.flatnonzero(~s.refused & (stream.arrival < end))
        named, told = len(self._names), len(self._details)
        self._names += [f"request {r}" for r in seen.tolist()]
        self._details += [
            f'{{"request":{r},"prompt_tokens":{p},"output_tokens":{o}}}'
            for r, p, o in zip(seen.tolist(), stream.prompt[seen].tolist(), stream.output[seen].tolist(), strict=True)
        ]
        for phase, (start, finish) in enumerate(((s.start, s.finish), (stream.arrival, s.start))):
            open_end = finish[seen] == NOT_YET
            low, high = start[seen], np.where(open_end, end, finish[seen])
            which = np.flatnonzero((low != NOT_YET) & (high > low))
            depth = places(low[which], high[which])
            drawn = depth < MOST_LANES
            which, depth = which[drawn], depth[drawn]
            n = len(which)
            self._parts.append(
                Spans(
                    track=np.full(n, len(ENGINES) + phase, np.uint32),
                    depth=depth.astype(np.uint16),
                    start=low[which],
                    duration=(high - low)[which],
                    category=np.full(n, Category.HOST, np.uint8),
                    roles=np.zeros(n, np.uint16),
                    op=np.full(n, Op.NONE, np.uint16),
                    name=(named + which).astype(np.uint32),
                    layer=np.full(n, -1, np.int16),
                    step=np.full(n, -1, np.int32),
                    work=np.zeros(n, np.uint32),
                    detail=(told + which).astype(np.uint32),
                    flags=np.where(open_end[which], EventFlag.UNFINISHED, 0).astype(np.uint8),
                )
            )

    def trace(self, meta: TraceMeta, requests: RequestTable) -> Trace:
        """Put everything together."""
        events, lanes, event_of = event_table(self._parts)
        device = "device 0" if meta.hardware is None else meta.hardware.title
        tracks = [Track(TrackKind.ENGINE, name, process=device, device=0, rank=0) for name in ENGINES]
        tracks += [Track(TrackKind.ANNOTATION, name, process="requests") for name in (DECODING, WAITING)]
        used, renumbered = np.unique(lanes.track, return_inverse=True)
        return Trace(
            meta=meta,
            tracks=tuple(tracks[t] for t in used.tolist()),
            lanes=replace(lanes, track=renumbered.astype(np.uint32)),
            events=events,
            names=tuple(self._names),
            work=_joined(self._work),
            details=tuple(self._details),
            steps=self._steps(),
            requests=requests,
            dependencies=self._dependencies(event_of),
        )

    def _steps(self) -> StepTable:
        s = self._schedule
        return StepTable(
            label=self._label,
            kind=np.full(s.steps, StepKind.DECODE, np.uint8),
            start=s.step_start,
            duration=s.step_duration,
            host_wait=np.zeros(s.steps, np.int64),
            batch=s.batch.astype(np.int32),
            padded_batch=s.batch.astype(np.int32),
            context_tokens=s.context_tokens,
            generated_tokens=s.batch,
            queue_depth=s.queue_depth.astype(np.int32),
            all_accepted=np.ones(s.steps, bool),
            warm_up=self._warm_up,
        )

    def _dependencies(self, event_of: I64) -> Dependencies:
        """One edge into every device event from the one before it; none where a step waited for an arrival."""
        s = self._schedule
        step = np.concatenate([steps for steps, _ in self._chain])
        column = np.concatenate([columns for _, columns in self._chain])
        order = np.argsort(step, kind="stable")
        step, column, event = step[order], column[order], event_of[: len(step)][order]
        shares = s.batch - s.joined > 0
        follows = np.append(False, s.step_start[1:] == (s.step_start + s.step_duration)[:-1])
        between = np.where(shares, EdgeKind.PREVIOUS_TOKEN, EdgeKind.RESOURCE).astype(np.uint8)
        within = np.array([EdgeKind.PREVIOUS_TOKEN, EdgeKind.LAUNCH, EdgeKind.DATA], np.uint8)
        kind = np.where(column == 0, between[step], within[column])
        wanted = np.flatnonzero((column > 0) | follows[step])
        wanted = wanted[wanted > 0]
        by_target = np.argsort(event[wanted], kind="stable")
        wanted = wanted[by_target]
        return Dependencies(
            source=event[wanted - 1].astype(np.uint32),
            target=event[wanted].astype(np.uint32),
            kind=kind[wanted],
            recorded=np.ones(len(wanted), bool),
        )


def _by_role(rows: I64, basis: Basis) -> tuple[I64, NDArray[np.float64]]:
    """Amounts of each of ``_ROLES`` and the seconds that each needs alone, [roles, steps]."""
    column = {name: rows[:, i] for i, name in enumerate(QUANTITIES)}
    weights = column["weight_read"] + column["embedding_gather"]
    sent = sent_bytes(column["link"], column["link_reduced"], basis)
    amount = np.stack([weights, column["kv_read"], column["kv_append"], column["flops"], sent])
    seconds = np.concatenate([memory_s(amount[:3], basis), compute_s(amount[3:4], basis), link_s(amount[4:], basis)])
    return amount, np.nan_to_num(seconds)


def _without_first(table: WorkTable) -> WorkTable:
    return WorkTable(**{f.name: getattr(table, f.name)[1:] for f in fields(table)})


def _joined(tables: list[WorkTable]) -> WorkTable:
    return WorkTable(**{f.name: np.concatenate([getattr(t, f.name) for t in tables]) for f in fields(WorkTable)})
