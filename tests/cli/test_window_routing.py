"""``tracescope [FILE…]`` opens the window; a first word that is a command is that command."""

from pathlib import Path

import pytest

from tracescope.cli.app import COMMANDS, routed


@pytest.mark.parametrize("command", [c.name for c in COMMANDS])
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
