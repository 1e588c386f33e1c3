"""``tracescope steps``: one row a step."""

from typing import TYPE_CHECKING

import click

from tracescope.analysis.steps import steps_table
from tracescope.cli.durations import parse_deadline
from tracescope.cli.heading import heading
from tracescope.cli.output import emit_json, emit_table
from tracescope.cli.trace_file import file_command

if TYPE_CHECKING:
    from tracescope.load import Opened


@click.command("steps")
@file_command
@click.option("--deadline", metavar="TIME", help="Mark steps that take longer from start to next start, such as 50ms.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def steps_command(opened: "Opened", *, deadline: str | None, as_json: bool) -> int:
    """One row a step: what it read, its floors, what it took."""
    limit = None if deadline is None else parse_deadline(deadline)
    table = steps_table(opened.trace, opened.basis, limit)
    if as_json:
        emit_json(table.document())
    elif len(table):
        click.echo(heading(opened, limit))
        emit_table(table)
    else:
        click.echo("no step was recognised in this trace")
    return 0
