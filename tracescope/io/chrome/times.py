"""Decimal text to integer nanoseconds, exactly: a time never passes through a float."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

import msgspec
import numpy as np

from tracescope.core.columns import I64, Bool

LIMIT_NS: Final = 1 << 62
"""Times beyond it (73 years either way of the origin) are not times; sums of two stay inside int64."""
MAX_DIGITS: Final = 40

_SCALE: Final = np.array([0, 100, 10, 1], np.int64)
"""What a fraction of so many digits counts in thousandths."""
_COMMA, _POINT, _ZERO = 44, 46, 48
_CONTEXT: Final = Context(prec=80)


@dataclass(frozen=True, slots=True)
class Times:
    """``ns`` int64[n]; ``valid`` bool[n]; ``missing`` bool[n] (absent or null, so not valid either).

    ``finer`` counts times with digits below the nanosecond (rounded half to even); ``fractional`` says whether any
    was written with a decimal point.
    """

    ns: I64
    valid: Bool
    missing: Bool
    finer: int
    fractional: bool


def nanoseconds(texts: Sequence[msgspec.Raw]) -> Times:
    """Times in ns of JSON numbers (or strings holding one) in µs. Source: the Chrome trace format counts in µs.

    Plain decimals (up to 16 digits, up to three decimals) are parsed together; the rare others one by one.
    """
    n = len(texts)
    joined = b",".join(texts) + b","
    chars = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(chars == _COMMA)
    if len(ends) != n:  # a text that holds a comma
        return _one_by_one(texts, np.zeros(n, np.int64), np.arange(n), fractional=b"." in joined)
    points = np.flatnonzero(chars == _POINT)
    owner = np.searchsorted(ends, points)
    has_point = np.bincount(owner, minlength=n).astype(np.int64)
    starts = np.concatenate([np.zeros(min(n, 1), np.int64), ends[:-1] + 1])
    point = ends.copy()
    point[owner] = points
    decimals = np.maximum(ends - point - 1, 0)
    whole = point - starts
    odd = (has_point > 1) | (whole < 1) | (whole > 16) | (decimals > 3) | ((decimals == 0) & (has_point > 0))
    strange = joined.translate(None, b"0123456789.,")
    if strange:
        odd |= np.logical_or.reduceat((chars - np.uint8(_ZERO) > 9) & (chars != _COMMA) & (chars != _POINT), starts)
    rows = np.flatnonzero(odd)
    ns = np.zeros(n, np.int64)
    plain = ~odd
    if len(rows):
        joined = b",".join([texts[row] for row in np.flatnonzero(plain).tolist()])
        has_point, decimals = has_point[plain], decimals[plain]
    numbers = np.fromstring(joined.replace(b".", b",").rstrip(b","), np.int64, sep=",")
    at = np.arange(len(has_point)) + np.cumsum(has_point) - has_point
    below = numbers[np.minimum(at + 1, len(numbers) - 1)] * _SCALE[decimals] * has_point if len(at) else at
    big = numbers[at] >= LIMIT_NS // 1000
    ns[plain] = np.where(big, 0, np.where(big, 0, numbers[at]) * 1000 + below)
    if big.any():
        rows = np.union1d(rows, np.flatnonzero(plain)[big])
    return _one_by_one(texts, ns, rows, fractional=bool(len(points)))


def _one_by_one(texts: Sequence[msgspec.Raw], ns: I64, rows: I64, *, fractional: bool) -> Times:
    valid = np.ones(len(ns), bool)
    missing = np.zeros(len(ns), bool)
    finer = 0
    for row in rows.tolist():
        text = bytes(texts[row])
        value = None if text in (b"", b"null") else exact_nanoseconds(text)
        if value is None:
            valid[row] = False
            missing[row] = text in (b"", b"null")
            continue
        ns[row], below = value
        finer += below
    return Times(ns, valid, missing, finer, fractional)


def exact_nanoseconds(text: bytes) -> tuple[int, bool] | None:
    """(ns, whether it was rounded) of one JSON number or quoted number in µs; None where it is not a time."""
    plain = text.strip(b'"')
    if len(plain) > MAX_DIGITS or not plain.isascii() or b"_" in plain:
        return None
    try:
        exact = _CONTEXT.multiply(Decimal(plain.decode().strip()), 1000)
        if not exact.is_finite() or abs(exact) > LIMIT_NS:
            return None
        rounded = exact.quantize(Decimal(1), rounding=ROUND_HALF_EVEN, context=_CONTEXT)
    except ArithmeticError:
        return None
    return int(rounded), rounded != exact
