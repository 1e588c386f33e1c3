"""Saving: whatever fails, the destination keeps its old bytes, one sentence says why, and nothing is left beside it."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.native import empty_trace, full_trace
from tracescope.core.errors import TraceError
from tracescope.io import native, save


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "run.tscope.h5"
    save.write(path, full_trace(50))
    return path


def assert_refused_unchanged(path: Path, words: str) -> None:
    """A save over ``path`` is refused in one sentence; the old file is as it was and alone in its folder."""
    before, beside = path.read_bytes(), sorted(os.listdir(path.parent))
    with pytest.raises(TraceError, match=words) as caught:
        save.write(path, full_trace(400))
    assert len(caught.value.lines()) <= 2
    assert str(path) in caught.value.lines()[0]
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == beside


def failing(call: Callable[..., Any], at: int, code: int) -> Callable[..., Any]:
    """``call``, but the ``at``-th time it raises OSError ``code``."""
    count = 0

    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            raise OSError(code, os.strerror(code))
        return call(*arguments, **keywords)

    return wrapped


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("at", [1, 2, 5])
def test_a_write_fails(old: Path, monkeypatch: pytest.MonkeyPatch, code: int, at: int) -> None:
    real = os.write
    fails = failing(real, at, code)
    monkeypatch.setattr(save.os, "write", lambda descriptor, data: fails(descriptor, data[:10_000]))
    assert_refused_unchanged(old, os.strerror(code))


def test_short_writes_are_continued(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(save.os, "write", lambda descriptor, data: real(descriptor, data[:4999]))
    save.write(old, full_trace(400))
    monkeypatch.undo()
    native.verify_checksum(old)
    assert len(native.read(old).trace.events) == 400


@pytest.mark.parametrize("name", ["fsync", "ftruncate", "open"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EACCES])
def test_another_call_fails(old: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int) -> None:
    monkeypatch.setattr(save.os, name, failing(getattr(os, name), 1, code))
    before = old.read_bytes()
    with pytest.raises(TraceError, match=os.strerror(code)):
        save.write(old, full_trace(400))
    assert old.read_bytes() == before
    assert os.listdir(old.parent) == [old.name]


def test_the_renaming_fails(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "replace", failing(Path.replace, 1, errno.EACCES))
    assert_refused_unchanged(old, "Permission denied")


def test_the_folder_cannot_be_synced(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(save.os, "fsync", failing(os.fsync, 2, errno.EINVAL))
    save.write(old, full_trace(400))
    assert len(native.read(old).trace.events) == 400


def test_the_disk_keeps_something_else(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that silently loses a byte is found by reading back what was written."""
    real = os.write

    def losing(descriptor: int, data: memoryview) -> int:
        changed = bytearray(data)
        changed[len(changed) // 2] ^= 0x10
        return real(descriptor, changed)

    monkeypatch.setattr(save.os, "write", losing)
    before = old.read_bytes()
    with pytest.raises(TraceError, match="reads back differently"):
        save.write(old, full_trace(400))
    assert old.read_bytes() == before
    assert os.listdir(old.parent) == [old.name]


def test_an_interrupt_leaves_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path, lock: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(save, "verify_checksum", interrupted)
    before = old.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        save.write(old, full_trace(400))
    assert old.read_bytes() == before
    assert os.listdir(old.parent) == [old.name]


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands for a disk that fills up: the kernel itself refuses the write."""
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from tests.kit.native import full_trace; from tracescope.io import save\n"
        "from tracescope.core.errors import TraceError\n"
        "path = Path(sys.argv[1]); save.write(path, full_trace(50)); before = path.read_bytes()\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: save.write(path, full_trace(5000))\n"
        "except TraceError as error: print(error.what)\n"
        "assert path.read_bytes() == before\n"
        "assert len(list(path.parent.iterdir())) == 1\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    path = str(tmp_path / "a.tscope.h5")
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True, env=environment
    )
    assert "cannot be saved: File too large" in done.stdout


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file or directory") as caught:
        save.write(tmp_path / "no" / "a.tscope.h5", empty_trace())
    assert "Make the folder first" in caught.value.lines()[1]


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="File name too long"):
        save.write(tmp_path / ("x" * 245 + ".tscope.h5"), empty_trace())
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(old: Path) -> None:
    old.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert_refused_unchanged(old, "Permission denied")
    finally:
        old.parent.chmod(stat.S_IRWXU)


def test_a_file_that_may_not_be_written(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(save.os, "access", lambda path, mode: False)
    assert_refused_unchanged(old, "Permission denied")


def test_what_is_not_a_file(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path, fifo):
        with pytest.raises(TraceError, match="not a regular file"):
            save.write(path, empty_trace())


def test_a_symbolic_link_is_followed(old: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.tscope.h5"
    link.symlink_to(old)
    save.write(link, full_trace(77))
    assert link.is_symlink()
    assert len(native.read(old).trace.events) == 77
    assert os.listdir(folder) == [link.name]


def test_the_mode_of_the_old_file_is_kept(old: Path) -> None:
    old.chmod(0o640)
    save.write(old, full_trace(77))
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


def test_a_part_left_by_a_killed_save_is_used_again(old: Path) -> None:
    part = old.with_name(old.name + ".part")
    part.write_bytes(b"x" * 10_000_000)
    save.write(old, full_trace(77))
    assert len(native.read(old).trace.events) == 77
    assert os.listdir(old.parent) == [old.name]


def test_a_part_that_is_a_link_is_not_followed(old: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    part = old.with_name(old.name + ".part")
    part.symlink_to(victim)
    with pytest.raises(TraceError, match="cannot be saved"):
        save.write(old, full_trace(77))
    assert victim.read_text() == "precious"
    assert len(native.read(old).trace.events) == 50


def test_two_saves_at_once(old: Path) -> None:
    part = old.with_name(old.name + ".part")
    with part.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert_refused_unchanged(old, "being saved by another program")


def test_a_part_that_another_save_renames_in_between(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other save's part becomes the destination between our open and our lock: it must not be written into."""
    part = old.with_name(old.name + ".part")
    part.write_bytes(b"the other save")
    real, seen = save._lock, []

    def lock(descriptor: int) -> None:
        if not seen:
            seen.append(os.fstat(descriptor).st_ino)
            part.rename(old.with_name("other.tscope.h5"))
        real(descriptor)

    monkeypatch.setattr(save, "_lock", lock)
    save.write(old, full_trace(77))
    assert old.with_name("other.tscope.h5").read_bytes() == b"the other save"
    assert len(native.read(old).trace.events) == 77
