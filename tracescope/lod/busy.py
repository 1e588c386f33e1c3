"""Exact time sums: how much of each interval between two instants a set of events covers."""

import numpy as np

from tracescope.core.columns import I64


def busy_before(start: I64, duration: I64, at: I64) -> I64:
    """Covered ns before each instant of ``at``, int64, for intervals sorted by start that do not overlap.

    ``at`` must be sorted. Exact: integers throughout.
    """
    if not len(start):
        return np.zeros(len(at), np.int64)
    last = np.searchsorted(start, at, side="right") - 1
    return _covered(start, duration, at, last)


def busy_per_bin(start: I64, duration: I64, origin: int, shift: int, bins: int) -> I64:
    """Covered ns in each of ``bins`` bins of ``2**shift`` ns from ``origin``, int64[bins]; the same exact sum."""
    if not len(start):
        return np.zeros(bins, np.int64)
    # Counting starts per bin finds each edge's last event in one linear pass, where a search would take log n.
    index = (start - origin + ((1 << shift) - 1)) >> shift
    counts = np.bincount(np.clip(index, 0, bins + 1), minlength=bins + 2)[: bins + 1]
    last = np.cumsum(counts) - 1
    at = origin + (np.arange(bins + 1, dtype=np.int64) << shift)
    return np.diff(_covered(start, duration, at, last))


def _covered(start: I64, duration: I64, at: I64, last: I64) -> I64:
    total = np.cumsum(duration)
    inside = last >= 0
    row = np.maximum(last, 0)
    before = total[row] - duration[row] + np.minimum(at - start[row], duration[row])
    return np.where(inside, before, 0)
