"""The handed cases for Chrome JSON: times, truncation, encodings, scale, ranks and ids. One test a case."""

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kit.raw import read, slices
from tracescope.core.assemble import lay_out
from tracescope.core.category import EventFlag, TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawTrace
from tracescope.core.trace import Track

Shared = Callable[[str], Path]


def expected_of(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text())["expected"]


def only(keys: tuple[str, ...], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: row[key] for key in keys} for row in rows]


def depths(raw: RawTrace, kind: TrackKind) -> tuple[np.ndarray, np.ndarray]:
    """Depth and overlap of each row in file order, when its tracks are of ``kind``."""
    tracks = [Track(name=track.thread, kind=kind) for track in raw.tracks]
    e = raw.events
    laid = lay_out(e.track.astype(np.int64), e.start, e.duration, tracks)
    depth = np.empty(len(e), np.int64)
    overlapping = np.empty(len(e), bool)
    lane = np.repeat(np.arange(len(laid.lanes.depth)), np.diff(laid.lanes.offset))
    depth[laid.order] = laid.lanes.depth[lane]
    overlapping[laid.order] = laid.overlapping
    return depth, overlapping


def test_01_nanoseconds_survive_epoch_microseconds(shared: Shared) -> None:
    folder = shared("cases/01-ns-lost-in-float-us")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert slices(raw) == want["slices"]
    ends = raw.events.start + raw.events.duration
    assert (raw.events.start[1:] - ends[:-1]).tolist() == want["gap_ns"]
    depth, overlapping = depths(raw, TrackKind.DEVICE_STREAM)
    assert not depth.any()
    assert not overlapping.any()
    assert not raw.dropped
    assert raw.has_absolute_clock


def test_03_times_as_strings(shared: Shared) -> None:
    folder = shared("cases/03-ts-as-string")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert (raw.seen, raw.imported) == (want["events_in_file"], want["imported"])
    assert raw.dropped == want["drop_reasons"]
    assert slices(raw) == want["slices"]


def test_05_negative_durations(shared: Shared) -> None:
    folder = shared("cases/05-negative-duration")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert raw.seen == want["events_in_file"]
    assert len(raw.events) == want["imported_as_slices"]
    assert raw.dropped == want["reasons"]
    ends = raw.events.start + raw.events.duration
    assert [int(raw.events.start.min()), int(ends.max())] == want["trace_bounds_ns"]
    assert int(raw.events.duration.sum()) == want["sum_dur_ns"]


def test_07_unbalanced_begin_and_end(shared: Shared) -> None:
    folder = shared("cases/07-begin-end-unbalanced")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert slices(raw) == only(("name", "start_ns", "dur_ns"), want["slices"])
    assert [raw.tracks[t].tid for t in raw.events.track] == [str(s["tid"]) for s in want["slices"]]
    unfinished = [bool(flags & EventFlag.UNFINISHED) for flags in raw.events.flags]
    assert unfinished == [s.get("unfinished", False) for s in want["slices"]]
    assert depths(raw, TrackKind.HOST_THREAD)[0].tolist() == [s.get("depth", 0) for s in want["slices"]]
    assert raw.dropped | raw.flagged == want["reasons"]


def test_09_overlap_on_one_stream(shared: Shared) -> None:
    folder = shared("cases/09-overlapping-kernels-one-stream")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert (raw.imported, sum(raw.dropped.values())) == (want["imported"], want["dropped"])
    assert slices(raw) == want["slices"]
    assert int(raw.events.duration.sum()) == want["sum_dur_ns"]
    depth, overlapping = depths(raw, TrackKind.DEVICE_STREAM)
    assert int(overlapping.sum()) == want["flagged"]["overlapping"]
    assert depth.tolist() == [0, 1, 0]


def test_11_bare_inf_and_nan(shared: Shared) -> None:
    folder = shared("cases/11-zero-length-copy-inf-bandwidth")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert raw.imported == want["imported"]
    assert not raw.dropped
    assert raw.flagged == want["reasons"]
    assert slices(raw) == want["slices"]
    assert raw.events.flags[0] & EventFlag.ZERO_LENGTH
    values = [list(json.loads(raw.details[d]).values())[-1] for d in raw.events.detail]
    assert values == [None, None, None]


def test_13_cut_in_the_middle(shared: Shared) -> None:
    folder = shared("cases/13-cut-in-the-middle")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert raw.imported == want["imported"]
    assert [s["name"] for s in slices(raw)] == want["names"]
    assert raw.truncated_at_byte == (folder / "trace.json").stat().st_size
    assert not raw.flagged


def test_15_gzip_cut_short(shared: Shared) -> None:
    folder = shared("cases/15-gz-cut-short")
    want, raw = expected_of(folder), read(folder / "trace.json.gz")
    assert want["imported_min"] <= raw.imported <= want["recoverable_events"]
    assert raw.truncated_at_byte is not None


@pytest.mark.parametrize("name", ["utf16be_bom", "utf16le_bom", "utf16le_no_bom", "utf8_bom"])
def test_17_utf16_and_byte_order_marks(shared: Shared, name: str) -> None:
    folder = shared("cases/17-utf16-and-bom")
    want, raw = expected_of(folder)["each_file"], read(folder / f"{name}.json")
    assert raw.imported == want["imported"]
    assert [s["name"] for s in slices(raw)] == want["names"]
    assert not raw.flagged


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_19_invalid_utf8(shared: Shared, name: str) -> None:
    folder = shared("cases/19-invalid-utf8-names")
    want, raw = expected_of(folder), read(folder / name)
    assert (raw.imported, sum(raw.dropped.values())) == (want["imported"], want["dropped"])
    assert raw.flagged == want["reasons"]
    assert [s["name"] for s in slices(raw)] == want["names"]


def test_21_unescaped_backslashes(shared: Shared) -> None:
    folder = shared("cases/21-windows-backslashes")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert (raw.imported, sum(raw.dropped.values())) == (want["imported"], want["dropped"])
    assert raw.flagged == want["reasons"]
    assert raw.events.start.tolist() == want["start_ns"]
    names = [s["name"] for s in slices(raw)]
    assert want["name_2_contains"] in names[1]
    assert all(part in names[2] for part in want["name_3_must_contain"])
    assert names[2] == r"C:\users\dev\new_model.py(7): step"


def test_23_arguments_nested_too_deep(shared: Shared) -> None:
    raw = read(shared("cases/23-deeply-nested-args/deep_args.json"))
    assert len(raw.events) == 3
    assert raw.flagged == {"too_deep": 1}


@pytest.mark.parametrize("name", ["bracket_bomb", "bracket_bomb_closed"])
def test_23_bracket_bombs_are_refused(shared: Shared, name: str) -> None:
    path = shared(f"cases/23-deeply-nested-args/{name}.json")
    tracemalloc.start()
    began = time.perf_counter()
    try:
        with pytest.raises(TraceError, match="64 levels"):
            read(path)
        assert time.perf_counter() - began < 2
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["trace.json", "begin_end.json"])
def test_25_a_thousand_deep(shared: Shared, name: str) -> None:
    folder = shared("cases/25-thousand-deep-stack")
    want, raw = expected_of(folder), read(folder / name)
    assert len(raw.events) == want["each_file"]["slices"]
    assert want["inner"][name] in slices(raw)
    assert int(depths(raw, TrackKind.HOST_THREAD)[0].max()) == want["each_file"]["max_depth"]


@pytest.mark.parametrize("rank", [0, 1])
def test_27_each_rank_alone(shared: Shared, rank: int) -> None:
    folder = shared("cases/27-same-pid-on-every-rank")
    want, raw = expected_of(folder), read(folder / f"rank{rank}.json")
    assert {track.rank for track in raw.tracks} == {rank}
    on_device = np.isin(raw.events.track, [i for i, track in enumerate(raw.tracks) if track.is_device])
    assert int(raw.events.duration[on_device].sum()) == want["busy_ns"][f"rank{rank}"]


@pytest.mark.parametrize(
    "name", ["dup_ids", "empty_list", "no_rank_key", "nothing", "null", "object_not_list", "rank_string"]
)
def test_29_header_keys_are_hints(shared: Shared, name: str) -> None:
    folder = shared("cases/29-no-rank-no-device-info")
    want, raw = expected_of(folder), read(folder / f"{name}.json")
    assert len(raw.events) == want["each_file"]["slices"]
    assert raw.tracks[0].rank == want["rank"].get(f"{name}.json", -1)
    names = [device.name for device in raw.devices if device.name]
    assert names == (["A"] if name == "dup_ids" else [])
    assert raw.flagged == ({"duplicate_device": 1} if name == "dup_ids" else {})


def test_31_text_ids(shared: Shared) -> None:
    folder = shared("cases/31-pid-and-tid-are-strings")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert len(slices(raw)) == want["slices"]
    assert len(raw.events) == raw.imported == want["slices"] + want["instants"]
    rows = {raw.names[n]: raw.tracks[t] for n, t in zip(raw.events.name, raw.events.track, strict=True)}
    assert rows["k"] == rows["k2"]
    assert rows["k"].is_device
    assert {t.pid for t in raw.tracks} <= {str(p) for p in want["processes"]}


def test_33_odd_and_missing_ids(shared: Shared) -> None:
    folder = shared("cases/33-zero-negative-missing-ids")
    want, raw = expected_of(folder), read(folder / "trace.json")
    assert len(raw.events) == want["slices"]
    assert raw.imported == want["slices"] + want["counter_samples"]
    assert raw.dropped == want["drop_reasons"]
    rows = {raw.names[n]: raw.tracks[t] for n, t in zip(raw.events.name, raw.events.track, strict=True)}
    assert (rows["neg"].tid, rows["neg_pair"].tid) == ("-7", "7")
    assert rows["big"].tid == "18446744073709551615"
    assert rows["flt"].pid == "1"
    assert rows["no_ids"].pid == want["no_id_track"]
    assert want["nameless_event_label"] in raw.names
    assert raw.flagged == {"missing_track_id": 2}


def test_47_any_file_name(shared: Shared) -> None:
    folder = next(p for p in shared("cases/47-paths-with-spaces-and-unicode").iterdir() if p.is_dir())
    files = sorted(folder.glob("*.json"))
    assert len(files) == 5
    for path in files:
        assert read(path).source.name == path.name
