"""What every command on a trace FILE shares: its options, opening it, and the exit code for what was lost."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tracescope.cli.hints import hints
from tracescope.cli.import_options import COMMON, EXIT_LOSSES, import_options, options_from, say_losses, say_mismatch
from tracescope.cli.options import say_assumptions
from tracescope.cli.own_input import refuse_to_overwrite
from tracescope.cli.progress import ProgressMeter
from tracescope.core.errors import printable

EXIT_FAILED = 1
_HIGHEST_FIRST = (4, 130, 2, EXIT_FAILED, EXIT_LOSSES, 0)


def file_command(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command FILE, the options to import and to price it, and ``--progress``.

    The decorated function gets an opened trace as its first argument, its own options besides, and returns an exit
    code; losses of an import and assumed config values raise 0 to 3. An ``output`` that is one of the inputs is refused
    before anything is read.
    """

    @click.argument("file", type=click.Path(path_type=Path))
    @import_options
    @functools.wraps(function)
    def command(*, file: Path, progress: str, allow_truncated: bool, **given: Any) -> int:
        from tracescope.io.native import is_native
        from tracescope.load import open_trace

        common = {name: given.pop(name) for name in COMMON}
        if isinstance(given.get("output"), Path):
            refuse_to_overwrite(given["output"], [file], model=common["model"], hardware=common["hardware"])
        spec, options = options_from(allow_truncated=allow_truncated, **common)
        meter = ProgressMeter(progress)
        opened = open_trace(file, options, meter)
        meter.finish()
        for note in opened.notes:
            click.echo(printable(f"tracescope: {note}"), err=True)
        code = function(opened, **given)
        for hint in hints(opened, spec, common) if progress != "json" else ():  # then stderr is for programs
            click.echo(printable(f"tracescope: {hint}"), err=True)
        imported_now = file.is_dir() or not is_native(file)
        if imported_now:
            say_mismatch(file, opened.trace)
        lost = say_losses(file, opened.trace.meta.report, allow_truncated) if imported_now else 0
        return highest(code, lost, say_assumptions(spec))

    return command


def highest(*codes: int) -> int:
    """The exit code that wins: an internal error over an interruption over a refusal over a failure over losses."""
    return min(codes, key=_HIGHEST_FIRST.index)
