"""The rows of the timeline: resource lanes of the device, then plain tracks, with their names and figures. No Qt."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.core import units
from tracescope.core.category import KINDS, TrackKind
from tracescope.core.timerange import TimeRange
from tracescope.lod.fold import Bars, Columns, Content
from tracescope.lod.planes import Plane
from tracescope.ui.document import Document
from tracescope.ui.view_state import ViewState


@dataclass(frozen=True, slots=True)
class Row:
    """One row. ``plane`` for a resource lane, else ``lane`` of the trace; ``letter`` names the kind's colour."""

    key: str
    title: str
    subtitle: str = ""
    letter: str = ""
    plane: Plane | None = None
    lane: int = -1
    empty: str = ""
    """Why there is nothing in it: the row is then collapsed to a name and this reason."""

    @property
    def target(self) -> Plane | int:
        """What ``lod.pick.event_at`` takes."""
        return self.plane if self.plane is not None else self.lane


TITLES: Final[dict[Plane, str]] = {
    Plane.PATH: "Critical path",
    Plane.WEIGHTS: "Weight reads",
    Plane.KV_READS: "KV reads",
    Plane.KV_APPENDS: "KV appends",
    Plane.COMPUTE: "Compute",
    Plane.COMMUNICATION: "Communication",
    Plane.SELECTION: "Token selection",
}

_RAW_ORDER: Final = (TrackKind.DEVICE_STREAM, TrackKind.ENGINE, TrackKind.ANNOTATION, TrackKind.HOST_THREAD)
_MOST_DEPTHS: Final = 64


def rows_of(document: Document, view: ViewState) -> tuple[Row, ...]:
    """Every row of a view from top to bottom. Without steps only plain tracks."""
    raw = document.remembered("raw rows", 0, lambda: _raw_rows(document))
    if view.step < 0:
        return raw
    planes = document.remembered("plane rows", view.step, lambda: _plane_rows(document, view.step))
    return tuple(r for r in planes if r.plane is not Plane.PATH or "path" in view.overlays) + raw


def _plane_rows(document: Document, step: int) -> tuple[Row, ...]:
    reads, series = document.reads(step), document.series
    amounts = {
        Plane.WEIGHTS: _amount(int(series.weight_read[step]), reads[Plane.WEIGHTS], "reads"),
        Plane.KV_READS: _amount(int(series.kv_read[step]), reads[Plane.KV_READS], "reads"),
        Plane.COMPUTE: _peak(document),
    }
    rows = []
    for plane in Plane:
        letter = "" if plane is Plane.PATH else KINDS[plane - 1].letter
        empty = "" if reads[plane] else _reason(document, plane)
        rows.append(Row(letter or "path", TITLES[plane], amounts.get(plane, ""), letter, plane, empty=empty))
    return tuple(rows)


def _amount(count: int, reads: int, word: str) -> str:
    known = units.size(count) if count >= 0 else "bytes unknown"
    return f"{known} in {reads:,} {word}"


def _peak(document: Document) -> str:
    peak = document.basis.peak_flops_per_s
    return f"peak {units.peak(peak)}" if peak else "peak unknown"


def _reason(document: Document, plane: Plane) -> str:
    if plane is Plane.COMMUNICATION:
        devices = len(document.trace.meta.devices)
        return "no events: one device" if devices <= 1 else "no events in this step"
    return "no events in this step"


def _raw_rows(document: Document) -> tuple[Row, ...]:
    trace = document.trace
    resource_lanes = document.has_steps
    rows = []
    for lane in range(len(trace.lanes)):
        track_index, depth = int(trace.lanes.track[lane]), int(trace.lanes.depth[lane])
        track = trace.tracks[track_index]
        # Synthesised engines hold nothing that the resource lanes do not show.
        if track.kind not in _RAW_ORDER or depth >= _MOST_DEPTHS or (track.kind is TrackKind.ENGINE and resource_lanes):
            continue
        order = (_RAW_ORDER.index(track.kind), track.rank, track.device, track_index, depth)
        title = track.name if depth == 0 else ""
        rows.append((order, Row(f"lane:{lane}", title, track.process if depth == 0 else "", lane=lane)))
    return tuple(row for _, row in sorted(rows, key=lambda pair: pair[0]))


def content_of(document: Document, row: Row, visible: TimeRange, width: int) -> Content:
    """What is in sight of a row, over ``width`` pixel columns."""
    if row.plane is not None:
        return document.planes(visible, width)[row.plane]
    return document.lane(row.lane, visible, width)


def floor_and_busy_ns(content: Content, visible: TimeRange) -> tuple[float, float, bool]:
    """Floor time and busy time of a row within ``visible``, ns, and whether every floor in it is known."""
    if isinstance(content, Columns):
        per_column = visible.duration / max(1, content.share.shape[1])
        return float(content.floor.sum()) * per_column, float(content.busy.sum()) * per_column, True
    low, high = visible.start, visible.end
    start, end = np.minimum(np.maximum(content.start, low), high), np.minimum(np.maximum(content.end, low), high)
    solid = np.minimum(content.start + np.minimum(content.floor, content.end - content.start), high)
    floor = np.maximum(0, np.maximum(solid, low) - start)
    return float(floor.sum()), float((end - start).sum()), bool(content.known.all())


def step_time_in(document: Document, visible: TimeRange) -> int:
    """How much of ``visible`` lies inside steps, ns."""
    rows = document.steps_in_sight(visible)
    inside = slice(rows.start, rows.stop)
    start = np.maximum(document.trace.steps.start[inside], visible.start)
    end = np.minimum(document.step_ends[inside], visible.end)
    return int(np.maximum(0, end - start).sum())


def figures(document: Document, view: ViewState, row: Row, content: Content) -> tuple[str, str]:
    """The bold figure of the right column and the small one under it, of what is in sight; empty where none."""
    visible = view.visible
    if row.plane is None:
        return "", ""
    floor, busy, all_known = floor_and_busy_ns(content, visible)
    if not busy:
        return "", ""
    if row.plane is Plane.KV_APPENDS:
        count = int(document.series.kv_append[view.step])
        return "", units.size(count) if count >= 0 else "bytes unknown"
    if row.plane is Plane.COMPUTE:
        if not document.basis.peak_flops_per_s or not document.has_floor:
            return "", ""
        return units.percent(floor / max(1, step_time_in(document, visible)), 1), "of peak FLOP/s"
    if not document.has_floor or row.plane in (Plane.SELECTION, Plane.COMMUNICATION):
        return "", ""
    if row.plane is Plane.PATH:
        time = step_time_in(document, visible)
        if not time:
            return "", ""
        return units.percent(floor / time), units.signed_duration(time - floor)
    if not all_known and isinstance(content, Bars) and not content.known.any():
        return "none", "bytes unknown"
    return units.percent(floor / busy), ""
