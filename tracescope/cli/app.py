"""The ``tracescope`` command: the table of commands, and how refusals and faults become exit codes."""

import contextlib
import errno
import io
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from tracescope import __version__
from tracescope.core.errors import TraceError, printable

EXIT_REFUSED: Final = 2
EXIT_INTERNAL: Final = 4
EXIT_INTERRUPTED: Final = 130
_NO_ROOM: Final = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.EBADF)

COMMANDS: Final = {
    "presets": "presets:presets_command",
    "floor": "floor:floor_command",
    "sweep": "sweep:sweep_command",
    "synth": "synth:synth_command",
    "import": "import_:import_command",
    "info": "info:info_command",
    "steps": "steps:steps_command",
    "layers": "layers:layers_command",
    "events": "events:events_command",
    "requests": "requests:requests_command",
    "check": "check:check_command",
    "render": "render:render_command",
    "export": "export:export_command",
    "doctor": "doctor:doctor_command",
    "window": "window:window",
}
"""Every subcommand and where it is, as ``module:name`` in this package; a new one is one module and one line here.

Only the module of the command that runs is imported: the window and small commands start without the rest.
"""


class Commands(click.Group):
    """The commands of the table, imported when they are asked for."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command = getattr(import_module(f"tracescope.cli.{module}"), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tracescope")
def tracescope() -> None:
    """See why LLM decoding is as slow as it is. Without a command: open the window with the FILES given."""


def routed(arguments: Sequence[str]) -> list[str]:
    """``tracescope [FILE…]`` opens the window: unless the first word is a command, or looks like a mistyped one."""
    words = [a for a in arguments if not a.startswith("-")]
    if any(a in ("-h", "--help", "--version") for a in arguments):
        return list(arguments)
    if words:
        plain_word = not Path(words[0]).suffix and len(Path(words[0]).parts) == 1
        if words[0] in COMMANDS or (plain_word and not Path(words[0]).exists()):
            return list(arguments)
    return ["window", *arguments]


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; refusals go to stderr as at most three lines."""
    if sys.stdout is None:
        _say("tracescope: standard output is closed: there is nowhere to write to")
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for what still prints at exit
        return EXIT_REFUSED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name must not fail a command in an ASCII terminal
            stream.reconfigure(errors="backslashreplace")
    code = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        return _unwritten(error) or code
    return code


def _run(arguments: Sequence[str]) -> int:
    stdout = sys.stdout
    try:
        result = tracescope.main(routed(arguments), prog_name="tracescope", standalone_mode=False)
    except TraceError as error:
        for line in error.lines():
            click.echo(line, err=True)
        return EXIT_REFUSED
    except click.ClickException as error:
        click.echo(f"tracescope: {error.format_message()}", err=True)
        return EXIT_REFUSED
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except SystemExit:
        if sys.stdout is stdout:
            raise
        sys.stdout = stdout  # click met a broken pipe: it wraps the stream and leaves with 1
        return _unwritten(BrokenPipeError())
    except OSError as error:
        if isinstance(error, BrokenPipeError) or (error.errno in _NO_ROOM and error.filename is None):
            return _unwritten(error)
        return _internal_error(error)
    except Exception as fault:
        return _internal_error(fault)
    return int(result) if isinstance(result, int) else 0


def _unwritten(error: OSError) -> int:
    """The exit code where stdout takes no more; what is left of the output goes nowhere, at exit as well."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 0  # the reader of our output has gone (as in ``| head``); nobody is left to tell
    _say(f"tracescope: the output cannot be written: {error.strerror or error}")
    return EXIT_REFUSED


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def _internal_error(fault: Exception) -> int:
    """Say in two lines that this is our mistake, with the place; the whole report only where it was asked for."""
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    what = printable(f"{type(fault).__name__}: {str(fault)[:200]}")
    click.echo(f"tracescope: internal error at {place}: {what}", err=True)
    click.echo("This is a mistake in tracescope. TRACESCOPE_DEBUG=1 prints the report to send with the file.", err=True)
    if os.environ.get("TRACESCOPE_DEBUG"):
        click.echo(f"tracescope {__version__}, Python {platform.python_version()}, {platform.platform()}", err=True)
        click.echo("".join(traceback.format_exception(fault)), err=True)
    return EXIT_INTERNAL
