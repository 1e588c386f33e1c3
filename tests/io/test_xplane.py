"""XPlane protobuf by the fields of xplane.proto: the same run as a JSON trace, with its clock in picoseconds."""

from pathlib import Path

import numpy as np
import pytest

from perfetto_files import Fields, message
from tracescope.core.category import Category
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory
from tracescope.io import reader_for
from tracescope.load import open_trace

BASE = 1_767_225_600 * 10**9
LAYER = [
    ("fusion.12", 3), ("convolution_fusion.4", 60), ("dynamic-update-slice.3", 4), ("ragged_paged_attention.7", 40),
    ("convolution_fusion.5", 30), ("all-reduce.2", 8),
]  # fmt: skip
"""HLO instructions of one layer, with the µs that each takes."""


def plane(name: str, lines: list[Fields], names: list[str], stats: list[str], said: dict[str, Fields]) -> bytes:
    """One XPlane; ids count from 1."""
    return message(
        {
            1: 1,
            2: name,
            3: lines,
            4: [
                {
                    1: i + 1,
                    2: {1: i + 1, 2: f"%{n} = bf16[4,8] all-reduce(%x)", 4: n, 5: [said[n]] if n in said else []},
                }
                for i, n in enumerate(names)
            ],
            5: [{1: i + 1, 2: {1: i + 1, 2: n}} for i, n in enumerate(stats)],
        }
    )


def space(steps: int = 2, layers: int = 3, devices: int = 1) -> bytes:
    """TPUs that each run ``steps`` decode steps at once, and a host line."""
    names = [n for n, _ in LAYER] + ["0", "1", "jit_step(7)"]
    number = {n: i + 1 for i, n in enumerate(names)}
    ops: list[Fields] = []
    rows: list[Fields] = []
    modules: list[Fields] = []
    clock = 100_000_000
    for step in range(steps):
        begun = clock
        for name, lasts in LAYER * layers:
            ops.append({1: number[name], 2: clock, 3: lasts * 1_000_000})
            clock += lasts * 1_000_000 + 500_000
        rows.append({1: number[str(step)], 2: begun, 3: clock - begun})
        modules.append({1: number["jit_step(7)"], 2: begun, 3: clock - begun})
    lines: list[Fields] = [
        {1: 3, 2: "Steps", 3: BASE, 4: rows},
        {1: 4, 2: "XLA Modules", 3: BASE, 4: modules},
        {1: 5, 2: "XLA Ops", 3: BASE, 4: ops},
    ]
    said: dict[str, Fields] = {"convolution_fusion.4": {1: 1, 3: 50_331_648}}
    device = [plane(f"/device:TPU:{i}", lines, names, ["bytes_accessed", "noise"], said) for i in range(devices)]
    host = plane("/host:CPU", [{1: 77, 2: "python", 3: BASE, 4: [{1: 1, 2: 1_500, 3: 2_500}]}], ["wait"], [], {})
    return b"".join(b"\x0a" + length(one) + one for one in (host, *device))


def length(data: bytes) -> bytes:
    found, left = [], len(data)
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def test_a_tpu_recording_opens_with_steps_and_layers(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space())
    trace = open_trace(path).trace
    device = trace.on_device[trace.event_lane]
    assert int(device.sum()) == 2 * 3 * len(LAYER)
    counts = {c.label: int((trace.events.category[device] == c).sum()) for c in Category}
    assert counts["communication"] == counts["kv_read"] == counts["kv_append"] == 6
    assert counts["weight_read"] == 12
    assert len(trace.steps) == 2
    assert set(trace.events.layer[device].tolist()) >= {0, 1, 2}
    assert trace.meta.base_ns + int(trace.events.start[device].min()) == BASE + 100_000
    assert [d.name for d in trace.meta.devices] == ["TPU"]
    assert '"bytes_accessed":50331648' in "".join(trace.details)


def test_devices_with_steps_of_their_own_are_ranks(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space(devices=2))
    trace = open_trace(path).trace
    assert {(d.device, d.rank) for d in trace.meta.devices} == {(0, 0), (1, 1)}
    assert sorted(trace.step_rank.tolist()) == [0, 0, 1, 1]
    assert np.bincount(trace.events.step[trace.events.step >= 0]).tolist() == [3 * len(LAYER)] * 4


def test_times_finer_than_a_nanosecond_are_rounded_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space())
    raw = reader_for(path).read(path)
    at = raw.names.index("wait")
    row = int(np.flatnonzero(raw.events.name == at)[0])
    assert (int(raw.events.start[row]) - BASE, int(raw.events.duration[row])) == (2, 2)
    assert raw.flagged == {"sub_nanosecond": 1}
    assert raw.events.category[row] == RawCategory.OTHER
    assert raw.seen == raw.imported == len(raw.events)


@pytest.mark.parametrize("keep", [1, 40, -7])
def test_a_part_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space()[:keep])
    with pytest.raises(TraceError, match="damaged, incomplete or no XPlane trace"):
        reader_for(path).read(path)


def test_nothing_in_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(b"\x12\x01x")
    with pytest.raises(TraceError, match="without events"):
        reader_for(path).read(path)
