"""Reads trace files of any format for tests, and checks on every read what must hold for any file."""

from pathlib import Path
from typing import Any

from tracescope.core.raw import RawCategory, RawTrace
from tracescope.io import reader_for


def read(path: Path) -> RawTrace:
    """The trace in ``path``; every element of it is accounted for and every index points into its table."""
    raw = reader_for(path).read(path)
    assert raw.seen == raw.imported + sum(raw.dropped.values())
    events = raw.events
    assert (events.duration >= 0).all()
    if len(events):
        assert events.name.max() < len(raw.names)
        assert set(events.category.tolist()) <= set(RawCategory)
        assert events.track.max() < len(raw.tracks)
        assert events.detail.max() < len(raw.details)
    assert raw.details[0] == ""
    assert raw.source.bytes == path.stat().st_size
    return raw


def read_text(folder: Path, text: str | bytes, name: str = "trace.json") -> RawTrace:
    """Write ``text`` (bytes as they are) to a file in ``folder`` and read that."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path)


def slices(raw: RawTrace) -> list[dict[str, Any]]:
    """One dict (name, start_ns, dur_ns) a slice, in the order of the file."""
    e, kept = raw.events, ~raw.of(RawCategory.INSTANT)
    columns = zip(e.name[kept].tolist(), e.start[kept].tolist(), e.duration[kept].tolist(), strict=True)
    return [{"name": raw.names[n], "start_ns": s, "dur_ns": d} for n, s, d in columns]


def rows(raw: RawTrace, *kinds: RawCategory) -> list[tuple[str, int, int]]:
    """(name, start, duration) of the events of ``kinds``, all where none is given."""
    e = raw.events
    keep = raw.of(*kinds) if kinds else [True] * len(e)
    listed = zip(e.name.tolist(), e.start.tolist(), e.duration.tolist(), keep, strict=True)
    return [(raw.names[name], start, duration) for name, start, duration, kept in listed if kept]
