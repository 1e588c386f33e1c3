"""The packets of a Perfetto trace in a file: read once from front to back, gzip and packed packets undone."""

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

from tracescope.core.errors import TraceError
from tracescope.io.gzipped import BLOCK, GZIP_MAGIC, check_inflation
from tracescope.io.importer import Progress
from tracescope.io.perfetto.wire import BYTES, FIXED_32, FIXED_64, VARINT, WireError, read_varint

PACKET: Final = 1
"""The one field of a trace: ``repeated TracePacket packet``."""
MAX_PACKET_BYTES: Final = 64 << 20
"""Recorders cut packets at some hundred KiB; a packet of packed packets is the largest, a few MiB."""

_HEADER: Final = 20
"""Bytes that a tag and a length take at most."""


class PacketSource:
    """The packets of one file. ``sha256`` and ``bytes`` are of the file on disk, whole after the last packet.

    ``cut_at`` is the byte of the (unpacked) stream where packets end too early or stop being any, None where none do.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self.bytes = 0
        self.cut_at: int | None = None
        self.trailing = False
        """Something that is no gzip follows the gzip data."""
        self._progress = progress
        self._digest = hashlib.sha256()
        self._inflated = 0
        try:
            self._total = path.stat().st_size
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise TraceError(f"{path.name}: cannot be opened: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def sha256(self) -> str:
        """Of the whole file; reads what is left of it."""
        while self._raw():
            pass
        return self._digest.hexdigest()

    def packets(self) -> Iterator[bytes]:
        """Every whole packet as its bytes; other fields beside them are skipped, as protobuf asks for."""
        buffer, at, base = b"", 0, 0
        blocks = self._blocks()
        ended = False
        while True:
            if not ended and len(buffer) - at < _HEADER:
                base, buffer, at, ended = self._more(blocks, buffer, at, base, _HEADER)
            if at >= len(buffer):
                return
            try:
                field, start, length = _field_at(buffer, at)
            except WireError:
                self.cut_at = base + at
                return
            if length > MAX_PACKET_BYTES:
                raise TraceError(
                    f"{self.path.name}: damaged: a packet of {length:,} bytes at byte {base + at:,} "
                    f"(at most {MAX_PACKET_BYTES:,} are read)"
                )
            shift = start - at
            if len(buffer) - start < length:
                base, buffer, at, ended = self._more(blocks, buffer, at, base, shift + length)
                if len(buffer) - at - shift < length:
                    self.cut_at = base + at
                    return
            if field == PACKET:
                yield buffer[at + shift : at + shift + length]
            at += shift + length

    def _more(
        self, blocks: Iterator[bytes], buffer: bytes, at: int, base: int, wanted: int
    ) -> tuple[int, bytes, int, bool]:
        """(byte where the buffer starts, the buffer from ``at`` on, ``wanted`` bytes of it if there are, 0, at end)."""
        pieces, have = [buffer[at:]], len(buffer) - at
        while have < wanted:
            block = next(blocks, b"")
            if not block:
                return base + at, b"".join(pieces), 0, True
            pieces.append(block)
            have += len(block)
        return base + at, b"".join(pieces), 0, False

    def _raw(self) -> bytes:
        try:
            block = self._file.read(BLOCK)
        except OSError as error:
            raise TraceError(f"{self.path.name}: cannot be read at byte {self.bytes}: {error.strerror}") from error
        self.bytes += len(block)
        self._digest.update(block)
        if self._progress is not None and block:
            self._progress(min(self.bytes, self._total), self._total)
        return block

    def _blocks(self) -> Iterator[bytes]:
        block = self._raw()
        if not block.startswith(GZIP_MAGIC):
            while block:
                yield block
                block = self._raw()
            return
        inflater = zlib.decompressobj(wbits=31)
        begun = True
        while block:
            try:
                piece = inflater.decompress(block, BLOCK)
            except zlib.error:
                self.cut_at = self._inflated
                return
            self._check_inflated(len(piece))
            if piece:
                yield piece
            block = inflater.unconsumed_tail or self._raw()
            if inflater.eof:
                block = (inflater.unused_data + block).lstrip(b"\0")  # padding between members
                if block and not block.startswith(GZIP_MAGIC[:1]):
                    self.trailing = True
                    return
                inflater = zlib.decompressobj(wbits=31)
                begun = bool(block)
        if begun:
            self.cut_at = self._inflated

    def unpacked(self, packed: bytes) -> list[bytes]:
        """The packets that were deflated into one; WireError where they were not, or are no packets."""
        inflater = zlib.decompressobj()
        try:
            data = inflater.decompress(packed, MAX_PACKET_BYTES)
        except zlib.error as error:
            raise WireError("packed packets are damaged") from error
        if inflater.unconsumed_tail or not inflater.eof:
            raise WireError("packed packets are cut or too long")
        self._check_inflated(len(data))
        found, at = [], 0
        while at < len(data):
            field, start, length = _field_at(data, at)
            if length > len(data) - start:
                raise WireError("a packed packet is cut")
            if field == PACKET:
                found.append(data[start : start + length])
            at = start + length
        return found

    def _check_inflated(self, more: int) -> None:
        self._inflated += more
        check_inflation(self.path.name, self._inflated, self.bytes)


def _field_at(data: bytes, at: int) -> tuple[int, int, int]:
    """(number, start and length of what it holds) of the field at ``at``."""
    tag, start = read_varint(data, at, len(data))
    kind = tag & 7
    if tag < 8:
        raise WireError("a field without a number")
    if kind == BYTES:
        length, start = read_varint(data, start, len(data))
        return tag >> 3, start, length
    if kind == VARINT:
        return -1, start, read_varint(data, start, len(data))[1] - start
    if kind in {FIXED_64, FIXED_32}:
        return -1, start, 8 if kind == FIXED_64 else 4
    raise WireError("a field of an unknown kind")


def first_packet(head: bytes) -> bytes | None:
    """The first packet in the first bytes of a file, None where they do not begin with one, or not with a whole one
    that another one or the end follows. A file of one long packet begins with as much of it as there is.
    """
    if head[:1] != bytes([PACKET << 3 | BYTES]):
        return None
    try:
        _, start, length = _field_at(head, 0)
    except WireError:
        return None
    end = start + length
    if length > MAX_PACKET_BYTES or (end < len(head) and head[end] != head[0]):
        return None
    return head[start:end]
