"""Time to save, read and verify a native file, beside reading the same columns as plain bytes of one file.

python -m tests.bench native
"""

import dataclasses
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tracescope.core.category import TrackKind
from tracescope.core.columns import empty_columns
from tracescope.core.trace import EventTable, Lanes, StepTable, Trace, TraceMeta, Track
from tracescope.io import native, save

LANES = 192
OPS_A_STEP = 326
KERNEL_NS = np.array([2100, 21200, 3100, 2500, 58900, 17000, 2100, 66600, 3000, 40900])
GOAL_S = {1_000_000: 0.3, 10_000_000: 0.6}


def decode_like(n: int) -> Trace:
    """``n`` events on 192 lanes: ten kernels in turn with jitter, layers and steps as in decoding."""
    rng = np.random.default_rng(0)
    per = n // LANES
    row = np.arange(n)
    duration = KERNEL_NS[row % 10] + rng.integers(0, 400, n)
    offset = np.append(np.arange(LANES) * per, n)
    end = np.concatenate([np.cumsum((duration + rng.integers(100, 900, n))[a:b]) for a, b in pairwise(offset.tolist())])
    steps = max(1, per // OPS_A_STEP)
    events = EventTable(
        start=end - duration,
        duration=duration,
        category=row % 7,
        roles=1 << (row % 7),
        op=row % 10 + 3,
        name=row % 10,
        layer=row // 10 % 32,
        step=np.minimum(row % per // OPS_A_STEP, steps - 1),
        work=np.zeros(n, np.uint32),
        detail=np.zeros(n, np.uint32),
        flags=np.zeros(n, np.uint8),
    )
    return Trace(
        meta=TraceMeta(),
        tracks=tuple(Track(TrackKind.DEVICE_STREAM, f"stream {i}") for i in range(LANES)),
        lanes=Lanes(np.arange(LANES, dtype=np.uint32), np.zeros(LANES, np.uint16), offset),
        events=events,
        names=tuple(f"kernel_{i}" for i in range(10)),
        steps=StepTable(**{name: np.zeros(steps, array.dtype) for name, array in empty_columns(StepTable).items()}),
    )


def best(call: Callable[[], Any], times: int = 5) -> float:
    """The shortest of ``times`` runs in seconds."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return min(took)


def main() -> None:
    """Print one row for 1 M and one for 10 M events."""
    heads = ("events", "B/event", "save s", "read s", "goal s", "verify s", "plain s", "ratio")
    print("".join(f"{head:>12}" for head in heads))
    with tempfile.TemporaryDirectory() as folder:
        path, plain = Path(folder) / "bench.tscope.h5", Path(folder) / "plain.bin"
        for n, goal in GOAL_S.items():
            trace = decode_like(n)
            columns = [getattr(trace.events, field.name) for field in dataclasses.fields(trace.events)]
            with plain.open("wb") as file:
                for column in columns:
                    column.tofile(file)
            types = [column.dtype for column in columns]
            del columns

            def read_plain(n: int = n, types: list[Any] = types) -> None:
                with plain.open("rb") as file:
                    _ = [np.fromfile(file, dtype, n) for dtype in types]

            saved = best(lambda trace=trace: save.write(path, trace), 2)
            del trace
            read, raw = best(lambda: native.read(path)), best(read_plain)
            verified = best(lambda: native.verify_checksum(path), 2)
            size = path.stat().st_size / n
            row = (f"{n:,}", f"{size:.2f}", *(f"{x:.3f}" for x in (saved, read, goal, verified, raw, read / raw)))
            print("".join(f"{cell:>12}" for cell in row))


if __name__ == "__main__":
    main()
