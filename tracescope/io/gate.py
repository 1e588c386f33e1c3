"""The only door to HDF5: opens a file for reading and checks its whole structure before any data is read.

HDF5 can loop for ever or crash on hostile bytes, above all where a variable-length value is read. So nothing is read
here but types, shapes, the chunk index and attributes of fixed size, each after its type was checked; the chunks
themselves are read from the file and decoded by ``native_chunks``, with bounds.
"""

import errno
import os
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tracescope.core.errors import TraceError
from tracescope.io import native_layout as layout

os.environ["HDF5_PLUGIN_PRELOAD"] = "::"  # before h5py is imported: no filter plugin is ever searched for or loaded
import h5py  # the one import of h5py in the project

__all__ = ["Column", "Structure", "damaged", "h5py", "inspect", "is_hdf5"]

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_FILTERS = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_FLETCHER32)
_LAST_BUILT_IN_FILTER = 255
"""HDF5 keeps 0 to 255 for filters of its own; every other one would have to be loaded from somewhere."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EROFS, errno.EINVAL, 77, 524)
"""Errors of file systems without locks, or without any where nothing can be written; 77 and 524 (ENOTSUPP) are what
some network mounts answer."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where one chunk lies: its first row, its place in the file and its stored size in bytes."""

    row: int
    at: int
    size: int


@dataclass(frozen=True, slots=True)
class Column:
    """One checked dataset: dtype, shape, rows and bytes of a full chunk, and its chunks in row order."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunk_rows: int
    chunk_bytes: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """What a file that passed the gate holds: its columns by ``group/column``, row counts, checksum and notes."""

    version: int
    columns: dict[str, Column]
    rows: dict[str, int]
    sha256: str
    notes: tuple[str, ...]


def damaged(path: Path, reason: str) -> TraceError:
    """The refusal of a damaged native file, as one sentence and what to do."""
    return TraceError(f"{path.name} is damaged: {reason}.", action="Make it again from the original trace.")


def is_hdf5(path: Path) -> bool:
    """Whether the file begins as an HDF5 file does; False where it cannot be read."""
    try:
        if not path.is_file():  # opening a pipe would wait for its writer
            return False
        with path.open("rb") as file:
            return file.read(len(SIGNATURE)) == SIGNATURE
    except OSError:
        return False


def inspect(path: Path, *, lock: bool = True) -> Structure:
    """Open ``path`` for reading and check everything that can be checked without reading data.

    ``lock=False`` is for the caller that holds the lock itself.
    Raises TraceError, as one sentence, for a file that is missing, incomplete, locked, not ours, newer, or damaged.
    """
    size = _check_ends(path)
    file, notes = _open(path) if lock else (_open_without_lock(path), ())
    try:
        return _Gate(path, file.id, size).structure(notes)
    except TraceError:
        raise
    except Exception as error:  # h5py answers a damaged file with almost any exception type
        raise damaged(path, f"its structure cannot be read ({type(error).__name__})") from None
    finally:
        _close(file)


def _check_ends(path: Path) -> int:
    """The file's size, once its first bytes say HDF5 and its superblock does not promise more bytes than there are."""
    try:
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise TraceError(f"{path.name} {what}.", action="Check the name and the folder.")
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise TraceError(f"{path.name} cannot be read: {error.strerror or error}.") from None
    if not head.startswith(SIGNATURE):
        if SIGNATURE.startswith(head):
            raise TraceError(f"{path.name} is incomplete: {size} bytes present.", action="Copy or save it again.")
        raise TraceError(f"{path.name} is not a tracescope file: it does not begin as an HDF5 file does.")
    at = {0: 40, 1: 44, 2: 28, 3: 28}.get(head[8] if len(head) > 8 else -1)
    end = int.from_bytes(head[at : at + 8], "little") if at and len(head) >= at + 8 else None
    if len(head) < 64 or (end is not None and size < end < 1 << 62):
        expected = f"{end} bytes expected" if end is not None else "more bytes expected"
        raise TraceError(
            f"{path.name} is incomplete: {size} bytes present, {expected}.", action="Copy or save it again."
        )
    return size


def _open(path: Path) -> tuple[Any, tuple[str, ...]]:
    try:
        return h5py.File(path, "r", locking="best-effort"), ()
    except BlockingIOError:
        raise TraceError(
            f"{path.name} is being written by another program.", action="Close it there, then try again."
        ) from None
    except OSError as error:
        if error.errno in _NO_LOCKS:
            note = f"The file system of {path.name} has no locks; it was read without one."
            return _open_without_lock(path), (note,)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EIO):
            raise TraceError(f"{path.name} cannot be read: {os.strerror(error.errno)}.") from None
        raise damaged(path, "HDF5 cannot open it") from None
    except Exception as error:
        raise damaged(path, f"HDF5 cannot open it ({type(error).__name__})") from None


def _open_without_lock(path: Path) -> Any:
    try:
        return h5py.File(path, "r", locking=False)
    except Exception as error:
        raise damaged(path, f"HDF5 cannot open it ({type(error).__name__})") from None


def _close(file: Any) -> None:
    with suppress(Exception):  # nothing was written, and the verdict on the file is already known
        file.close()


class _Gate:
    """Checks of one open file; every method raises TraceError at the first thing that must not be."""

    def __init__(self, path: Path, file: Any, size: int) -> None:
        self._path = path
        self._file = file
        self._size = size
        self._root = h5py.h5g.open(file, b"/")

    def structure(self, notes: tuple[str, ...]) -> Structure:
        version = self._version()
        if not 1 <= version <= layout.VERSION:
            raise self._newer(version) if version > layout.VERSION else self._bad(f"its version is {version}")
        rows = {table: self._integer(f"{table}_rows") for table in layout.COUNTED if self._has(table)}
        sha256 = self._text("columns_sha256", 64)
        arrays = self._integer("pyramid_arrays")
        allowed = layout.columns_of(version)
        groups = {column.split("/")[0] for column in allowed} | ({layout.PYRAMID} if arrays else set())
        groups -= layout.OPTIONAL - rows.keys()
        self._expect_names(self._root, groups, "the file")
        columns: dict[str, Column] = {}
        for group in sorted(groups - {layout.PYRAMID}):
            columns |= self._table(group, rows, allowed)
        if arrays:
            columns |= self._pyramid(arrays)
        self._check_sizes(columns)
        return Structure(version, columns, rows, sha256, notes)

    # --- root attributes ---

    def _version(self) -> int:
        try:
            ours = self._text("format", len(layout.FORMAT)) == layout.FORMAT.decode()
        except TraceError:
            ours = False
        if ours:
            return self._integer("version")
        odd = self._oddity()
        raise TraceError(
            f"{self._path.name} is an HDF5 file but not a tracescope file{odd and f' ({odd})'}.",
            action="Open the trace it was made from, or a .tscope.h5 file.",
        )

    def _oddity(self) -> str:
        """What else is wrong with a foreign file, from the creation properties of its first datasets; often nothing."""
        with suppress(Exception):
            for raw in list(self._root)[:32]:
                name = raw.decode("ascii", "replace")[:40]
                if self._root.links.get_info(raw).type != h5py.h5l.TYPE_HARD:
                    return f"{name} is a link to somewhere else"
                child = h5py.h5o.open(self._root, raw)
                if type(child) is not h5py.h5d.DatasetID:
                    continue
                plist = child.get_create_plist()
                foreign = [plist.get_filter(i)[0] for i in range(min(plist.get_nfilters(), 32))]
                for code in (code for code in foreign if code > _LAST_BUILT_IN_FILTER):
                    return f"{name} uses filter {code}, which is not allowed"
                declared = int(child.get_space().get_simple_extent_npoints()) * child.get_type().get_size()
                stored = int(child.get_storage_size())
                if declared > layout.FREE_BYTES and declared > layout.MAX_RATIO_COLUMN * stored:
                    return f"{name} declares {declared} bytes where {stored} bytes are stored"
        return ""

    def _newer(self, version: int) -> TraceError:
        return TraceError(
            f"{self._path.name} was saved by a newer tracescope: format version {version},"
            f" this one reads up to {layout.VERSION}.",
            action="Open it with that version, or save it there for this one.",
        )

    def _attribute(self, name: str) -> Any:
        raw = name.encode()
        if not h5py.h5a.exists(self._root, raw):
            raise self._bad(f"attribute {name} is missing")
        return h5py.h5a.open(self._root, raw)

    def _has(self, table: str) -> bool:
        return table not in layout.OPTIONAL or bool(h5py.h5a.exists(self._root, f"{table}_rows".encode()))

    def _integer(self, name: str) -> int:
        attribute = self._attribute(name)
        kind = attribute.get_type()
        if kind.get_class() != h5py.h5t.INTEGER or kind.get_size() != 8 or attribute.shape != ():
            raise self._bad(f"attribute {name} is not one integer")
        value = np.empty((), np.int64)
        attribute.read(value)
        if not 0 <= int(value) < 1 << 48:
            raise self._bad(f"attribute {name} is out of range")
        return int(value)

    def _text(self, name: str, length: int) -> str:
        attribute = self._attribute(name)
        kind = attribute.get_type()
        # The type first: reading a variable-length string from a damaged file can hang inside HDF5 for ever.
        if kind.get_class() != h5py.h5t.STRING or kind.is_variable_str():
            raise self._bad(f"attribute {name} is not a fixed-length string")
        if kind.get_size() != length or attribute.shape != ():
            raise self._bad(f"attribute {name} has the wrong length")
        value = np.empty((), f"S{length}")
        attribute.read(value)
        return bytes(value[()]).decode("ascii", "replace")

    # --- groups and datasets ---

    def _table(self, group: str, rows: dict[str, int], allowed: dict[str, np.dtype[Any]]) -> dict[str, Column]:
        wanted = {name: dtype for name, dtype in allowed.items() if name.startswith(group + "/")}
        gid = self._child(self._root, group, h5py.h5g.GroupID)
        self._expect_names(gid, {name.split("/")[1] for name in wanted}, group)
        columns = {}
        for name, dtype in wanted.items():
            column = self._column(gid, name, {dtype})
            length = layout.expected_rows(name, rows)
            if len(column.shape) != 1 or (length is not None and column.shape[0] != length):
                raise self._bad(f"column {name} has shape {column.shape}, expected ({length},)")
            columns[name] = column
        if group == layout.META and columns[f"{group}/json"].shape[0] > layout.MAX_META_BYTES:
            raise self._bad("its description is too large")
        return columns

    def _pyramid(self, arrays: int) -> dict[str, Column]:
        if arrays > layout.MAX_PYRAMID_ARRAYS:
            raise self._bad(f"it declares {arrays} pyramid arrays")
        gid = self._child(self._root, layout.PYRAMID, h5py.h5g.GroupID)
        names = self._names(gid, arrays)
        if len(names) != arrays:
            raise self._bad(f"it has {len(names)} pyramid arrays, expected {arrays}")
        columns = {}
        for name in sorted(names):
            if not layout.ARRAY_NAME.fullmatch(name):
                raise self._bad("a pyramid array has a name that is not allowed")
            column = self._column(gid, f"{layout.PYRAMID}/{name}", layout.PYRAMID_DTYPES)
            if len(column.shape) not in (1, 2):
                raise self._bad(f"array {column.name} has {len(column.shape)} dimensions")
            columns[column.name] = column
        return columns

    def _names(self, group: Any, limit: int) -> set[str]:
        if group.get_num_objs() > limit:
            raise self._bad("it holds more objects than it should")
        return {name.decode("ascii", "replace") for name in group}

    def _expect_names(self, group: Any, wanted: set[str], where: str) -> None:
        found = self._names(group, len(wanted) + 16)
        for missing in sorted(wanted - found):
            raise self._bad(f"{where} lacks {missing}")
        for extra in sorted(found - wanted):
            raise self._bad(f"{where} holds {extra[:40]!r}, which does not belong there")

    def _child(self, group: Any, name: str, kind: type) -> Any:
        raw = name.encode()
        if group.links.get_info(raw).type != h5py.h5l.TYPE_HARD:
            raise self._bad(f"{name} is a link to somewhere else")
        child = h5py.h5o.open(group, raw)
        if type(child) is not kind:
            raise self._bad(f"{name} is not what it should be")
        return child

    def _column(self, group: Any, name: str, allowed: Set[np.dtype[Any]]) -> Column:
        dataset = self._child(group, name.split("/")[1], h5py.h5d.DatasetID)
        kind = dataset.get_type()
        if kind.get_class() not in (h5py.h5t.INTEGER, h5py.h5t.FLOAT) or kind.dtype not in allowed:
            raise self._bad(f"column {name} has a type that does not belong there")
        plist = dataset.get_create_plist()
        if plist.get_external_count():
            raise self._bad(f"column {name} keeps its data in another file")
        shape = tuple(int(n) for n in dataset.get_space().get_simple_extent_dims())
        empty = prod(shape) == 0
        if plist.get_layout() != (h5py.h5d.CONTIGUOUS if empty else h5py.h5d.CHUNKED):
            raise self._bad(f"column {name} is not stored in chunks of this file")
        if empty:
            return Column(name, kind.dtype, shape, 0, 0, ())
        self._check_filters(plist, name)
        return self._chunked(dataset, name, kind.dtype, shape, plist.get_chunk())

    def _check_filters(self, plist: Any, name: str) -> None:
        codes = tuple(plist.get_filter(i)[0] for i in range(min(plist.get_nfilters(), 32)))
        for code in codes:
            if code not in _FILTERS:
                raise self._bad(f"column {name} uses filter {code}, which is not allowed")
        if codes != _FILTERS:
            raise self._bad(f"column {name} uses filters {codes}, expected {_FILTERS}")

    def _chunked(
        self, dataset: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], chunk: tuple[int, ...]
    ) -> Column:
        row_bytes = dtype.itemsize * prod(shape[1:])
        chunk_bytes = int(chunk[0]) * row_bytes
        if tuple(chunk[1:]) != shape[1:] or not 0 < chunk_bytes <= layout.MAX_CHUNK_BYTES:
            raise self._bad(f"column {name} has chunks of a shape that is not allowed")
        declared = shape[0] * row_bytes
        if declared > layout.MAX_DECLARED_BYTES:
            raise self._bomb(name, declared, int(dataset.get_storage_size()))
        count = -(-shape[0] // int(chunk[0]))
        found: dict[int, Chunk] = {}
        raw_chunks: list[int] = []

        def keep(info: Any) -> bool | None:
            row = int(info.chunk_offset[0])
            found[row] = Chunk(row, int(info.byte_offset), int(info.size))
            if info.filter_mask:
                raw_chunks.append(row)
            return True if raw_chunks or len(found) > count else None

        dataset.chunk_iter(keep)
        if raw_chunks:
            raise self._bad(f"column {name} has a chunk that skips a filter")
        chunks = [found[row] for row in range(0, shape[0], int(chunk[0])) if row in found]
        stored = sum(c.size for c in chunks)
        if declared > layout.MAX_RATIO_COLUMN * stored:
            raise self._bomb(name, declared, stored)
        if len(chunks) != count or len(found) != count:
            raise self._bad(f"column {name} has {len(found)} chunks, expected {count}")
        if any(c.size <= 4 or c.size > chunk_bytes + chunk_bytes // 100 + 64 for c in chunks):
            raise self._bad(f"column {name} has a chunk of a size that cannot be")
        if any(c.at + c.size > self._size for c in chunks):
            raise self._bad(f"column {name} points past the end of the file")
        return Column(name, dtype, shape, int(chunk[0]), chunk_bytes, tuple(chunks))

    def _check_sizes(self, columns: dict[str, Column]) -> None:
        declared = sum(prod(c.shape) * c.dtype.itemsize for c in columns.values())
        stored = sum(chunk.size for c in columns.values() for chunk in c.chunks)
        allowed = min(layout.FREE_BYTES + layout.MAX_RATIO_FILE * stored, layout.MAX_DECLARED_BYTES)
        if declared > allowed or stored > self._size:
            raise self._bomb("all together", declared, stored)

    def _bomb(self, name: str, declared: int, stored: int) -> TraceError:
        return self._bad(f"{name} declares {declared} bytes where {stored} bytes are stored")

    def _bad(self, reason: str) -> TraceError:
        return damaged(self._path, reason)
