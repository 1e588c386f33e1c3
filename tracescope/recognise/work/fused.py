"""The category of a fused kernel: of its several roles the one that needs most time at the bandwidth of the import."""

from typing import Final

import numpy as np

from tracescope.core.category import Category
from tracescope.core.columns import U8, U16, U32
from tracescope.core.hardware import Basis
from tracescope.core.work_table import WorkTable
from tracescope.floor.pricing import compute_s, link_s, memory_s, sent_bytes

ORDER: Final = (
    Category.WEIGHT_READ,
    Category.KV_READ,
    Category.KV_APPEND,
    Category.COMPUTE,
    Category.COMMUNICATION,
    Category.TOKEN_SELECTION,
)
"""Of equal floors the first in this order wins."""


def dominant_categories(category: U8, further: U16, work: U32, table: WorkTable, basis: Basis | None) -> U8:
    """The category of each event; ``category`` by its name, ``further`` roles of a fused kernel, its ``work`` row.

    A kernel of one role keeps its category, and so does a fused one none of whose floors is known or above 0.
    """
    fused = np.flatnonzero(further & ~(np.uint16(1) << category.astype(np.uint16)))
    if basis is None or not len(fused):
        return category
    floors = _floors(table, basis)[:, work[fused]]
    roles = further[fused] | (np.uint16(1) << category[fused].astype(np.uint16))
    has = np.array([(roles & c.role) != 0 for c in ORDER])
    floors = np.where(has, floors, -1.0)
    best = floors.argmax(axis=0)  # the first of equals
    result = category.copy()
    decided = floors.max(axis=0) > 0
    result[fused[decided]] = np.array([c.value for c in ORDER], np.uint8)[best[decided]]
    return result


def _floors(table: WorkTable, basis: Basis) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Seconds of each role (in ORDER) of each work row; 0 where the amount or the rate is not known."""

    weights = np.maximum(table.weight_read, 0) + np.maximum(table.embedding_gather, 0)
    memory = (memory_s(amount, basis) for amount in (weights, table.kv_read, table.kv_append))
    work = (
        compute_s(table.flops, basis),
        link_s(sent_bytes(table.link, table.link_reduced, basis), basis),
        np.zeros(len(table)),
    )
    return np.nan_to_num(np.stack([*memory, *work]))
