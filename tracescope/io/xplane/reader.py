"""Reads one XSpace (``*.xplane.pb``) into a RawTrace, without any library for it."""

import hashlib
import os
from pathlib import Path
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.core.raw import RawDevice, RawTrace, RawTrack
from tracescope.core.report import Source
from tracescope.io.collector import EPOCH_2001_NS, SPAN_LIMIT_NS, UNNAMED, Collector, Rows
from tracescope.io.importer import Importer, Progress
from tracescope.io.perfetto.wire import WireError, parse
from tracescope.io.places import Role, places_of
from tracescope.io.xplane.xspace import PLANES, Line, Plane, times_of

MAX_BYTES: Final = 2 << 30
"""The file is held as a whole."""
PS: Final = 1000
_FIRST: Final = (b"/device:", b"/host:", b"Task Environment", b"Host CPUs", b"#Chip", b"/device_")


def sniff(head: bytes, path: Path) -> bool:
    """Whether the file begins with a plane whose name is one of a profiler's, or should by its name."""
    return XPLANE.named(path) or (head[:1] == bytes([PLANES << 3 | 2]) and any(name in head[:64] for name in _FIRST))


def read(path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace:
    """The trace in ``path``. TraceError where it is cut or damaged (``allow_truncated`` changes nothing: what its names
    mean stands at the end of each plane), too large, or holds no event.
    """
    try:
        if os.path.getsize(path) > MAX_BYTES:
            raise TraceError(f"{path.name}: more than {MAX_BYTES >> 30} GiB", action="Record a shorter period.")
        data = path.read_bytes()
    except OSError as error:
        raise TraceError(f"{path.name}: cannot be read: {error.strerror or error}") from error
    collector = Collector()
    labels: list[tuple[str, str, str]] = []
    try:
        planes = [value for value in parse(data).get(PLANES, ()) if isinstance(value, bytes)]
        for at, packed in enumerate(planes):
            plane = Plane(packed)
            for line in map(Line, plane.lines):
                _read_line(collector, plane, line, labels)
            if progress is not None:
                progress(len(data) * (at + 1) // len(planes), len(data))
    except WireError as error:
        raise TraceError(
            f"{path.name}: damaged, incomplete or no XPlane trace ({error})", action="Copy it or record it again."
        ) from error
    columns = collector.taken()
    if not len(columns["start"]):
        raise TraceError(f"{path.name}: an XPlane trace without events", action="Record while the device works.")
    places = places_of(labels)
    tracks = tuple(
        RawTrack(
            pid=name,
            tid=tid,
            process=name,
            thread=thread,
            is_device=place.device >= 0,
            device=place.device,
            rank=place.rank,
            marks_steps=place.role is Role.STEPS,
        )
        for ((name, tid), (_, _, thread), place) in zip(collector.tracks, labels, places, strict=True)
    )
    summaries = [code for code, place in enumerate(places) if place.role in (Role.SUMMARY, Role.STEPS)]
    events = collector.events(columns, tracks, summaries=summaries)
    named = {place.device: RawDevice(place.device, place.name) for place in places if place.device >= 0}
    return collector.trace(
        Source(path.name, hashlib.sha256(data).hexdigest(), len(data), "xplane"),
        events,
        tracks,
        devices=tuple(named[device] for device in sorted(named)),
        has_absolute_clock=events.first_start > EPOCH_2001_NS,
    )


XPLANE: Final = Importer(
    "XPlane protobuf", (".xplane.pb",), "JAX and XLA profilers, on TPUs and GPUs; no library needed", sniff, read
)


def _read_line(collector: Collector, plane: Plane, line: Line, labels: list[tuple[str, str, str]]) -> None:
    """The events of one line. Times finer than a ns are rounded half to even, and counted."""
    if not line.events:
        return
    thread = line.name or f"line {line.number}"
    key = (plane.name, str(line.number) if not plane.name.startswith("/device:") else thread)
    if key not in collector.tracks:
        labels.append((plane.name, plane.name, thread))
    track = collector.tracks[key]
    rows = Rows("start", "end", "name", "category", "track", "correlation", "detail")
    finer = 0
    for packed in line.events:
        event = parse(packed)
        named = plane.named(event)
        offset, lasts = times_of(event)
        finer += bool(offset % PS or lasts % PS)
        start = line.start_ns + round_half_even(offset)
        said: dict[str, Any] = named.said | plane.said(event)
        correlation = said.pop("correlation_id", -1)
        row = (collector.names[named.name or UNNAMED], collector.words[""], track)
        known = isinstance(correlation, int) and 0 < correlation < SPAN_LIMIT_NS
        times = (_bounded(start), _bounded(start + round_half_even(lasts)))
        rows.add(*times, *row, correlation if known else -1, collector.details.of(said))
    collector.flag("sub_nanosecond", finer)
    columns = rows.arrays()
    collector.add_spans(
        columns["start"],
        columns["end"],
        name=columns["name"],
        category=columns["category"],
        track=columns["track"],
        detail=columns["detail"],
        correlation=columns["correlation"],
    )


def round_half_even(ps: int) -> int:
    """Whole ns of ``ps``."""
    whole, rest = divmod(ps, PS)
    return whole + (rest > PS // 2 or (rest == PS // 2 and whole % 2 == 1))


def _bounded(time: int) -> int:
    """A time that is none is past the limit, so that it is dropped and counted."""
    return time if abs(time) < SPAN_LIMIT_NS else SPAN_LIMIT_NS
