"""gzip around a file of any format: what its data begin with, and the whole of it in a folder of our own."""

import hashlib
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from tracescope.core.errors import TraceError
from tracescope.io.importer import Progress

GZIP_MAGIC: Final = b"\x1f\x8b"
BLOCK: Final = 1 << 20
MAX_PLAIN_BYTES: Final = 8 << 30
"""Decompressed data of one file; a trace above it would not fit the columns into a laptop's memory."""
MAX_RATIO: Final = 200
"""Real traces compress 11 to 16 times; two gigabytes of blanks compress a thousand times."""
RATIO_FREE_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The data of a gzip file in ``path``; ``sha256`` and ``bytes`` are of the packed file, ``flagged`` what is wrong
    with it.
    """

    path: Path
    sha256: str
    bytes: int
    flagged: dict[str, int]


def plain_head(head: bytes) -> bytes:
    """The beginning of the data whose gzip begins with ``head``; empty where it cannot be inflated at all."""
    for part in (head, head[: min(len(head) - 8, 256)]):  # without the checksum, which may be what is damaged
        try:
            return zlib.decompressobj(wbits=31).decompress(part, 1 << 16)
        except zlib.error:
            continue
    return b""


def check_inflation(name: str, plain: int, packed: int) -> None:
    """Refuse data that inflate to more than any trace does: TraceError."""
    if plain > MAX_PLAIN_BYTES:
        raise TraceError(f"{name}: decompresses to more than {MAX_PLAIN_BYTES >> 30} GiB")
    if plain > RATIO_FREE_BYTES and plain > MAX_RATIO * packed:
        raise TraceError(
            f"{name}: decompresses more than {MAX_RATIO} times, which no trace does",
            action="Decompress it first if it can be trusted.",
        )


@contextmanager
def unpacked(path: Path, progress: Progress | None = None) -> Iterator[Unpacked]:
    """The data of the gzip file at ``path``, under its name without ``.gz``, for as long as the context lasts.

    TraceError where it cannot be read, is cut short (a part of these formats cannot be told from a whole) or inflates
    without measure.
    """
    with tempfile.TemporaryDirectory(prefix="tracescope-", ignore_cleanup_errors=True) as folder:
        plain = Path(folder) / (path.stem if path.suffix.lower() == ".gz" else path.name)
        try:
            with path.open("rb") as packed, plain.open("xb") as out:
                sha256, size, rest = _inflate(path, packed, out, progress)
        except OSError as error:
            raise TraceError(f"{path.name}: cannot be unpacked: {error.strerror or error}") from error
        yield Unpacked(plain, sha256, size, {"trailing_text": 1} if rest else {})


def _inflate(path: Path, packed: BinaryIO, out: BinaryIO, progress: Progress | None) -> tuple[str, int, bool]:
    """(sha256 and size of the packed file, whether something else follows its gzip data)."""
    digest, done, plain, follows = hashlib.sha256(), 0, 0, False
    total = path.stat().st_size
    inflater = zlib.decompressobj(wbits=31)
    while block := packed.read(BLOCK):
        digest.update(block)
        done += len(block)
        if progress is not None:
            progress(done // 2, total)
        while block and not follows:
            if inflater.eof:
                block = block.lstrip(b"\0")  # padding between members
                follows = bool(block) and not block.startswith(GZIP_MAGIC[:1])
                inflater = zlib.decompressobj(wbits=31) if block and not follows else inflater
                if not block or follows:
                    break
            try:
                piece = inflater.decompress(block, BLOCK)
            except zlib.error as error:
                raise TraceError(
                    f"{path.name}: its gzip data are damaged ({error})", action="Copy it again."
                ) from error
            block = inflater.unconsumed_tail or inflater.unused_data
            plain += len(piece)
            check_inflation(path.name, plain, done)
            if shutil.disk_usage(Path(out.name).parent).free < len(piece) + (64 << 20):
                raise TraceError(f"{path.name}: no room to unpack it", action="Free some space, or set TMPDIR.")
            out.write(piece)
    if not inflater.eof:
        raise TraceError(f"{path.name}: its gzip data are cut short", action="Copy it again.")
    return digest.hexdigest(), done, follows
