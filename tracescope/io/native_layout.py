"""Layout of the native file, version 2: groups, columns, their dtypes and the limits that writer and reader share."""

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tracescope.core.category import BytesFrom, Category, EdgeKind, EventFlag, Op, StepKind
from tracescope.core.columns import empty_columns
from tracescope.core.samples import SampleTable
from tracescope.core.trace import Dependencies, EventTable, GraphNodes, RequestTable, StepTable
from tracescope.core.work_table import WorkTable

FORMAT: Final = b"tracescope"
VERSION: Final = 2
SUFFIX: Final = ".tscope.h5"

META: Final = "meta"
PYRAMID: Final = "pyramid"
TABLES: Final[dict[str, type]] = {
    "events": EventTable,
    "work": WorkTable,
    "steps": StepTable,
    "requests": RequestTable,
    "dependencies": Dependencies,
    "samples": SampleTable,
    "graph_nodes": GraphNodes,
}
"""Tables whose columns are the array fields of a core dataclass, under the same names."""

OPTIONAL: Final = frozenset({"samples", "graph_nodes"})
"""Tables that a file only has where they have rows: neither their group nor their row count is there else."""

TEXTS: Final = ("names", "details")
"""Lists of strings, each as one UTF-8 blob and int64 byte offsets, one more than there are strings."""

CHUNK_ROWS: Final = 131_072
"""1 MiB of int64: large enough to compress well, small enough to spread over threads and to fit HDF5's own cache."""

MAX_CHUNK_BYTES: Final = 16 << 20
MAX_META_BYTES: Final = 64 << 20
MAX_DECLARED_BYTES: Final = 8 << 30
MAX_RATIO_COLUMN: Final = 1_000
"""Declared over stored bytes of one column. Deflate cannot exceed 1,032; level 1 on constant data reaches about 230."""
MAX_RATIO_FILE: Final = 200
"""Declared over stored bytes of the whole file beyond the first FREE_BYTES: no real trace is constant throughout."""
FREE_BYTES: Final = 64 << 20
MAX_PYRAMID_ARRAYS: Final = 4_096
MAX_TRACKS: Final = 100_000
MAX_LAYERS: Final = 32_767
MAX_TIME: Final = 1 << 62

ARRAY_NAME: Final = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
PYRAMID_DTYPES: Final = frozenset(
    np.dtype(code) for code in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")
)


@dataclass(frozen=True, slots=True)
class Range:
    """The values a column may hold, both ends included; None where only the dtype limits it."""

    low: int
    high: int | None = None


_MAX_CATEGORY = max(Category)
_RATE = Range(-1)
VALUES: Final[dict[str, Range]] = {
    "events/start": Range(-MAX_TIME, MAX_TIME),
    "events/duration": Range(0, MAX_TIME),
    "events/category": Range(0, _MAX_CATEGORY),
    "events/roles": Range(0, (1 << (_MAX_CATEGORY + 1)) - 1),
    "events/op": Range(0, max(Op)),
    "events/layer": Range(-1),
    "events/step": Range(-1),
    "events/flags": Range(0, sum(EventFlag)),
    **{f"work/{name}": _RATE for name in empty_columns(WorkTable) if name != "bytes_from"},
    "work/bytes_from": Range(0, max(BytesFrom)),
    "steps/kind": Range(0, max(StepKind)),
    "steps/start": Range(-MAX_TIME, MAX_TIME),
    "steps/duration": Range(0, MAX_TIME),
    "steps/host_wait": Range(-1, MAX_TIME),
    **{
        f"steps/{name}": _RATE
        for name in ("batch", "padded_batch", "context_tokens", "generated_tokens", "queue_depth")
    },
    "steps/all_accepted": Range(0, 1),
    "steps/warm_up": Range(0, 1),
    **{f"requests/{name}": Range(-MAX_TIME, MAX_TIME) for name in empty_columns(RequestTable)},
    "samples/time": Range(-MAX_TIME, MAX_TIME),
    "dependencies/kind": Range(0, max(EdgeKind)),
    "dependencies/recorded": Range(0, 1),
}
"""Value ranges checked after a column is read; ids are checked against the tables they point into."""


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a column on disk: booleans become uint8, because HDF5 would store them as an enumeration."""
    return np.dtype(np.uint8) if dtype == np.bool_ else dtype.newbyteorder("<")


def _columns() -> dict[str, np.dtype[Any]]:
    found: dict[str, np.dtype[Any]] = {f"{META}/json": np.dtype(np.uint8)}
    for text in TEXTS:
        found |= {f"{text}/text": np.dtype(np.uint8), f"{text}/offset": np.dtype(np.int64)}
    found |= {
        "lanes/track": np.dtype(np.uint32),
        "lanes/depth": np.dtype(np.uint16),
        "lanes/offset": np.dtype(np.int64),
    }
    for table, cls in TABLES.items():
        found |= {f"{table}/{name}": stored_dtype(array.dtype) for name, array in empty_columns(cls).items()}
    return found


COLUMNS: Final = _columns()
"""Every dataset of a file but the pyramid's, as ``group/column``, with its dtype on disk."""

ADDED: Final[dict[int, frozenset[str]]] = {
    2: frozenset(f"work/{name}" for name in ("index_read", "state_read", "state_write", "link_reduced", "recorded")),
}
"""The columns that came with each version after the first; a file of an earlier one does not have them."""


def columns_of(version: int) -> dict[str, np.dtype[Any]]:
    """The datasets of a file of ``version``, as in ``COLUMNS``."""
    later = frozenset().union(*(names for since, names in ADDED.items() if since > version))
    return {name: dtype for name, dtype in COLUMNS.items() if name not in later}


BOOLEANS: Final = {
    table: tuple(name for name, array in empty_columns(cls).items() if array.dtype == np.bool_)
    for table, cls in TABLES.items()
}
"""The columns of each table that are uint8 on disk and bool in memory."""

COUNTED: Final = (*TABLES, "lanes", *TEXTS)
"""Tables whose row counts are root attributes, named ``<table>_rows``."""


def expected_rows(column: str, rows: dict[str, int]) -> int | None:
    """How long ``column`` must be, given the row counts of the tables; None where any length is right."""
    table, name = column.split("/")
    if table == META or name == "text":
        return None
    return rows[table] + (name == "offset")
