"""One chunk of a native column: shuffle, deflate and Fletcher-32, exactly as HDF5's own filters 2, 1 and 3.

The chunks are coded here and not by HDF5, so that several threads can work (HDF5 holds one lock) and so that hostile
bytes meet a bounded decompressor and nothing else. Any HDF5 reader can still read the files.
"""

import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 1
_SUM_WORDS = 1 << 18
"""Words summed at once: 2^18 positions times 2^16 values, summed over 2^18 words, stay below 2^53 (exact floats)."""


class ChunkError(Exception):
    """A chunk that does not decode to what it should; the text says why."""


def pool() -> ThreadPoolExecutor:
    """Threads to code chunks in; more than four gain nothing, since the copies then fill the memory bus."""
    return ThreadPoolExecutor(min(4, cpu_count() or 1), thread_name_prefix="chunks")


@lru_cache(maxsize=1)
def _positions() -> NDArray[np.float64]:
    return np.arange(_SUM_WORDS, 0, -1, dtype=np.float64)


def fletcher32(data: bytes | memoryview) -> int:
    """HDF5's Fletcher-32 of ``data``: big-endian 16-bit words, an odd last byte counts as a word's high half."""
    even = len(data) & ~1
    words = np.frombuffer(data, ">u2", even // 2)
    if len(data) & 1:
        words = np.append(words, np.uint16(data[-1] << 8))
    first = second = 0
    for low in range(0, len(words), _SUM_WORDS):
        part = words[low : low + _SUM_WORDS].astype(np.float64)
        # einsum and not @: BLAS would start threads of its own under ours, and cost 50 times as much.
        second += first * len(part) + int(np.einsum("i,i->", part, _positions()[-len(part) :]))
        first += int(part.sum())
    return (_folded(second) << 16) | _folded(first)


def _folded(total: int) -> int:
    """One's complement sum to 16 bits: 0 only for 0, otherwise 1 to 65535."""
    return (total - 1) % 65_535 + 1 if total else 0


def encode(rows: NDArray[Any], chunk_bytes: int) -> bytes:
    """The stored bytes of one chunk of C-ordered ``rows``, padded with zeros to ``chunk_bytes``."""
    size = rows.dtype.itemsize
    source = rows.reshape(-1).view(np.uint8).reshape(-1, size)
    planes = np.zeros((size, chunk_bytes // size), np.uint8)
    for k in range(size):  # plane by plane: eight times as fast as copying the transpose
        planes[k, : len(source)] = source[:, k]
    packed = zlib.compress(planes.data, LEVEL)
    return packed + fletcher32(packed).to_bytes(4, "little")


def decode_into(stored: bytes, out: NDArray[Any], chunk_bytes: int) -> None:
    """Decode one chunk into the C-contiguous ``out``, which may be shorter than the chunk (the last one).

    Raises ChunkError where the checksum, the deflate stream or its length is wrong; never produces more than
    ``chunk_bytes`` bytes.
    """
    packed = memoryview(stored)[:-4]
    if fletcher32(packed) != int.from_bytes(stored[-4:], "little"):
        raise ChunkError("a checksum does not match")
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(packed, chunk_bytes)
    except zlib.error:
        raise ChunkError("a chunk cannot be decompressed") from None
    if len(raw) != chunk_bytes or inflater.unconsumed_tail:
        raise ChunkError("a chunk has the wrong length")
    size = out.dtype.itemsize
    planes = np.frombuffer(raw, np.uint8).reshape(size, -1)
    flat = out.reshape(-1).view(f"<u{size}")
    planes = planes[:, : len(flat)]
    flat[:] = planes[0]  # clears the other bytes too: most high planes of most columns are zero and need no copy
    places = flat.view(np.uint8).reshape(-1, size)
    for k in range(1, size):
        if planes[k].any():
            places[:, k] = planes[k]
