"""What our own Chrome export says beside the events, so that it comes back as the trace that it was."""

from typing import Final

import msgspec

KEY: Final = "tracescope"
"""The header's key that holds an ExportHeader."""
VERSION: Final = 1
SUB_LANE: Final = 1_000_000
"""Thread ids of sub-lanes lie above those of tracks: viewers drop slices that overlap without nesting."""
DERIVED: Final = frozenset({"bandwidth reached GB/s", "bandwidth of the floor GB/s"})
"""Counters that are computed from the trace whenever it is exported."""
AMOUNTS: Final = {
    "weight_read": "weight_read_bytes",
    "embedding_gather": "embedding_gather_bytes",
    "kv_read": "kv_read_bytes",
    "kv_append": "kv_append_bytes",
    "activation": "activation_bytes",
    "link": "link_bytes",
    "flops": "flops",
    "index_read": "index_read_bytes",
    "state_read": "state_read_bytes",
    "state_write": "state_write_bytes",
    "link_reduced": "link_reduced_bytes",
    "recorded": "recorded_bytes",
}
"""Columns of work, and the arguments that hold them where they are known."""


class ExportedTrack(msgspec.Struct, frozen=True):
    """One track, and the process and thread that stand for it; both are -1 for a counter, which has its name."""

    kind: int
    name: str
    process: str
    device: int
    rank: int
    pid: int = -1
    tid: int = -1


class ExportHeader(msgspec.Struct, frozen=True):
    """``steps`` holds the columns of the step table, ``labels`` the texts of their labels."""

    export: int
    base_ns: int
    resolution_ns: int
    tracks: list[ExportedTrack]
    labels: list[str]
    steps: dict[str, list[int]]
    notes: list[str] = []
