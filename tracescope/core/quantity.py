"""Reading quantities that a person typed: a bandwidth, a size; decimal units unless an i says binary."""

import re
from fractions import Fraction
from typing import Final

from tracescope.core.errors import TraceError

_QUANTITY: Final = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE]\+?[0-9]{1,2})?)\s*([kKMGTP]?i?)B?(/s)?\s*")
_FACTORS: Final = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_LARGEST: Final = 10**18


def parse_bandwidth(text: str) -> int:
    """Bytes/s from ``3.0TB/s``, ``864 GB/s`` or ``2.5e12 B/s``.

    Raises TraceError where it is not a positive rate, and where a part of the unit is missing: 250 may mean GB/s and
    300GB may be a size, which is no guess of ours.
    """
    value = _parse(text, allow_rate=True)
    if not value:
        raise TraceError(f"'{text}' is not a bandwidth", action="Write for example 3.0TB/s, or datasheet or sustained.")
    amount = text.strip()
    if amount[-1] in "0123456789.":
        raise TraceError(f"'{text}' as a bandwidth has no unit", action="Give a unit, such as 3.0TB/s.")
    if not amount.endswith("/s"):
        rate = amount if amount.endswith("B") else f"{amount}B"
        raise TraceError(f"'{text}' is an amount, not a bandwidth", action=f"Write {rate}/s if that is meant.")
    return value


def parse_size(text: str) -> int:
    """Bytes from ``2GB``, ``512MiB`` or ``1000``; raises TraceError where it is not a size."""
    value = _parse(text, allow_rate=False)
    if value is None:
        raise TraceError(f"'{text}' is not a size in bytes", action="Write for example 2GB, 512MiB or 1000.")
    return value


def _parse(text: str, *, allow_rate: bool) -> int | None:
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] == "i" or (match[3] and not allow_rate):
        return None
    base = 1024 if match[2].endswith("i") else 1000
    value = round(Fraction(match[1]) * base ** _FACTORS[match[2].removesuffix("i")])
    return value if value <= _LARGEST else None
