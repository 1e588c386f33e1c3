"""Numbers for people, and quantities that people type."""

import pytest

from tracescope.core import units
from tracescope.core.errors import TraceError
from tracescope.core.quantity import parse_bandwidth, parse_size


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (units.size(15_009_849_344), "15.01 GB"),
        (units.size(268_435_456), "268.4 MB"),
        (units.size(0), "0 B"),
        (units.size(None), "—"),
        (units.size(-1), "—"),
        (units.rate(3.35e12), "3.35 TB/s"),
        (units.rate(1_555_000_000_000), "1.555 TB/s"),
        (units.rate(3.1273e12), "3.13 TB/s"),
        (units.rate(864e9), "864.0 GB/s"),
        (units.rate(1e12), "1.00 TB/s"),
        (units.flop_rate(989e12), "989.00 TFLOP/s"),
        (units.over(15_009_849_344, 3_350_000_000_000, 4.481e-3), "15.01 GB ÷ 3.35 TB/s = 4.481 ms"),
        (units.over(1, None, None), "1 B ÷ — = —"),
        (units.seconds(0.0070453), "7.045 ms"),
        (units.seconds(None), "—"),
        (units.duration(999), "999 ns"),
        (units.duration(98_400), "98.4 µs"),
        (units.duration(1_234_000_000), "1.234 s"),
        (units.signed_duration(-18_300), "−18.3 µs"),
        (units.percent(0.81), "81 %"),
        (units.energy(4.902), "4.902 J"),
        (units.energy(0.0516), "51.6 mJ"),
        (units.energy(7.25e-6), "7.2 µJ"),
        (units.energy(0.0), "0.0 mJ"),
        (units.energy_range(3.8, 4.6, 5.4), "4.6 J, 3.8–5.4"),
        (units.energy_range(0.0084, 0.0142, 0.0199), "14 mJ, 8–20"),
        (units.energy_range(0.0, 0.00996, 0.02), "10 mJ, 0–20"),
        (units.energy_range(800, 1234, 1700), "1,234 J, 800–1,700"),
        (units.energy_range(0.0, 0.0, 0.0), "0.0 mJ, 0.0–0.0"),
        (units.place("step", 7, 128), "step 7 of 0–127"),
        (units.place("step", 0, 1), "step 0"),
    ],
)
def test_formats(shown: str, expected: str) -> None:
    assert shown == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3.0TB/s", 3_000_000_000_000),
        ("3.35 TB/s", 3_350_000_000_000),
        ("864GB/s", 864_000_000_000),
        ("2.5e12 B/s", 2_500_000_000_000),
        (" 800 GB/s ", 800_000_000_000),
        ("1GiB/s", 1 << 30),
    ],
)
def test_bandwidths(text: str, value: int) -> None:
    assert parse_bandwidth(text) == value


@pytest.mark.parametrize(
    "text", ["", "fast", "0", "0TB/s", "-3TB/s", "nan", "inf", "1e99", "3 TB/h", "1i", "١TB/s", "9" * 400]
)
def test_no_bandwidth(text: str) -> None:
    with pytest.raises(TraceError, match="bandwidth"):
        parse_bandwidth(text)


@pytest.mark.parametrize("text", ["250", " 2.5e12 ", "3.", "3.0"])
def test_a_number_alone_is_no_bandwidth(text: str) -> None:
    with pytest.raises(TraceError, match="no unit") as refused:
        parse_bandwidth(text)
    assert "3.0TB/s" in str(refused.value.lines())


@pytest.mark.parametrize(
    ("text", "meant"), [("3000GB", "3000GB/s"), ("3.0TB", "3.0TB/s"), (" 3T ", "3TB/s"), ("1GiB", "1GiB/s")]
)
def test_an_amount_is_no_bandwidth_and_the_hint_says_what_is(text: str, meant: str) -> None:
    with pytest.raises(TraceError, match="not a bandwidth") as refused:
        parse_bandwidth(text)
    assert f"Write {meant} " in refused.value.action
    assert parse_bandwidth(meant) > 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (11_124.4, "11,124"), (1e9, "1,000,000,000"), (222.16, "222.2"), (0.8, "0.8"), (0.00001657, "0.00001657"),
        (-31.25, "-31.25"), (0, "0"), (float("nan"), "—"), (float("inf"), "—"), (99_999.96, "100,000"),
    ],
)  # fmt: skip
def test_a_number_is_written_out_and_never_as_a_power_of_ten(value: float, text: str) -> None:
    assert units.significant(value) == text


def test_sizes() -> None:
    assert parse_size("0") == 0
    assert parse_size("2GB") == 2_000_000_000
    assert parse_size("512MiB") == 512 << 20
    for text in ("2GB/s", "-1", "all", ""):
        with pytest.raises(TraceError, match="size"):
            parse_size(text)


def test_a_peak_a_count_with_its_noun_and_a_bandwidths_source_have_one_wording() -> None:
    assert [units.peak(989e12), units.peak(756_500_000_000_000, "bf16")] == ["989 TFLOP/s", "756.5 TFLOP/s bf16"]
    assert units.peak(None) == "—"
    assert [units.plural(n, "step") for n in (0, 1, 1024)] == ["0 steps", "1 step", "1,024 steps"]
    words = [units.bandwidth_source(s) for s in ("datasheet", "sustained", "user", "file")]
    assert words == ["datasheet, not sustained", "sustained", "given by the user", "file"]
