"""Reads one Chrome trace JSON file into a RawTrace."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.arguments import recorded_arguments
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawCounter, RawDevice, RawEvents, RawTrace, RawTrack
from tracescope.core.report import Source
from tracescope.io.chrome.collector import JsonEvents
from tracescope.io.chrome.container import Container
from tracescope.io.chrome.halves import second_half
from tracescope.io.chrome.text import TextSource, encoding_of
from tracescope.io.collector import EPOCH_2001_NS, MAX_TRACKS, NO_PROCESS, NO_THREAD
from tracescope.io.importer import Importer, Progress
from tracescope.io.places import Place, Role, places_of
from tracescope.io.words import ON_DEVICE

FLOAT_STEP_NS: Final = 250
FLOAT_STEP_FROM_NS: Final = (1 << 50) * 1000
"""From 2^50 µs on a float64 of µs only holds multiples of 0.25 µs."""


def sniff(head: bytes, path: Path) -> bool:
    """Whether the file is JSON at all; whether it is a trace only its whole text tells."""
    encoding, mark = encoding_of(head)
    text = head[mark:].decode(encoding, "replace").lstrip()
    return text[:1] in ("{", "[")


def read(path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace:
    """The trace in ``path``. A cut file gives what came before the cut, whatever ``allow_truncated`` says (it decides
    the exit code alone). Raises TraceError where the file is no trace, or is past a limit.
    """
    collector = JsonEvents()
    with TextSource(path, progress) as source, second_half(source) as half:
        container = Container(source)
        if half is not None:
            container.split_at = half.low
            container.hand_over = partial(half.join, collector, container)
        for events in container.batches():
            collector.add(events)
            if _is_foreign(collector, container, at_least=MAX_FOREIGN):
                break
            if container.dropped.total() > max(MAX_DAMAGED, collector.seen):
                raise TraceError(f"{path.name}: damaged: more than half of its events cannot be read")
            _check_tracks(collector, path)
        _check_tracks(collector, path)  # with those of the other half
        nothing = _is_foreign(collector, container, at_least=1)
        if not container.has_events or nothing:
            raise TraceError(
                f"{path.name}: not a trace: this JSON has no "
                + ("event with a phase (ph)" if container.has_events else "traceEvents list"),
                action="Open the *.json or *.json.gz file that torch.profiler's export_chrome_trace wrote.",
            )
        sha256 = source.sha256
    columns = collector.finish()
    collector.seen += container.dropped.total()
    collector.dropped += container.dropped
    collector.flagged.update(container.flagged)
    collector.flag("text_repaired", source.replaced)
    collector.flag("trailing_text", int(source.trailing))
    collector.flag("samples_not_read", sum(_size(container.metadata.get(key)) for key in ("samples", "stackFrames")))
    places = _places(collector)
    devices = _devices(container.metadata, collector.flagged) or _named_devices(places)
    base_time = _base_time(container.metadata)
    tracks = _tracks(collector, columns, places, container.metadata)
    summaries = [code for code, place in enumerate(places) if place.role in (Role.SUMMARY, Role.STEPS)]
    rows = collector.events(columns, tracks, base_time_ns=base_time, summaries=summaries)
    _flag_missing_ids(tracks, rows, collector)
    earliest = rows.first_start
    return collector.trace(
        Source(path.name, sha256, source.raw_bytes, "chrome"),
        rows,
        tracks,
        devices=devices,
        counters=_counters(collector, tracks),
        metadata=container.metadata,
        truncated_at_byte=container.truncated_at,
        resolution_ns=_resolution(rows, collector.fractional),
        has_absolute_clock=bool(base_time) or earliest > EPOCH_2001_NS,
        base_time_ns=base_time,
    )


MAX_DAMAGED: Final = 100_000
"""Unreadable elements are tried one by one, about 20 µs each: past this, and past half of the file, it is enough."""
MAX_FOREIGN: Final = 10_000
"""So many elements without one phase are enough to say that a list holds no trace events."""

CHROME: Final = Importer(
    "Chrome trace JSON",
    (".json", ".trace"),
    "the PyTorch profiler (vLLM, SGLang, Hugging Face), JAX and TPU profiles, Ascend `trace_view.json`, Intel XPU",
    sniff,
    read,
    unzips=True,
)


def _check_tracks(collector: JsonEvents, path: Path) -> None:
    if len(collector.tracks) > MAX_TRACKS:
        raise TraceError(f"{path.name}: has more than {MAX_TRACKS} tracks (threads and streams)")


def _is_foreign(collector: JsonEvents, container: Container, *, at_least: int) -> bool:
    """Whether the list holds elements, ``at_least`` so many, and none of them says what phase it is."""
    seen = collector.seen + container.dropped.total()
    return seen >= at_least and seen == collector.dropped["no_phase"] + container.dropped.total()


def _places(collector: JsonEvents) -> list[Place]:
    """What each track is by its names."""
    labels = collector.labels
    return places_of(
        [
            (pid, labels.get(("process_name", pid, ""), ""), labels.get(("thread_name", pid, tid), ""))
            for pid, tid in collector.tracks
        ]
    )


def _tracks(
    collector: JsonEvents, columns: dict[str, NDArray[Any]], places: list[Place], metadata: dict[str, Any]
) -> tuple[RawTrack, ...]:
    device_words = [code for word, code in collector.words.items() if str(word).lower() in ON_DEVICE]
    device_rows = np.flatnonzero(np.isin(columns["category"], device_words))
    first_row = dict(zip(*np.unique(columns["track"][device_rows], return_index=True), strict=True))
    rank = _rank(metadata)
    labels = collector.labels
    tracks = []
    for code, ((pid, tid), place) in enumerate(zip(collector.tracks, places, strict=True)):
        process = labels.get(("process_name", pid, ""), "")
        label = labels.get(("process_labels", pid, ""), "")
        at = first_row.get(code)
        device = _device_of(collector, int(columns["detail"][device_rows[at]]), pid) if at is not None else -1
        tracks.append(
            RawTrack(
                pid=pid,
                tid=tid,
                process=(f"{process} ({label})" if process and label else process or label) or pid,
                thread=labels.get(("thread_name", pid, tid), "") or tid,
                is_device=at is not None or place.device >= 0,
                device=device if device >= 0 else place.device,
                rank=rank if rank >= 0 else place.rank,
                marks_steps=place.role is Role.STEPS,
            )
        )
    return tuple(tracks)


def _counters(collector: JsonEvents, tracks: tuple[RawTrack, ...]) -> tuple[RawCounter, ...]:
    """The counters, each of the device or of the process that its events name."""
    processes = {pid: text for (event, pid, _), text in collector.labels.items() if event == "process_name"}
    devices = {track.pid: track.device for track in tracks if track.is_device and track.device >= 0}
    return collector.samples.counters(processes, devices)


def _device_of(collector: JsonEvents, detail: int, pid: str) -> int:
    """The device of a track: what its first device event says, else its pid where that is a small number."""
    recorded = recorded_arguments(collector.details.texts[detail]) or {}
    said = recorded.get("device", recorded.get("Device Id"))
    if isinstance(said, int) and said >= 0:
        return said
    return int(pid) if pid.isdigit() and len(pid) <= 3 else -1


def _rank(metadata: dict[str, Any]) -> int:
    info = metadata.get("distributedInfo")
    rank = info.get("rank") if isinstance(info, dict) else None
    if isinstance(rank, str) and rank.isdigit() and len(rank) < 10:
        return int(rank)
    return rank if isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < 10**9 else -1


def _devices(metadata: dict[str, Any], flagged: Counter[str]) -> tuple[RawDevice, ...]:
    properties = metadata.get("deviceProperties")
    devices: dict[int, RawDevice] = {}
    for entry in properties if isinstance(properties, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), int):
            continue
        memory = entry.get("totalGlobalMem")
        device = RawDevice(
            device=entry["id"],
            name=str(entry.get("name") or ""),
            memory_bytes=memory if isinstance(memory, int) and memory > 0 else None,
        )
        if device.device in devices:
            flagged["duplicate_device"] += 1
        devices.setdefault(device.device, device)
    return tuple(devices.values())


def _size(value: Any) -> int:
    """How many entries a list or an object of the header has."""
    return len(value) if isinstance(value, list | dict) else 0


def _base_time(metadata: dict[str, Any]) -> int:
    """The wall clock of the file's 0, ns since 1970, as a number or as its text; 0 where there is none."""
    base = metadata.get("baseTimeNanoseconds")
    if isinstance(base, str) and base.strip().isdecimal() and len(base) < 30:
        base = int(base)
    return base if isinstance(base, int) and 0 < base < 1 << 62 else 0


def _named_devices(places: list[Place]) -> tuple[RawDevice, ...]:
    """Devices of which no more is known than what their processes are called."""
    return tuple({p.device: RawDevice(p.device, p.name) for p in reversed(places) if p.device >= 0}.values())[::-1]


def _flag_missing_ids(tracks: tuple[RawTrack, ...], rows: RawEvents, collector: JsonEvents) -> None:
    missing = [code for code, track in enumerate(tracks) if track.pid == NO_PROCESS or track.tid == NO_THREAD]
    if missing:
        collector.flag("missing_track_id", int(np.isin(rows.track, missing).sum()))


def _resolution(rows: RawEvents, fractional: bool) -> int:
    """The step of the file's clock in ns: 1000 where only whole µs were written, 250 where a float64 lost the rest."""
    if not len(rows):
        return 1
    if not fractional:
        return 1000
    late = bool(rows.first_start > FLOAT_STEP_FROM_NS)
    return FLOAT_STEP_NS if late and not (rows.start % FLOAT_STEP_NS).any() else 1
