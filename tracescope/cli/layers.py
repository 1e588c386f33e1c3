"""``tracescope layers``: op by layer, largest gap first."""

from typing import TYPE_CHECKING

import click

from tracescope.analysis.layers import BY, layers_table
from tracescope.analysis.table import Table
from tracescope.cli.heading import heading
from tracescope.cli.numbers import Whole, WholeRange
from tracescope.cli.output import emit_json, emit_table
from tracescope.cli.trace_file import file_command
from tracescope.core import units

if TYPE_CHECKING:
    from tracescope.load import Opened

_SHOWN = 40


@click.command("layers")
@file_command
@click.option("--by", type=click.Choice(BY), default="layer", help="One row an op and layer, an op, or a category.")
@click.option("--step", type=Whole(), help="One step (0-based); without it, the decode steps after warm-up together.")
@click.option("--limit", type=WholeRange(0), default=_SHOWN, show_default=True, help="Rows to show; JSON has all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def layers_command(opened: "Opened", *, by: str, step: int | None, limit: int, as_json: bool) -> int:
    """Where the time went: every op in every layer, what it took, its floor and the gap between."""
    table = layers_table(opened.trace, opened.basis, step, by)
    if as_json:
        emit_json(table.document())
    elif table.summary["steps_counted"]:
        click.echo(heading(opened))
        emit_table(table, limit)
        click.echo(sum_line(table))
    else:
        click.echo("no decode step was recognised in this trace; --step N takes any other step")
    return 0


def sum_line(table: Table) -> str:
    """The sum under the rows, spelled out: gaps, time without a floor and idle time are the steps less their floor."""
    s = table.summary
    steps = units.plural(s["steps_counted"], "step")
    if s["floor_ops_ns"] is None:
        return f"{steps}: {units.duration(s['step_ns'])}, idle {units.duration(s['idle_ns'])}; no floor is known"
    unknown = f" + unknown {s['unknown_ns']:,}" if s["unknown_ns"] else ""
    return (
        f"{steps}: gaps {s['gap_ns'] - s['idle_ns']:,}{unknown} + idle {s['idle_ns']:,} = "
        f"{s['step_ns']:,} - floor {s['floor_ops_ns']:,} ns; the gap is {units.duration(s['gap_ns'])}"
    )
