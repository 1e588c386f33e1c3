"""The gate before a SQLite file: nothing is written, nothing is run, nothing lasts for ever."""

import sqlite3
import tempfile
import time
from pathlib import Path

import pytest

from tests.kit.nsys import CUDA, build, everything, kernel
from tests.kit.raw import read, rows
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCategory
from tracescope.io import database
from tracescope.io.database import Database


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which private copies are made."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.is_file())


def test_nothing_is_left_beside_the_file_or_in_the_temporary_folder(tmp_path: Path, temp: Path) -> None:
    path = build(tmp_path / "all.sqlite", everything())
    before = path.read_bytes()
    read(path)
    assert names_in(tmp_path) == ["all.sqlite"]
    assert path.read_bytes() == before
    assert list(temp.iterdir()) == []


def test_the_copy_is_gone_while_it_is_read(tmp_path: Path, temp: Path) -> None:
    """A process that is killed in the middle leaves nothing either."""
    path = build(tmp_path / "all.sqlite", everything())
    with Database(path) as opened:
        table = opened.table(f"{CUDA}KERNEL")
        assert table is not None
        assert list(temp.iterdir()) == []
        assert list(opened.rows(table, ("start", "end"))) == [[(200, 260)]]


def test_rows_that_are_still_in_the_write_ahead_log_are_read(tmp_path: Path, temp: Path) -> None:
    path = build(tmp_path / "wal.sqlite", {f"{CUDA}KERNEL": [kernel(0, 10)]})
    writer = sqlite3.connect(path)
    try:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute(f"INSERT INTO {CUDA}KERNEL (start, end, deviceId, streamId, shortName) VALUES (20, 25, 0, 7, 2)")
        writer.commit()
        before = {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path) if name != "wal.sqlite-shm"}
        assert rows(read(path)) == [("gemm", 0, 10), ("gemm", 20, 5)]
        assert {name: (tmp_path / name).read_bytes() for name in before} == before
        assert list(temp.iterdir()) == []
    finally:
        writer.close()


def test_a_change_that_was_never_finished_is_refused(tmp_path: Path) -> None:
    path = build(tmp_path / "hot.sqlite", everything())
    (tmp_path / "hot.sqlite-journal").write_bytes(database.JOURNAL_MAGIC + bytes(504))
    with pytest.raises(TraceError, match="in use by another program"):
        read(path)
    (tmp_path / "hot.sqlite-journal").write_bytes(bytes(512))  # a finished one whose file is kept
    assert len(rows(read(path), RawCategory.KERNEL)) == 2


def test_views_virtual_tables_and_generated_columns_do_not_exist(tmp_path: Path) -> None:
    path = build(tmp_path / "odd.sqlite", {f"{CUDA}KERNEL": [kernel(0, 10)]})
    connection = sqlite3.connect(path)
    connection.executescript(
        f"""
        CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)
            SELECT start, start AS end, 59 AS eventType FROM n;
        ALTER TABLE {CUDA}KERNEL ADD COLUMN clusterX INTEGER GENERATED ALWAYS AS (start + 7) VIRTUAL;
        CREATE TABLE "odd name" (start INTEGER);
        """
    )
    if any("FTS5" in row[0] for row in connection.execute("PRAGMA compile_options")):
        connection.execute("CREATE VIRTUAL TABLE OSRT_API USING fts5(start, end, globalTid, nameId)")
    connection.commit()
    connection.close()
    raw = read(path)
    assert rows(raw) == [("gemm", 0, 10)]
    assert raw.details == ("",)


def test_a_database_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(tmp_path / "slow.sqlite", {f"{CUDA}KERNEL": [kernel(i, i + 1) for i in range(20_000)]})
    monkeypatch.setattr(database, "TICK_OPCODES", 100)
    monkeypatch.setattr(database, "DEADLINE_S", -1.0)
    began = time.monotonic()
    with pytest.raises(TraceError, match="takes too long"):
        read(path)
    assert time.monotonic() - began < 5


def test_no_room_for_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(tmp_path / "all.sqlite", everything())
    usage = database.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(database.shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(TraceError, match="no room for the private copy"):
        read(path)


def test_a_file_that_goes_away_or_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(TraceError, match=r"gone.sqlite: cannot be read: No such file"),
        Database(tmp_path / "gone.sqlite"),
    ):
        pass
    path = build(tmp_path / "held.sqlite", everything())

    def refuse(*_: object, **__: object) -> None:
        error = PermissionError(13, "Permission denied")
        error.winerror = 32
        raise error

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TraceError, match="in use by another program"), Database(path):
        pass


def test_damage_that_only_reading_meets_is_one_sentence(tmp_path: Path) -> None:
    """A page that quick_check finds, and one whose header alone is wrong."""
    path = build(tmp_path / "hurt.sqlite", {f"{CUDA}KERNEL": [kernel(i, i + 1) for i in range(2_000)]})
    whole = path.read_bytes()
    page = int.from_bytes(whole[16:18], "big")
    for at in range(page, len(whole), page):
        path.write_bytes(whole[:at] + b"\xff" * 16 + whole[at + 16 :])
        with pytest.raises(TraceError, match="damaged"):
            read(path)
    path.write_bytes(whole[:19] + b"\x09" + whole[20:])
    with pytest.raises(TraceError, match=r"hurt.sqlite: "):
        read(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match="damaged or incomplete: the file ends after"):
        read(path)


def test_a_schema_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Found by mutation: SQLite's message quotes the schema, and Python refuses to decode it."""
    path = build(tmp_path / "schema.sqlite", everything())
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE OSRT_API (start", b"CREATE TABLE OSRT_API \xff\xfetart"))
    with pytest.raises(TraceError, match=r"damaged or incomplete .its schema is no valid text"):
        read(path)
