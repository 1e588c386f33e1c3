"""``tracescope requests``: one row a request, and how long they waited and took."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tracescope.analysis.requests import requests_table
from tracescope.cli.numbers import WholeRange
from tracescope.cli.output import emit_json, emit_table
from tracescope.cli.trace_file import file_command
from tracescope.core import units
from tracescope.core.errors import printable

if TYPE_CHECKING:
    from tracescope.load import Opened

_SHOWN = 50


@click.command("requests")
@file_command
@click.option("--limit", type=WholeRange(0), default=_SHOWN, show_default=True, help="Rows to show; JSON has all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def requests_command(opened: "Opened", *, limit: int, as_json: bool) -> int:
    """One row a request: its wait, its time per output token, its latency."""
    table = requests_table(opened.trace, opened.basis)
    if as_json:
        emit_json(table.document())
    elif len(table):
        emit_table(table, limit)
        for line in summary_lines(table.summary):
            click.echo(printable(line))
    else:
        click.echo("this trace does not say which requests were served")
    return 0


def summary_lines(summary: dict[str, Any]) -> Iterator[str]:
    """What all requests add up to, for people: percentiles, means over time, what was not simulated."""
    yield (
        f"{units.plural(summary['count'], 'request')}: {summary['finished']:,} finished, "
        f"{summary['unfinished']:,} unfinished, "
        f"{summary['not_started']:,} never started; {units.plural(summary['generated_tokens'], 'generated token')}"
    )
    for title, key in (
        ("wait", "wait_ns"), ("per output token", "time_per_output_token_ns"), ("latency", "latency_ns"),
    ):  # fmt: skip
        found = summary[key]
        if found is not None:
            parts = [f"{name} {units.duration(value)}" for name, value in found.items()]
            yield f"{title:<18}" + "  ".join(parts)
    over = summary["over_time"]
    if over["queue_by_steps"] is not None:
        keys = ("queue_by_steps", "system_by_steps", "batch_mean")
        waiting, inside, batch = (units.significant(over[key]) for key in keys)
        yield (
            f"{'over time':<18}waiting {waiting} (at most {over['queue_max']:,}), in the system {inside}; "
            f"batch {batch} (at most {over['batch_max']:,})"
        )
    for part in summary["not_simulated"].values():
        yield f"{part['label']:<18}{part['text']}"
