"""Printing results: one JSON document, or a table for people, on stdout and nothing else there."""

import sys
from typing import Any

import click
import msgspec

from tracescope.analysis.table import Cell, Table
from tracescope.core import units
from tracescope.core.errors import printable


def emit_json(document: Any) -> None:
    """Write one JSON document and a newline to stdout; dataclasses, dicts, lists and numbers are accepted."""
    try:
        data = msgspec.json.encode(document)
    except UnicodeEncodeError:  # a file name that is not UTF-8 holds surrogates, which no JSON may
        data = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(document)))
    text = msgspec.json.format(data, indent=2) + b"\n"
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        click.echo(text.decode(), nl=False)
        return
    sys.stdout.flush()
    binary.write(text)  # JSON is UTF-8 whatever the terminal's encoding


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value


def emit_table(table: Table, limit: int | None = None) -> None:
    """Write the titled columns of ``table`` as aligned text, numbers to the right; at most ``limit`` rows."""
    columns = [c for c in table.columns if c.title]
    shown = len(table) if limit is None else min(limit, len(table))
    heads = [f"{c.title} {c.unit}".strip() for c in columns]
    cells = [[_text(c.cell(i)) for i in range(shown)] for c in columns]
    widths = [max([len(head), *map(len, column)]) for head, column in zip(heads, cells, strict=True)]
    left = [any(isinstance(c.cell(i), str) for i in range(min(shown, 50))) for c in columns]
    for row in [heads, *([column[i] for column in cells] for i in range(shown))]:
        parts = [
            text.ljust(width) if flush_left else text.rjust(width)
            for text, width, flush_left in zip(row, widths, left, strict=True)
        ]
        click.echo("  ".join(parts).rstrip())
    if shown < len(table):
        click.echo(f"({units.plural(len(table) - shown, 'more row')}; --json lists them all)")


def _text(cell: Cell) -> str:
    if cell is None:
        return units.MISSING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.4g}"
    if isinstance(cell, str):
        return printable(cell)
    return printable(str(cell))
