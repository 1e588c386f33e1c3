"""The shortest stretch that a sequence repeats, as the layers of a model do."""

from typing import Final

import numpy as np

from tracescope.recognise.names.kernel_rules import Family

SHORTEST: Final = 3
LONGEST: Final = 2_000
REPEATS: Final = 3
COVERED: Final = 0.5

_SKIPPED: Final = (
    Family.ATTENTION_PART,
    Family.GEMM_PART,
    Family.NORM_PART,
    Family.COPY,
    Family.WAIT,
    Family.BOOKKEEPING,
    Family.ELEMENTWISE,
)
"""What every other layer may have: a reduction after its attention, a copy."""


def find_period(values: np.ndarray) -> tuple[int, int, int] | None:
    """(where it begins, its length, how often it is there) of the shortest stretch of at least SHORTEST values that
    stands at least REPEATS times in a row and covers more than half of ``values``; None where there is none.

    A stretch of equal values is none.
    """
    n = len(values)
    for period in range(SHORTEST, min(n // REPEATS, LONGEST) + 1):
        same = np.append(values[period:] == values[:-period], False)
        # Runs of True: where they begin and end.
        edges = np.flatnonzero(np.diff(np.append(False, same).astype(np.int8)))
        low, high = edges[0::2], edges[1::2]
        if not len(low):
            continue
        longest = int((high - low).argmax())
        length = int(high[longest] - low[longest]) + period
        times = length // period
        begin = int(low[longest])
        if times >= REPEATS and times * period > COVERED * n and len(set(values[begin : begin + period].tolist())) > 1:
            return begin, period, times
    return None


def period_layers(family: list[int]) -> list[tuple[int, int]]:
    """(low, high) of each layer by repetition of families, empty where nothing repeats.

    What only some layers have is skipped in the search and belongs to the layer that it follows. A layer begins with
    its norm, where it has one.
    """
    kept = [i for i, f in enumerate(family) if f not in _SKIPPED]
    found = find_period(np.array([family[i] for i in kept], np.int64))
    if found is None:
        return []
    begin, period, times = found
    inside = [family[kept[begin + k]] for k in range(period)]
    if not {Family.GEMM, Family.EXPERTS, Family.NONE} & set(inside):
        return []
    # The stretch may begin anywhere in a layer: begin with the norm that most products follow at once.
    opens = [k for k in range(period) if inside[k] == Family.NORM and inside[(k + 1) % period] != Family.NORM]
    shift = opens[0] if opens else 0
    if begin + shift + times * period > len(kept):
        times -= 1
    starts = [kept[begin + shift + k * period] for k in range(times)]
    after = begin + shift + times * period
    ends = [*starts[1:], kept[after] if after < len(kept) else len(family)]
    return list(zip(starts, ends, strict=True))
