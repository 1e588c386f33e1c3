"""A large plain file is read by two processes: a second one takes the half behind a likely boundary of two events.

What it finds counts only if the text before that boundary ended there as whole events, and if its own half held
nothing that one process would read otherwise: no damage, no begin and end to pair. Else this process reads on alone.
So the result is the same, always.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec
import numpy as np

from tracescope.core.errors import TraceError
from tracescope.io.chrome.collector import JsonEvents, Parcel
from tracescope.io.chrome.container import Container, first_boundary
from tracescope.io.chrome.text import TextSource, encoding_of
from tracescope.io.collector import COLUMNS
from tracescope.io.gzipped import BLOCK, GZIP_MAGIC

SPLIT_FROM_BYTES: Final = 256 << 20
"""Below it the memory that a second Python needs is much beside the file, and the time it saves is little."""
_NICENESS: Final = 5
_LENGTH_BYTES: Final = 8
_COMMAND: Final = "import sys; from tracescope.io.chrome.halves import work; work(*sys.argv[1:])"


class SecondHalf:
    """The process that reads from byte ``low`` to the end, seen from the one that reads up to there."""

    def __init__(self, source: TextSource, low: int, *, bare: bool) -> None:
        self.low = low
        self._source = source
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, str(source.path), str(low), "bare" if bare else "object"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def join(self, collector: JsonEvents, container: Container) -> bool:
        """Add what the other process found, and skip its half; False (and nothing is changed) where it cannot count."""
        digest, size = self._source.hash_of_rest()  # while the other one works
        assert self._process.stdout is not None
        found = _received(self._process.stdout)
        if found is None or not collector.absorb(found):
            return False
        container.metadata |= found.metadata
        self._source.skip_rest(digest, size)
        return True

    def stop(self) -> None:
        """End the other process, whatever it does."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.kill()
        self._process.wait()


@contextmanager
def second_half(source: TextSource) -> Iterator[SecondHalf | None]:
    """Another process for the second half of the file; None where the file is small or cannot be split."""
    split = _split_of(source.path)
    if split is None:
        yield None
        return
    low, bare = split
    try:
        half = SecondHalf(source, low, bare=bare)
    except OSError:  # no memory or no room for another process
        yield None
        return
    source.pause = low
    try:
        yield half
    finally:
        half.stop()


def processors() -> int:
    """How many processes may work: the cores we may use, less one while a window wants to stay smooth."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return cores - 1 if os.environ.get("TRACESCOPE_WINDOW") else cores


def _split_of(path: Path) -> tuple[int, bool] | None:
    """Where the second half begins, and whether the events are the whole text (not an object's ``traceEvents``)."""
    size = path.stat().st_size
    if size < SPLIT_FROM_BYTES or processors() < 2:
        return None
    with path.open("rb") as file:
        head = file.read(BLOCK)
        middle = max(size // 2, 2 * BLOCK)
        file.seek(middle)
        boundary = first_boundary(file.read(BLOCK))
    if head.startswith(GZIP_MAGIC) or encoding_of(head) != ("utf-8", 0) or boundary is None:
        return None
    return middle + boundary, head.lstrip()[:1] == b"["


def work(path: str, low: str, form: str) -> None:
    """The second process: writes what it finds from ``low`` on to its standard output, nothing where it gives up."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if os.environ.get("TRACESCOPE_WINDOW") and hasattr(os, "nice"):
        os.nice(_NICENESS)
    found = read_from(Path(path), int(low), bare=form == "bare")
    if found is not None:
        _send(found, sys.stdout.buffer)


def _send(found: Parcel, stream: IO[bytes]) -> None:
    """Tables, behind their length, then one column after the other as it lies in memory."""
    columns, found.columns = found.columns, {}
    try:
        tables = msgspec.msgpack.encode(found)
    except (UnicodeEncodeError, OverflowError):  # half a surrogate pair, an integer beyond 64 bits
        return
    stream.write(len(tables).to_bytes(_LENGTH_BYTES, "little") + tables)
    for name in COLUMNS:
        stream.write(memoryview(columns.pop(name)).cast("B"))
    stream.flush()


def _received(stream: IO[bytes]) -> Parcel | None:
    """What the other process sent; None where it gave up, was killed or never came up."""
    try:
        found = msgspec.msgpack.decode(
            stream.read(int.from_bytes(stream.read(_LENGTH_BYTES), "little")), type=Parcel, strict=False
        )
    except msgspec.DecodeError:
        return None
    for name, dtype in COLUMNS.items():
        data = stream.read(found.rows * np.dtype(dtype).itemsize)
        if len(data) != found.rows * np.dtype(dtype).itemsize:
            return None
        found.columns[name] = np.frombuffer(data, dtype)
    return found


def _end_with_parent() -> None:
    """Nothing is ever written to our standard input: it ends when the process that wants the result has ended."""
    os.read(sys.stdin.fileno(), 1)  # unbuffered: a buffer's lock would be held when the interpreter ends
    os._exit(1)


def read_from(path: Path, low: int, *, bare: bool) -> Parcel | None:
    """What the file holds from byte ``low`` on, which must lie between two events; None where it needs one reader."""
    collector = JsonEvents()
    with TextSource(path, start=low) as source:
        container = Container(source)
        try:
            for events in container.resume(bare=bare):
                collector.add(events)
                if collector.has_marks or container.dropped or container.flagged.total():
                    return None
        except TraceError:
            return None
    if container.truncated_at is not None or container.flagged.total():
        return None
    return collector.parcel(container.metadata)
