"""Writes small Chrome JSON traces for tests, event by event."""

from pathlib import Path

from tests.kit.raw import read_text
from tracescope.core.raw import RawTrace


def read_events(folder: Path, *events: str) -> RawTrace:
    """Read a trace in object form that holds ``events``, each a JSON text."""
    return read_text(folder, '{"traceEvents": [' + ",\n".join(events) + "]}")
