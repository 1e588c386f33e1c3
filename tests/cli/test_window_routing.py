"""``tracescope [FILE…]`` opens the window; a first word that is a command is that command."""

import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tracescope.cli.app import COMMANDS, routed, run, tracescope
from tracescope.ui.startup import answers, wayland_answers


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_command_stays_a_command(command: str) -> None:
    assert routed([command, "x.json"]) == [command, "x.json"]


@pytest.mark.parametrize("files", [[], ["a.tscope.h5"], ["--fresh"], ["--fresh", "a.json"], ["folder/plain", "b.gz"]])
def test_anything_else_opens_the_window(files: list[str]) -> None:
    assert routed(files) == ["window", *files]


def test_a_mistyped_command_is_not_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert routed(["infoo"]) == ["infoo"]
    (tmp_path / "infoo").touch()
    assert routed(["infoo"]) == ["window", "infoo"]


def test_help_is_the_groups() -> None:
    assert routed(["--help"]) == ["--help"]


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_is_where_the_table_says(command: str) -> None:
    found = tracescope.get_command(click.Context(tracescope), command)
    assert found is not None
    assert found.name == command
    assert found.help


def test_a_fault_of_our_own_is_two_lines_and_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr(tracescope, "main", lambda *_args, **_options: fail())
    assert run(["presets"]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "internal error at test_window_routing.py" in lines[0]


def test_a_reader_that_goes_away_is_no_fault() -> None:
    command = f"{sys.executable} -m tracescope presets --json | head -c 10"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_missing_file_comes_before_a_missing_display(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    there = tmp_path / "there.json"
    there.touch()
    for files, said in (([there, tmp_path / "nofile.json"], "nofile.json"), ([there], "no display")):
        assert run([str(file) for file in files]) == 2
        assert said in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize(
    ("name", "display"), [("DISPLAY", ":6543"), ("DISPLAY", "localhost:543.0"), ("WAYLAND_DISPLAY", "wayland-nobody")]
)
def test_a_dead_display_is_said_with_the_command_that_draws_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, display: str
) -> None:
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv(name, display)
    file = tmp_path / "a run.tscope.h5"
    file.touch()
    assert run([str(file)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"The display {display} does not answer."
    assert said[1].endswith(f"tracescope render '{file}' -o 'a run.png'")


def test_displays_that_are_there_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert answers(f"127.0.0.1:{port - 6000}")
    assert not answers(f"127.0.0.1:{port - 6000}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "wayland-7"))
        server.listen()
        assert wayland_answers("wayland-7")
        assert wayland_answers(str(tmp_path / "wayland-7"))
    assert not wayland_answers("wayland-8")
    assert not wayland_answers("x" * 500)
