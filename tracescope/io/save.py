"""Save a trace so that a reader sees the old file or the new one, whole, whatever happens in between.

The file is composed in memory (it is small: about 5 bytes an event), written to ``<name>.part`` in the same folder,
flushed to the disk, read back and checked, and only then renamed over the destination, which is never opened.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracescope.core.errors import TraceError
from tracescope.core.trace import Trace
from tracescope.io import native_layout as layout
from tracescope.io.atomic import failed, put_in_place, sync_folder, target_of
from tracescope.io.gate import h5py
from tracescope.io.native import Description, columns_sha256, verify_checksum
from tracescope.io.native_chunks import encode, pool
from tracescope.lod.pyramid import Pyramid

if sys.platform != "win32":
    import fcntl


def write(path: Path, trace: Trace, pyramid: Pyramid | None = None) -> None:
    """Save ``trace`` (and its pyramid) as a native file at ``path``, replacing a file that is there.

    The same data gives the same bytes. Raises TraceError where the file cannot be written; the destination is then
    as it was and no other file is left behind.
    """
    target = target_of(path)
    image = compose(trace, pyramid)
    with _part(target) as (part, descriptor):
        _write_all(descriptor, image)
        os.fsync(descriptor)
        _check(part, image)
        put_in_place(part, target)
    sync_folder(target.parent)


def compose(trace: Trace, pyramid: Pyramid | None = None) -> memoryview:
    """The bytes of the native file of ``trace``."""
    columns = dict(sorted(_columns(trace, pyramid).items()))
    arrays = sum(name.startswith(layout.PYRAMID + "/") for name in columns)
    buffer = BytesIO()
    with pool() as threads, h5py.File(buffer, "w", libver=("earliest", "v110")) as file:
        digest = threads.submit(columns_sha256, iter(columns.items()))
        for name, array in columns.items():
            _add(file, name, array, threads.map)
        attributes = {f"{table}_rows": _rows(columns, table) for table in layout.COUNTED if _holds(columns, table)}
        for key, value in {"version": layout.VERSION, **attributes, "pyramid_arrays": arrays}.items():
            file.attrs.create(key, value, dtype=np.int64)
        file.attrs.create("format", np.bytes_(layout.FORMAT), dtype=f"S{len(layout.FORMAT)}")
        file.attrs.create("columns_sha256", np.bytes_(digest.result().encode()), dtype="S64")
    return buffer.getbuffer()


def _holds(columns: Mapping[str, NDArray[Any]], table: str) -> bool:
    return table not in layout.OPTIONAL or any(name.startswith(f"{table}/") for name in columns)


def _rows(columns: Mapping[str, NDArray[Any]], table: str) -> int:
    if f"{table}/offset" in columns:
        return len(columns[f"{table}/offset"]) - 1
    return len(next(array for name, array in columns.items() if name.startswith(table + "/")))


def _add(file: Any, name: str, array: NDArray[Any], map_in_threads: Any) -> None:
    if not array.size:
        file.create_dataset(name, shape=array.shape, dtype=array.dtype, track_times=False)
        return
    row_bytes = array.dtype.itemsize * (array.size // len(array))
    rows = max(1, min(len(array), layout.CHUNK_ROWS, layout.MAX_CHUNK_BYTES // row_bytes))
    dataset = file.create_dataset(
        name,
        shape=array.shape,
        dtype=array.dtype,
        chunks=(rows, *array.shape[1:]),
        compression="gzip",
        compression_opts=1,
        shuffle=True,
        fletcher32=True,
        track_times=False,
    )
    starts = range(0, len(array), rows)
    coded = map_in_threads(lambda low: encode(array[low : low + rows], rows * row_bytes), starts)
    for row, packed in zip(starts, coded, strict=True):
        dataset.id.write_direct_chunk((row,) + (0,) * (array.ndim - 1), packed)


def _columns(trace: Trace, pyramid: Pyramid | None) -> dict[str, NDArray[Any]]:
    """Every dataset of the file by ``group/column``, little-endian and C-ordered."""
    found: dict[str, NDArray[Any]] = {f"{layout.META}/json": _bytes(_description(trace))}
    for table in layout.TABLES:
        rows = getattr(trace, table)
        if table in layout.OPTIONAL and not len(rows):
            continue
        found |= {f"{table}/{field.name}": getattr(rows, field.name) for field in fields(rows)}
    for name in ("track", "depth", "offset"):
        found[f"lanes/{name}"] = getattr(trace.lanes, name)
    for table, strings in (("names", trace.names), ("details", trace.details)):
        found[f"{table}/text"], found[f"{table}/offset"] = _blob(strings)
    found = {name: np.ascontiguousarray(array, layout.COLUMNS[name]) for name, array in found.items()}
    for name, array in (pyramid.to_arrays() if pyramid is not None else {}).items():
        if (
            not layout.ARRAY_NAME.fullmatch(name)
            or array.dtype not in layout.PYRAMID_DTYPES
            or array.ndim not in (1, 2)
        ):
            raise ValueError(f"a pyramid array cannot be stored: {name}, {array.dtype}, {array.ndim} dimensions")
        found[f"{layout.PYRAMID}/{name}"] = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return found


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _description(trace: Trace) -> bytes:
    description = Description(trace.meta, trace.tracks)
    try:
        return msgspec.json.encode(description, order="deterministic")
    except UnicodeEncodeError:
        # A file name or a name in a trace that is not valid Unicode: what cannot be stored becomes U+FFFD.
        return msgspec.json.encode(_repaired(msgspec.to_builtins(description)), order="deterministic")


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return repaired_text(value)
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    return [_repaired(item) for item in value] if isinstance(value, (list, tuple)) else value


def repaired_text(text: str) -> str:
    """``text`` with lone surrogates replaced by U+FFFD, and surrogate pairs joined."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _blob(strings: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    try:
        parts = [text.encode() for text in strings]
    except UnicodeEncodeError:
        parts = [repaired_text(text).encode() for text in strings]
    offset = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offset[1:])
    return _bytes(b"".join(parts)), offset


# --- putting it in place ---


@contextmanager
def _part(target: Path) -> Iterator[tuple[Path, int]]:
    """``<target>.part``, open, empty and locked; removed again unless it was renamed. OSErrors become TraceErrors."""
    part = target.with_name(target.name + ".part")
    try:
        descriptor = _open_part(part)
    except BlockingIOError:
        raise TraceError(
            f"{target} is being saved by another program.", action="Wait for it, then save again."
        ) from None
    except OSError as error:
        raise failed(target, error) from None
    done = False
    try:
        os.ftruncate(descriptor, 0)
        yield part, descriptor
        done = True
    except OSError as error:
        raise failed(target, error) from None
    finally:
        if not done:
            with suppress(OSError):
                part.unlink()
        os.close(descriptor)


def _open_part(part: Path) -> int:
    """Open and lock ``part``; one left by a save that was killed is not locked any more and is used again.

    Whoever holds the lock on the file of that name may write it: the loop is for the case that the other save has
    renamed it to its destination between our open and our lock.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        descriptor = os.open(part, flags, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileExistsError(errno.EEXIST, f"{part.name} is in the way")
            _lock(descriptor)
            if _same_file(descriptor, part):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return  # a file system without locks: two saves at once to one file are then not kept apart


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _write_all(descriptor: int, image: memoryview) -> None:
    while image:
        image = image[os.write(descriptor, image[: 8 << 20]) :]


def _check(part: Path, image: memoryview) -> None:
    """Read back what was written: the same bytes, and a file that the reader accepts with the right checksum."""
    with part.open("rb") as file:
        for low in range(0, len(image), 8 << 20):
            if file.read(8 << 20) != image[low : low + (8 << 20)]:
                raise OSError(errno.EIO, "what was written reads back differently")
    verify_checksum(part, lock=False)
