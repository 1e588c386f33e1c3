"""The only place that formats numbers for people. Decimal units; a missing value is an em dash, never 0."""

import math

MISSING = "—"
ALL_ACCEPTED = "all generated tokens accepted"
"""The acceptance criterion that stands beside every throughput."""
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def _scaled(value: float, unit: str) -> str:
    for factor, prefix in _SI:
        if abs(value) >= factor * 0.99995:
            digits = 2 if factor >= 1e9 else 1
            return f"{value / factor:.{digits}f} {prefix}{unit}"
    return f"{value:.0f} {unit}"


def size(count: float | None) -> str:
    """Bytes: one decimal under 1 GB, two above (``268.4 MB``, ``15.01 GB``)."""
    return MISSING if count is None or count < 0 else _scaled(count, "B")


def binary_size(count: int) -> str:
    """Bytes that are counted in powers of two, such as messages of a benchmark: ``8 KiB``, ``1 MiB``."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power and count % (1 << power) == 0:
            return f"{count >> power:,} {unit}"
    return f"{count:,} B"


def rate(bytes_per_s: float | None) -> str:
    """Bandwidth: ``3.35 TB/s``, ``864.0 GB/s``; a third decimal where that is exact (``1.555 TB/s``)."""
    if bytes_per_s is None:
        return MISSING
    if bytes_per_s >= 0.9995e12:
        third = bytes_per_s % 1e10 != 0 and bytes_per_s % 1e9 == 0
        return f"{bytes_per_s / 1e12:.{3 if third else 2}f} TB/s"
    return f"{bytes_per_s / 1e9:.1f} GB/s"


def flops(count: float | None) -> str:
    """FLOPs: ``1.07 GFLOP``."""
    return MISSING if count is None or count < 0 else _scaled(count, "FLOP")


def flop_rate(flops_per_s: float | None) -> str:
    """Compute rate: ``989.00 TFLOP/s``."""
    return MISSING if flops_per_s is None else _scaled(flops_per_s, "FLOP/s")


def significant(value: float | None, digits: int = 4) -> str:
    """A number to so many significant digits, written out: ``11,124`` and ``0.0000184``, never ``1.11e+04``."""
    if value is None or not math.isfinite(value):
        return MISSING
    if not value:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    text = f"{value:,.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def peak(flops_per_s: float | None, dtype: str = "") -> str:
    """A machine's dense compute rate in whole or tenths of TFLOP/s: ``989 TFLOP/s``, ``756.5 TFLOP/s bf16``."""
    if not flops_per_s:
        return MISSING
    return f"{significant(flops_per_s / 1e12)} TFLOP/s {dtype}".rstrip()


def plural(number: int, word: str) -> str:
    """A count with its noun: ``1 step``, ``1,024 steps``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def one_of_ranks(ranks: int) -> str:
    """Whose bytes and floors these are: ``one of 4 ranks``; empty where there is one."""
    return f"one of {ranks:,} ranks" if ranks > 1 else ""


def place(word: str, number: int, total: int) -> str:
    """Which one of ``total`` things that are counted from 0: ``step 7 of 0–127``; ``step 0`` where it is alone."""
    return f"{word} {number:,} {numbers_of(total)}" if total > 1 else f"{word} {number:,}"


def numbers_of(total: int) -> str:
    """The numbers that ``total`` things have, beside one of them: ``of 0–127``; ``the only one`` where it is alone."""
    return f"of 0–{total - 1:,}" if total > 1 else "the only one" if total else ""


def bandwidth_source(source: str) -> str:
    """What a bandwidth rests on, for people: a datasheet's is not what anything sustains."""
    return {"datasheet": "datasheet, not sustained", "user": "given by the user"}.get(source, source)


def short_source(source: str) -> str:
    """:func:`bandwidth_source` in one word, for where there is little room."""
    return {"user": "given"}.get(source, source)


def seconds(value: float | None) -> str:
    """A duration given in seconds, in the unit that suits it (``7.045 ms``)."""
    return MISSING if value is None else duration(value * 1e9)


def over(byte_count: float, bytes_per_s: float | None, takes_s: float | None) -> str:
    """The arithmetic of a memory floor, spelled out: ``15.01 GB ÷ 3.35 TB/s = 4.481 ms``."""
    return f"{size(byte_count)} ÷ {rate(bytes_per_s)} = {seconds(takes_s)}"


def micros(ns: float | None) -> str:
    """Microseconds with one decimal and no unit, for columns that carry it in the head (``98.4``)."""
    return MISSING if ns is None else f"{ns / 1e3:,.1f}"


def millis(ns: float | None) -> str:
    """Milliseconds with three decimals and no unit (``8.600``)."""
    return MISSING if ns is None else f"{ns / 1e6:,.3f}"


def duration(ns: float | None) -> str:
    """A duration in the unit that suits it: ``812 ns``, ``98.4 µs``, ``8.600 ms``, ``1.234 s``."""
    if ns is None:
        return MISSING
    size_ns = abs(ns)
    if size_ns < 1e3:
        return f"{ns:.0f} ns"
    if size_ns < 999_950:
        return f"{ns / 1e3:.1f} µs"
    if size_ns < 999_999_500:
        return f"{ns / 1e6:.3f} ms"
    return f"{ns / 1e9:,.3f} s"


def signed_duration(ns: float | None) -> str:
    """A difference, always with its sign: ``+18.3 µs``."""
    if ns is None:
        return MISSING
    return ("+" if ns >= 0 else "−") + duration(abs(ns))


def signed_micros(ns: float | None) -> str:
    """A difference in µs without its unit: ``+18.3``."""
    if ns is None:
        return MISSING
    return ("+" if ns >= 0 else "−") + f"{abs(ns) / 1e3:,.1f}"


def energy_unit(joules: float) -> tuple[float, str]:
    """The unit that suits an amount of energy, and how many joules it is."""
    if abs(joules) >= 0.99995:
        return 1.0, "J"
    return (1e-3, "mJ") if abs(joules) >= 0.99995e-3 or not joules else (1e-6, "µJ")


def energy(joules: float | None) -> str:
    """Energy: ``4.902 J``, ``51.6 mJ``, ``7.3 µJ``."""
    if joules is None:
        return MISSING
    factor, unit = energy_unit(joules)
    return f"{joules / factor:.{3 if unit == 'J' else 1}f} {unit}"


def energy_range(low: float, mid: float, high: float) -> str:
    """A modelled energy in the digits that its range leaves it: ``4.6 J, 3.8–5.4``."""
    factor, unit = energy_unit(mid)
    digits = 1 if mid < 9.95 * factor else 0
    least, middle, most = (f"{joules / factor:,.{digits}f}" for joules in (low, mid, high))
    return f"{middle} {unit}, {least}–{most}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share as percent with a space before the sign: ``81 %``."""
    return MISSING if share is None else f"{share * 100:.{digits}f} %"


def count(value: float | None, digits: int = 0) -> str:
    """A count with thousands commas."""
    return MISSING if value is None else f"{value:,.{digits}f}"
