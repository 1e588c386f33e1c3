"""Cells of a request file as numbers: exact times in ns, whole tokens, and a reason where a row cannot be used."""

import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final

import numpy as np

from tracescope.core.report import ImportReport, Source
from tracescope.core.request_stream import LARGEST_TOKENS, RequestStream

SECONDS: Final = 10**9
MILLISECONDS: Final = 10**6
_LATEST: Final = 1 << 62
"""146 years: differences of two such times still fit int64."""

_DATETIME: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,12}))?\s*(Z|UTC|[+-]\d{2}:?\d{2})?"
)
_NUMBER: Final = re.compile(r"[+-]?\d{1,18}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?")
_WHOLE: Final = re.compile(r"\d{1,18}(?:\.0)?")
_EPOCH: Final = date(1970, 1, 1).toordinal()


class BadCellError(ValueError):
    """A cell that is not what its column should hold; the text is the reason under which its row is counted."""


def datetime_ns(text: str) -> tuple[int, bool]:
    """Ns since 1970 of ``2023-11-16 18:17:03.9799600``, and whether digits below a ns were rounded off.

    Without an offset the time is taken as UTC, since only differences are used. Raises BadCellError.
    """
    match = _DATETIME.fullmatch(text.strip())
    if match is None:
        raise BadCellError("bad_time")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if hour > 23 or minute > 59 or second > 60:
        raise BadCellError("bad_time")
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        raise BadCellError("bad_time") from None
    digits = (match[7] or "").ljust(9, "0")
    below = Decimal("0." + (digits[9:] or "0"))
    ns = int(digits[:9]) + int(below > Decimal("0.5"))
    total = ((days * 24 + hour) * 60 + minute - _offset_minutes(match[8])) * 60 + second
    return _in_range(total * SECONDS + ns), bool(below)


def _offset_minutes(text: str | None) -> int:
    if text is None or text in ("Z", "UTC"):
        return 0
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return -minutes if text[0] == "-" else minutes


def number_ns(text: str, unit_ns: int) -> tuple[int, bool]:
    """Whole ns of a decimal number of units, rounded half to even, and whether it was. Raises BadCellError."""
    text = text.strip()
    if _NUMBER.fullmatch(text) is None:
        raise BadCellError("bad_time")
    try:
        exact = Decimal(text) * unit_ns
    except InvalidOperation:
        raise BadCellError("bad_time") from None
    if abs(exact) >= _LATEST:
        raise BadCellError("bad_time")
    whole = round(exact)
    return _in_range(whole), whole != exact


def _in_range(ns: int) -> int:
    if abs(ns) >= _LATEST:
        raise BadCellError("bad_time")
    return ns


def tokens(text: str) -> int:
    """A number of tokens: digits only (a ``.0`` behind them is a spreadsheet's doing). Raises BadCellError.

    A thousands sign or a fraction is not guessed at: it would be another number, not a smaller mistake.
    """
    text = text.strip()
    if _WHOLE.fullmatch(text) is None:
        raise BadCellError("bad_number")
    value = int(text.removesuffix(".0"))
    if value > LARGEST_TOKENS:
        raise BadCellError("bad_number")
    return value


@dataclass
class RequestRows:
    """Requests as they are read, and the count of what was left out by reason."""

    arrival: list[int] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    rounded: int = 0
    seen: int = 0

    def drop(self, reason: str) -> None:
        """Count one element that cannot be used."""
        self.seen += 1
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def add(self, time: tuple[int, bool], prompt: int, output: int) -> None:
        """One request; one that generated nothing failed in the recording, and is left out."""
        if output < 1:
            self.drop("no_output_tokens")
            return
        self.seen += 1
        self.arrival.append(time[0])
        self.prompt.append(prompt)
        self.output.append(output)
        self.rounded += time[1]

    def stream(self, source: Source, layout: str) -> RequestStream:
        """Everything in order of arrival; times count from the first."""
        arrival, prompt, output = (np.array(c, np.int64) for c in (self.arrival, self.prompt, self.output))
        order = np.argsort(arrival, kind="stable")
        backwards = int((np.diff(arrival) < 0).sum())
        base = int(arrival[order[0]]) if len(order) else 0
        flagged = {"out_of_order": backwards, "below_a_nanosecond": self.rounded}
        report = ImportReport(
            seen=self.seen,
            imported=len(arrival),
            dropped=dict(self.dropped),
            flagged={reason: count for reason, count in flagged.items() if count},
        )
        return RequestStream(
            arrival=arrival[order] - base,
            prompt=prompt[order],
            output=output[order],
            base_ns=base,
            source=source,
            report=report,
            description=f"{len(arrival):,} of {self.seen:,} in {source.name} ({layout})",
        )
