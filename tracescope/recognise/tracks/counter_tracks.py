"""Counters that were measured along with a trace become tracks behind those of its events."""

import numpy as np

from tracescope.core.category import TrackKind
from tracescope.core.raw import RawTrace
from tracescope.core.samples import SampleTable
from tracescope.core.trace import Track


def counter_tracks(raw: RawTrace, tracks: tuple[Track, ...], base: int) -> tuple[tuple[Track, ...], SampleTable]:
    """``tracks`` and one more for each counter of ``raw``, and the samples relative to ``base`` (ns)."""
    if not raw.counters:
        return tracks, SampleTable.empty()
    processes = {track.device: track.process for track in raw.tracks if track.is_device}
    described = [
        Track(
            TrackKind.COUNTER,
            c.name,
            c.process or processes.get(c.device, f"device {c.device}" if c.device >= 0 else "counters"),
            c.device,
        )
        for c in raw.counters
    ]
    order = [np.argsort(c.time, kind="stable") for c in raw.counters]
    return (*tracks, *described), SampleTable(
        track=np.repeat(np.arange(len(described)) + len(tracks), [len(o) for o in order]).astype(np.uint32),
        time=np.concatenate([c.time[o] for c, o in zip(raw.counters, order, strict=True)]) - base,
        value=np.concatenate([c.value[o] for c, o in zip(raw.counters, order, strict=True)]),
    )
