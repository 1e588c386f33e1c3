"""Reads one SQLite export of Nsight Systems into a RawTrace."""

from pathlib import Path
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCounter, RawDevice, RawTrace, RawTrack
from tracescope.core.report import Source
from tracescope.io.collector import Collector
from tracescope.io.database import MAGIC, Database
from tracescope.io.importer import Importer, Progress
from tracescope.io.nsys.metrics import read_metrics
from tracescope.io.nsys.rows import RowReader
from tracescope.io.nsys.schema import (
    GPU_METRICS,
    GRAPH_TRACE,
    KERNEL,
    MEMCPY,
    MEMSET,
    NVTX,
    REQUIRED,
    SYNCHRONIZATION,
    Head,
    host_tables,
    read_head,
    unread_tables,
)
from tracescope.io.nsys.tracks import make_tracks

DATABASE_SUFFIXES: Final = (".sqlite", ".sqlite3", ".db")
REPORT_SUFFIXES: Final = (".nsys-rep", ".qdrep")
LEFT_OUT: Final = {
    "SCHED_EVENTS": "cpu_scheduling",
    "COMPOSITE_EVENTS": "cpu_samples",
}
"""Why the rows of a table that no reader takes are left out; every other one is an ``unsupported_table``."""


def sniff(head: bytes, path: Path) -> bool:
    """Whether the file is a SQLite database, or by its name ought to be one: then ``read`` says why it is not."""
    return head.startswith(MAGIC) or NSYS.named(path) or path.name.lower().endswith(REPORT_SUFFIXES)


def read(path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace:
    """The trace in ``path``; nothing is written beside it. TraceError where it is no export, is damaged (a part of a
    database cannot be told from a whole one, so ``allow_truncated`` changes nothing), or has no CUDA activity.
    """
    if path.suffix.lower() in REPORT_SUFFIXES:
        raise TraceError(
            f"{path.name}: a Nsight Systems report, which only Nsight Systems reads",
            action=f"Export it first: nsys export --type sqlite {path.name}",
        )
    with Database(path, progress) as database:
        head = read_head(database)
        collector, counters, notes = _read_rows(database, head, progress)
        collector.flag("text_repaired", database.repaired)
        tracks = make_tracks(collector.tracks, head)
        events = collector.events(collector.taken(), tracks)
        return collector.trace(
            Source(path.name, database.sha256, database.bytes, "nsys"),
            events,
            tracks,
            devices=_devices(head, tracks),
            metadata=_metadata(head),
            has_absolute_clock=bool(head.epoch_ns),
            base_time_ns=head.epoch_ns,
            counters=counters,
            notes=notes,
        )


def _read_rows(
    database: Database, head: Head, progress: Progress | None
) -> tuple[Collector, tuple[RawCounter, ...], tuple[str, ...]]:
    """The rows of every table, the sampled counters, and sentences about them."""
    calls = host_tables(database)
    device = [t for t in (KERNEL, MEMCPY, MEMSET, GRAPH_TRACE, SYNCHRONIZATION, NVTX, GPU_METRICS) if database.table(t)]
    left = unread_tables(database, {name.lower() for name in device} | {table.name.lower() for table in calls})
    read = [*calls, *(table for table in map(database.table, device) if table is not None)]
    report = database.row_progress(sum(map(database.count, read)), progress)
    rows = RowReader(database, head, report)
    rows.read_kernels()
    rows.read_copies()
    graphs = rows.read_graphs()
    rows.read_synchronizations()
    for table in calls:
        rows.read_calls(table)
    rows.read_ranges()
    collector = rows.collector
    counters = read_metrics(database, head, collector, report)
    unread = sorted(name for name in REQUIRED if name.lower() in database.views)
    collector.flag("view_not_read", len(unread))
    for table in left:
        count = database.count(table)
        collector.seen += count
        collector.drop(LEFT_OUT.get(table.name.upper(), "unsupported_table"), count)
    return collector, counters, _notes(head, graphs, rows.unknown_strings, unread)


def _notes(head: Head, graphs: int, unknown_strings: int, views: list[str]) -> tuple[str, ...]:
    notes = [f"{name} is a view, not a table: its rows are not read" for name in views]
    if not head.has_strings and unknown_strings:
        notes.append("names missing: StringIds table not found")
    if graphs:
        notes.append(
            f"{graphs:,} CUDA graph launches are recorded as wholes, without their kernels "
            "(record with --cuda-graph-trace=node to see inside)"
        )
    return tuple(notes)


def _devices(head: Head, tracks: tuple[RawTrack, ...]) -> tuple[RawDevice, ...]:
    """The GPUs that did something, where the file describes them; else all it describes."""
    used = {track.device for track in tracks if track.is_device}
    return tuple(device for device in head.devices if device.device in used) or head.devices


def _metadata(head: Head) -> dict[str, Any]:
    """What describes the recording. Host, user, paths and environment stay in the file."""
    said = {"schema_version": head.schema, "nsys_version": head.product, "cuda_graph_trace": head.graph_mode}
    return {key: value for key, value in said.items() if value}


NSYS: Final = Importer("Nsight Systems SQLite", DATABASE_SUFFIXES, "`nsys export --type sqlite`", sniff, read)
