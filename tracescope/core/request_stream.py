"""Requests as they arrive: when, with how long a prompt, and how many tokens each is to generate."""

from dataclasses import dataclass, field

import numpy as np

from tracescope.core.columns import I64, freeze_columns
from tracescope.core.report import ImportReport, Source

LARGEST_TOKENS = 2**31
"""More tokens than this in one request is a typing mistake, not a workload."""


@dataclass(frozen=True, eq=False)
class RequestStream:
    """Requests in order of arrival: ``arrival`` int64 ns after ``base_ns``, never decreasing; tokens int64.

    ``base_ns`` is the source's own clock at the first arrival (0 where it has none); ``source`` and ``report`` say
    which file they are from and what was left out of it. ``description`` is one line for people. Raises ValueError
    where times go backwards, a prompt is negative or a request generates nothing.
    """

    arrival: I64
    prompt: I64
    output: I64
    base_ns: int = 0
    source: Source = field(default_factory=Source)
    report: ImportReport = field(default_factory=ImportReport)
    description: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze_columns(self)
        if len(self.arrival) and (np.diff(self.arrival, prepend=0) < 0).any():
            raise ValueError("requests must be in order of arrival, the first at 0 or later")
        for tokens, least in ((self.prompt, 0), (self.output, 1)):
            if len(tokens) and not least <= int(tokens.min()) <= int(tokens.max()) <= LARGEST_TOKENS:
                raise ValueError(f"a request has fewer than {least} or more than {LARGEST_TOKENS} tokens")

    def __len__(self) -> int:
        return len(self.arrival)
