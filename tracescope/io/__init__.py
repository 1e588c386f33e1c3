"""File formats. ``IMPORTERS`` lists the foreign ones; they are told apart by content, never by name."""

from pathlib import Path
from typing import Final

from tracescope.core.errors import TraceError, printable
from tracescope.core.regular import require_regular
from tracescope.io.chrome.reader import CHROME
from tracescope.io.csv_events import CSV
from tracescope.io.importer import Importer
from tracescope.io.nsys.reader import NSYS
from tracescope.io.perfetto.reader import PERFETTO
from tracescope.io.rocprof.reader import ROCPROF

IMPORTERS: Final[tuple[Importer, ...]] = (ROCPROF, CHROME, NSYS, PERFETTO, CSV)
"""The first whose ``sniff`` agrees reads the file: put the more specific ones first."""

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
    for importer in IMPORTERS:
        if importer.sniff(head, path):
            return importer
    raise TraceError(
        f"{path.name}: not a trace: its content begins with {printable(repr(head[:12]))}",
        action="Readable are " + ", ".join(i.name for i in IMPORTERS) + " and tracescope's own .tscope.h5.",
    )
