"""Reads one rocpd database into a RawTrace."""

from pathlib import Path
from typing import Final

from tracescope.core.errors import TraceError
from tracescope.core.raw import RawTrace
from tracescope.core.report import Source
from tracescope.io.collector import MAX_TRACKS, Collector
from tracescope.io.database import MAGIC, Database
from tracescope.io.importer import Importer, Progress
from tracescope.io.rocpd.rows import DEVICE, CaptureReader
from tracescope.io.rocpd.schema import ALLOCATIONS, COPIES, COUNTERS, KERNELS, REGIONS, SAMPLES, read_captures

LEFT_OUT: Final = {COUNTERS: "counter_collection", SAMPLES: "sample"}
"""Why the rows of a table are left out: counters are of whole kernels and have no time, samples no length."""


def sniff(head: bytes, path: Path) -> bool:
    """Whether the file is a SQLite database whose first pages, where its schema lies, name the tables of rocprofv3."""
    return head.startswith(MAGIC) and b"rocpd_" in head


def read(path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace:
    """The trace in ``path``; nothing is written beside it. TraceError where it is no such database, is damaged (a part
    of one cannot be told from a whole one, so ``allow_truncated`` changes nothing), or holds nothing with times.
    """
    with Database(path, progress) as database:
        captures = read_captures(database)
        collector = Collector()
        read_of = [capture.tables.get(what) for capture in captures for what in (KERNELS, COPIES, REGIONS, ALLOCATIONS)]
        report = database.row_progress(sum(database.count(table) for table in read_of if table), progress)
        readers = [CaptureReader(database, collector, c, number, report) for number, c in enumerate(captures)]
        for reader in readers:
            reader.read()
            if len(collector.tracks) > MAX_TRACKS:
                raise TraceError(f"{path.name}: has more than {MAX_TRACKS:,} tracks")
            for what, reason in LEFT_OUT.items():
                table = reader.capture.tables.get(what)
                rows = database.count(table) if table else 0
                collector.seen += rows
                collector.drop(reason, rows)
        if not collector.imported:
            raise TraceError(
                f"{path.name}: a rocpd database without a record that has times",
                action="Record with: rocprofv3 --runtime-trace",
            )
        collector.flag("text_repaired", database.repaired)
        source = Source(path.name, database.sha256, database.bytes, "rocpd")
    tracks = tuple(readers[key[1]].track(key, several=len(readers) > 1) for key in collector.tracks)
    used = {key[2] for key in collector.tracks if key[0] == DEVICE}
    devices = {d.device: d for capture in reversed(captures) for d in capture.devices if d.device in used or not used}
    return collector.trace(
        source,
        collector.events(collector.taken(), tracks),
        tracks,
        devices=tuple(devices[number] for number in sorted(devices)),
        metadata={"schema_version": captures[0].version},
    )


ROCPD: Final = Importer(
    "rocprofiler-sdk SQLite (rocpd)", (".db",), "what `rocprofv3` writes by default since ROCm 7", sniff, read
)
