"""A JSON text as a stream of UTF-8 bytes: gzip undone, byte order marks and UTF-16/32 undone, limits enforced."""

import codecs
import hashlib
import zlib
from pathlib import Path
from typing import Final, Self

from tracescope.core.errors import TraceError
from tracescope.io.gzipped import BLOCK, GZIP_MAGIC, check_inflation
from tracescope.io.importer import Progress

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def encoding_of(head: bytes) -> tuple[str, int]:
    """The encoding of a JSON text and the length of its byte order mark, from its first bytes.

    JSON starts with an ASCII character, so that the place of the NUL bytes tells UTF-16 and UTF-32 without a mark.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name, len(mark)
    nul = [byte == 0 for byte in head[:4]]
    patterns: dict[tuple[bool, ...], str] = {
        (False, True, True, True): "utf-32-le",
        (True, True, True, False): "utf-32-be",
        (False, True, False, True): "utf-16-le",
        (True, False, True, False): "utf-16-be",
    }
    return patterns.get(tuple(nul), "utf-8"), 0


class TextSource:
    """The text of one file, read once from front to back; ``sha256`` and ``raw_bytes`` are of the file on disk.

    ``cut``: a gzip stream ended early or broke; what came out before is given.
    ``replaced``: how many characters of a UTF-16/32 text were invalid. ``trailing``: something that is no gzip follows
    the gzip data.
    """

    def __init__(self, path: Path, progress: Progress | None = None, *, start: int = 0) -> None:
        """``start``: where in the file to begin; past 0 it must lie between two characters of plain UTF-8 text."""
        self.path = path
        self.raw_bytes = start
        self.text_bytes = 0
        self.cut = False
        self.replaced = 0
        self.trailing = False
        self.pause = 0
        """A piece of plain text ends at this byte of the file, if it is still to come."""
        self._progress = progress
        self._hash = hashlib.sha256()
        try:
            self._total = path.stat().st_size
            self._file = path.open("rb", buffering=0)
            self._file.seek(start)
        except OSError as error:
            raise TraceError(f"{path.name}: cannot be opened: {error.strerror or error}") from error
        first = self._raw()
        self._zipped = first.startswith(GZIP_MAGIC)
        self._inflater = zlib.decompressobj(wbits=31)
        self._pending = first
        self._inflated = 0
        if start:
            self._zipped = False
        head = self._plain()
        name, mark = encoding_of(head) if not start else ("utf-8", 0)
        self._head: bytes | None = head[mark:]
        self._decoder = None if name == "utf-8" else codecs.getincrementaldecoder(name)("replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def sha256(self) -> str:
        """Of the whole file; reads what is left of it."""
        while self._raw():
            pass
        return self._hash.hexdigest()

    def hash_of_rest(self) -> tuple["hashlib._Hash", int]:
        """The hash of the whole file and its size, found while reading stays where it is."""
        digest, size = self._hash.copy(), self.raw_bytes
        try:
            with self.path.open("rb", buffering=0) as file:
                file.seek(size)
                while block := file.read(BLOCK):
                    digest.update(block)
                    size += len(block)
        except OSError as error:
            raise TraceError(f"{self.path.name}: cannot be read at byte {size}: {error.strerror}") from error
        return digest, size

    def skip_rest(self, digest: "hashlib._Hash", size: int) -> None:
        """Be at the end of the file, as ``hash_of_rest`` found it: somebody else has read it."""
        self._hash, self.raw_bytes = digest, size
        self._file.seek(size)
        if self._progress is not None:
            self._progress(size, self._total)

    def read(self) -> bytes:
        """The next piece of text, about 1 MiB; empty at its end."""
        while True:
            block = self._plain() if self._head is None else self._head
            first, self._head = self._head is not None, None
            if self._decoder is not None:
                text = self._decoder.decode(block, final=not block and not first)
                self.replaced += text.count("\ufffd")
                piece = text.encode("utf-8", "replace")
            else:
                piece = block
            if piece or (not block and not first):
                self.text_bytes += len(piece)
                return piece

    def _raw(self) -> bytes:
        try:
            ahead = self.pause - self.raw_bytes
            block = self._file.read(min(BLOCK, ahead) if ahead > 0 else BLOCK)
        except OSError as error:
            raise TraceError(f"{self.path.name}: cannot be read at byte {self.raw_bytes}: {error.strerror}") from error
        self.raw_bytes += len(block)
        self._hash.update(block)
        if self._progress is not None and block:
            self._progress(self.raw_bytes, self._total)
        return block

    def _plain(self) -> bytes:
        """The next block with gzip undone; empty at the end."""
        block, self._pending = self._pending, b""
        if not self._zipped:
            return block or self._raw()
        while not self.cut:
            block = block or self._raw()
            if self._inflater.eof:  # another member may follow, after padding
                block = block.lstrip(b"\0")
                if not block:
                    block = self._raw()
                    if not block:
                        return b""
                    continue
                if not block.startswith(GZIP_MAGIC[:1]):
                    self.trailing = True
                    return b""
                self._inflater = zlib.decompressobj(wbits=31)
            if not block:
                self.cut = True
                return self._inflater.flush()
            before = self._inflater.copy()
            try:
                out = self._inflater.decompress(block, BLOCK)
            except zlib.error:
                self.cut = True
                return _salvage(before, block)
            block = self._inflater.unconsumed_tail or self._inflater.unused_data
            if out:
                self._pending = block
                self._inflated += len(out)
                check_inflation(self.path.name, self._inflated, self.raw_bytes)
                return out
        return b""


def _salvage(inflater: "zlib._Decompress", block: bytes) -> bytes:
    """What a damaged gzip block still gives before its damage (a bad checksum at the end costs nothing at all)."""
    out = []
    try:
        for at in range(len(block)):
            out.append(inflater.decompress(block[at : at + 1]))
    except zlib.error:
        pass
    return b"".join(out)
