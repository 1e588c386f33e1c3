"""The ``tracescope`` command: collects the command modules and turns refusals into exit codes."""

import sys
from pathlib import Path

import click

from tracescope.cli.check import check_command
from tracescope.cli.doctor import doctor_command
from tracescope.cli.events import events_command
from tracescope.cli.export import export_command
from tracescope.cli.floor import floor_command
from tracescope.cli.import_ import import_command
from tracescope.cli.info import info_command
from tracescope.cli.layers import layers_command
from tracescope.cli.presets import presets_command
from tracescope.cli.render import render_command
from tracescope.cli.requests import requests_command
from tracescope.cli.steps import steps_command
from tracescope.cli.sweep import sweep_command
from tracescope.cli.synth import synth_command
from tracescope.cli.window import window
from tracescope.core.errors import TraceError

EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130

COMMANDS: tuple[click.Command, ...] = (
    presets_command,
    floor_command,
    sweep_command,
    synth_command,
    import_command,
    info_command,
    steps_command,
    layers_command,
    events_command,
    requests_command,
    check_command,
    render_command,
    export_command,
    doctor_command,
    window,
)
"""Every subcommand; a new one is one module and one entry here."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def tracescope() -> None:
    """See why LLM decoding is as slow as it is."""


for command in COMMANDS:
    tracescope.add_command(command)


def routed(arguments: list[str]) -> list[str]:
    """``tracescope [FILE…]`` opens the window: unless the first word is a command, or looks like a mistyped one."""
    words = [a for a in arguments if not a.startswith("-")]
    if any(a in ("-h", "--help") for a in arguments):
        return arguments
    if words:
        plain_word = not Path(words[0]).suffix and len(Path(words[0]).parts) == 1
        if words[0] in tracescope.commands or (plain_word and not Path(words[0]).exists()):
            return arguments
    return [window.name or "window", *arguments]


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; refusals go to stderr as at most three lines."""
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
    return int(result) if isinstance(result, int) else 0


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))
