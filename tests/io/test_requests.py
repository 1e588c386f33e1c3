"""Files of requests: every layout by the names of its columns, its quirks, and one clear error for what is none."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracescope.core.errors import TraceError
from tracescope.core.request_stream import RequestStream
from tracescope.io.requests import read_requests
from tracescope.io.requests.rows import BadCellError, datetime_ns, number_ns, tokens

AZURE = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    b"2023-11-16 18:17:03.9799600,4808,10\r\n"
    b"2023-11-16 18:17:04.0319600,3180,8\r\n"
    b"2023-11-16 18:17:04.0781490,110,27"
)
AZURE_2024 = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    b"2024-05-10 00:00:00.009930+00:00,2162,5\n"
    b"2024-05-10 02:00:00.017335+02:00,2399,6\n"
    b"2024-05-10 00:00:01+00:00,76,15\n"
)
BURST = (
    b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    b"5,ChatGPT,472,18,490,Conversation log\n"
    b"45,ChatGPT,1087,0,1087,Conversation log\n"
    b"118,GPT-4,417,276,693,API log\n"
)
BURST_3 = (
    b"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    b"19440110.0,a1,3.5,ChatGPT,472,18,490,Conversation log\n"
    b"19440110.25,,,GPT-4,417,276,693,API log\n"
)
VIDUR = b"arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4808,10\n0.052,3180,8\n0.098189,110,27\n"
MOONCAKE = (
    b'{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
    b'{"timestamp": 0, "input_length": 7322, "output_length": 490, "hash_ids": [0, 3]}\n'
    b'{"timestamp": 3000, "input_length": 12, "output_length": 1, "hash_ids": [7]}\n'
)
RAGPULSE = (
    b'{"timestamp": "27.5", "input_length": 10, "output_length": 5, "session_id": "s", "hash_ids": {"a": []}}\n'
    b'{"timestamp": "27", "input_length": 11, "output_length": 6, "session_id": "t", "hash_ids": {"a": []}}\n\n'
)
BENCH = json.dumps(
    {
        "date": "20260101-000000", "backend": "vllm", "request_rate": 4.0, "num_prompts": 4,
        "input_lens": [100, 200, 300, 400], "output_lens": [10, 20, 0, 40], "ttfts": [0.1, 0.1, 0, 0.1],
        "itls": [[0.01], [0.01], [], []], "start_times": [12.5, 12.25, 13.0, 14.0], "errors": ["", "", "boom", ""],
        "mean_itl_ms": float("nan"),
    }
).encode()  # fmt: skip


@pytest.fixture
def reads(tmp_path: Path) -> Callable[[bytes], RequestStream]:
    def read(data: bytes) -> RequestStream:
        path = tmp_path / "requests.txt"
        path.write_bytes(data)
        return read_requests(path)

    return read


@pytest.mark.parametrize(
    ("data", "layout", "expected"),
    [
        (AZURE, "Azure", (1_700_158_623_979_960_000, [0, 52_000_000, 98_189_000], [4808, 3180, 110], [10, 8, 27])),
        (AZURE_2024, "Azure", (1_715_299_200_009_930_000, [0, 7_405_000, 990_070_000], [2162, 2399, 76], [5, 6, 15])),
        (BURST, "BurstGPT", (5_000_000_000, [0, 113_000_000_000], [472, 417], [18, 276])),
        (BURST_3, "BurstGPT", (19_440_110_000_000_000, [0, 250_000_000], [472, 417], [18, 276])),
        (VIDUR, "vidur", (0, [0, 52_000_000, 98_189_000], [4808, 3180, 110], [10, 8, 27])),
        (MOONCAKE, "Mooncake", (0, [0, 0, 3_000_000_000], [6758, 7322, 12], [500, 490, 1])),
        (RAGPULSE, "Mooncake", (27_000_000_000, [0, 500_000_000], [11, 10], [6, 5])),
        (BENCH, "vLLM", (12_250_000_000, [0, 250_000_000, 1_750_000_000], [200, 100, 400], [20, 10, 40])),
    ],
)
def test_every_layout(
    reads: Callable[[bytes], RequestStream],
    data: bytes,
    layout: str,
    expected: tuple[int, list[int], list[int], list[int]],
) -> None:
    for variant in (data, gzip.compress(data), b"\xef\xbb\xbf" + data, data.replace(b"\r\n", b"\n")):
        got = reads(variant)
        assert layout in got.source.importer
        assert (got.base_ns, got.arrival.tolist(), got.prompt.tolist(), got.output.tolist()) == expected
        assert got.report.seen == got.report.imported + sum(got.report.dropped.values())
        assert got.source.bytes == len(variant)


def test_columns_may_stand_anywhere_and_be_written_otherwise(reads: Callable[[bytes], RequestStream]) -> None:
    got = reads(b"# made by hand\n\nextra\tnum_decode_tokens\tArrived At\tnum_prefill_tokens\nx\t3\t1.5\t7\n")
    assert (got.base_ns, got.prompt.tolist(), got.output.tolist()) == (1_500_000_000, [7], [3])


def test_what_failed_or_is_damaged_is_counted_and_left_out(reads: Callable[[bytes], RequestStream]) -> None:
    rows = b"1.0,5,5\n1.0,5\n1.0,5,5,5\n1.0,x,5\n1.0,5,0\nsoon,5,5\n1.0,-5,5\nnan,5,5\n"
    rows += b"1e30,5,5\n1.0,99999999999,5\n\n0.5,5,5\n"
    got = reads(b"arrived_at,num_prefill_tokens,num_decode_tokens\n" + rows)
    assert len(got) == 2
    assert got.report.dropped == {"ragged_row": 2, "bad_number": 3, "no_output_tokens": 1, "bad_time": 3}
    assert got.report.flagged == {"out_of_order": 1}
    assert got.report.seen == 11
    lines = MOONCAKE + b'{"timestamp": 5\n{"timestamp": null, "input_length": 1, "output_length": 2}\n[]\n'
    assert reads(lines).report.dropped == {"bad_json": 2, "missing_value": 1}
    assert reads(BURST).report.dropped == {"no_output_tokens": 1}
    assert reads(BENCH).report.dropped == {"failed": 1}


@pytest.mark.parametrize(
    ("body", "kept", "dropped"),
    [
        (b"1000,500;10;5\n", [1_000_500_000_000], {}),
        (b"1000,5;10;5\n1.020,000;10;5\n", [1_000_500_000_000], {"bad_time": 1}),
        (b"1000,5;10;5\n1.020;10;5\n", [1_000_500_000_000], {"bad_time": 1}),
        (b"1000.5;10;5\n1000.25;1.000;5\n", [1_000_500_000_000], {"bad_number": 1}),
        (b"1000.5;10;5\n1000.25;10;1,5\n", [1_000_500_000_000], {"bad_number": 1}),
    ],
)
def test_numbers_of_another_locale_are_read_or_left_out_but_never_another_number(
    reads: Callable[[bytes], RequestStream], body: bytes, kept: list[int], dropped: dict[str, int]
) -> None:
    got = reads(b"\xef\xbb\xbfarrived_at;num_prefill_tokens;num_decode_tokens\n" + body)
    assert (got.arrival + got.base_ns).tolist() == kept
    assert got.report.dropped == dropped


def test_thousands_signs_newlines_in_quotes_and_bare_returns(reads: Callable[[bytes], RequestStream]) -> None:
    head = b"arrived_at,num_prefill_tokens,num_decode_tokens,note\n"
    got = reads(head + b'"1,000",10,5,x\n2,"1,000",5,x\n3,10,5,"two\nlines ""quoted"""\n4,10,5,x\n')
    assert (len(got), got.report.dropped) == (2, {"bad_time": 1, "bad_number": 1})
    assert len(reads((head + b"1,10,5,x\n2,10,5,y\n").replace(b"\n", b"\r"))) == 2
    got = reads(head + b"1,1\x000,5,x\n2,10,5,x\n")
    assert (len(got), got.report.dropped) == (1, {"bad_number": 1})


def test_a_header_alone_is_a_file_without_requests(reads: Callable[[bytes], RequestStream]) -> None:
    assert len(reads(b"arrived_at,num_prefill_tokens,num_decode_tokens\n")) == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a file of requests"),
        (b"name,start,duration\nk,1,2\n", "not a file of requests that is known; it begins 'name,start"),
        (b"num_prefill_tokens,num_decode_tokens\n1,2\n", "no arrival times"),
        (b"arrived_at,num_prefill_tokens,num_decode_tokens\nx,1,2\n", "none of its 1 requests can be used"),
        (b"PAR1xxxx", "binary"),
        (b"\x1f\x8b\x08\x00cut", "gzip data is damaged"),
        (gzip.compress(AZURE)[:-9], "gzip data is damaged"),
        (b"{}", "not requests of a kind that is known"),
        (b"[" * 100_000, "not requests of a kind that is known"),
        (b'[{"a":' * 50_000, "not requests of a kind that is known"),
        (b'{"traceEvents": []}', "not requests of a kind that is known"),
        (b'{"input_lens": 5}', "not lists"),
        (b'{"input_lens": [5], "output_lens": [5]}', "no start_times"),
        (b'{"input_lens": [5], "output_lens": [5, 6], "start_times": [1]}', "1 input_lens, 2 output_lens"),
        (b'{"input_lens": [5], "output_lens": ["x"], "start_times": [1]}', "none of its 1 requests"),
        (b"arrived_at,num_prefill_tokens,num_decode_tokens\n1,2," + b"3" * 200_000, "cannot be read as CSV"),
        (bytes(range(256)) * 4, "not a file of requests"),
    ],
)
def test_one_clear_error(reads: Callable[[bytes], RequestStream], data: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words) as refused:
        reads(data)
    assert len(refused.value.lines()) <= 2


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(TraceError, match="cannot be read"):
            read_requests(path)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([AZURE, BURST_3, VIDUR, MOONCAKE, BENCH]), st.integers(0, 400))
def test_damage_is_a_count_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, data: bytes, at: int
) -> None:
    path = tmp_path_factory.mktemp("requests") / "x"
    path.write_bytes(data[:at] + junk + data[at + len(junk) // 2 :])
    try:
        got = read_requests(path)
    except TraceError:
        return
    assert got.report.seen == len(got) + sum(got.report.dropped.values())


@given(st.integers(0, 2**61), st.integers(0, 9))
def test_decimal_seconds_are_exact(ns: int, digits: int) -> None:
    cut = ns - ns % 10 ** (9 - digits)
    text = f"{cut // 10**9}.{cut % 10**9:09d}"
    assert number_ns(text.rstrip("0"), 10**9) == (cut, False)


def test_times_below_a_nanosecond_are_rounded_and_said() -> None:
    assert number_ns("0.0000000015", 10**9) == (2, True)
    assert number_ns("0.0000000025", 10**9) == (2, True)
    assert datetime_ns("1970-01-01T00:00:00.0000000016Z") == (2, True)
    assert datetime_ns("1970-01-01 00:00:00.5") == (500_000_000, False)
    assert datetime_ns("1969-12-31 23:59:59-01:30") == (5_399_000_000_000, False)


@pytest.mark.parametrize(
    "text", ["2023-13-01 00:00:00", "2023-02-30 00:00:00", "2023-01-01 25:00:00", "9999-01-01 00:00:00", "12"]
)
def test_dates_that_are_none(text: str) -> None:
    with pytest.raises(BadCellError):
        datetime_ns(text)


def test_tokens_are_whole_numbers() -> None:
    assert tokens(" 12 ") == tokens("12.0") == 12
    for text in ("", "1.5", "1,000", "1.000", "-1", "1e3", "٣x", "9" * 19):
        with pytest.raises(BadCellError):
            tokens(text)


def test_public_files(shared: Callable[[str], Path]) -> None:
    azure = read_requests(shared("traces/requests_azure/AzureLLMInferenceTrace_code.csv"))
    vidur = read_requests(shared("traces/requests_vidur/splitwise_code.csv"))
    assert len(azure) == len(vidur) == 8_819
    assert azure.output.sum() == vidur.output.sum() == 245_896
    assert (azure.prompt == vidur.prompt).all()
    assert np.abs(azure.arrival - vidur.arrival).max() <= 1_000, "the same requests, rounded to a microsecond"
    mooncake = read_requests(shared("traces/requests_mooncake/synthetic_trace.jsonl"))
    assert len(mooncake) == mooncake.report.seen == 3_993


def test_files_of_events_from_other_locales_are_refused_in_one_sentence(shared: Callable[[str], Path]) -> None:
    for path in sorted(shared("cases/69-csv-from-another-locale").glob("*.csv")):
        with pytest.raises(TraceError, match="not a file of requests"):
            read_requests(path)
