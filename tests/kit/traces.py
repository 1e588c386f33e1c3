"""Small traces made by hand: a few events with given times, bytes, layers and steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracescope.core.assemble import flagged_overlaps, lay_out, reordered
from tracescope.core.category import BytesFrom, Category, Op, StepKind, TrackKind
from tracescope.core.hardware import Basis, EnergyModel, HardwareSpec
from tracescope.core.trace import EventTable, StepTable, Trace, TraceMeta, Track
from tracescope.core.work_table import WorkTable

STREAM = Track(TrackKind.DEVICE_STREAM, "stream 7", device=0, rank=0)
SECOND_STREAM = Track(TrackKind.DEVICE_STREAM, "stream 8", device=0, rank=0)
THREAD = Track(TrackKind.HOST_THREAD, "thread 1")
SECOND_THREAD = Track(TrackKind.HOST_THREAD, "thread 2")

GIGABYTE_A_SECOND = 1_000_000_000

ENERGY = EnergyModel((8.0, 10.0, 13.0), (0.4, 0.4, 0.4), (250.0, 200.0, 100.0), "board", "test")
MACHINE = HardwareSpec("test", "Test machine", GIGABYTE_A_SECOND, 10**9, {"bf16": 10**12}, "test", energy=ENERGY)

BASIS = Basis(MACHINE, GIGABYTE_A_SECOND, "datasheet", 10**12, energy=ENERGY)
"""A machine that reads one byte a nanosecond: floors in ns are bytes."""
FAST = Basis(bandwidth_bytes_per_s=10**12, bandwidth_source="user", peak_flops_per_s=10**14)
"""A rate that a user gave, without a machine: a thousand bytes a nanosecond, as accelerators do, so times round."""
NO_BASIS = Basis()

AMOUNTS = (
    "weight_read", "embedding_gather", "kv_read", "kv_append", "activation", "link", "flops", "bytes_from"
)  # fmt: skip


@dataclass(frozen=True)
class Ev:
    """One event; an amount is 0 unless given and -1 where unknown, ``unknown=True`` makes the whole work row unknown.

    It belongs to the first step, in a trace that has steps.
    """

    start: int
    duration: int
    step: int = 0
    track: int = 0
    op: Op = Op.NONE
    layer: int = -1
    category: Category = Category.OTHER
    weight_read: int = 0
    kv_read: int = 0
    kv_append: int = 0
    flops: int = 0
    link: int = 0
    unknown: bool = False
    roles: int | None = None
    name: str = "event"
    flags: int = 0

    @property
    def work(self) -> tuple[int, ...]:
        """The work row: weight, gather, kv read, kv append, activation, link, flops, source."""
        if self.unknown:
            return (-1,) * 7 + (int(BytesFrom.NONE),)
        return (
            self.weight_read, 0, self.kv_read, self.kv_append, 0, self.link, self.flops, int(BytesFrom.SHAPE),
        )  # fmt: skip


def kernel(start: int, duration: int, category: Category = Category.WEIGHT_READ, **more: Any) -> Ev:
    """A kernel of the projection to query, key and value, or what ``more`` makes of it."""
    return Ev(start, duration, category=category, **{"op": Op.QKV, "name": "kernel", **more})


@dataclass(frozen=True)
class St:
    """One step: its window, and what is known about it."""

    start: int
    duration: int
    kind: StepKind = StepKind.DECODE
    batch: int = 1
    generated: int = 1
    context: int = -1
    warm_up: bool = False
    host_wait: int = -1
    accepted: bool = True
    label: str = "step"


def make_trace(
    events: Sequence[Ev], steps: Sequence[St] = (), tracks: Sequence[Track] = (STREAM,), **meta: object
) -> Trace:
    """A Trace of these events; steps are windows, events name theirs."""
    names = list(dict.fromkeys([e.name for e in events] + [s.label for s in steps] + ["unnamed"]))
    rows = [e.work for e in events]
    works = list(dict.fromkeys([(-1,) * 7 + (0,), *rows]))
    name_row = {name: row for row, name in enumerate(names)}
    work_row = {work: row for row, work in enumerate(works)}

    def column(values: list[int]) -> np.ndarray:
        return np.array(values, np.int64)

    laid = lay_out(
        column([e.track for e in events]), column([e.start for e in events]), column([e.duration for e in events]),
        list(tracks),
    )  # fmt: skip
    table = EventTable(
        start=column([e.start for e in events]),
        duration=column([e.duration for e in events]),
        category=column([e.category for e in events]),
        roles=column([e.category.role if e.roles is None else e.roles for e in events]),
        op=column([e.op for e in events]),
        name=column([name_row[e.name] for e in events]),
        layer=column([e.layer for e in events]),
        step=column([e.step if steps else -1 for e in events]),
        work=column([work_row[work] for work in rows]),
        detail=column([0 for _ in events]),
        flags=column([e.flags for e in events]),
    )
    table = reordered(table, laid.order)
    table = replace(table, flags=flagged_overlaps(table.flags, laid))
    return Trace(
        meta=replace(TraceMeta(), **meta),
        tracks=tuple(tracks),
        lanes=laid.lanes,
        events=table,
        names=tuple(names),
        work=WorkTable.of(**{name: column([w[i] for w in works]) for i, name in enumerate(AMOUNTS)}),
        steps=StepTable(
            label=column([name_row[s.label] for s in steps]),
            kind=column([s.kind for s in steps]),
            start=column([s.start for s in steps]),
            duration=column([s.duration for s in steps]),
            host_wait=column([s.host_wait for s in steps]),
            batch=column([s.batch for s in steps]),
            padded_batch=column([-1 for _ in steps]),
            context_tokens=column([s.context for s in steps]),
            generated_tokens=column([s.generated for s in steps]),
            queue_depth=column([-1 for _ in steps]),
            all_accepted=np.array([s.accepted for s in steps], bool),
            warm_up=np.array([s.warm_up for s in steps], bool),
        ),
    )


def random_stream(count: int, seed: int = 1, origin: int = 0) -> Trace:
    """``count`` events of all kinds on one stream, with gaps, instants and known and unknown floors (see FAST)."""
    rng = np.random.default_rng(seed)
    duration = rng.integers(0, 4000, count)
    duration[rng.random(count) < 0.02] = 0
    start = origin + np.cumsum(rng.integers(0, 600, count) + np.concatenate([[0], duration[:-1]]))
    kinds = rng.choice([0, 1, 2, 3, 4, 5, 8], count)
    choice = rng.integers(0, 3, count)
    made = [
        kernel(
            s, d, Category(k),
            weight_read=(-1, 0, 1_000_000)[c] if k == 0 else 0, kv_read=(-1, 500_000, 900_000)[c] if k == 1 else 0,
            flops=(0, 10**7, 10**8)[c] if k == 3 else 0,
        )
        for s, d, k, c in zip(*(column.tolist() for column in (start, duration, kinds, choice)), strict=True)
    ]  # fmt: skip
    return make_trace(made)
