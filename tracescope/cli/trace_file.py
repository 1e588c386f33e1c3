"""What every command on a trace FILE shares: its options, opening it, and the exit code for what was lost."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from tracescope.cli.import_ import EXIT_LOSSES, say_losses
from tracescope.cli.options import model_from, model_options, pricing_options, say_assumptions
from tracescope.core.errors import printable
from tracescope.models import load_hardware

EXIT_FAILED = 1
_HIGHEST_FIRST = (4, 130, 2, EXIT_FAILED, EXIT_LOSSES, 0)


def file_command(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command FILE, the options to import and to price it, and ``--progress``.

    The decorated function gets an opened trace as its first argument, its own options besides, and returns an exit
    code; losses of an import and assumed config values raise 0 to 3.
    """

    @click.argument("file", type=click.Path(path_type=Path))
    @model_options
    @click.option("--context", type=click.IntRange(0, 1 << 40), help="Tokens cached at step 0, where the file is mute.")
    @pricing_options
    @click.option("--allow-truncated", is_flag=True, help="A file that is cut short is no failure.")
    @click.option("--progress", type=click.Choice(("auto", "json", "none")), default="auto", help="Progress on stderr.")
    @functools.wraps(function)
    def command(
        *,
        file: Path,
        model: str | None,
        weights: str | None,
        lm_head: str | None,
        kv: str | None,
        context: int | None,
        hardware: str | None,
        bandwidth: str | None,
        allow_truncated: bool,
        progress: str,
        **own: Any,
    ) -> int:
        from tracescope.io.native import is_native
        from tracescope.load import ImportOptions, open_trace

        spec = model_from(model, weights, lm_head, kv)
        options = ImportOptions(
            model=spec,
            hardware=None if hardware is None else load_hardware(hardware),
            bandwidth=bandwidth,
            context=context,
            allow_truncated=allow_truncated,
        )
        meter = ProgressMeter(progress)
        opened = open_trace(file, options, meter)
        meter.finish()
        for note in opened.notes:
            click.echo(printable(f"tracescope: {note}"), err=True)
        code = function(opened, **own)
        imported_now = file.is_dir() or not is_native(file)
        lost = say_losses(file, opened.trace.meta.report, allow_truncated) if imported_now else 0
        return highest(code, lost, say_assumptions(spec))

    return command


def highest(*codes: int) -> int:
    """The exit code that wins: an internal error over an interruption over a refusal over a failure over losses."""
    return min(codes, key=_HIGHEST_FIRST.index)


class ProgressMeter:
    """Progress on stderr (``auto``: on a terminal, a percentage that is written over; ``json``: lines; ``none``)."""

    def __init__(self, mode: str) -> None:
        self._as_json = mode == "json"
        self._on_terminal = mode == "auto" and sys.stderr.isatty()
        self._shown = -1

    def __call__(self, done: int, total: int) -> None:
        """Report ``done`` of ``total``; called often, shown when the percentage changes."""
        percent = done * 100 // total if total else 0
        if percent == self._shown:
            return
        self._shown = percent
        if self._as_json:
            line = {"stage": "read", "done": done, "total": total}
            click.echo(msgspec.json.encode(line).decode(), err=True)
        elif self._on_terminal:
            click.echo(f"\rreading {percent} %", nl=False, err=True)

    def finish(self) -> None:
        """Wipe the line of a terminal."""
        if self._on_terminal and self._shown >= 0:
            click.echo("\r\033[K", nl=False, err=True)
