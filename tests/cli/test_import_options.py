"""Commands on a file and ``import`` take the same options and say progress in the same lines."""

import json

import click
import pytest

from tracescope.cli.import_ import import_command
from tracescope.cli.import_options import COMMON
from tracescope.cli.info import info_command
from tracescope.cli.progress import ProgressMeter
from tracescope.cli.steps import steps_command


def options(command: click.Command) -> dict[str, tuple[list[str], str | None]]:
    found = [parameter for parameter in command.params if isinstance(parameter, click.Option) and parameter.name]
    return {str(option.name): (list(option.opts), option.help) for option in found}


@pytest.mark.parametrize("command", [info_command, steps_command])
def test_a_command_on_a_file_takes_the_options_of_an_import(command: click.Command) -> None:
    here, there = options(command), options(import_command)
    for name in (*COMMON, "allow_truncated", "progress"):
        assert here[name] == there[name]


def test_progress_is_said_once_a_percent_and_stage(capsys: pytest.CaptureFixture[str]) -> None:
    meter = ProgressMeter("json")
    for done in range(0, 1001):
        meter(done, 1000)
    meter.say("save", 0, 1)
    meter.say("save", 0, 1)
    meter.finish()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["done"] for line in lines[:-1]] == list(range(0, 1001, 10))
    assert lines[-1] == {"stage": "save", "done": 0, "total": 1}


@pytest.mark.parametrize("mode", ["none", "auto"])
def test_nothing_is_said_where_nobody_watches(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    meter = ProgressMeter(mode)
    meter(1, 2)
    meter.finish()
    assert capsys.readouterr().err == ""
