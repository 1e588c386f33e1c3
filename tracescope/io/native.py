"""Read tracescope's own file, ``*.tscope.h5``: structure through the gate first, then every column, checked."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import TrackKind
from tracescope.core.errors import TraceError
from tracescope.core.trace import Lanes, Trace, TraceMeta, Track
from tracescope.core.work_table import WorkTable
from tracescope.io import native_layout as layout
from tracescope.io.gate import Column, Structure, damaged, inspect, is_hdf5
from tracescope.io.native_chunks import ChunkError, decode_into, pool
from tracescope.io.older_models import with_older_windows
from tracescope.lod.pyramid import Pyramid

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Description:
    """The JSON of a native file: everything about a trace that is not a column."""

    trace: TraceMeta
    tracks: tuple[Track, ...]


@dataclass(frozen=True, eq=False)
class Native:
    """What a native file holds: the trace, its pyramid (None without one), sentences worth telling, its version."""

    trace: Trace
    pyramid: Pyramid | None
    notes: tuple[str, ...] = ()
    version: int = layout.VERSION


def is_native(path: Path) -> bool:
    """Whether ``path`` is for this reader: any HDF5 file, or one that by its name should be ours."""
    return is_hdf5(path) or path.name.lower().endswith(layout.SUFFIX)


def read(path: Path) -> Native:
    """Read a native file. Raises TraceError, as one sentence, for anything that is not a whole file of ours.

    Checks structure, row counts, the checksum of every chunk, value ranges and ids; not the SHA-256 of the columns
    (see :func:`verify_checksum`).
    """
    structure = inspect(path)
    arrays: Arrays = {}
    with _reading(path) as start:
        waiting: list[Future[None]] = []
        for column in structure.columns.values():
            arrays[column.name], futures = start(column)
            waiting += futures
        for future in waiting:
            future.result()
    try:
        return Native(_trace(arrays), _pyramid(arrays), structure.notes, structure.version)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise damaged(path, str(error).rstrip(".")) from None


def verify_checksum(path: Path, *, lock: bool = True) -> None:
    """Read every column once and compare the SHA-256 of all of them with the one stored in the file.

    Raises TraceError where it differs, and wherever :func:`read` would for the structure or a chunk. Holds one column
    in memory at a time. ``lock=False`` is for the caller that holds the file's lock itself.
    """
    structure = inspect(path, lock=lock)
    if columns_sha256(_each_column(path, structure)) != structure.sha256:
        raise damaged(path, "the SHA-256 of its columns does not match")


def columns_sha256(columns: Iterator[tuple[str, NDArray[Any]]]) -> str:
    """SHA-256 over the columns in the order of their names: name, dtype, shape, then the little-endian values."""
    digest = sha256()
    for name, array in columns:
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _each_column(path: Path, structure: Structure) -> Iterator[tuple[str, NDArray[Any]]]:
    with _reading(path) as start:
        for name in sorted(structure.columns):
            array, futures = start(structure.columns[name])
            for future in futures:
                future.result()
            yield name, array


Start = Callable[[Column], tuple[NDArray[Any], list[Future[None]]]]


@contextmanager
def _reading(path: Path) -> Iterator[Start]:
    """A function that starts to decode a column in threads, and turns a bad chunk into one TraceError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise TraceError(f"{path.name} cannot be read: {error.strerror or error}.") from None
    threads = pool()

    def start(column: Column) -> tuple[NDArray[Any], list[Future[None]]]:
        out = np.empty(column.shape, column.dtype)
        limits = layout.VALUES.get(column.name)

        def decode(row: int, at: int, size: int) -> None:
            part = out[row : row + column.chunk_rows]
            decode_into(_exactly(descriptor, at, size), part, column.chunk_bytes)
            if limits is not None and (
                part.min() < limits.low or (limits.high is not None and part.max() > limits.high)
            ):
                raise ChunkError("a value is out of range")

        def named(row: int, at: int, size: int) -> None:
            try:
                decode(row, at, size)
            except ChunkError as error:
                raise damaged(path, f"{error} in column {column.name}") from None
            except OSError as error:
                raise TraceError(f"{path.name} cannot be read: {error.strerror or error}.") from None

        return out, [threads.submit(named, c.row, c.at, c.size) for c in column.chunks]

    try:
        yield start
    finally:
        threads.shutdown(wait=True, cancel_futures=True)
        os.close(descriptor)


def _exactly(descriptor: int, at: int, size: int) -> bytes:
    data = os.pread(descriptor, size, at)
    if len(data) != size:
        raise ChunkError("the file ends early")
    return data


def _trace(arrays: Arrays) -> Trace:
    text = arrays[f"{layout.META}/json"].tobytes()
    description = msgspec.json.decode(text, type=Description)
    _check_description(description)
    meta = description.trace
    meta = replace(meta, model=with_older_windows(meta.model, text))
    tables = {name: _table(cls, name, arrays) for name, cls in layout.TABLES.items() if _has(arrays, name)}
    names = _strings(arrays, "names")
    steps = tables["steps"]
    if len(steps) and int(steps.label.max()) >= len(names):
        raise ValueError("a step's label is not among the names")
    return Trace(
        meta=meta,
        tracks=description.tracks,
        lanes=Lanes(arrays["lanes/track"], arrays["lanes/depth"], arrays["lanes/offset"]),
        names=names,
        details=_strings(arrays, "details"),
        **tables,
    )


def _has(arrays: Arrays, table: str) -> bool:
    return table not in layout.OPTIONAL or any(name.startswith(f"{table}/") for name in arrays)


def _table(cls: type, name: str, arrays: Arrays) -> Any:
    columns = {}
    prefix = name + "/"
    for path, array in arrays.items():
        if path.startswith(prefix):
            columns[path.removeprefix(prefix)] = array
    for field in layout.BOOLEANS[name]:
        columns[field] = columns[field].view(np.bool_)
    return WorkTable.of(**columns) if cls is WorkTable else cls(**columns)  # a file of version 1 has fewer columns


def _check_description(description: Description) -> None:
    meta = description.trace
    if len(description.tracks) > layout.MAX_TRACKS:
        raise ValueError(f"it has more than {layout.MAX_TRACKS} tracks")
    if meta.model is not None and not 0 < meta.model.layers <= layout.MAX_LAYERS:
        raise ValueError(f"its model has {meta.model.layers} layers")
    if abs(meta.base_ns) > layout.MAX_TIME or meta.resolution_ns < 1:
        raise ValueError("its clock is out of range")
    if meta.bandwidth_bytes_per_s is not None and meta.bandwidth_bytes_per_s <= 0:
        raise ValueError("its bandwidth is not positive")
    if any(track.kind not in TrackKind for track in description.tracks):
        raise ValueError("a track is of a kind that does not exist")


def _strings(arrays: Arrays, table: str) -> tuple[str, ...]:
    """The strings of one blob. 100,000 ASCII names take about 10 ms: one decode, then slices of one string."""
    blob, offset = arrays[f"{table}/text"], arrays[f"{table}/offset"]
    if offset[0] != 0 or offset[-1] != len(blob) or (np.diff(offset) < 0).any():
        raise ValueError(f"the offsets of its {table} are not in order")
    data = blob.tobytes()
    bounds = offset.tolist()
    try:
        if data.isascii():
            text = data.decode("ascii")
            return tuple([text[low:high] for low, high in pairwise(bounds)])
        return tuple([data[low:high].decode("utf-8") for low, high in pairwise(bounds)])
    except UnicodeDecodeError:
        raise ValueError(f"its {table} are not UTF-8") from None


def _pyramid(arrays: Arrays) -> Pyramid | None:
    prefix = layout.PYRAMID + "/"
    found = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    for array in found.values():
        array.flags.writeable = False
    return Pyramid.from_arrays(found) if found else None
