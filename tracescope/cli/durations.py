"""Reading a time that a person typed: ``50ms``, ``3.1 µs``, ``2s``, or whole nanoseconds."""

import re
from fractions import Fraction
from typing import Final

from tracescope.core.errors import TraceError

_TIME: Final = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{0,18})?)\s*(ns|us|µs|μs|ms|s)?\s*")
_NS: Final = {None: 1, "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_LONGEST_NS: Final = 2**62


def parse_deadline(text: str) -> int:
    """Whole ns from ``50ms``. Raises TraceError where it is not a time, or a number alone: 5 may mean ms."""
    value = parse_ns(text)
    if text.strip()[-1] in "0123456789.":
        raise TraceError(f"'{text}' as a deadline has no unit", action="Give a unit, such as 50ms.")
    return value


def parse_ns(text: str) -> int:
    """Whole ns from ``50ms``; without a unit the number is ns. Raises TraceError where it is not a time."""
    match = _TIME.fullmatch(text)
    value = round(Fraction(match[1]) * _NS[match[2]]) if match else _LONGEST_NS
    if value >= _LONGEST_NS:
        raise TraceError(f"'{text}' is not a time", action="Write for example 50ms, 3.1us or 120000 (ns).")
    return value
