"""Progress of long work on stderr: JSON lines, or one line of a terminal that is written over."""

import sys

import click
import msgspec

MODES = ("auto", "json", "none")


class ProgressMeter:
    """Says how far reading is (``auto``: on a terminal, a percentage; ``json``: one line a change; ``none``).

    Called with (done, total) it reports the stage ``read``; a stage is shown again when its percentage changes.
    """

    def __init__(self, mode: str) -> None:
        self._as_json = mode == "json"
        self._on_terminal = mode == "auto" and sys.stderr.isatty()
        self._shown: tuple[str, int] | None = None

    def __call__(self, done: int, total: int) -> None:
        """Report ``done`` of ``total`` bytes read; called often."""
        self.say("read", done, total)

    def say(self, stage: str, done: int, total: int) -> None:
        """Report ``done`` of ``total`` of any stage."""
        percent = done * 100 // total if total else 0
        if (stage, percent) == self._shown:
            return
        self._shown = stage, percent
        if self._as_json:
            line = {"stage": stage, "done": done, "total": total}
            click.echo(msgspec.json.encode(line).decode(), err=True)
        elif self._on_terminal:
            click.echo(f"\r\033[K{stage} {percent} %", nl=False, err=True)

    def finish(self) -> None:
        """Wipe the line of a terminal."""
        if self._on_terminal and self._shown is not None:
            click.echo("\r\033[K", nl=False, err=True)
