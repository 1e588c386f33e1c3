"""Which track a row belongs to: a stream of a GPU, or a thread of a process."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tracescope.core.raw import RawTrack
from tracescope.io.collector import NO_PROCESS, NO_THREAD
from tracescope.io.database import MISSING
from tracescope.io.nsys.schema import MASK_24, Head

DEVICE: Final = 0
HOST: Final = 1
"""First element of a track's key: (DEVICE, device, stream, globalPid, context) or (HOST, globalTid)."""

NO_STREAM: Final = frozenset({MISSING, -1, 0xFFFF_FFFF})


def process_of(global_id: int) -> int:
    """The process id inside a globalPid or globalTid (bits 24 to 47)."""
    return global_id >> 24 & MASK_24


def make_tracks(keys: Iterable[tuple[int, ...]], head: Head) -> tuple[RawTrack, ...]:
    """The tracks of ``keys``, in their order. Streams of one number on one GPU differ by process and context."""
    keys = list(keys)
    ranks = _ranks(keys, head)
    streams = Counter((gpu_of(key, head), key[2]) for key in keys if key[0] == DEVICE)
    tracks = (
        _stream(key, head, shared=streams[gpu_of(key, head), key[2]] > 1) if key[0] == DEVICE else _thread(key, head)
        for key in keys
    )
    return tuple(replace(track, rank=ranks.get(_global_pid(key), -1)) for track, key in zip(tracks, keys, strict=True))


def _global_pid(key: tuple[int, ...]) -> int:
    """The globalPid of a track's process, MISSING where it names none."""
    if key[0] == DEVICE:
        return key[3]
    return key[1] & ~MASK_24 if key[1] != MISSING else MISSING


def _ranks(keys: Iterable[tuple[int, ...]], head: Head) -> dict[int, int]:
    """The rank of each process (by globalPid) that works on GPUs of its own, where several do; else none.

    Processes are numbered by their first GPU: that is how launchers hand GPUs out.
    """
    gpus: dict[int, set[int]] = {}
    for key in keys:
        if key[0] == DEVICE and key[3] != MISSING:
            gpus.setdefault(key[3], set()).add(gpu_of(key, head))
    used = [gpu for own in gpus.values() for gpu in own]
    if len(gpus) < 2 or len(set(used)) < len(used) or min(used) < 0:
        return {}
    return {pid: rank for rank, pid in enumerate(sorted(gpus, key=lambda pid: min(gpus[pid])))}


def gpu_of(key: tuple[int, ...], head: Head) -> int:
    """The GPU's id in the file, -1 where the row names none. A process may number the GPUs it sees in its own way."""
    _, device, _, global_pid, _ = key
    if device < 0 or device > 1 << 20:
        return -1
    return head.gpu_of.get((process_of(global_pid), device), device) if global_pid != MISSING else device


def _stream(key: tuple[int, ...], head: Head, *, shared: bool) -> RawTrack:
    _, _, stream, global_pid, context = key
    gpu = gpu_of(key, head)
    name = next((d.name for d in head.devices if d.device == gpu), "")
    tid = "(no stream)" if stream in NO_STREAM else str(stream)
    if shared:
        process = f"process {process_of(global_pid)}" if global_pid != MISSING else ""
        which = [process] if process else []
        which += [f"context {context}"] if context != MISSING else []
        tid += f" ({', '.join(which)})" if which else ""
    process = "GPU" if gpu < 0 else f"GPU {gpu}"
    return RawTrack(
        pid=str(gpu) if gpu >= 0 else NO_PROCESS,
        tid=tid,
        process=f"{process} · {name}" if name else process,
        thread=tid if stream in NO_STREAM else f"stream {tid}",
        is_device=True,
        device=gpu,
    )


def _thread(key: tuple[int, ...], head: Head) -> RawTrack:
    global_tid = key[1]
    if global_tid == MISSING:
        return RawTrack(pid=NO_PROCESS, tid=NO_THREAD)
    process, thread = process_of(global_tid), global_tid & MASK_24
    name = head.processes.get(global_tid - thread, "")
    label = head.threads.get(global_tid, "")
    return RawTrack(
        pid=str(process),
        tid=str(thread),
        process=f"{name} ({process})" if name else f"process {process}",
        thread=f"{label} ({thread})" if label else f"thread {thread}",
    )
