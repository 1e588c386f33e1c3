"""Bytes and FLOPs summed over groups of events, unknown wherever an event known to move them has no amount."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np

from tracescope.core.category import Category
from tracescope.core.columns import I64, U8, Bool
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN

_ROLES: dict[str, int] = {
    "weight_read": Category.WEIGHT_READ.role,
    "embedding_gather": 0,
    "kv_read": Category.KV_READ.role,
    "kv_append": Category.KV_APPEND.role,
    "link": Category.COMMUNICATION.role,
    "link_reduced": Category.COMMUNICATION.role,
    "flops": Category.WEIGHT_READ.role | Category.KV_READ.role,
}
"""Which roles say that an event certainly has an amount in this column; 0: none does, unknown counts as nothing."""

LARGEST_SUM: Final = 1 << 60
"""Bytes or FLOPs of one group beyond which nothing real lies (an exabyte a step); such a sum is not known."""


@dataclass(frozen=True, eq=False, slots=True)
class WorkSums:
    """One row a group: bytes int64 and FLOPs int64, -1 where not known.

    An amount is unknown where an event with that role lacks it, and where no event of the group has the role while
    the work of some is unknown. ``embedding_gather`` is the sum of what is known.
    """

    weight_read: I64
    embedding_gather: I64
    kv_read: I64
    kv_append: I64
    link: I64
    link_reduced: I64
    flops: I64

    @property
    def streamed_bytes(self) -> I64:
        """Weights, KV reads and appends together: what T_mem and the energy count; -1 where one is not known."""
        known = (self.weight_read >= 0) & (self.kv_read >= 0) & (self.kv_append >= 0)
        return np.where(known, self.weight_read + self.kv_read + self.kv_append, UNKNOWN)

    @property
    def memory_bytes(self) -> I64:
        """All bytes over the memory bus: ``streamed_bytes`` and the embedding rows; -1 where not known."""
        streamed = self.streamed_bytes
        return np.where(streamed >= 0, streamed + self.embedding_gather, UNKNOWN)

    def taken(self, order: I64) -> Self:
        """The groups in another order (int64 row indices)."""
        return type(self)(**{f.name: getattr(self, f.name)[order] for f in fields(self)})


def work_sums(trace: Trace, ids: I64, sums: Callable[[I64], I64], seen_roles: int = 0) -> WorkSums:
    """Sum the work of the events ``ids``; ``sums`` turns one int64 a event into one int64 a group.

    ``seen_roles``: roles that the reader of the groups finds in another group, so that a group without them has 0.
    """
    work = trace.events.work[ids]
    roles = trace.events.roles[ids]
    used = np.bincount(work, minlength=len(trace.work)) > 0
    groups = len(sums(np.zeros(len(ids), np.int64)))
    columns = {}
    for name, role in _ROLES.items():
        amount: I64 = getattr(trace.work, name)
        if not (used & (amount != 0)).any():
            columns[name] = np.zeros(groups, np.int64)
            continue
        total = sums(np.maximum(amount, 0)[work])
        if float(amount.max()) * len(ids) >= LARGEST_SUM:
            # Hostile amounts would wrap around int64: judge the sum by its high bits, which cannot.
            total = np.where(sums(np.maximum(amount, 0)[work] >> 20) >= LARGEST_SUM >> 20, UNKNOWN, total)
        missing = amount < 0
        if role and (missing & used).any():
            total = np.where(_known(missing[work], (roles & role) != 0, sums, bool(role & seen_roles)), total, UNKNOWN)
        columns[name] = total
    return WorkSums(**columns)


def unknown_work(trace: Trace, ids: I64) -> bool:
    """Whether nothing at all is known of what some of the events ``ids`` move."""
    used = np.unique(trace.events.work[ids])
    table = trace.work
    return bool(((table.weight_read[used] < 0) & (table.kv_read[used] < 0) & (table.kv_append[used] < 0)).any())


def grouped(group: I64, groups: int) -> Callable[[I64 | Bool], I64]:
    """A summing function for :func:`work_sums` over ``group`` (int64, one a event, below ``groups``); exact."""

    def sums(values: I64 | Bool) -> I64:
        total = np.zeros(groups, np.int64)
        np.add.at(total, group, values.astype(np.int64, copy=False))
        return total

    return sums


def _known(missing: Bool, has_role: Bool, sums: Callable[[I64], I64], seen: bool) -> Bool:
    known: Bool = sums((missing & has_role).astype(np.int64)) == 0
    if not seen:
        carriers = sums(has_role.astype(np.int64))
        any_missing = sums(missing.astype(np.int64))
        known &= (carriers > 0) | (any_missing == 0)
    return known


def labels_of_roles(roles: int) -> list[str]:
    """Names of the categories in a ``roles`` bitmask, in their order."""
    return [category.label for category in Category if roles & category.role]


def main_category(categories: U8, group: I64, groups: int, floor: I64, exposed: I64) -> I64:
    """The category that names each group: that of the largest summed floor, else of the most time, else the first."""

    share = grouped(group * len(Category) + categories, groups * len(Category))
    by_floor, by_time = (share(values).reshape(groups, len(Category)) for values in (floor, exposed + 1))
    main: I64 = np.where(by_floor.any(axis=1), by_floor.argmax(axis=1), by_time.argmax(axis=1))
    return main
