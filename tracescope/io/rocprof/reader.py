"""Reads one file of rocprofiler-sdk JSON into a RawTrace."""

import re
from pathlib import Path
from typing import Final

from tracescope.core.errors import TraceError, printable
from tracescope.core.raw import RawTrace
from tracescope.core.report import Source
from tracescope.io.chrome.text import TextSource, encoding_of
from tracescope.io.collector import MAX_TRACKS, Collector
from tracescope.io.importer import Importer, Progress
from tracescope.io.rocprof.layout import TOOL, UNREADABLE, decode_file
from tracescope.io.rocprof.process import DEVICE, ProcessReader

MAX_FILE_TEXT: Final = 2 << 30
"""The text is held as a whole."""

_HEAD: Final = re.compile(r'\s*\{\s*"' + TOOL + '"')


def sniff(head: bytes, path: Path) -> bool:
    """Whether the text begins with the one key of these files."""
    encoding, mark = encoding_of(head)
    return _HEAD.match(head[mark:].decode(encoding, "replace")) is not None


def read(path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace:
    """The trace in ``path``, plain or gzip. TraceError where its text is cut or no JSON (``allow_truncated`` changes
    nothing: what its names and agents mean may be lost), or where it holds no record with times.
    """
    with TextSource(path, progress) as source:
        text = _whole_text(source)
        source_is = Source(path.name, source.sha256, source.raw_bytes, "rocprof")
    collector = Collector()
    collector.flag("trailing_text", int(source.trailing))
    if not text.isascii():
        repaired = text.decode("utf-8", "replace").encode()
        collector.flag("text_repaired", int(repaired != text))
        text = repaired
    try:
        processes = decode_file(text)
    except UNREADABLE as error:
        raise TraceError(
            f"{path.name}: damaged or incomplete rocprofiler-sdk JSON: {printable(str(error)[:200])}",
            action="Record it again with: rocprofv3 --output-format json",
        ) from error
    readers = [ProcessReader(collector, process, number) for number, process in enumerate(processes)]
    for reader in readers:
        reader.read_all()
        if len(collector.tracks) > MAX_TRACKS:
            raise TraceError(f"{path.name}: has more than {MAX_TRACKS:,} tracks")
    if not collector.imported:
        raise TraceError(
            f"{path.name}: rocprofiler-sdk JSON without any record that has times ({collector.seen:,} others)",
            action="Record with: rocprofv3 --runtime-trace --output-format json",
        )
    used = {key[2] for key in collector.tracks if key[0] == DEVICE}
    devices = [device for reader in readers for device in reader.devices]
    tracks = tuple(readers[key[1]].track(key) for key in collector.tracks)
    return collector.trace(
        source_is,
        collector.events(collector.taken(), tracks),
        tracks,
        devices=tuple({d.device: d for d in reversed(devices) if d.device in used or not used}.values())[::-1],
    )


ROCPROF: Final = Importer(
    "rocprofiler-sdk JSON", (".json",), "`rocprofv3 --output-format json`", sniff, read, unzips=True
)


def _whole_text(source: TextSource) -> bytes:
    pieces = []
    while piece := source.read():
        pieces.append(piece)
        if source.text_bytes > MAX_FILE_TEXT:
            raise TraceError(
                f"{source.path.name}: more than {MAX_FILE_TEXT >> 30} GiB of JSON text",
                action="Record with --output-format pftrace, or a shorter period.",
            )
    return b"".join(pieces)
