"""Numbers of tables written under any locale: a number in the wrong style is refused, never read as another number."""

import re
from collections.abc import Iterable
from typing import Final

LIMIT_NS: Final = 1 << 61
MAX_DIGITS: Final = 40

_SPACES: Final = str.maketrans("", "", " \u00a0\u202f\u2009'’")
"""Marks that only ever group digits."""
_COMMA_DECIMAL: Final = re.compile(r"\s*[+-]?[\d.'\u00a0\u202f ]*,\d+\s*")


def has_decimal_comma(numbers: Iterable[str]) -> bool | None:
    """Whether most of a file's numbers with decimals have a comma before them; None where none has decimals."""
    points = commas = 0
    for number in numbers:
        commas += bool(_COMMA_DECIMAL.fullmatch(number))
        points += number.count(".") == 1 and "," not in number
    return commas > points if commas or points else None


class Numbers:
    """Reads decimal numbers of one style. ``finer`` counts those with digits below the nanosecond."""

    def __init__(self, *, decimal_comma: bool) -> None:
        decimal, group = (",", r"\.") if decimal_comma else (r"\.", ",")
        self._plain = re.compile(rf"([+-]?)(\d*)(?:{decimal}(\d*))?(?:[eE]([+-]?\d{{1,3}}))?", re.ASCII)
        # One group alone may be a decimal of the other style: 12,250 is refused, 1,012,250 and 12,250.5 are not.
        self._grouped = re.compile(
            rf"([+-]?)([1-9]\d{{0,2}}(?:(?:{group}\d{{3}}){{2,}}|{group}\d{{3}}(?={decimal})))(?:{decimal}(\d*))?",
            re.ASCII,
        )
        self._group = "." if decimal_comma else ","
        self.finer = 0

    def nanoseconds(self, text: str, digits: int) -> int | None:
        """``text`` in a unit of 10^``digits`` ns as whole nanoseconds, half to even; None where it is no number."""
        text = text.strip()
        if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS:
            return int(text) * int(10**digits)
        text = text.translate(_SPACES)
        if len(text) > MAX_DIGITS:
            return None
        found = self._plain.fullmatch(text)
        exponent = 0
        if found is not None:
            exponent = int(found[4] or 0)
        else:
            found = self._grouped.fullmatch(text)
        if found is None:
            return None
        whole, fraction = found[2].replace(self._group, ""), found[3] or ""
        if not whole and not fraction:
            return None
        shift = digits + exponent - len(fraction)
        value = int(whole + fraction)
        if shift >= 0:
            value *= int(10 ** min(shift, MAX_DIGITS))  # what is cut here is past every limit
        else:
            unit = int(10**-shift)
            value, rest = divmod(value, unit)
            self.finer += rest > 0
            value += rest * 2 > unit or (rest * 2 == unit and value % 2 == 1)
        return -value if found[1] == "-" else value
