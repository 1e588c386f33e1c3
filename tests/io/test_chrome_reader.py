"""What the reader of Chrome trace JSON does with times, phases, containers, damage and arguments: own small files."""

import gzip
import json
import random
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit import oracle
from tests.kit.chrome import read_events
from tests.kit.raw import read, read_text, slices
from tracescope.core.category import EventFlag
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory
from tracescope.io import IMPORTERS, reader_for
from tracescope.io.chrome import container, reader, text
from tracescope.io.chrome.times import exact_nanoseconds, nanoseconds

X = '{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %s, "dur": %s}'


def test_importers_have_their_own_names() -> None:
    assert len({importer.name for importer in IMPORTERS}) == len(IMPORTERS)


class TestTimes:
    @given(st.lists(st.decimals(-(10**15), 10**15, allow_nan=False, places=6), min_size=1, max_size=40))
    def test_any_decimal_is_rounded_half_to_even(self, values: list[Decimal]) -> None:
        rng = random.Random(len(values))
        texts = [f"{v:.{rng.choice([0, 1, 3, 6])}f}" for v in values]
        times = nanoseconds([msgspec.Raw(t.encode()) for t in texts])
        exact = [Decimal(t) * 1000 for t in texts]
        assert times.ns.tolist() == [int(e.to_integral_value(ROUND_HALF_EVEN)) for e in exact]
        assert times.valid.all()
        assert times.finer == sum(e != e.to_integral_value() for e in exact)

    @pytest.mark.parametrize(
        ("text", "ns"),
        [
            ("0", 0), ("0.001", 1), ("-3.25", -3250), ("1767225601234567.089", 1767225601234567089), ('"12.5"', 12500),
            ("1e3", 1000000), ("1.05E+3", 1050000), ("2.0005", 2000), ("2.0015", 2002), ("12.", 12000), (".5", 500),
            ('"1080.0us"', None), ('""', None), ('"1_000"', None), ("true", None), ("[1]", None), ("{}", None),
            ("1e400", None), ("1e999999999999", None), ("9" * 41, None), ('"1,5"', None), ("9999999999999999", None),
            ("4611686018427387.904", 1 << 62), ("4611686018427387.905", None),
        ],
    )  # fmt: skip
    def test_one_text(self, text: str, ns: int | None) -> None:
        for others in ([], [msgspec.Raw(b"1.5")]):
            times = nanoseconds([msgspec.Raw(text.encode()), *others])
            assert bool(times.valid[0]) == (ns is not None)
            assert int(times.ns[0]) == (ns or 0)
            assert times.ns[1:].tolist() == [1500] * len(others)

    def test_missing_and_null(self) -> None:
        times = nanoseconds([msgspec.Raw(b""), msgspec.Raw(b"null"), msgspec.Raw(b"7")])
        assert times.missing.tolist() == [True, True, False]
        assert times.valid.tolist() == [False, False, True]

    def test_rounding_is_said(self) -> None:
        assert exact_nanoseconds(b"0.0005") == (0, True)
        assert exact_nanoseconds(b"0.0010") == (1, False)

    def test_resolution(self, tmp_path: Path) -> None:
        assert read_events(tmp_path, X % ("a", 5, 3)).resolution_ns == 1000
        assert read_events(tmp_path, X % ("a", "5.5", 3)).resolution_ns == 1
        assert read_events(tmp_path, X % ("a", "1712195495519689.25", "3.5")).resolution_ns == 250
        assert read_events(tmp_path, X % ("a", "1712195495519689.047", "3.5")).resolution_ns == 1


class TestRows:
    def test_missing_duration_is_zero_length(self, tmp_path: Path) -> None:
        raw = read_events(tmp_path, '{"ph":"X","name":"a","pid":1,"tid":1,"ts":5}', X % ("b", 6, 0))
        assert [s["dur_ns"] for s in slices(raw)] == [0, 0]
        assert (raw.events.flags == EventFlag.ZERO_LENGTH).all()
        assert raw.flagged == {"missing_duration": 1}

    def test_impossible_durations_are_dropped_and_counted(self, tmp_path: Path) -> None:
        raw = read_events(
            tmp_path, X % ("a", 5, -1), X % ("b", 5, '"1us"'), X % ("c", 5, 18446744073709551), X % ("d", 5, 1)
        )
        assert [s["name"] for s in slices(raw)] == ["d"]
        assert raw.dropped == {"negative_duration": 1, "invalid_duration": 2}

    def test_sub_nanosecond_times_are_flagged(self, tmp_path: Path) -> None:
        raw = read_events(tmp_path, X % ("a", "0.0004", "1e-06"), X % ("b", "0.0015", "1"))
        assert [(s["start_ns"], s["dur_ns"]) for s in slices(raw)] == [(0, 0), (2, 1000)]
        assert raw.flagged == {"sub_nanosecond": 3}

    def test_other_phases_are_counted(self, tmp_path: Path) -> None:
        phases = ["i", "I", "R", "C", "s", "t", "f", "M", "n", "O", "N", "P", "v", "Z", ""]
        written = '{"ph":"%s","name":"x","pid":1,"tid":1,"ts":1,"id":3,"args":{"v":1}}'
        raw = read_events(tmp_path, *(written % phase for phase in phases))
        assert raw.imported == 9
        assert raw.dropped == {
            "object_event": 2, "sample_event": 1, "unsupported_phase": 1, "unknown_phase": 1, "no_phase": 1,
        }  # fmt: skip
        assert raw.events.category.tolist() == [RawCategory.INSTANT] * 4
        assert raw.events.flags.tolist() == [EventFlag.INSTANT] * 4
        assert [(c.name, c.time.tolist(), c.value.tolist()) for c in raw.counters] == [("x · 3 · v", [1000], [1.0])]

    def test_stacks_beside_the_events_are_counted(self, tmp_path: Path) -> None:
        document = {"traceEvents": [{"ph": "i", "name": "a", "ts": 1}], "samples": [{}, {}], "stackFrames": {"1": {}}}
        assert read_text(tmp_path, json.dumps(document)).flagged["samples_not_read"] == 3

    def test_every_number_of_a_counter_event_is_a_sample(self, tmp_path: Path) -> None:
        raw = read_events(
            tmp_path,
            '{"ph":"C","name":"mem","pid":1,"ts":1,"args":{"free":7,"used":"1.5","of":"GPU"}}',
            '{"ph":"C","name":"mem","pid":1,"ts":2,"args":{"value":1e400}}',
            '{"ph":"C","name":"mem","pid":2,"ts":3,"args":{"value":-2}}',
            '{"ph":"M","name":"process_name","pid":2,"args":{"name":"server"}}',
        )
        assert [(c.name, c.process, c.time.tolist(), c.value.tolist()) for c in raw.counters] == [
            ("mem · free", "1", [1000], [7.0]),
            ("mem · used", "1", [1000], [1.5]),
            ("mem", "server", [3000], [-2.0]),
        ]
        assert raw.dropped == {"invalid_value": 1}
        assert raw.imported == 3

    def test_lone_flow_end_is_flagged_not_dropped(self, tmp_path: Path) -> None:
        flow = '{"ph":"%s","id":%d,"cat":"ac2g","name":"ac2g","pid":1,"tid":1,"ts":1}'
        raw = read_events(tmp_path, flow % ("f", 1), flow % ("f", 2), flow % ("s", 2), flow % ("s", 3))
        assert raw.imported == 4
        assert raw.flagged == {"lone_flow_end": 1}

    def test_instant_without_a_time_is_dropped(self, tmp_path: Path) -> None:
        assert read_events(tmp_path, '{"ph":"i","name":"x"}').dropped == {"invalid_timestamp": 1}

    def test_begin_and_end_pair_by_time_and_name(self, tmp_path: Path) -> None:
        mark = '{"ph":"%s","name":"%s","pid":1,"tid":1,"ts":%d}'
        marks = [("E", "a", 9), ("B", "a", 1), ("B", "b", 2), ("E", "c", 3), ("E", "", 4)]
        raw = read_events(tmp_path, *(mark % values for values in marks))
        assert slices(raw) == [
            {"name": "a", "start_ns": 1000, "dur_ns": 8000},
            {"name": "b", "start_ns": 2000, "dur_ns": 2000},
        ]
        assert raw.dropped == {"misplaced_end": 1}
        assert raw.imported == 4

    def test_asynchronous_pairs_by_id(self, tmp_path: Path) -> None:
        mark = '{"ph":"%s","cat":"req","name":"r","id":%s,"pid":1,"tid":%d,"ts":%d}'
        raw = read_events(
            tmp_path, mark % ("b", 1, 1, 1), mark % ("b", '"0x2"', 1, 2), mark % ("e", 1, 9, 5), mark % ("e", 8, 1, 6)
        )
        assert [(s["start_ns"], s["dur_ns"]) for s in slices(raw)] == [(1000, 4000), (2000, 4000)]
        assert raw.dropped == {"misplaced_end": 1}
        assert raw.flagged == {"unfinished": 1}
        assert [track.tid for track in raw.tracks] == ["async req"]


class TestTables:
    def test_arguments_lose_per_event_ids_and_are_shared(self, tmp_path: Path) -> None:
        event = (
            '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":1,'
            '"args":{"External id":%d, "correlation": %d,"grid": [1, 2],"stream":7}}'
        )
        raw = read_events(tmp_path, event % (1, 11, 101), event % (2, 12, 102), X % ("none", 3, 1))
        assert raw.details == ("", '{"grid":[1,2],"stream":7}')
        assert raw.events.detail.tolist() == [1, 1, 0]
        assert raw.events.correlation.tolist() == [101, 102, -1]

    def test_odd_arguments(self, tmp_path: Path) -> None:
        event = '{"ph":"X","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":%s}'
        args = ["null", "{}", "[1, 2]", '"text"', '{"correlation":"77"}', '{"correlation":1.5,"x":2}']
        raw = read_events(tmp_path, *(event % text for text in args))
        shown = [raw.details[detail] for detail in raw.events.detail]
        assert shown == ["", "", '{"args":[1,2]}', '{"args":"text"}', "", '{"x":2}']
        assert raw.events.correlation.tolist() == [-1, -1, -1, -1, 77, -1]

    def test_numbers_in_arguments_keep_their_text(self, tmp_path: Path) -> None:
        raw = read_events(
            tmp_path,
            '{"ph":"X","name":"k","ts":1,"pid":1,"tid":1,"args":{"Comms Id": 10159970886766084423, "gb": 1.50}}',
        )
        assert raw.details[1] == '{"Comms Id":10159970886766084423,"gb":1.50}'

    def test_device_tracks(self, tmp_path: Path) -> None:
        raw = read_events(
            tmp_path,
            '{"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":1,"dur":1,"args":{"device":3}}',
            '{"ph":"X","cat":"gpu_memset","name":"m","pid":2,"tid":7,"ts":1,"dur":1}',
            '{"ph":"X","cat":"cpu_op","name":"op","pid":900,"tid":7,"ts":1,"dur":1}',
            '{"ph":"M","name":"process_name","pid":900,"tid":0,"args":{"name":"python"}}',
            '{"ph":"M","name":"process_labels","pid":900,"tid":0,"args":{"labels":"CPU"}}',
            '{"ph":"M","name":"thread_name","pid":"900","tid":7,"ts":0,"args":{"name":"thread 7"}}',
        )
        assert [(t.is_device, t.device) for t in raw.tracks] == [(True, 3), (True, 2), (False, -1)]
        assert (raw.tracks[2].process, raw.tracks[2].thread) == ("python (CPU)", "thread 7")
        assert raw.events.category.tolist() == [RawCategory.KERNEL, RawCategory.COPY, RawCategory.OPERATOR]

    def test_work_and_calls_of_an_xpu(self, tmp_path: Path) -> None:
        raw = read_events(
            tmp_path,
            '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":2,"dur":1,"args":{"correlation":5}}',
            '{"ph":"X","cat":"gpu_memcpy","name":"copy","pid":0,"tid":7,"ts":4,"dur":1}',
            '{"ph":"X","cat":"xpu_runtime","name":"urEnqueueKernelLaunch","pid":9,"tid":9,"ts":1,"dur":1,'
            '"args":{"correlation":5}}',
        )
        assert raw.events.category.tolist() == [RawCategory.KERNEL, RawCategory.COPY, RawCategory.RUNTIME]
        assert [t.is_device for t in raw.tracks] == [True, False]
        assert raw.events.correlation.tolist() == [5, -1, 5]

    def test_any_number_of_words_for_categories(self, tmp_path: Path) -> None:
        raw = read_events(
            tmp_path, *(f'{{"ph":"X","cat":"c{i}","name":"a","pid":1,"tid":1,"ts":1,"dur":1}}' for i in range(300))
        )
        assert set(raw.events.category.tolist()) == {RawCategory.OTHER}
        assert raw.flagged == {}

    def test_end_gives_its_arguments_to_a_begin_without(self, tmp_path: Path) -> None:
        raw = read_events(
            tmp_path,
            '{"ph":"B","name":"a","pid":1,"tid":1,"ts":1}',
            '{"ph":"E","pid":1,"tid":1,"ts":3,"args":{"rows":5}}',
            '{"ph":"B","name":"b","pid":1,"tid":1,"ts":4,"args":{"x":1}}',
        )
        assert [raw.details[d] for d in raw.events.detail] == ['{"rows":5}', '{"x":1}']

    def test_too_many_tracks_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reader, "MAX_TRACKS", 10)
        with pytest.raises(TraceError, match="10 tracks"):
            read_events(tmp_path, *(f'{{"ph":"X","name":"a","pid":{i},"tid":1,"ts":1,"dur":1}}' for i in range(12)))

    def test_header_before_and_after_the_events(self, tmp_path: Path) -> None:
        raw = read_text(
            tmp_path,
            '{"deviceProperties": [{"id": 0, "name": "H100", "totalGlobalMem": 80}], "note": "a } ] , \\" {",'
            '"traceEvents": ['
            + X % ("a", 1, 1)
            + '], "baseTimeNanoseconds": 1751410836000000000, "nested": {"x": [1, {}]}}',
        )
        assert (raw.devices[0].name, raw.devices[0].memory_bytes) == ("H100", 80)
        assert raw.metadata["note"] == 'a } ] , " {'
        assert raw.metadata["nested"] == {"x": [1, {}]}
        assert raw.base_time_ns == 1751410836000000000
        assert raw.has_absolute_clock
        assert raw.events.start.tolist() == [1000]


class TestContainers:
    @pytest.mark.parametrize("tail", ["]", "", ",", ",\n\n", "],\n"])
    def test_bare_array_with_any_end(self, tmp_path: Path, tail: str) -> None:
        raw = read_text(tmp_path, "[\n" + X % ("a", 1, 1) + ",\n" + X % ("b", 2, 1) + tail)
        assert raw.imported == 2
        assert raw.truncated_at_byte is None
        assert raw.flagged == ({} if "]" in tail else {"unterminated_array": 1})

    def test_every_cut_keeps_whole_events(self, tmp_path: Path) -> None:
        body = '{"traceEvents": [' + X % ("a", 1, 1) + ", " + X % ("b", 2, 1) + '], "k": {"x": 1}}'
        whole = [body.index("}") + 1, body.index("}", body.index("}") + 1) + 1]
        for cut in range(18, len(body)):
            raw = read_text(tmp_path, body[:cut])
            assert raw.imported == sum(cut >= end for end in whole)
            assert raw.truncated_at_byte == cut
        assert read_text(tmp_path, body).truncated_at_byte is None

    @pytest.mark.parametrize(
        "text",
        [
            "{}",
            '{"a": 1}',
            '{"traceEvents": null}',
            "[[1, 2], [3]]",
            '[{"file": "x"}]',
            "[1, 2, 3]",
            '{"traceEvents": [5]}',
            "{foo}",
            '{"traceEvents',
        ],
    )
    def test_json_that_is_no_trace_is_refused(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(TraceError, match="not a trace"):
            read_text(tmp_path, text)

    def test_empty_trace(self, tmp_path: Path) -> None:
        for empty in ("[", "[]", '{"traceEvents": []}'):
            assert read_text(tmp_path, empty).seen == 0

    @pytest.mark.parametrize("data", [b"", b"hello", b"\x00\x01\x02", b"\x1f\x8b not gzip", b"<html>"])
    def test_other_content_is_refused_by_name(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "x.json").write_bytes(data)
        with pytest.raises(TraceError, match=r"x\.json"):
            reader_for(tmp_path / "x.json")

    def test_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(TraceError, match="cannot be opened"):
            reader_for(tmp_path / "none.json")

    def test_elements_that_are_no_events(self, tmp_path: Path) -> None:
        raw = read_events(tmp_path, X % ("a", 1, 1), "5", "null", '"text"', "[1]", "{}", X % ("b", 2, 1))
        assert raw.dropped == {"not_an_event": 4, "no_phase": 1}
        assert raw.imported == 2

    def test_text_after_the_end_is_said(self, tmp_path: Path) -> None:
        body = '{"traceEvents": [' + X % ("a", 1, 1) + "]}"
        assert read_text(tmp_path, body + body).flagged == {"trailing_text": 1}

    @pytest.mark.parametrize("chunk", [7, 64, 1000])
    def test_any_chunk_size_gives_the_same(self, tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
        events = [
            f'{{"ph":"X","name":"{{}}}},{{\\"ph\\":{i}","pid":1,"tid":1,"ts":{i}.5,"dur":2,"args":{{"l":[{{"name":1}},{{"ph":2}}]}}}}'
            for i in range(50)
        ]
        whole = read_events(tmp_path, *events)
        monkeypatch.setattr(text, "BLOCK", chunk)
        pieces = read_events(tmp_path, *events)
        assert slices(pieces) == slices(whole)
        assert (pieces.seen, pieces.dropped, pieces.details) == (50, {}, whole.details)

    def test_value_deeper_than_the_limit_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(TraceError, match="64 levels"):
            read_text(tmp_path, '{"a": ' + "[" * 100)

    def test_long_metadata_is_skipped_and_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(container, "MAX_VALUE_BYTES", 2000)
        monkeypatch.setattr(text, "BLOCK", 100)
        files = ",".join(f'"{i}"' for i in range(2000))
        raw = read_text(tmp_path, '{"file_info": [' + files + '], "traceEvents": [' + X % ("a", 1, 1) + "]}")
        assert raw.imported == 1
        assert raw.flagged["metadata_too_long"] == 1


class TestDamage:
    def damaged(self, tmp_path: Path, name: str | bytes) -> tuple[list[str], dict[str, int]]:
        """Names and flags of three events, the middle one called ``name`` as it stands in the file."""
        middle = name.encode() if isinstance(name, str) else name
        good = (X % ("good", 1, 1)).encode()
        bad = b'{"ph": "X", "cat": "c", "name": "' + middle + b'", "pid": 1, "tid": 1, "ts": 2.5, "dur": 1}'
        raw = read_text(tmp_path, b'{"traceEvents": [' + good + b",\n" + bad + b",\n" + good + b"]}")
        assert not raw.dropped
        assert raw.events.start.tolist() == [1000, 2500, 1000]
        return [s["name"] for s in slices(raw)], raw.flagged

    @pytest.mark.parametrize(
        ("name", "shown", "flag"),
        [
            (r"torch\cuda\__init__.py", r"torch\cuda\__init__.py", "escapes_repaired"),
            (r"D:\new\u12\x.py", r"D:\new\u12\x.py", "escapes_repaired"),
            ('say "hello" now', 'say "hello" now', "quotes_repaired"),
            ("two\nlines", "two\nlines", "control_characters"),
            ("nul\x00tab\t", "nul\x00tab\t", "control_characters"),
            (b"k\xb9\xffernel", "k\ufffd\ufffdernel", "text_repaired"),
            (r"half \ud83d pair", "half \ufffd pair", "text_repaired"),
            ('f("a", "b")', 'f("a", "b")', "quotes_repaired"),
            ("C:\\dir\\", "C:\\dir\\", "escapes_repaired"),
        ],
    )
    def test_names_are_repaired(self, tmp_path: Path, name: str | bytes, shown: str, flag: str) -> None:
        names, flagged = self.damaged(tmp_path, name)
        assert names == ["good", shown, "good"]
        assert set(flagged) == {flag}

    def test_quote_that_hides_the_end_of_an_event(self, tmp_path: Path) -> None:
        names, flagged = self.damaged(tmp_path, '"')
        assert names == ["good", '"', "good"]
        assert flagged == {"quotes_repaired": 1}

    def test_missing_quote_before_a_key(self, tmp_path: Path) -> None:
        raw = read_events(tmp_path, '{"ph":"X","name":"a","pid":1, tid": 4,"ts":1,"dur":1}', X % ("b", 1, 1))
        assert [track.tid for track in raw.tracks] == ["4", "7"]

    def test_wrong_types(self, tmp_path: Path) -> None:
        raw = read_events(
            tmp_path, '{"ph":"X","name":null,"cat":5,"pid":true,"tid":{"a":1},"ts":1,"dur":1}', '{"ph":1,"ts":2}'
        )
        assert raw.names[0] == "(unnamed)"
        assert raw.events.category.tolist() == [RawCategory.OTHER]
        assert raw.dropped == {"unknown_phase": 1}

    def test_nothing_makes_it_an_event(self, tmp_path: Path) -> None:
        raw = read_events(tmp_path, X % ("a", 1, 1), '{"ph":"X" "name" ts:: 5}', X % ("b", 2, 1))
        assert [s["name"] for s in slices(raw)] == ["a", "b"]
        assert raw.dropped == {"unreadable_event": 1}

    def test_unreadable_elements_are_counted_one_by_one(self, tmp_path: Path) -> None:
        raw = read_events(tmp_path, X % ("a", 1, 1), *["{x}"] * 50, X % ("b", 2, 1), *["{x}"] * 50)
        assert [s["name"] for s in slices(raw)] == ["a", "b"]
        assert raw.dropped == {"unreadable_event": 100}

    def test_damage_in_every_event_counts_the_same_in_one_piece_and_one_by_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        event = r'{"ph":"X","name":"C:\cuda","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"a":inf,"b":"\x"}}'
        monkeypatch.setattr(text, "BLOCK", 4000)
        raw = read_events(tmp_path, *(event % i for i in range(300)))
        assert raw.events.start.tolist() == [i * 1000 for i in range(300)]
        assert raw.flagged == {"escapes_repaired": 600, "nonfinite_number": 300}
        assert raw.names == (r"C:\cuda",)

    def test_more_damage_than_events_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reader, "MAX_DAMAGED", 20)
        with pytest.raises(TraceError, match="more than half"):
            read_events(tmp_path, X % ("a", 1, 1), *["{x}"] * 50)

    def test_damage_costs_only_its_own_event(self, tmp_path: Path) -> None:
        events = [X % (f"k{i}", i, 1) for i in range(500)]
        for row in range(0, 500, 7):
            events[row] = '{"ph": "X", "name": "bad"quote", "ts": nan:, }'
        raw = read_events(tmp_path, *events)
        assert raw.seen == 500
        assert len(raw.events) == 500 - len(range(0, 500, 7))

    def test_huge_integers(self, tmp_path: Path) -> None:
        digits = "9" * 5000
        raw = read_events(
            tmp_path, f'{{"ph":"X","name":"a","pid":{digits},"tid":1,"ts":1,"dur":{digits}}}', X % ("b", 1, 1)
        )
        assert raw.dropped == {"invalid_duration": 1}


class TestGzip:
    BODY = ('{"traceEvents": [' + ", ".join(X % (f"k{i}", i, 1) for i in range(4000)) + "]}").encode()

    def test_several_members_and_padding(self, tmp_path: Path) -> None:
        half = len(self.BODY) // 2
        data = gzip.compress(self.BODY[:half]) + gzip.compress(self.BODY[half:]) + b"\0" * 512
        raw = read_text(tmp_path, data, "any name")
        assert raw.imported == 4000
        assert raw.truncated_at_byte is None
        assert not raw.flagged

    def test_cut(self, tmp_path: Path) -> None:
        raw = read_text(tmp_path, gzip.compress(self.BODY)[:-20])
        assert 3000 < raw.imported < 4000
        assert raw.truncated_at_byte is not None

    def test_wrong_checksum_costs_nothing(self, tmp_path: Path) -> None:
        data = bytearray(gzip.compress(self.BODY))
        data[-6] ^= 1
        raw = read_text(tmp_path, bytes(data))
        assert raw.imported == 4000
        assert raw.flagged == {"damaged_gzip": 1}

    @pytest.mark.slow
    def test_damage_in_the_middle(self, tmp_path: Path) -> None:
        data = bytearray(gzip.compress(self.BODY))
        data[len(data) // 2] ^= 0xFF
        raw = read_text(tmp_path, bytes(data))
        assert raw.imported > 1000
        assert raw.truncated_at_byte is not None

    @pytest.mark.slow
    def test_bomb_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "bomb.json.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(b'{"traceEvents": [')
            for _ in range(80):
                file.write(b" " * (1 << 20))
        with pytest.raises(TraceError, match="200 times"):
            read(path)


@pytest.mark.slow
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "ph": st.sampled_from(["X", "X", "X", "B", "E", "i", "M"]),
                "name": st.text(max_size=8),
                "cat": st.sampled_from(["kernel", "cpu_op"]),
                "pid": st.sampled_from([0, 1, "a"]),
                "tid": st.sampled_from([0, 7, "stream 7"]),
                "ts": st.decimals(0, 10**13, places=3),
                "dur": st.decimals(0, 10**6, places=3),
                "args": st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=3),
            }
        ),
        min_size=1,
        max_size=30,
    )
)
def test_generated_traces_equal_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, object]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    written = [json.dumps(e, default=float) for e in events]
    for row, event in enumerate(events):  # decimals as text, so that no float comes between
        for key in ("ts", "dur"):
            written[row] = written[row].replace(f'"{key}": {float(event[key])!r}', f'"{key}": {event[key]}')
    raw = read_events(folder, *written)
    expected = oracle.of_events(json.loads("[" + ",".join(written) + "]", parse_float=Decimal))
    assert len(slices(raw)) == expected.events
    assert int(raw.events.duration.sum()) == expected.total_duration
    if slices(raw):
        assert min(one["start_ns"] for one in slices(raw)) == expected.first_start
