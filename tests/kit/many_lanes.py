"""A trace of many host threads with nested operators, made from columns: for measuring rows of plain tracks."""

import numpy as np

from tracescope.core.category import Category, Op, TrackKind
from tracescope.core.trace import EventTable, Lanes, Trace, TraceMeta, Track

TRACKS = 64
DEPTHS = 3
CATEGORIES = (Category.HOST, Category.COMPUTE, Category.WEIGHT_READ, Category.COPY)


def many_lanes(events: int, seed: int = 0) -> Trace:
    """``events`` events on ``TRACKS`` threads of ``DEPTHS`` depths, one to nine microseconds long, with gaps."""
    rng = np.random.default_rng(seed)
    each = max(1, events // (TRACKS * DEPTHS))
    lanes = TRACKS * DEPTHS
    duration = rng.integers(1000, 9000, (lanes, each))
    start = np.cumsum(duration + rng.integers(0, 3000, (lanes, each)), axis=1) - duration
    category = np.array(CATEGORIES, np.uint8)[rng.integers(0, len(CATEGORIES), lanes * each)]
    count = lanes * each
    return Trace(
        meta=TraceMeta(),
        tracks=tuple(Track(TrackKind.HOST_THREAD, f"thread {n}") for n in range(TRACKS)),
        lanes=Lanes(
            track=np.repeat(np.arange(TRACKS), DEPTHS).astype(np.uint32),
            depth=np.tile(np.arange(DEPTHS), TRACKS).astype(np.uint16),
            offset=np.arange(lanes + 1, dtype=np.int64) * each,
        ),
        events=EventTable(
            start=start.ravel(), duration=duration.ravel(), category=category,
            roles=(1 << category.astype(np.uint16)).astype(np.uint16), op=np.full(count, Op.OTHER, np.uint16),
            name=np.zeros(count, np.uint32), layer=np.full(count, -1, np.int16), step=np.full(count, -1, np.int32),
            work=np.zeros(count, np.uint32), detail=np.zeros(count, np.uint32), flags=np.zeros(count, np.uint8),
        ),
        names=("operator",),
    )  # fmt: skip
