"""Small traces made by hand for the level-of-detail and drawing tests."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracescope.core.assemble import lay_out, reordered
from tracescope.core.category import BytesFrom, Category, Op, StepKind, TrackKind
from tracescope.core.hardware import Basis
from tracescope.core.trace import EventTable, StepTable, Trace, TraceMeta, Track
from tracescope.core.work_table import WorkTable

BASIS = Basis(bandwidth_bytes_per_s=10**12, bandwidth_source="user", peak_flops_per_s=10**14)


@dataclass(frozen=True)
class Made:
    """One event: times in ns, its category, what it moves (-1 unknown) and where it belongs."""

    start: int
    duration: int
    category: Category = Category.WEIGHT_READ
    weight: int = 0
    kv: int = 0
    append: int = 0
    flops: int = 0
    op: Op = Op.QKV
    layer: int = -1
    step: int = -1
    track: int = 0
    name: str = "kernel"


STREAM = Track(TrackKind.DEVICE_STREAM, "stream 7", device=0)


def make_trace(
    made: Sequence[Made], steps: Sequence[tuple[int, int]] = (), tracks: Sequence[Track] = (STREAM,), **meta: object
) -> Trace:
    """A trace of these events; ``steps`` as (start, duration)."""
    names = sorted({e.name for e in made} | {"step"})
    rows = [(-1, -1, -1, -1)]
    work = []
    for e in made:
        amounts = (e.weight, e.kv, e.append, e.flops)
        if amounts not in rows:
            rows.append(amounts)
        work.append(rows.index(amounts))
    column = np.array(rows, np.int64).T
    none = np.where(column[0] < 0, -1, 0)
    start = np.array([e.start for e in made], np.int64)
    duration = np.array([e.duration for e in made], np.int64)
    laid = lay_out(np.array([e.track for e in made], np.int64), start, duration, tracks)
    events = EventTable(
        start=start,
        duration=duration,
        category=np.array([e.category for e in made], np.uint8),
        roles=np.array([e.category.role for e in made], np.uint16),
        op=np.array([e.op for e in made], np.uint16),
        name=np.array([names.index(e.name) for e in made], np.uint32),
        layer=np.array([e.layer for e in made], np.int16),
        step=np.array([e.step for e in made], np.int32),
        work=np.array(work, np.uint32),
        detail=np.zeros(len(made), np.uint32),
        flags=np.zeros(len(made), np.uint8),
    )
    count = len(steps)
    minus32, minus64 = np.full(count, -1, np.int32), np.full(count, -1, np.int64)
    return Trace(
        meta=TraceMeta(**meta),  # type: ignore[arg-type]
        tracks=tuple(tracks),
        lanes=laid.lanes,
        events=reordered(events, laid.order),
        names=tuple(names),
        work=WorkTable.of(
            weight_read=column[0], embedding_gather=none, kv_read=column[1], kv_append=column[2], activation=none,
            link=none, flops=column[3], bytes_from=np.full(len(rows), BytesFrom.USER, np.uint8),
        ),
        steps=StepTable(
            label=np.full(count, names.index("step"), np.uint32),
            kind=np.full(count, StepKind.DECODE, np.uint8),
            start=np.array([s for s, _ in steps], np.int64),
            duration=np.array([d for _, d in steps], np.int64),
            host_wait=minus64, batch=minus32, padded_batch=minus32, context_tokens=minus64,
            generated_tokens=minus64, queue_depth=minus32,
            all_accepted=np.ones(count, bool), warm_up=np.zeros(count, bool),
        ),
    )  # fmt: skip


def random_stream(count: int, seed: int = 1, origin: int = 0) -> Trace:
    """``count`` events of all kinds on one stream, with gaps, instants and known and unknown floors."""
    rng = np.random.default_rng(seed)
    duration = rng.integers(0, 4000, count)
    duration[rng.random(count) < 0.02] = 0
    start = origin + np.cumsum(rng.integers(0, 600, count) + np.concatenate([[0], duration[:-1]]))
    kinds = rng.choice([0, 1, 2, 3, 4, 5, 8], count)
    choice = rng.integers(0, 3, count)
    made = [
        Made(
            int(s), int(d), Category(int(k)),
            weight=(-1, 0, 1_000_000)[c] if k == 0 else 0, kv=(-1, 500_000, 900_000)[c] if k == 1 else 0,
            flops=(0, 10**7, 10**8)[c] if k == 3 else 0,
        )
        for s, d, k, c in zip(start, duration, kinds, choice, strict=True)
    ]  # fmt: skip
    return make_trace(made)
