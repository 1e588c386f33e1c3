"""Opens an untrusted SQLite file: a private copy, read-only, checked, within a deadline, real tables only."""

import hashlib
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tracescope.core.errors import TraceError, printable
from tracescope.io.importer import Progress

MAGIC: Final = b"SQLite format 3\0"
JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")

MISSING: Final = -(1 << 63)
"""Stands for NULL, for a value of another type and for a column that the schema lacks: no time, id or size has it."""
MAX_CHARACTERS: Final = 1 << 20
"""Characters kept of one text."""

DEADLINE_S: Final = 60.0
BYTES_PER_EXTRA_S: Final = 20 << 20
"""A database may take a second more for each of these; a sound one takes a tenth of it."""
TICK_OPCODES: Final = 50_000
"""Opcodes between two looks at the clock: about a millisecond."""
ROWS_AT_ONCE: Final = 1 << 16
COPY_BYTES: Final = 1 << 20

_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 64 << 20,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 20,
    sqlite3.SQLITE_LIMIT_COLUMN: 2_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_PRAGMAS: Final = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "mmap_size = 0",
    "temp_store = MEMORY",
    "ignore_check_constraints = ON",
    "query_only = ON",
)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One real table: its name as spelled, and its stored columns by lower-case name."""

    name: str
    columns: dict[str, str]

    def has(self, column: str) -> bool:
        """Whether the table stores ``column`` (any case)."""
        return column.lower() in self.columns


class Database:
    """A private, checked, read-only copy of a SQLite file; a context manager that leaves nothing behind.

    ``tables`` holds real tables by lower-case name: views, virtual tables, generated columns and names that are no
    plain words do not exist here. Raises TraceError where the file is none, is damaged, or takes too long.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self.bytes = 0
        self.sha256 = ""
        self.repaired = 0
        """Texts that were no valid UTF-8."""
        self.tables: dict[str, Table] = {}
        self.views: set[str] = set()
        """Lower-case names of views: none is read, for it would run what the file says."""
        self._progress = progress
        self._stop: BaseException | None = None
        self._deadline = 0.0
        self._connection: sqlite3.Connection | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="tracescope-", ignore_cleanup_errors=True)
            copy = self._copy(Path(self._folder.name))
            self._deadline = time.monotonic() + DEADLINE_S + self.bytes / BYTES_PER_EXTRA_S
            with self._refusing():
                self._open(copy)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the copy and delete it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._folder is not None:
            self._folder.cleanup()

    def table(self, name: str) -> Table | None:
        """The table called ``name`` (any case), None where the file has none."""
        return self.tables.get(name.lower())

    def count(self, table: Table) -> int:
        """Rows of ``table`` as SQLite counts them; a damaged file may say another number than it holds."""
        with self._refusing():
            return int(self._execute(f'SELECT count(*) FROM "{table.name}"').fetchone()[0])

    def row_progress(self, total: int, progress: Progress | None) -> Callable[[int], None]:
        """What to call with the number of rows just read, of ``total``: the copy was the first half of the progress."""
        done = 0

        def report(rows: int) -> None:
            nonlocal done
            done += rows
            if progress is not None:
                progress(self.bytes // 2 + self.bytes * min(done, total) // max(total, 1) // 2, self.bytes)

        return report

    def rows(
        self, table: Table, integers: Sequence[str], texts: Sequence[str] = (), numbers: Sequence[str] = ()
    ) -> Iterator[list[Row]]:
        """Rows in stored order, up to 65,536 at a time: the ``integers`` (MISSING where not one), then the ``texts``
        and the ``numbers``, which may have decimals (None where not one).
        """
        wanted = [_integer(table, name) for name in integers] + [_text(table, name) for name in texts]
        wanted += [_number(table, name) for name in numbers]
        with self._refusing():
            cursor = self._execute(f'SELECT {", ".join(wanted)} FROM "{table.name}"')
        while True:
            with self._refusing():
                rows = cursor.fetchmany(ROWS_AT_ONCE)
            if not rows:
                return
            yield rows

    # --- opening ---

    def _copy(self, folder: Path) -> Path:
        """Copy the database, and its write-ahead log where it has one; measure and hash it on the way."""
        name = self.path.name
        try:
            size = self.path.stat().st_size
            log = self.path.with_name(name + "-wal")
            logged = log.stat().st_size if log.is_file() else 0
            with self.path.open("rb") as file:
                self._check_header(file.read(100), size, has_log=logged > 0)
            self._check_journal()
            if shutil.disk_usage(folder).free < size + logged + (64 << 20):
                raise TraceError(
                    f"{name}: no room for the private copy that is read: {size + logged:,} bytes in {folder.parent}",
                    action="Free some space, or set TMPDIR to a folder that has it.",
                )
            self.sha256 = self._copy_file(self.path, folder / "copy.sqlite", total=size)
            self.bytes = size
            if logged:
                self._copy_file(log, folder / "copy.sqlite-wal", total=0)
        except PermissionError as error:
            busy = getattr(error, "winerror", None) in {32, 33}
            why = "it is in use by another program" if busy else error.strerror
            raise TraceError(f"{name}: cannot be read: {why}") from error
        except OSError as error:
            raise TraceError(f"{name}: cannot be read: {error.strerror or error}") from error
        return folder / "copy.sqlite"

    def _copy_file(self, source: Path, target: Path, *, total: int) -> str:
        digest = hashlib.sha256()
        done = 0
        with source.open("rb") as reading, target.open("xb") as writing:
            while piece := reading.read(COPY_BYTES):
                writing.write(piece)
                digest.update(piece)
                done += len(piece)
                if self._progress is not None and total:
                    self._progress(min(done, total) // 2, total)
        return digest.hexdigest()

    def _check_header(self, head: bytes, size: int, *, has_log: bool) -> None:
        name = self.path.name
        if not head.startswith(MAGIC):
            raise TraceError(f"{name}: not a SQLite database: its content begins with {printable(repr(head[:12]))}")
        page = int.from_bytes(head[16:18], "big")
        page = 65_536 if page == 1 else page
        pages = int.from_bytes(head[28:32], "big")
        # The count of pages holds when the program that wrote last also wrote it (SQLite's file format, 1.3.8).
        counted = head[24:28] == head[92:96]
        if size <= 100 or (counted and not has_log and size < page * pages):
            whole = f" of {page * pages:,}" if counted and pages else ""
            raise TraceError(
                f"{name}: damaged or incomplete: the file ends after {size:,}{whole} bytes",
                action="Copy or export it again.",
            )

    def _check_journal(self) -> None:
        """A journal that begins with its magic belongs to a change that was begun and not finished."""
        journal = self.path.with_name(self.path.name + "-journal")
        if not journal.is_file():
            return
        with journal.open("rb") as file:
            if file.read(len(JOURNAL_MAGIC)) == JOURNAL_MAGIC:
                raise TraceError(
                    f"{self.path.name}: in use by another program, or left half-written by one ({journal.name})",
                    action="Let that program finish, or export the report again.",
                )

    def _open(self, copy: Path) -> None:
        connection = sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=1.0)
        self._connection = connection
        connection.text_factory = self._decode
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.set_progress_handler(self._tick, TICK_OPCODES)
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        if verdict != "ok":
            first = printable(" ".join(verdict.replace("*** in database main ***", "").split()))
            raise TraceError(
                f"{self.path.name}: damaged (PRAGMA quick_check: {first[:120]})", action="Copy or export it again."
            )
        # Virtual tables have no root page.
        listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0").fetchall()
        for (name,) in listed:
            if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) and not name.startswith("sqlite_"):
                stored = [str(row[1]) for row in connection.execute(f'PRAGMA table_info("{name}")')]
                columns = {column.lower(): column for column in stored if _PLAIN_NAME.fullmatch(column)}
                self.tables[name.lower()] = Table(name, columns)
        views = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall()
        self.views = {name.lower() for (name,) in views if isinstance(name, str)}
        if sys.platform != "win32" and self._folder is not None:
            # Everything is open and the transaction holds it: whatever ends this process, no copy stays behind.
            self._folder.cleanup()

    # --- reading ---

    def _execute(self, sql: str) -> sqlite3.Cursor:
        if self._connection is None:
            raise ValueError("the database is closed")
        return self._connection.execute(sql)

    def _decode(self, text: bytes) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError:
            self.repaired += 1
            return text.decode("utf-8", "replace")

    def _tick(self) -> int:
        """Called by SQLite now and then; anything but 0 ends the statement. Exceptions cannot pass through it."""
        try:
            if time.monotonic() > self._deadline:
                raise TraceError(
                    f"{self.path.name}: reading it takes too long; it is damaged, or made to do so",
                    action="Export the report again.",
                )
        except BaseException as error:
            self._stop = error
            return 1
        return 0

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn SQLite's errors into one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            if self._stop is not None:
                raise self._stop from None
            said = printable(str(error))[:120]
            what = "not a SQLite database" if "not a database" in said else f"damaged or incomplete ({said})"
            raise TraceError(f"{self.path.name}: {what}", action="Copy or export it again.") from error
        except UnicodeDecodeError as error:
            # SQLite quotes the schema in its message, and the sqlite3 module decodes messages strictly.
            raise TraceError(
                f"{self.path.name}: damaged or incomplete (its schema is no valid text)",
                action="Copy or export it again.",
            ) from error


def _integer(table: Table, column: str) -> str:
    stored = table.columns.get(column.lower())
    if stored is None:
        return str(MISSING + 1) + " - 1"
    return f'CASE typeof("{stored}") WHEN \'integer\' THEN "{stored}" ELSE {MISSING + 1} - 1 END'


def _number(table: Table, column: str) -> str:
    stored = table.columns.get(column.lower())
    if stored is None:
        return "NULL"
    return f"CASE WHEN typeof(\"{stored}\") IN ('integer', 'real') THEN CAST(\"{stored}\" AS REAL) END"


def _text(table: Table, column: str) -> str:
    stored = table.columns.get(column.lower())
    if stored is None:
        return "NULL"
    return f'CASE typeof("{stored}") WHEN \'text\' THEN substr("{stored}", 1, {MAX_CHARACTERS}) END'
