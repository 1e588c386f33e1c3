"""Printing results: one JSON document, or a table for people, on stdout and nothing else there."""

import sys
from typing import Any

import click
import msgspec

from tracescope.analysis.table import Table
from tracescope.cli.text_table import table_lines, terminal_width


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
    """Write the titled columns of ``table`` as aligned text that fits the terminal; at most ``limit`` rows."""
    for line in table_lines(table, limit, terminal_width()):
        click.echo(line)
