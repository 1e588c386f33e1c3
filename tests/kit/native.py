"""Traces to save and read back: one that uses every table, and a Hypothesis strategy for arbitrary ones."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tracescope.core.assemble import lay_out, reordered
from tracescope.core.category import BytesFrom, Category, EdgeKind, EventFlag, Op, StepKind, TrackKind
from tracescope.core.columns import empty_columns
from tracescope.core.hardware import EnergyModel, HardwareSpec
from tracescope.core.model import ModelSpec
from tracescope.core.report import ImportReport, Inference, Source
from tracescope.core.samples import SampleTable
from tracescope.core.trace import (
    Dependencies,
    Device,
    EventTable,
    GraphNodes,
    RequestTable,
    StepTable,
    Trace,
    TraceMeta,
    Track,
)
from tracescope.core.work_table import WorkTable
from tracescope.lod.pyramid import Pyramid

MODEL = ModelSpec("tiny", "test", 64, 2, 4, 2, 16, 256, 1000, True, assumptions=("tied by default",))
ENERGY = EnergyModel((1.0, 2.0, 3.0), (0.1, 0.2, 0.3), (40.0, 50.0, 60.0), "device", "test")
HARDWARE = HardwareSpec("m", "Machine", 10**12, 1 << 35, {"bf16": 10**14}, "test", tdp_w=300.0, energy=ENERGY)


def some_pyramid() -> Pyramid:
    """A pyramid of two rows, the second without bins, and one coarser level."""
    rng = np.random.default_rng(3)
    fine = rng.integers(0, 255, (5000, 3)).astype(np.uint8)
    fine[:, 0] %= 6
    return Pyramid(
        origin=-5,
        bandwidth_bytes_per_s=10**12,
        row_kind=np.array([0, 1], np.uint8),
        row_index=np.array([2, 0], np.uint32),
        row_shift=np.array([7, 3], np.uint8),
        fine_offset=np.array([0, 5000, 5000]),
        fine=fine,
        level_row=np.array([0], np.uint32),
        level_shift=np.array([11], np.uint8),
        level_offset=np.array([0, 313]),
        coarse=rng.integers(0, 255, (313, 7)).astype(np.uint8),
    )


def full_trace(n: int = 500, seed: int = 1, names: tuple[str, ...] | None = None) -> Trace:
    """A trace of ``n`` events on four tracks, with rows in every table."""
    rng = np.random.default_rng(seed)
    tracks = (
        Track(TrackKind.DEVICE_STREAM, "stream 7", "python", 0, 0),
        Track(TrackKind.ENGINE, "memory"),
        Track(TrackKind.HOST_THREAD, "thread <1>", "python"),
        Track(TrackKind.ANNOTATION, "mark"),
        Track(TrackKind.COUNTER, "DRAM Read Bandwidth [Throughput %]", "python", 0, 0),
    )
    names = names or (*(f"kernel_{i}<float>" for i in range(50)), "нейро ☃", "", "a\nb")
    steps = 3
    track = rng.integers(0, 4, n)
    start = np.sort(rng.integers(0, 10**7, n))
    duration = rng.integers(0, 5000, n)
    laid = lay_out(track, start, duration, tracks)
    events = EventTable(
        start=start,
        duration=duration,
        category=rng.integers(0, max(Category) + 1, n),
        roles=rng.integers(0, 1 << (max(Category) + 1), n),
        op=rng.integers(0, max(Op) + 1, n),
        name=rng.integers(0, len(names), n),
        layer=rng.integers(-1, 2, n),
        step=rng.integers(-1, steps, n),
        work=rng.integers(0, 4, n),
        detail=rng.integers(0, 2, n),
        flags=rng.integers(0, sum(EventFlag) + 1, n),
    )
    work = [np.array([-1, 0, 10**10, int(rng.integers(1, 10**6))]) for _ in range(12)]
    edges = np.sort(rng.integers(1, n, n // 2)) if n > 1 else np.empty(0, np.int64)
    return Trace(
        meta=TraceMeta(
            created_by="test",
            source=Source("run ☃.json", "ab" * 32, 1234, "kineto"),
            report=ImportReport(n + 2, n, {"misplaced_end": 2}, {"odd": 1}, 99, (Inference("a", "b", 0.5),), 7),
            model=MODEL,
            hardware=HARDWARE,
            bandwidth_bytes_per_s=10**12,
            bandwidth_source="datasheet",
            base_ns=1_767_000_000_000_000_000,
            resolution_ns=250,
            seed=5,
            devices=(Device(0, 0, "GPU"),),
            assumptions=("x",),
            notes=("n",),
        ),
        tracks=tracks,
        lanes=laid.lanes,
        events=reordered(events, laid.order),
        names=names,
        work=WorkTable(*work[:7], np.array([0, 1, 2, max(BytesFrom)]), *work[7:]),
        details=("", '{"grid":[1,2,3],"text":"é"}'),
        steps=StepTable(
            label=np.arange(steps),
            kind=np.array([0, 1, max(StepKind)]),
            start=np.arange(steps) * 1000,
            duration=np.full(steps, 900),
            host_wait=np.array([-1, 0, 5]),
            batch=np.array([-1, 1, 32]),
            padded_batch=np.full(steps, -1),
            context_tokens=np.array([-1, 0, 32785]),
            generated_tokens=np.full(steps, 4),
            queue_depth=np.full(steps, -1),
            all_accepted=np.array([True, False, True]),
            warm_up=np.array([True, False, False]),
        ),
        requests=RequestTable(*(np.array([-1, i, 10**9]) for i in range(6))),
        dependencies=Dependencies(
            source=edges - 1, target=edges, kind=edges % (max(EdgeKind) + 1), recorded=edges % 2 == 0
        ),
        graph_nodes=GraphNodes(np.array([0, n // 2 + 1])[: n - 1], np.array([7, 1 << 40])[: n - 1]),
        samples=SampleTable(np.full(3, 4), np.array([-5, 0, 10**6]), np.array([0.0, 12.5, -1e300])),
    )


def empty_trace() -> Trace:
    """A trace without events, tracks, steps or names."""
    laid = lay_out(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), ())
    return Trace(TraceMeta(), (), laid.lanes, EventTable(**empty_columns(EventTable)), ())


_texts = st.text(st.characters(codec="utf-8"), max_size=20)
_ids = st.integers(0, 2**31)
_times = st.integers(-(2**61), 2**61)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any valid trace of up to 30 events: extreme times, empty tables, unusual text."""
    kinds = draw(st.lists(st.sampled_from(TrackKind), min_size=1, max_size=4))
    tracks = tuple(Track(kind, draw(_texts), draw(_texts), draw(st.integers(-1, 9))) for kind in kinds)
    names = tuple(draw(st.lists(_texts, min_size=1, max_size=5)))
    n = draw(st.integers(0, 30))
    steps = draw(st.integers(0, 3))

    def column(low: int, high: int) -> np.ndarray[Any, Any]:
        return np.array(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)), np.int64)

    start, duration = column(-(2**61), 2**61), column(0, 2**61)
    laid = lay_out(column(0, len(tracks) - 1), start, duration, tracks)
    events = EventTable(
        start,
        duration,
        column(0, max(Category)),
        column(0, (1 << (max(Category) + 1)) - 1),
        column(0, max(Op)),
        column(0, len(names) - 1),
        column(-1, 2**15 - 1),
        column(-1, steps - 1),
        column(0, 0),
        column(0, 0),
        column(0, sum(EventFlag)),
    )
    rows = empty_columns(StepTable)
    step_rows = {name: np.zeros(steps, array.dtype) for name, array in rows.items()}
    step_rows["start"] = np.array(draw(st.lists(_times, min_size=steps, max_size=steps)), np.int64)
    targets = sorted(draw(st.lists(st.integers(0, n - 1), max_size=10))) if n else []
    return Trace(
        TraceMeta(created_by=draw(_texts), base_ns=draw(_times), notes=tuple(draw(st.lists(_texts, max_size=2)))),
        tracks,
        laid.lanes,
        reordered(events, laid.order),
        names,
        details=("", *draw(st.lists(_texts, max_size=2))),
        steps=StepTable(**step_rows),
        dependencies=Dependencies(
            np.array([draw(st.integers(0, n - 1)) for _ in targets], np.uint32),
            np.array(targets, np.uint32),
            np.zeros(len(targets), np.uint8),
            np.ones(len(targets), bool),
        ),
    )
