"""What a compiler says that an op moves: amounts of no kind that is named, so they are shown and in no floor."""

from dataclasses import fields, replace
from typing import Any, Final

import numpy as np

from tracescope.core.arguments import recorded_arguments
from tracescope.core.columns import I64
from tracescope.core.raw import RawTrace
from tracescope.core.work_table import UNKNOWN, WorkTable
from tracescope.recognise.work.work import Counted

KEYS: Final = ("bytes_accessed", "bytes accessed", "raw_bytes_accessed")
MAX_DIGITS: Final = 18


def with_recorded(raw: RawTrace, rows: I64, counted: Counted) -> Counted:
    """``counted``, whose work is that of the source's ``rows``, with what their arguments say that they moved."""
    detail = raw.events.detail[rows]
    said = np.full(len(raw.details) + 1, UNKNOWN)
    for code in np.unique(detail).tolist():
        said[code] = _recorded(raw.details[code])
    amount = said[detail]
    if (amount == UNKNOWN).all():
        return counted
    pairs, number = np.unique(np.stack([counted.work.astype(np.int64), amount]), axis=1, return_inverse=True)
    columns: dict[str, Any] = {f.name: getattr(counted.table, f.name)[pairs[0]] for f in fields(WorkTable)}
    columns["recorded"] = np.where(pairs[1] == UNKNOWN, columns["recorded"], pairs[1])
    nothing = WorkTable.unknown()
    table = WorkTable(**{f.name: np.append(getattr(nothing, f.name), columns[f.name]) for f in fields(WorkTable)})
    return replace(counted, table=table, work=(number.reshape(-1) + 1).astype(counted.work.dtype))


def _recorded(text: str) -> int:
    if not any(f'"{key}"' in text for key in KEYS):
        return UNKNOWN
    arguments = recorded_arguments(text) or {}
    plain = next((str(value) for value in map(arguments.get, KEYS) if value is not None), "")
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) <= MAX_DIGITS else UNKNOWN
