"""``tracescope events``: single events as rows."""

from typing import TYPE_CHECKING

import click

from tracescope.analysis.events import EventFilter, events_table
from tracescope.cli.heading import heading
from tracescope.cli.numbers import Whole, WholeRange
from tracescope.cli.output import emit_json, emit_table
from tracescope.cli.trace_file import file_command
from tracescope.core.category import Category

if TYPE_CHECKING:
    from tracescope.load import Opened


@click.command("events")
@file_command
@click.option("--step", type=Whole(), help="Only events of this step (0-based).")
@click.option("--layer", type=Whole(), help="Only events of this layer (0-based).")
@click.option("--category", type=click.Choice([c.label for c in Category]), help="Only events of this category.")
@click.option("--limit", type=WholeRange(0), help="At most so many rows; without it, all.")
@click.option("--instants", is_flag=True, help="Moments that were recorded as such, instead of slices.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def events_command(
    opened: "Opened",
    *,
    step: int | None,
    layer: int | None,
    category: str | None,
    limit: int | None,
    instants: bool,
    as_json: bool,
) -> int:
    """Single events in order of time: what each is, what it moved, its share of the step and its floor."""
    table = events_table(opened.trace, opened.basis, EventFilter(step, layer, category, limit, instants))
    if as_json:
        emit_json(table.document())
    else:
        click.echo(heading(opened))
        emit_table(table)
    return 0
