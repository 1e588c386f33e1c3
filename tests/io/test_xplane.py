"""XPlane protobuf by the fields of xplane.proto: the same run as a JSON trace, with its clock in picoseconds."""

from pathlib import Path

import numpy as np
import pytest

from tests.kit.xplane import BASE, LAYER, space
from tracescope.core.category import Category
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory
from tracescope.io import reader_for
from tracescope.load import open_trace


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
