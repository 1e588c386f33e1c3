"""Events as a plain table: headers, units, encodings, number styles and damage."""

import hashlib
import random
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracescope.core.errors import TraceError
from tracescope.core.raw import RawTrace
from tracescope.io import reader_for
from tracescope.io.csv_numbers import Numbers, has_decimal_comma
from tracescope.load import open_trace


def read(folder: Path, text: str | bytes, name: str = "events.csv") -> RawTrace:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    raw = reader_for(path).read(path)
    assert raw.seen == raw.imported + sum(raw.dropped.values())
    return raw


def rows(raw: RawTrace) -> list[tuple[str, str, int, int]]:
    e = raw.events
    listed = zip(e.name.tolist(), e.track.tolist(), e.start.tolist(), e.duration.tolist(), strict=True)
    return [(raw.names[name], raw.tracks[track].tid, start, duration) for name, track, start, duration in listed]


@pytest.mark.parametrize(
    "header",
    [
        "name,track,start_ns,duration_ns",
        "Name,Track,Start (ns),Duration (ns)",
        "kernel,stream,start[ns],dur_ns",
        '"event","lane","begin_ns","dur [ns]"',
    ],
)
def test_headers_name_columns_and_units(tmp_path: Path, header: str) -> None:
    raw = read(tmp_path, f"{header}\ngemm,7,10,5\n")
    assert rows(raw) == [("gemm", "7", 10, 5)]
    assert raw.source.sha256 == hashlib.sha256((tmp_path / "events.csv").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("unit", "start"), [("ns", 1), ("us", 1500), ("µs", 1500), ("ms", 1_500_000), ("s", 1_500_000_000)]
)
def test_units_scale_to_nanoseconds(tmp_path: Path, unit: str, start: int) -> None:
    raw = read(tmp_path, f"name,start_{unit},dur_ns\na,{'1' if unit == 'ns' else '1.5'},7\n")
    assert rows(raw) == [("a", "(no track)", start, 7)]


def test_ends_instead_of_durations(tmp_path: Path) -> None:
    raw = read(tmp_path, "name,start_us,end_ms\na,1.5,0.002\nb,3000,0.002\n")
    assert rows(raw) == [("a", "(no track)", 1500, 500)]
    assert raw.dropped == {"negative_duration": 1}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "name,track,start_ns,dur_ns\ngemm µ,gpu0,10,5\n"
    assert rows(read(tmp_path, text.encode(encoding))) == [("gemm µ", "gpu0", 10, 5)]


def test_invalid_text_is_repaired_and_counted(tmp_path: Path) -> None:
    raw = read(tmp_path, b"name,start_ns,dur_ns\ng\xffm,1,2\n")
    assert raw.names == ("g\ufffdm",)
    assert raw.flagged == {"text_repaired": 1}


def test_tracks_of_a_device(tmp_path: Path) -> None:
    raw = read(tmp_path, "name,device,strm,start_ns,dur_ns\na,NVIDIA H100 (1),7,0,1\nb,NVIDIA H100 (0),7,1,1\n")
    assert [(t.is_device, t.device, t.tid) for t in raw.tracks] == [(True, 1, "7"), (True, 0, "7")]
    raw = read(tmp_path, "name,track,start_ns,dur_ns\na,gpu3,0,1\nb,stream 9,0,1\nc,main,0,1\n")
    assert [(t.is_device, t.device) for t in raw.tracks] == [(True, 3), (True, 0), (False, -1)]
    names = {t.name for t in open_trace(tmp_path / "events.csv").trace.tracks}
    assert names == {"gpu3", "stream 9", "main"}


def test_what_is_not_used_is_said(tmp_path: Path) -> None:
    raw = read(tmp_path, "name,start_ns,dur_ns,colour,start\na,0,1,red,x\n")
    assert raw.notes == ("columns not used: colour, start",)
    assert raw.notes[0] in open_trace(tmp_path / "events.csv").trace.meta.notes


@pytest.mark.parametrize(
    "text", ["name,start,duration\na,1,2\n", "a,b\n1,2\n", "", "TIMESTAMP,ContextTokens\n1,2\n", "name;start_ns\na;1\n"]
)
def test_without_a_header_that_names_times_it_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TraceError) as refused:
        read(tmp_path, text or "\n")
    assert "events.csv: no line is a header of events" in refused.value.what
    assert "start_ns" in refused.value.action


def test_the_header_is_found_whatever_the_file_is_called(tmp_path: Path) -> None:
    assert len(read(tmp_path, "tool v1, rev 2\n\nname\tstart_ns\tdur_ns\na\t1\t2\n", "events.txt").events) == 1


def test_impossible_numbers_are_left_out_and_counted(tmp_path: Path) -> None:
    text = (
        "name,start_ns,dur_ns\na,soon,1\nb,1,\nc,-5,2\nd,1,-2\ne,99999999999999999999,1\nf,1,99999999999999999999\n\n"
    )
    raw = read(tmp_path, text)
    assert rows(raw) == [("c", "(no track)", -5, 2)]
    assert raw.dropped == {"invalid_timestamp": 2, "invalid_duration": 2, "negative_duration": 1}


def test_a_quote_that_is_never_closed_swallows_rows_that_are_counted(tmp_path: Path) -> None:
    raw = read(tmp_path, 'name,start_ns,dur_ns\na,1,2\n"b,2,3\nc,3,4\nd,4,5\n')
    assert rows(raw) == [("a", "(no track)", 1, 2)]
    assert raw.dropped == {"unclosed_quote": 3}
    raw = read(tmp_path, 'name,start_ns,dur_ns\n"a"x,1,2\nb,2,3\n')
    assert rows(raw) == [("b", "(no track)", 2, 3)]
    assert raw.dropped == {"unreadable_row": 1}


@pytest.mark.parametrize(
    ("text", "comma", "value"),
    [
        ("12.5", False, 12_500),
        ("12,5", True, 12_500),
        ("12,5", False, None),
        ("12.5", True, None),
        ("1,000,000", False, 1_000_000_000),
        ("1.000.000", True, 1_000_000_000),
        ("1.020,000", True, 1_020_000),
        ("1,020.000", False, 1_020_000),
        ("12,250", False, None),
        ("12.250", True, None),
        ("0,435", False, None),
        ("0,435", True, 435),
        ("1 000 000,5", True, 1_000_000_500),
        ("1'000.5", False, 1_000_500),
        ("1e3", False, 1_000_000),
        ("1.5E-3", False, 2),
        ("-2.0005", False, -2_000),
        (".5", False, 500),
        ("5.", False, 5_000),
        ("", False, None),
        (".", False, None),
        ("1,00,000", False, None),
        ("0x10", False, None),
        ("nan", False, None),
        ("inf", False, None),
        ("1e999999999", False, None),
        ("9" * 41, False, None),
        ("١٢", False, None),
    ],
)
def test_a_number_of_the_wrong_style_is_none(text: str, comma: bool, value: int | None) -> None:
    assert Numbers(decimal_comma=comma).nanoseconds(text, 3) == value


@pytest.mark.parametrize(
    ("numbers", "comma"), [(["1,5", "2"], True), (["1.5", "2"], False), (["1", "2"], None), (["1.020,000"], True)]
)
def test_the_style_of_a_file(numbers: list[str], comma: bool | None) -> None:
    assert has_decimal_comma(numbers) is comma


@given(
    st.decimals(min_value=-(10**12), max_value=10**12, places=6, allow_nan=False),
    st.sampled_from([0, 3, 6, 9]),
    st.booleans(),
)
def test_numbers_are_exact(number: Decimal, digits: int, comma: bool) -> None:
    text = format(number, "f").replace(".", "," if comma else ".")
    exact = int((number * 10**digits).to_integral_value())
    assert Numbers(decimal_comma=comma).nanoseconds(text, digits) == exact


@pytest.mark.slow
def test_damaged_tables_read_or_are_refused(tmp_path: Path) -> None:
    rng = random.Random(7)
    lines = [f'"k{i}, x",gpu{i % 2},{1000 * i}.5,{i}' for i in range(30)]
    seed = "\r\n".join(["name,track,start_us,dur_us", *lines]).encode("utf-8-sig")
    pieces = [b'"', b"\n", b",", b";", b"\0", b"\xff", b"\r", b"1e99", b'""', b"\t", b"-", b"\xef\xbb\xbf", b"\xff\xfe"]
    refused: list[TraceError] = []
    for _ in range(400):
        data = bytearray(seed)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 20)] = rng.choice(pieces)
        try:
            read(tmp_path, bytes(data))
        except TraceError as error:
            refused.append(error)
    assert all(len(error.lines()) <= 3 for error in refused)
    assert len(refused) < 200
