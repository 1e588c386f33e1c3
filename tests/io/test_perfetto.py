"""What the reader of Perfetto traces does with slices, interned texts, clocks, counters, GPU stages and damage."""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.kit.perfetto import begin, end, read_bytes, trace
from tests.kit.protobuf import Fields, Fixed, Value, message, varint
from tests.kit.raw import rows
from tracescope.core.category import EventFlag
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory
from tracescope.io import gzipped, reader_for
from tracescope.io.perfetto import packets
from tracescope.io.perfetto.wire import WireError, numbers, parse, read_varint, signed

PAIR = trace(begin(100, 7, "outer"), begin(120, 7, "inner"), end(150, 7), end(200, 7))


class TestWire:
    def test_numbers_end_within_ten_bytes_and_the_message(self) -> None:
        assert read_varint(varint(300), 0, 2) == (300, 2)
        assert signed(read_varint(varint(-5), 0, 10)[0]) == -5
        for data in (b"\x80", b"\xff" * 10, b""):
            with pytest.raises(WireError):
                read_varint(data, 0, len(data))

    @pytest.mark.parametrize("data", [b"\x0a\x05abc", b"\x09abc", b"\x0d\x01", b"\x0b", b"\x0c", b"\x02\x00", b"\x0f"])
    def test_a_message_that_is_none_is_refused(self, data: bytes) -> None:
        with pytest.raises(WireError):
            parse(data)

    def test_repeated_numbers_may_be_packed(self) -> None:
        packed = message({3: varint(5) + varint(700), 4: (9).to_bytes(8, "little")})
        assert numbers(parse(packed), 3) == [5, 700]
        assert numbers(parse(packed), 4, fixed=True) == [9]
        assert numbers(parse(message({3: [5, 700]})), 3) == [5, 700]


class TestSlices:
    def test_ends_close_the_innermost_begin_of_their_track(self, tmp_path: Path) -> None:
        raw = read_bytes(tmp_path, PAIR)
        assert rows(raw) == [("outer", 100, 100), ("inner", 120, 30)]
        assert (raw.seen, raw.imported, raw.dropped) == (4, 4, {})

    def test_stray_ends_are_dropped_and_open_begins_last_to_the_end(self, tmp_path: Path) -> None:
        raw = read_bytes(tmp_path, trace(end(50, 7), begin(100, 7, "open"), begin(120, 8, "b"), end(180, 8)))
        assert rows(raw) == [("open", 100, 80), ("b", 120, 60)]
        assert raw.dropped == {"misplaced_end": 1}
        assert raw.flagged["unfinished"] == 1
        assert raw.events.flags.tolist() == [EventFlag.UNFINISHED, 0]

    def test_instants_and_events_of_an_older_form(self, tmp_path: Path) -> None:
        old: Fields = {8: 300, 10: 1, 11: {6: {2: ord("X"), 3: 4}, 11: 7, 23: "old"}}
        raw = read_bytes(tmp_path, trace({8: 10, 10: 1, 11: {9: 3, 11: 7, 23: "now"}}, old))
        assert rows(raw) == [("now", 10, 0), ("old", 300, 4000)]
        assert raw.events.flags.tolist() == [EventFlag.ZERO_LENGTH, 0]

    def test_interned_texts_belong_to_their_sequence_until_it_is_cleared(self, tmp_path: Path) -> None:
        interned: Fields = {1: {1: 4, 2: "Kernel"}, 2: {1: 1, 2: "gemm"}, 3: {1: 2, 2: "grid"}}
        event: Fields = {9: 3, 11: 7, 3: 4, 10: 1, 4: {1: 2, 4: -3}}
        raw = read_bytes(
            tmp_path,
            trace(
                {8: 1, 10: 1, 13: 1, 12: interned, 11: event},
                {8: 2, 10: 1, 13: 2, 11: event},
                {8: 3, 10: 2, 11: event},
                {8: 4, 10: 1, 13: 1, 11: event},
            ),
        )
        assert [name for name, _, _ in rows(raw)] == ["gemm", "gemm", "(unnamed)", "(unnamed)"]
        assert raw.flagged["unknown_name"] == 2
        assert raw.events.category.tolist() == [RawCategory.KERNEL] * 4
        assert raw.details[raw.events.detail[1]] == '{"grid":-3}'
        assert raw.tracks[0].is_device

    def test_defaults_give_the_track(self, tmp_path: Path) -> None:
        raw = read_bytes(
            tmp_path,
            trace(
                {10: 1, 60: {1: 77, 4: {1: 5, 2: 6, 5: "worker"}}},
                {10: 1, 60: {1: 78, 3: {1: 5, 6: "server"}}},
                {10: 1, 59: {11: {11: 77}}},
                {8: 1, 10: 1, 11: {9: 3, 23: "x"}},
            ),
        )
        assert [(t.pid, t.tid, t.process, t.thread) for t in raw.tracks] == [("5", "6", "server (5)", "worker (6)")]
        assert (raw.seen, raw.imported) == (4, 4)

    def test_a_track_that_is_its_own_ancestor(self, tmp_path: Path) -> None:
        loop: list[Fields] = [{10: 1, 60: {1: 7, 2: "a", 5: 8}}, {10: 1, 60: {1: 8, 2: "b", 5: 7}}]
        raw = read_bytes(tmp_path, trace(*loop) + PAIR)
        assert [track.thread for track in raw.tracks] == ["a"]

    def test_arguments_of_every_kind(self, tmp_path: Path) -> None:
        notes: list[Value] = [
            {10: "flag", 2: 1}, {10: "u", 3: 1 << 63}, {10: "d", 5: 0.5}, {10: "bad", 5: float("nan")},
            {10: "p", 7: 255}, {10: "Input Dims", 6: "[[1,2]]"}, {10: "s", 6: "[no list"}, {10: "correlation", 3: 42},
            {10: "list", 12: [{4: 1}, {4: -1}]}, {10: "dict", 11: [{10: "k", 6: "v"}]}, {10: "corr_id", 3: 9},
        ]  # fmt: skip
        raw = read_bytes(tmp_path, trace({8: 1, 10: 1, 11: {9: 3, 11: 7, 23: "x", 4: notes}}))
        assert json.loads(raw.details[1]) == {
            "flag": True, "u": 1 << 63, "d": 0.5, "bad": "nan", "p": "0xff", "Input Dims": [[1, 2]], "s": "[no list",
            "list": [1, -1], "dict": {"k": "v"},
        }  # fmt: skip
        assert raw.events.correlation.tolist() == [42]

    def test_one_flow_ties_a_launch_to_its_kernel(self, tmp_path: Path) -> None:
        flow = Fixed(0x8000_0000_0000_0005)
        raw = read_bytes(
            tmp_path,
            trace(
                begin(1, 1, "hipLaunchKernel", "hip_api", _47=flow),
                end(2, 1),
                {10: 1, 60: {1: 2, 2: "COMPUTE AGENT [3] STREAM [1] (GPU)"}},
                begin(5, 2, "gemm", "kernel_dispatch", _48=flow),
                end(9, 2),
                begin(10, 1, "both", _47=[Fixed(1), Fixed(2)]),
                end(11, 1),
            ),
        )
        assert raw.events.correlation.tolist() == [5, 5, -1]
        assert raw.events.category.tolist() == [RawCategory.RUNTIME, RawCategory.KERNEL, RawCategory.OTHER]
        assert [(track.is_device, track.device) for track in raw.tracks] == [(False, -1), (True, 3)]


class TestClocks:
    def test_times_of_all_clocks_become_the_traces(self, tmp_path: Path) -> None:
        snapshot: Fields = {
            1: [{1: 6, 2: 1000}, {1: 3, 2: 400}, {1: 1, 2: 1_700_000_000_000_001_000}, {1: 64, 2: 5, 4: 1000, 3: 1}]
        }
        raw = read_bytes(
            tmp_path,
            trace(
                {10: 1, 6: snapshot},
                {8: 1500, 10: 1, 11: {9: 3, 23: "boot"}},
                {8: 500, 58: 3, 10: 1, 11: {9: 3, 23: "monotonic"}},
                {10: 1, 59: {58: 64}},
                {8: 2, 10: 1, 11: {9: 3, 23: "two us later"}},
                {8: 3, 10: 1, 11: {9: 3, 23: "three more"}},
                {8: 3, 10: 2, 58: 64, 11: {9: 3, 23: "another sequence's clock"}},
            ),
        )
        assert [start for _, start, _ in rows(raw)] == [1500, 1100, 3000, 6000]
        assert raw.dropped == {"unknown_clock": 1}
        assert raw.has_absolute_clock
        assert raw.base_time_ns == 1_700_000_000_000_000_000

    def test_a_system_clock_without_snapshot_is_taken_as_it_is(self, tmp_path: Path) -> None:
        raw = read_bytes(tmp_path, trace({8: 5, 58: 3, 10: 1, 11: {9: 3, 23: "x"}}))
        assert rows(raw) == [("x", 5, 0)]
        assert raw.flagged["clock_not_converted"] == 1

    def test_impossible_times_are_dropped(self, tmp_path: Path) -> None:
        raw = read_bytes(tmp_path, PAIR + trace({8: (1 << 64) - 1, 10: 1, 11: {9: 3, 23: "x"}}, {10: 1, 11: {9: 3}}))
        assert raw.dropped == {"invalid_timestamp": 1, "no_timestamp": 1}


def test_counters(tmp_path: Path) -> None:
    raw = read_bytes(
        tmp_path,
        trace(
            {10: 1, 60: {1: 3, 2: "read", 8: {3: 3, 4: 1024}}},
            {10: 1, 60: {1: 4, 2: "added", 8: {5: 1, 6: "W"}}},
            {8: 10, 10: 1, 11: {9: 4, 11: 3, 30: -2}},
            {8: 20, 10: 1, 11: {9: 4, 11: 3, 44: 0.5}},
            {8: 10, 10: 1, 11: {9: 4, 11: 4, 30: 5}},
            {8: 20, 10: 1, 11: {9: 4, 11: 4, 30: 6}},
            {8: 20, 10: 1, 11: {9: 4, 11: 4, 44: float("inf")}},
        ),
    )
    assert [(c.name, c.time.tolist(), c.value.tolist()) for c in raw.counters] == [
        ("read (bytes)", [10, 20], [-2048.0, 512.0]),
        ("added (W)", [10, 20], [5.0, 11.0]),
    ]
    assert raw.dropped == {"invalid_value": 1}


def test_stages_of_a_gpu(tmp_path: Path) -> None:
    interned: Fields = {
        24: [{1: 1, 2: "Compute Queue", 4: 2}, {1: 2, 2: "Kernel", 3: "GPU kernel stage", 4: 2}],
        1000: [{1: 1, 2: "_Z9vectorAddPfS_S_i", 3: "vectorAdd(float*, float*, float*, int)", 4: "sm_80"}],
        1001: [{1: 5, 2: "registers_per_thread"}],
    }
    launch: Fields = {1: {1: 8, 2: 2}, 2: {1: 256}, 3: [{1: 5, 4: 32}, {2: "note", 6: "n"}]}
    raw = read_bytes(
        tmp_path,
        trace(
            {8: 0, 10: 1, 13: 1, 12: interned},
            {8: 50, 10: 1, 11: {9: 3, 11: 7, 23: "cudaGraphLaunch", 3000: {1: [0, 1]}}},
            {8: 100, 10: 1, 53: {1: 0, 2: 50, 13: 1, 14: 2, 19: 1, 21: launch}},
            {8: 200, 10: 1, 53: {1: 1, 2: 100, 13: 1, 14: 2, 11: 1}},
            {8: 300, 10: 1, 53: {1: 2, 2: 1 << 62, 13: 1}},
        ),
    )
    assert rows(raw) == [
        ("cudaGraphLaunch", 50, 0),
        ("vectorAdd(float*, float*, float*, int)", 100, 50),
        ("Kernel", 200, 100),
    ]
    assert raw.events.correlation.tolist() == [0, 0, 0]
    assert raw.events.category.tolist() == [RawCategory.OTHER, RawCategory.KERNEL, RawCategory.KERNEL]
    assert [(t.is_device, t.device, t.thread) for t in raw.tracks[1:]] == [
        (True, 0, "Compute Queue"),
        (True, 1, "Compute Queue"),
    ]
    assert json.loads(raw.details[raw.events.detail[1]]) == {
        "stage": "Kernel", "arch": "sm_80", "grid": [8, 2, 1], "block": [256, 1, 1],
        "registers_per_thread": 32, "note": "n",
    }  # fmt: skip
    assert raw.dropped == {"invalid_duration": 1}


class TestContainer:
    def test_packed_packets(self, tmp_path: Path) -> None:
        raw = read_bytes(tmp_path, trace({50: zlib.compress(PAIR)}))
        assert rows(raw) == rows(read_bytes(tmp_path, PAIR))

    def test_packed_packets_that_are_damaged(self, tmp_path: Path) -> None:
        raw = read_bytes(tmp_path, PAIR + trace({50: zlib.compress(PAIR)[:-6]}, {50: b"no"}))
        assert raw.dropped == {"unreadable_packet": 2}

    def test_what_unpacks_beyond_measure_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gzipped, "RATIO_FREE_BYTES", 1 << 20)
        bomb = trace({50: zlib.compress(trace({99: b"\0" * (4 << 20)}))})
        with pytest.raises(TraceError, match="decompresses more than"):
            read_bytes(tmp_path, bomb)

    def test_gzip_of_several_members(self, tmp_path: Path) -> None:
        half = len(trace(begin(100, 7, "outer")))
        raw = read_bytes(tmp_path, gzip.compress(PAIR[:half]) + gzip.compress(PAIR[half:]), "t.gz")
        assert rows(raw) == rows(read_bytes(tmp_path, PAIR))
        assert raw.truncated_at_byte is None
        cut = read_bytes(tmp_path, gzip.compress(PAIR, mtime=0)[:-4], "cut.gz")
        assert cut.truncated_at_byte == len(PAIR)

    @pytest.mark.parametrize("left", [1, 5, 20, 60])
    def test_a_cut_file_gives_what_came_before(self, tmp_path: Path, left: int) -> None:
        many = trace(*(begin(i, 1, f"n{i}") for i in range(50)))
        raw = read_bytes(tmp_path, many[:-left])
        assert raw.truncated_at_byte is not None
        assert len(raw.events) == 50 - 1 - (left > len(trace(begin(49, 1, "n49")))) - (left > 40)

    def test_packets_across_blocks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = rows(read_bytes(tmp_path, PAIR))
        for size in (1, 2, 3, 7, 19, 50):
            monkeypatch.setattr(packets, "BLOCK", size)
            assert rows(read_bytes(tmp_path, PAIR)) == expected

    def test_other_kinds_of_packets_are_counted(self, tmp_path: Path) -> None:
        raw = read_bytes(tmp_path, PAIR + trace({8: 5, 10: 3, 2: {1: {1: 7}}}) + message({9: "no packet", 8: 3}))
        assert raw.dropped == {"unsupported_packet": 1}

    @pytest.mark.parametrize(
        "data", [b"\x0a\xff\xff\xff\xff\x7f", b"hello, world", trace({8: 1, 10: 1, 2: b""}), b"\x0a"]
    )
    def test_what_is_no_trace_of_events_is_refused_in_one_sentence(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "x.pftrace"
        path.write_bytes(data)
        with pytest.raises(TraceError) as refused:
            reader_for(path).read(path)
        assert refused.value.lines()[0].startswith("x.pftrace: ")

    def test_other_protobufs_and_texts_are_not_taken_for_traces(self, tmp_path: Path) -> None:
        for data in (message({1: [{2: "weights", 3: {1: 5}}, {2: "more"}]}), b"\nname,start\n"):
            path = tmp_path / "x.pb"
            path.write_bytes(data)
            with pytest.raises(TraceError, match="not a trace"):
                reader_for(path)


# --- recorded traces ---


def test_nested_tracks(shared: Callable[[str], Path]) -> None:
    path = shared("traces/perfetto/nested_tracks.perfetto-trace")
    raw = reader_for(path).read(path)
    assert (raw.seen, raw.imported, raw.dropped) == (1364 + 2728, 4092, {})
    assert (len(raw.events), len(raw.tracks)) == (1364, 1364)
    assert rows(raw)[0] == ("L1 Slice 1", 1_000_000, 10_000_000)
    assert not any(raw.events.flags & EventFlag.UNFINISHED)


def test_a_recording_in_both_forms(shared: Callable[[str], Path]) -> None:
    path = shared("traces/own/static_kv_decode16_compile.pftrace")
    raw = reader_for(path).read(path)
    chrome = json.loads(gzip.decompress(shared("traces/own/static_kv_decode16_compile.pt.trace.json.gz").read_bytes()))
    expected = [e for e in chrome["traceEvents"] if e["ph"] == "X" and e.get("cat") in {"cpu_op", "user_annotation"}]
    counts = Counter(e["name"] for e in expected)
    took = Counter[str]()
    for e in expected:
        took[e["name"]] += round(e["dur"] * 1000)
    found = rows(raw)
    assert Counter(name for name, _, _ in found) == counts
    durations = Counter[str]()
    for name, _, duration in found:
        durations[name] += duration
    assert durations == took
    assert len(found) == 2336
    assert raw.seen == raw.imported == 1 + 2 * 2336
    assert np.all(raw.events.duration >= 0)
