"""Files are put in place whole or not at all, and never over what is no file or is being read."""

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.kit.native import full_trace
from tracescope.core.errors import TraceError
from tracescope.io import save
from tracescope.io.atomic import refuse_own_input, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_new_and_replaced_files_have_the_right_permissions(tmp_path: Path) -> None:
    path, plain = tmp_path / "a.csv", tmp_path / "plain"
    plain.write_bytes(b"")
    write_atomically(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o640)
    write_atomically(path, lambda file: file.writelines([b"t", b"wo"]))
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["a.csv", "plain"]


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_bytes(b"old")
    link, dangling = tmp_path / "link.csv", tmp_path / "dangling.csv"
    link.symlink_to("real.csv")
    dangling.symlink_to("new.csv")
    write_atomically(link, b"new")
    write_atomically(dangling, b"made")
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert (tmp_path / "real.csv").read_bytes() == b"new"
    assert (tmp_path / "new.csv").read_bytes() == b"made"


@pytest.mark.parametrize("kind", ["file", "link", "fifo", "folder"])
def test_a_part_of_the_users_is_left_alone(tmp_path: Path, kind: str) -> None:
    part, other = tmp_path / "a.csv.part", tmp_path / "other"
    other.write_bytes(b"precious")
    if kind == "file":
        part.write_bytes(b"mine")
    elif kind == "link":
        part.symlink_to(other)
    elif kind == "fifo":
        os.mkfifo(part)
    else:
        part.mkdir()
    before = part.lstat()
    write_atomically(tmp_path / "a.csv", b"data")
    assert (tmp_path / "a.csv").read_bytes() == b"data"
    assert part.lstat() == before
    assert other.read_bytes() == b"precious"


def _save_a_trace(path: Path) -> None:
    save.write(path, full_trace())


def _write_bytes(path: Path) -> None:
    write_atomically(path, b"x")


@pytest.mark.parametrize("write", [_write_bytes, _save_a_trace])
def test_what_is_no_file_and_impossible_names_are_refused(tmp_path: Path, write: Callable[[Path], None]) -> None:
    fifo, folder, loop = tmp_path / "fifo", tmp_path / "folder", tmp_path / "loop"
    os.mkfifo(fifo)
    folder.mkdir()
    loop.symlink_to("loop2")
    (tmp_path / "loop2").symlink_to("loop")
    through = tmp_path / "to_device"
    through.symlink_to("/dev/null")
    before = names(tmp_path)
    for path, said in (
        (fifo, "not a regular file"), (folder, "not a regular file"), (through, "not a regular file"),
        (Path("/dev/null"), "not a regular file"), (loop, "link"), (tmp_path / ("n" * 300), "too long"),
        (tmp_path / "none" / "a", "No such file"),
    ):  # fmt: skip
        with pytest.raises(TraceError) as refused:
            write(path)
        assert said in " ".join(refused.value.lines())
        assert str(path) in refused.value.what
        assert refused.value.action
    assert names(tmp_path) == before
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 125 + ".csv")
    write_atomically(path, b"x")
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("bug")])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    expected = TraceError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.csv"]


def test_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    together = threading.Barrier(4)

    def slowly(letter: bytes) -> None:
        def write(file: BinaryIO) -> None:
            together.wait(10)
            for _ in range(50):
                file.write(letter * 1000)

        write_atomically(path, write)

    threads = [threading.Thread(target=slowly, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    data = path.read_bytes()
    assert data == data[:1] * 50_000
    assert names(tmp_path) == ["a.csv"]


def test_an_own_input_is_refused_by_any_name(tmp_path: Path) -> None:
    source, link, hard = tmp_path / "in.json", tmp_path / "link.json", tmp_path / "hard.json"
    source.write_bytes(b"{}")
    link.symlink_to(source)
    hard.hardlink_to(source)
    for out in (source, link, hard, tmp_path / "x" / ".." / "in.json"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(TraceError, match="would overwrite its own input; choose another name"):
            refuse_own_input(out, [tmp_path / "absent", source])
    refuse_own_input(tmp_path / "out.json", [source, tmp_path / "absent"])
    (tmp_path / "copy.json").write_bytes(b"{}")
    refuse_own_input(tmp_path / "copy.json", [source])


def test_a_pipe_in_the_place_of_the_part_of_a_trace_is_left_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "a.tscope.h5.part"
    os.mkfifo(pipe)
    with pytest.raises(TraceError, match="in the way"):
        save.write(tmp_path / "a.tscope.h5", full_trace())
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
