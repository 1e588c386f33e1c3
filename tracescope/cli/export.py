"""``tracescope export``: a table as CSV or JSON, or the trace as Chrome trace JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from tracescope.analysis.collective_waits import collectives_table
from tracescope.analysis.events import events_table
from tracescope.analysis.info import info_document
from tracescope.analysis.layers import layers_table
from tracescope.analysis.requests import requests_table
from tracescope.analysis.steps import steps_table
from tracescope.analysis.table import Table
from tracescope.cli.csv_file import write_csv
from tracescope.cli.trace_file import file_command
from tracescope.core.errors import TraceError, printable
from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.io.atomic import write_atomically

if TYPE_CHECKING:
    from tracescope.load import Opened

TABLES = ("steps", "layers", "events", "requests", "collectives")
_PRICED: Final[dict[str, Callable[[Trace, Basis], Table]]] = {
    "steps": steps_table,
    "layers": layers_table,
    "events": events_table,
    "requests": requests_table,
}


@click.command("export")
@file_command
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="OUT.{csv,json,trace.json}")
@click.option("--table", type=click.Choice(TABLES), help="Which table; without it, steps as CSV, and all as JSON.")
@click.option("--raw", is_flag=True, help="CSV with names as they are, also those that a spreadsheet would run.")
def export_command(opened: "Opened", *, output: Path, table: str | None, raw: bool) -> int:
    """Tables as CSV or JSON, or, for a name that ends with .trace.json, the trace for Perfetto and other viewers."""
    from tracescope.io.chrome_export import write_chrome

    name = output.name.lower()
    if name.endswith(".trace.json"):
        if table is not None:
            raise TraceError("a .trace.json holds the trace, no table", action="Leave out --table, or write a .csv.")
        write_chrome(output, opened.trace, opened.basis)
    elif name.endswith(".csv"):
        write_csv(output, _table(opened, table or "steps"), raw=raw)
    elif name.endswith(".json"):
        chosen = TABLES if table is None else (table,)
        document = {one: _table(opened, one).document() for one in chosen}
        write_json(output, document if table else {"info": info_document(opened.trace, opened.basis), **document})
    else:
        raise TraceError(f"{output.name}: no format has this ending", action="Use .csv, .json or .trace.json.")
    click.echo(printable(f"wrote {output}"))
    return 0


def _table(opened: "Opened", name: str) -> Table:
    if name == "collectives":
        return collectives_table(opened.trace)
    return _PRICED[name](opened.trace, opened.basis)


def write_json(path: Path, document: object) -> None:
    """Write one JSON document; TraceError where that fails."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
