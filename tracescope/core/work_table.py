"""What events move and compute: deduplicated amounts, and how each is known."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import BytesFrom
from tracescope.core.columns import I64, U8, freeze_columns

UNKNOWN: Final = -1
"""The value of every quantity column that is not known. It is never 0, and it is null in JSON."""


@dataclass(frozen=True, eq=False)
class WorkTable:
    """Deduplicated amounts of work: bytes int64, FLOPs int64, -1 where not known (which is not 0).

    ``weight_read``: weights streamed from memory; ``embedding_gather``: the embedding (and position) rows that a step
    looks up, counted apart from the weights; ``kv_read`` and ``kv_append`` are the cache of attention with the state
    of recurrent layers and index keys, whose parts are ``index_read``, ``state_read`` and ``state_write``; ``link``:
    bytes that one rank sends over the interconnect, and ``link_reduced`` where the switch adds up what the ranks send;
    ``recorded``: what a compiler or profiler counted, shown and in no floor; ``bytes_from``: a BytesFrom.
    Row 0 is "nothing known".
    """

    weight_read: I64
    embedding_gather: I64
    kv_read: I64
    kv_append: I64
    activation: I64
    link: I64
    flops: I64
    bytes_from: U8
    index_read: I64
    state_read: I64
    state_write: I64
    link_reduced: I64
    recorded: I64

    def __post_init__(self) -> None:
        freeze_columns(self)

    def __len__(self) -> int:
        return len(self.weight_read)

    @classmethod
    def of(cls, **columns: NDArray[Any]) -> Self:
        """A table from the columns that are at hand: what is left out is what it is for plain attention.

        No index keys and no state where the cache is known, the same bytes on the link whatever the switch does,
        nothing recorded.
        """
        none = {"index_read": "kv_read", "state_read": "kv_read", "state_write": "kv_append"}
        parts = {name: np.where(columns[whole] == UNKNOWN, UNKNOWN, 0) for name, whole in none.items()}
        recorded = np.full(len(columns["kv_read"]), UNKNOWN)
        rows: dict[str, NDArray[Any]] = {**parts, "link_reduced": columns["link"], "recorded": recorded, **columns}
        return cls(**rows)

    @classmethod
    def unknown(cls) -> Self:
        """A table of the single row "nothing known"."""
        amounts = ("weight_read", "embedding_gather", "kv_read", "kv_append", "activation", "link", "flops")
        minus = np.full(1, UNKNOWN, np.int64)
        return cls.of(**dict.fromkeys(amounts, minus), bytes_from=np.full(1, BytesFrom.NONE, np.uint8))

    @cached_property
    def memory_bytes(self) -> I64:
        """All bytes of a row over the memory bus (weights, embedding rows, KV), -1 where any of them is not known."""
        kinds = np.stack([self.weight_read, self.embedding_gather, self.kv_read, self.kv_append])
        total: I64 = np.where((kinds == UNKNOWN).any(axis=0), UNKNOWN, kinds.sum(axis=0))
        total.flags.writeable = False
        return total
