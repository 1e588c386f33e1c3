"""File formats. ``IMPORTERS`` lists the foreign ones; they are told apart by content, never by name alone."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from tracescope.core.errors import TraceError, printable
from tracescope.core.raw import RawTrace
from tracescope.core.regular import require_regular
from tracescope.io.chrome.reader import CHROME
from tracescope.io.csv_events import CSV
from tracescope.io.gzipped import GZIP_MAGIC, plain_head, unpacked
from tracescope.io.importer import Importer, Progress
from tracescope.io.nsys.reader import NSYS
from tracescope.io.perfetto.reader import PERFETTO
from tracescope.io.rocpd.reader import ROCPD
from tracescope.io.rocprof.reader import ROCPROF
from tracescope.io.xplane.reader import XPLANE

IMPORTERS: Final[tuple[Importer, ...]] = (ROCPROF, CHROME, ROCPD, NSYS, XPLANE, PERFETTO, CSV)
"""The first whose ``sniff`` agrees reads the file: put the more specific ones first. The Open dialog, the table in the
README and the matrix of every reader against every sample come from here.
"""

SUFFIXES: Final = tuple(dict.fromkeys(suffix for importer in IMPORTERS for suffix in importer.suffixes))
"""What files that can be read are usually called; any of them may be packed with gzip besides (``.gz``)."""

HEAD_BYTES: Final = 64 * 1024


def reader_for(path: Path) -> Importer:
    """The importer that recognises the file at ``path``; TraceError where none does or it cannot be opened."""
    require_regular(path)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise TraceError(f"{path.name}: cannot be opened: {error.strerror or error}") from error
    if not head:
        raise TraceError(f"{path.name}: the file is empty")
    packed = head.startswith(GZIP_MAGIC)
    if packed:
        head = plain_head(head)
    for importer in IMPORTERS:
        if importer.sniff(head, path):
            return (
                replace(importer, read=partial(_read_packed, importer)) if packed and not importer.unzips else importer
            )
    raise TraceError(
        f"{path.name}: not a trace: its content begins with {printable(repr(head[:12]))}",
        action="Readable are " + ", ".join(i.name for i in IMPORTERS) + " and tracescope's own .tscope.h5.",
    )


def _read_packed(
    importer: Importer, path: Path, *, progress: Progress | None = None, allow_truncated: bool = False
) -> RawTrace:
    """Read a gzip file with an importer that reads plain ones."""
    with unpacked(path, progress) as found:
        raw = importer.read(found.path, allow_truncated=allow_truncated)
    source = replace(raw.source, name=path.name, sha256=found.sha256, bytes=found.bytes)
    return replace(raw, source=source, flagged=raw.flagged | found.flagged)
