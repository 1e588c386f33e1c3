"""The handed cases for SQLite exports of Nsight Systems. One test a case."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kit.raw import read
from tracescope.core.category import EdgeKind, EventFlag
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory, RawTrace
from tracescope.load import open_trace

Shared = Callable[[str], Path]


def expected_of(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text())["expected"]


def of(raw: RawTrace, *kinds: RawCategory) -> list[int]:
    return np.flatnonzero(raw.of(*kinds)).tolist()


def names(raw: RawTrace, rows: list[int]) -> list[str]:
    return [raw.names[raw.events.name[row]] for row in rows]


def test_35_null_ends_and_missing_strings(shared: Shared) -> None:
    folder = shared("cases/35-nsys-null-ends-and-missing-strings")
    want, raw = expected_of(folder)["nvtx_nulls.sqlite"], read(folder / "nvtx_nulls.sqlite")
    rows, flags = of(raw, RawCategory.ANNOTATION), raw.events.flags
    unfinished = [row for row in rows if flags[row] & EventFlag.UNFINISHED]
    marks = [row for row in rows if flags[row] & EventFlag.ZERO_LENGTH]
    assert names(raw, unfinished) == want["unfinished"]
    assert names(raw, marks) == want["marks"]
    ranges = [
        {
            "name": raw.names[raw.events.name[row]],
            "start_ns": int(raw.events.start[row]),
            "dur_ns": int(raw.events.duration[row]),
        }
        for row in rows
        if row not in unfinished and row not in marks
    ]
    assert ranges == want["nvtx_ranges"]
    assert names(raw, of(raw, RawCategory.KERNEL)) == [want["kernel_name"]] * want["kernel_slices"]
    assert raw.flagged["unfinished"] == 1
    assert raw.seen == 8  # the kernel, six ranges and marks, and the domain that was created

    want, raw = expected_of(folder)["no_string_table.sqlite"], read(folder / "no_string_table.sqlite")
    assert len(of(raw, RawCategory.KERNEL)) == want["kernel_slices"]
    assert names(raw, of(raw, RawCategory.KERNEL)) == want["names"]
    assert want["note"] in raw.notes
    assert want["note"] in open_trace(folder / "no_string_table.sqlite").trace.meta.notes


def test_37_one_graph_launch_many_kernels(shared: Shared) -> None:
    folder = shared("cases/37-cuda-graph-one-launch-many-kernels")
    want, raw = expected_of(folder), read(folder / "graph.sqlite")
    kernels, calls = of(raw, RawCategory.KERNEL), of(raw, RawCategory.RUNTIME)
    assert (len(kernels), len(calls)) == (want["kernel_slices"], want["runtime_slices"])
    assert int(raw.events.duration[calls].sum()) == want["launch_api_time_ns"]
    assert int(raw.events.duration[kernels].sum()) == want["kernel_busy_ns"]
    linked = Counter(f"correlation {c}" for c in raw.events.correlation[kernels].tolist())
    assert linked == want["links"]
    assert set(raw.events.correlation[calls].tolist()) == {100, 101}
    details = [json.loads(raw.details[raw.events.detail[row]] or "{}") for row in kernels]
    assert sum("graph id" in detail for detail in details) == want["graph_kernels"]
    edges = open_trace(folder / "graph.sqlite").trace.dependencies
    assert int((edges.recorded & (edges.kind == EdgeKind.LAUNCH)).sum()) == len(kernels)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cut.sqlite", "damaged or incomplete"),
        ("text.sqlite", "not a SQLite database"),
        ("header_only.sqlite", "damaged or incomplete"),
        ("flipped.sqlite", "damaged (PRAGMA quick_check"),
    ],
)
def test_39_broken_databases_are_refused_in_one_sentence(shared: Shared, name: str, said: str) -> None:
    path = shared("cases/39-sqlite-locked-or-broken") / name
    with pytest.raises(TraceError) as refused:
        read(path)
    assert said in refused.value.what
    assert name in refused.value.what
    assert len(refused.value.lines()) <= 3


def test_39_a_locked_database_is_read_from_a_copy(shared: Shared, tmp_path: Path) -> None:
    folder = shared("cases/39-sqlite-locked-or-broken")
    path = tmp_path / "locked.sqlite"
    path.write_bytes((folder / "locked.sqlite").read_bytes())
    holder = subprocess.Popen(
        [sys.executable, str(folder / "hold_lock.py"), str(path), "60"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "locked"
        began = time.monotonic()
        raw = read(path)
        assert time.monotonic() - began < expected_of(folder)["locked.sqlite"]["within_s"]
        assert len(of(raw, RawCategory.KERNEL)) == 1
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["locked.sqlite"]
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert (
        len(of(read(path), RawCategory.KERNEL))
        == expected_of(folder)["locked.sqlite"]["after_release"]["kernel_slices"]
    )
