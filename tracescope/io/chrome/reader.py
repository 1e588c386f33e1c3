"""Reads one Chrome trace JSON file into a RawTrace."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from tracescope.core.columns import U8, U32
from tracescope.core.errors import TraceError
from tracescope.core.raw import RawDevice, RawEvents, RawTrace, RawTrack
from tracescope.core.report import Source
from tracescope.io.chrome.collector import Collector
from tracescope.io.chrome.container import Container
from tracescope.io.chrome.halves import second_half
from tracescope.io.chrome.tables import MAX_TEXT, NO_PROCESS, NO_THREAD, UNNAMED
from tracescope.io.chrome.text import GZIP_MAGIC, TextSource, encoding_of, plain_head
from tracescope.io.importer import Importer, Progress

DEVICE_CATEGORIES: Final = frozenset(
    {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "gpu_user_annotation", "mtia_ccp_events"}
)
"""Source categories whose events run on an accelerator, all dialects, lower-cased."""

EPOCH_2001_NS: Final = 10**18
"""A time beyond it counts from 1970: nobody's uptime reaches 31 years."""
FLOAT_STEP_NS: Final = 250
FLOAT_STEP_FROM_NS: Final = (1 << 50) * 1000
"""From 2^50 µs on a float64 of µs only holds multiples of 0.25 µs."""


def sniff(head: bytes, path: Path) -> bool:
    """Whether the file is JSON at all; whether it is a trace only its whole text tells."""
    if head.startswith(GZIP_MAGIC):
        head = plain_head(head)
    encoding, mark = encoding_of(head)
    text = head[mark:].decode(encoding, "replace").lstrip()
    return text[:1] in ("{", "[")


def read(path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace:
    """The trace in ``path``. A cut file gives what came before the cut, whatever ``allow_truncated`` says (it decides
    the exit code alone). Raises TraceError where the file is no trace, or is past a limit.
    """
    collector = Collector()
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
    seen = collector.seen + container.dropped.total()
    dropped = collector.dropped + container.dropped
    flagged = collector.flagged + container.flagged
    if source.replaced:
        flagged["text_repaired"] += source.replaced
    categories, columns["category"] = _lower_categories(list(collector.categories), columns["category"], flagged)
    rows = RawEvents(**columns)
    devices = _devices(container.metadata, flagged)
    base = container.metadata.get("baseTimeNanoseconds")
    base_time = base if isinstance(base, int) and 0 < base < 1 << 62 else 0
    names = tuple(_shortened(name, flagged) or UNNAMED for name in collector.names)
    earliest = int(rows.start.min()) if len(rows) else 0
    tracks = _tracks(collector, rows, categories, container.metadata)
    _flag_missing_ids(tracks, rows, flagged)
    return RawTrace(
        source=Source(path.name, sha256, source.raw_bytes, "chrome"),
        events=rows,
        names=names,
        categories=categories,
        tracks=tracks,
        details=tuple(collector.details.texts),
        devices=devices,
        metadata=container.metadata,
        seen=seen,
        imported=collector.imported,
        dropped=dict(dropped),
        flagged=dict(flagged),
        truncated_at_byte=container.truncated_at,
        resolution_ns=_resolution(rows, collector.fractional),
        has_absolute_clock=bool(base_time) or earliest > EPOCH_2001_NS,
        base_time_ns=base_time,
    )


MAX_TRACKS: Final = 100_000
MAX_DAMAGED: Final = 100_000
"""Unreadable elements are tried one by one, about 20 µs each: past this, and past half of the file, it is enough."""
MAX_CATEGORIES: Final = 256
MAX_FOREIGN: Final = 10_000
"""So many elements without one phase are enough to say that a list holds no trace events."""

CHROME: Final = Importer("Chrome trace JSON", sniff, read)


def _check_tracks(collector: Collector, path: Path) -> None:
    if len(collector.tracks.keys) > MAX_TRACKS:
        raise TraceError(f"{path.name}: has more than {MAX_TRACKS} tracks (threads and streams)")


def _is_foreign(collector: Collector, container: Container, *, at_least: int) -> bool:
    """Whether the list holds elements, ``at_least`` so many, and none of them says what phase it is."""
    seen = collector.seen + container.dropped.total()
    return seen >= at_least and seen == collector.dropped["no_phase"] + container.dropped.total()


def _shortened(text: str, flagged: Counter[str]) -> str:
    if len(text) <= MAX_TEXT:
        return text
    flagged["text_shortened"] += 1
    return text[:MAX_TEXT]


def _lower_categories(spelled: list[str], codes: U32, flagged: Counter[str]) -> tuple[tuple[str, ...], U8]:
    """Category words lower-cased and numbered again, so that ``Kernel`` and ``kernel`` are one.

    Beyond 255 different words (a writer put something else there) the rest are one category, ``(other)``.
    """
    words: dict[str, int] = {}
    lookup = [words.setdefault(word.lower(), len(words)) for word in spelled]
    if len(words) > MAX_CATEGORIES:
        words = dict.fromkeys([*list(words)[: MAX_CATEGORIES - 1], "(other)"], 0)
        flagged["category_merged"] += sum(code >= MAX_CATEGORIES - 1 for code in lookup)
    return tuple(words), np.minimum(np.array(lookup or [0]), MAX_CATEGORIES - 1).astype(np.uint8)[codes]


def _tracks(
    collector: Collector, rows: RawEvents, categories: tuple[str, ...], metadata: dict[str, Any]
) -> tuple[RawTrack, ...]:
    device_codes = [code for code, word in enumerate(categories) if word in DEVICE_CATEGORIES]
    device_rows = np.flatnonzero(np.isin(rows.category, device_codes))
    first_row = dict(zip(*np.unique(rows.track[device_rows], return_index=True), strict=True))
    rank = _rank(metadata)
    labels = collector.labels
    tracks = []
    for code, (pid, tid) in enumerate(collector.tracks.keys):
        process = labels.get(("process_name", pid, ""), "")
        label = labels.get(("process_labels", pid, ""), "")
        at = first_row.get(code)
        is_device = at is not None or process.startswith("/device:")
        tracks.append(
            RawTrack(
                pid=pid,
                tid=tid,
                process=(f"{process} ({label})" if process and label else process or label) or pid,
                thread=labels.get(("thread_name", pid, tid), "") or tid,
                is_device=is_device,
                device=_device_of(collector, rows, int(device_rows[at]), pid) if at is not None else -1,
                rank=rank,
            )
        )
    return tuple(tracks)


def _device_of(collector: Collector, rows: RawEvents, row: int, pid: str) -> int:
    """The device of a track: what its first device event says, else its pid where that is a small number."""
    text = collector.details.texts[rows.detail[row]]
    if text:
        said = msgspec.json.decode(text).get("device", msgspec.json.decode(text).get("Device Id"))
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


def _flag_missing_ids(tracks: tuple[RawTrack, ...], rows: RawEvents, flagged: Counter[str]) -> None:
    missing = [code for code, track in enumerate(tracks) if track.pid == NO_PROCESS or track.tid == NO_THREAD]
    if missing:
        flagged["missing_track_id"] += int(np.isin(rows.track, missing).sum())


def _resolution(rows: RawEvents, fractional: bool) -> int:
    """The step of the file's clock in ns: 1000 where only whole µs were written, 250 where a float64 lost the rest."""
    if not len(rows):
        return 1
    if not fractional:
        return 1000
    late = bool(rows.start.min() > FLOAT_STEP_FROM_NS)
    return FLOAT_STEP_NS if late and not (rows.start % FLOAT_STEP_NS).any() else 1
