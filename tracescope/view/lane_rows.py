"""The rows of the timeline: resource lanes of the device, then plain tracks, with their names and figures. No Qt."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.analysis.breakdown import mostly_known
from tracescope.core import units
from tracescope.core.category import KINDS, TrackKind
from tracescope.core.timerange import TimeRange
from tracescope.lod.fold import Columns, Content
from tracescope.lod.planes import Plane
from tracescope.view.document import Document
from tracescope.view.floor_words import share_of_floor, share_text
from tracescope.view.view_state import ViewState


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
    Plane.PATH: "Device time",
    Plane.WEIGHTS: "Weight reads",
    Plane.KV_READS: "KV reads",
    Plane.KV_APPENDS: "KV appends",
    Plane.COMPUTE: "Compute",
    Plane.COMMUNICATION: "Communication",
    Plane.SELECTION: "Token selection",
}

_RAW_ORDER: Final = (TrackKind.DEVICE_STREAM, TrackKind.ENGINE, TrackKind.ANNOTATION, TrackKind.HOST_THREAD)
_MOST_DEPTHS: Final = 64
_ABOUT_A_STEP: Final = 1.25
"""A view of at most so many durations of the current step is a view of that step."""


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


def counted_range(document: Document, view: ViewState) -> TimeRange:
    """What the figures are about: the part of the current step in sight, where the view is not much wider than it.

    A view that fits a step has margins, and what is seen there of its neighbours is none of its time.
    """
    if view.step < 0:
        return view.visible
    step, visible = document.step_range(view.step), view.visible
    if not visible.overlaps(step.start, step.end) or visible.duration > _ABOUT_A_STEP * step.duration:
        return visible
    return TimeRange(max(visible.start, step.start), min(visible.end, step.end))


def floor_and_busy_ns(content: Content, visible: TimeRange, counted: TimeRange) -> tuple[float, float, float]:
    """Floor time and busy time of a row within ``counted``, ns, and how much of the busy time has no known floor.

    Time that the same events need for the bytes of other lanes is not counted as busy.

    ``visible`` is what the content spans. The floor of an event that is cut by an edge counts in proportion.
    """
    if isinstance(content, Columns):
        edges = np.linspace(visible.start, visible.end, content.share.shape[1] + 1)
        time = np.diff(np.clip(edges, counted.start, counted.end))
        floor, busy, unknown = (float((part * time).sum()) for part in (content.floor, content.busy, content.unknown))
        other = 0.0 if content.other is None else float((content.other * time).sum())
        return floor, busy - other, unknown
    start, end = np.maximum(content.start, counted.start), np.minimum(content.end, counted.end)
    inside = np.maximum(0, end - start)
    share = inside / np.maximum(content.end - content.start, 1)
    other = 0.0
    if content.other is not None:
        room = np.maximum(0, content.end - content.start - content.floor)
        other = float(np.minimum(content.other, room) @ share)
    return float(content.floor @ share), float(inside.sum()) - other, float(inside[~content.known].sum())


def path_floor_ns(document: Document, view: ViewState, counted: TimeRange) -> tuple[float, float] | None:
    """Floor within ``counted`` of the steps in it, ns, and the time of their events without one.

    The floor of every event is spread over its time, so that the figures of two halves of a step make those of the
    step. None where several steps are in sight of which not all events are priced: how long those took is not kept.
    """
    step = document.step_range(view.step)
    if counted.start >= step.start and counted.end <= step.end:
        taken = document.breakdown(view.step)
        if counted == step:
            return float(max(0, taken.floor_ops_ns)), float(taken.unknown_ns)
        events = document.trace.events
        start = events.start[taken.events]
        end = start + events.duration[taken.events]
        inside = np.maximum(0, np.minimum(end, counted.end) - np.maximum(start, counted.start))
        share = inside / np.maximum(end - start, 1)
        unknown = np.where(taken.floor_known, 0, taken.exposed_ns)
        return float(taken.floor_ns @ share), float(unknown @ share)
    rows = document.steps_in_sight(counted)
    inside_rows = slice(rows.start, rows.stop)
    series = document.series
    if series.ops_without_floor[inside_rows].any():
        return None
    begin, duration = series.start[inside_rows], np.maximum(series.duration[inside_rows], 1)
    seen = np.minimum(begin + duration, counted.end) - np.maximum(begin, counted.start)
    return float(np.maximum(series.floor_ops_ns[inside_rows], 0) @ (np.maximum(0, seen) / duration)), 0.0


def step_time_in(document: Document, visible: TimeRange) -> int:
    """How much of ``visible`` lies inside steps, ns."""
    rows = document.steps_in_sight(visible)
    inside = slice(rows.start, rows.stop)
    start = np.maximum(document.trace.steps.start[inside], visible.start)
    end = np.minimum(document.step_ends[inside], visible.end)
    return int(np.maximum(0, end - start).sum())


def figures(document: Document, view: ViewState, row: Row, content: Content) -> tuple[str, str]:
    """The bold figure of the right column and the small one under it, of what is in sight; empty where none."""
    visible = counted_range(document, view)
    if row.plane is None:
        return "", ""
    floor, busy, unknown = floor_and_busy_ns(content, view.visible, visible)
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
        return _path_figures(document, view, visible)
    if _bytes_unknown(document, view, row.plane, content) or not mostly_known(round(unknown), round(busy)):
        return "none", "bytes unknown"
    return share_text(share_of_floor(round(floor), round(busy - unknown))), ""


def _path_figures(document: Document, view: ViewState, counted: TimeRange) -> tuple[str, str]:
    time = step_time_in(document, counted)
    found = path_floor_ns(document, view, counted) if time else None
    if found is None:
        return ("", "") if not time else ("", "partly known")
    floor, unknown = round(found[0]), round(found[1])
    if not mostly_known(unknown, time):
        return (units.duration(floor), "known floor") if floor else ("none", "bytes unknown")
    return share_text(share_of_floor(floor, time)), units.signed_duration(time - floor - unknown)


def _bytes_unknown(document: Document, view: ViewState, plane: Plane, content: Content) -> bool:
    """Whether stored levels, which do not tell unknown bytes apart, are of a step in which some are unknown."""
    column = {Plane.WEIGHTS: document.series.weight_read, Plane.KV_READS: document.series.kv_read}.get(plane)
    return isinstance(content, Columns) and column is not None and int(column[view.step]) < 0
