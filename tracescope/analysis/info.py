"""What is in a trace: counts, source, model, machine, the import report and how busy each device was."""

from typing import Any

import numpy as np

from tracescope.analysis.collective_waits import collectives_table
from tracescope.analysis.step_workload import machine_of, ranks_of
from tracescope.analysis.work_sums import grouped, unknown_work, work_sums
from tracescope.core.category import Category, EventFlag, TrackKind
from tracescope.core.columns import I64
from tracescope.core.hardware import Basis
from tracescope.core.ownership import owned_pieces, union_of
from tracescope.core.report import ImportReport
from tracescope.core.trace import Device, Trace
from tracescope.core.work_table import UNKNOWN

UNCLASSIFIED_SHARE = 0.005
"""Above half a percent of device time, unrecognised kernels are worth a word."""


def device_events(trace: Trace) -> I64:
    """Ids of every event that counts as the device's, int64; of a CPU run, the operators inside its steps."""
    on_device = trace.on_device[trace.event_lane]
    if trace.nested:
        on_device = on_device & (trace.events.step >= 0)
    return np.flatnonzero(on_device)


def info_document(trace: Trace, basis: Basis, format_version: int | None = None) -> dict[str, Any]:
    """The ``info`` document; ``format_version`` is that of the native file, None for a foreign one."""
    meta = trace.meta
    ids = device_events(trace)
    layers = trace.events.layer[ids]
    machine = machine_of(trace, basis)
    start, end = trace.span
    instants = trace.events.flagged(EventFlag.INSTANT)
    return {
        "format_version": format_version,
        "created_by": meta.created_by or None,
        "source": {
            "name": meta.source.name or None,
            "sha256": meta.source.sha256 or None,
            "bytes": meta.source.bytes if meta.source.name else None,
            "importer": meta.source.importer or None,
        },
        "profile": meta.profile or None,
        "seed": meta.seed,
        "model": meta.model.name if meta.model else None,
        "hardware": machine.name if machine else None,
        "ranks": ranks_of(trace),
        "bandwidth_bytes_per_s": basis.bandwidth_bytes_per_s,
        "bandwidth_source": basis.bandwidth_source,
        "events": len(trace.events) - instants,
        "instants": instants,
        "counters": sum(track.kind is TrackKind.COUNTER for track in trace.tracks),
        "counter_samples": len(trace.samples),
        "events_by_track_kind": _events_by_track_kind(trace),
        "tracks": len(trace.tracks),
        "steps": len(trace.steps),
        "decode_steps": int(trace.steps.decode.sum()),
        "layers": len(np.unique(layers[layers >= 0])),
        "requests": len(trace.requests),
        "span_ns": end - start,
        "start_ns": meta.base_ns + start if len(trace.events) else None,
        "resolution_ns": meta.resolution_ns,
        "categories": _categories(trace, ids),
        "report": report_document(meta.report),
        "devices": [_device(trace, ids, device) for device in _devices(trace, ids)],
        "collectives": collectives_table(trace).document(),
        "assumptions": list(meta.assumptions),
        "notes": [*meta.notes, *basis.notes],
    }


def report_document(report: ImportReport) -> dict[str, Any]:
    """The import report with its JSON names."""
    return {
        "seen": report.seen,
        "imported": report.imported,
        "dropped": dict(report.dropped),
        "flagged": dict(report.flagged),
        "truncated_at_byte": report.truncated_at_byte,
        "inferred": [{"what": i.what, "rule": i.rule, "confidence": i.confidence} for i in report.inferred],
        "unclassified_ns": report.unclassified_ns,
    }


def _events_by_track_kind(trace: Trace) -> dict[str, int]:
    """How many events, instants aside, lie on tracks of each kind, host threads and annotations too."""
    kind = np.array([track.kind for track in trace.tracks], np.int64)[trace.lanes.track]
    slices = (trace.events.flags & EventFlag.INSTANT) == 0
    count = np.bincount(kind[trace.event_lane[slices]], minlength=len(TrackKind)) if len(kind) else [0] * len(TrackKind)
    return {k.label: int(count[k]) for k in TrackKind if count[k]}


def _categories(trace: Trace, ids: I64) -> dict[str, Any]:
    events = trace.events
    category = events.category[ids]
    roles = int(np.bitwise_or.reduce(events.roles[ids])) if len(ids) else 0
    work = work_sums(trace, ids, grouped(category.astype(np.int64), len(Category)), roles)
    busy = _busy_by_category(trace, ids)
    # What no rule knows is not known to move nothing.
    nothing = unknown_work(trace, ids[category == Category.OTHER])
    found: dict[str, Any] = {}
    for kind in Category:
        known = not (kind is Category.OTHER and nothing)
        found[kind.label] = {
            "events": int((category == kind).sum()),
            "busy_ns": int(busy[kind]),
            "weight_read_bytes": _known(work.weight_read[kind]) if known else None,
            "kv_read_bytes": _known(work.kv_read[kind]) if known else None,
            "kv_append_bytes": _known(work.kv_append[kind]) if known else None,
        }
    return found


def _busy_by_category(trace: Trace, ids: I64) -> I64:
    """Time in which events of each category ran, ns, one a category. Of operators, which nest, the innermost counts,
    so that the categories together took no longer than the device was busy.
    """
    events = trace.events
    category = events.category[ids].astype(np.int64)
    if not trace.nested:
        each = [ids[category == kind] for kind in Category]
        return np.array([union_of(events.start[e], events.end[e]) for e in each], np.int64)
    order = np.argsort(events.start[ids], kind="stable")
    ids, category = ids[order], category[order]
    lane = trace.event_lane[ids]
    begin, stop, row = owned_pieces(
        events.start[ids], events.end[ids], trace.lanes.depth[lane], trace.lanes.track[lane]
    )
    return grouped(category[row], len(Category))(stop - begin)


def _devices(trace: Trace, ids: I64) -> list[Device]:
    """Devices that ran something, in order, with the name the file gives them."""
    used = np.unique(trace.lanes.track[np.unique(trace.event_lane[ids])]).tolist()
    places = sorted({(trace.tracks[t].rank, trace.tracks[t].device) for t in used})
    names = {(d.rank, d.device): d.name for d in trace.meta.devices}
    return [Device(device, rank, names.get((rank, device), "")) for rank, device in places]


def _device(trace: Trace, ids: I64, device: Device) -> dict[str, Any]:
    mine = np.array([(t.device, t.rank) == (device.device, device.rank) for t in trace.tracks], bool)
    members = ids[mine[trace.lanes.track[trace.event_lane[ids]]]]
    start, end = trace.events.start[members], trace.events.end[members]
    busy = union_of(start, end)
    span = int(end.max() - start.min())
    return {
        "device": _known(device.device),
        "rank": _known(device.rank),
        "name": device.name or None,
        "busy_ns": busy,
        "idle_ns": span - busy,
        "span_ns": span,
    }


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else int(value)
