"""Where steps are on the host: markers, else calls of the root module, else graph launches, else token selection."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from tracescope.core.columns import I32, I64, Bool
from tracescope.core.raw import RawTrace
from tracescope.core.report import Inference
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.names.markers import SAMPLE_SCOPES, Marker, read_marker
from tracescope.recognise.ops.carriers import innermost
from tracescope.recognise.ops.op_events import OpEvents
from tracescope.recognise.tracks.launches import Launches
from tracescope.recognise.tracks.track_plan import TrackPlan, TrackRole

_NUMBERS = re.compile(r"\d+")
GRAPH_KERNELS = 50
"""A launch with at least this many kernels replays a whole step: single kernels and fused pieces have fewer."""


@dataclass(frozen=True, slots=True)
class HostSpan:
    """One step on the host: ``start`` to ``end`` (ns as the file counts) of process ``pid``; ``label`` is a name id."""

    start: int
    end: int
    pid: str
    label: int
    marker: Marker


@dataclass(frozen=True, eq=False)
class HostSpans:
    """The spans in time order, and what was concluded in finding them.

    ``opens_early``: what is launched between two spans and is no tail of the earlier one belongs to the later one
    (graph launches mark an instant, not an extent). ``on_device_time``: spans are device times, not launch times.
    """

    spans: tuple[HostSpan, ...]
    inferred: tuple[Inference, ...] = ()
    opens_early: bool = False
    on_device_time: bool = False


def find_host_spans(raw: RawTrace, plan: TrackPlan, launches: Launches, op_events: OpEvents) -> HostSpans:
    """The steps of a trace by the best evidence that it holds; none where it holds none."""
    return (
        _by_markers(raw, plan)
        or _by_modules(raw, plan)
        or _by_ranges_around_graphs(raw, plan, launches, op_events)
        or _by_graphs(raw, launches, op_events)
        or _by_selection(raw, launches, op_events)
        or HostSpans(())
    )


def _steps(spans: list[HostSpan]) -> str:
    return "1 step" if len(spans) == 1 else f"{len(spans):,} steps"


def _rows_named(raw: RawTrace, rows: I64, wanted: Bool) -> I64:
    return rows[wanted[raw.events.name[rows]]]


def _by_markers(raw: RawTrace, plan: TrackPlan) -> HostSpans | None:
    rows = np.flatnonzero(plan.at(TrackRole.ANNOTATION, TrackRole.HOST))
    used = np.unique(raw.events.name[rows])
    markers: dict[int, Marker] = {}
    for code in used.tolist():
        marker = read_marker(raw.names[code])
        if marker is not None:
            markers[code] = marker
    steps = np.array([track.marks_steps for track in raw.tracks] or [False])
    for code in np.unique(raw.events.name[rows[steps[raw.events.track[rows]]]]).tolist():
        markers.setdefault(code, Marker("steps of the device"))
    if not markers:
        return None
    wanted = np.zeros(len(raw.names), bool)
    wanted[list(markers)] = True
    rows = _rows_named(raw, rows, wanted)
    # A step that is numbered may share its name with anything: it is one on its own track only.
    told = np.array([not markers[n].source.startswith("steps") for n in raw.events.name[rows].tolist()], bool)
    rows = rows[told | steps[raw.events.track[rows]]]
    device_side = np.array([t.is_device for t in raw.tracks])[raw.events.track[rows]]
    on_device_time = bool(device_side.all())
    rows = rows if on_device_time else rows[~device_side]
    if any(m.source != "ProfilerStep" for m in markers.values()):
        rows = rows[[markers[n].source != "ProfilerStep" for n in raw.events.name[rows].tolist()]]
    spans = _merge_nested(raw, rows, markers)
    sources = ", ".join(sorted({markers[n].source for n in raw.events.name[rows].tolist()}))
    inferred = [Inference(f"{_steps(spans)} from markers ({sources})", "steps by annotation", 0.99)]
    if any(w.marker.context_includes_new and w.marker.context_tokens >= 0 for w in spans):
        inferred.append(
            Inference(
                "the summed KV length in the marker is taken as the tokens already cached; "
                "it may count the step's own token of each request (error at most one token a request)",
                "context by annotation",
                0.9,
            )
        )
    if any("cached" in w.marker.source for w in spans):
        what = "requests that a marker calls cached are taken to decode; some may still be in their prompt"
        inferred.append(Inference(what, "kinds of steps by annotation", 0.7))
    if on_device_time:
        inferred.append(
            Inference("device events belong to the step whose device range they lie in", "steps by device range", 0.7)
        )
    return HostSpans(tuple(spans), tuple(inferred), on_device_time=on_device_time)


def _merge_nested(raw: RawTrace, rows: I64, markers: dict[int, Marker]) -> list[HostSpan]:
    """One window per outermost marker; the marker that says most describes it, the outermost one gives its extent."""
    e = raw.events
    pids = [raw.tracks[t].pid for t in e.track[rows].tolist()]
    order = sorted(range(len(rows)), key=lambda i: (pids[i], int(e.start[rows[i]]), -int(e.duration[rows[i]])))
    spans: list[HostSpan] = []
    for i in order:
        row = int(rows[i])
        name = int(e.name[row])
        start, end = int(e.start[row]), int(e.start[row] + e.duration[row])
        last = spans[-1] if spans else None
        if last is not None and last.pid == pids[i] and start < last.end:
            better = markers[name].says > last.marker.says
            spans[-1] = HostSpan(
                last.start,
                max(last.end, end),
                last.pid,
                name if better else last.label,
                markers[name] if better else last.marker,
            )
        else:
            spans.append(HostSpan(start, end, pids[i], name, markers[name]))
    return sorted(spans, key=lambda w: w.start)


def _by_modules(raw: RawTrace, plan: TrackPlan) -> HostSpans | None:
    """Calls of the outermost ``nn.Module``, where it is called again and again."""
    e = raw.events
    is_module = np.array([n.startswith("nn.Module: ") for n in raw.names] or [False])
    rows = np.flatnonzero(plan.at(TrackRole.PYTHON) & is_module[e.name])
    if not len(rows):
        return None
    rows = rows[np.lexsort((-e.duration[rows], e.start[rows], e.track[rows]))]
    end = e.start[rows] + e.duration[rows]
    roots: list[int] = []
    reach: dict[int, int] = {}
    for i, track in enumerate(e.track[rows].tolist()):
        if int(e.start[rows[i]]) >= reach.get(track, -(1 << 63)):
            roots.append(i)
            reach[track] = int(end[i])
    root_rows = rows[roots]
    names, counts = np.unique(e.name[root_rows], return_counts=True)
    if counts.max() < 2:
        return None
    name = int(names[counts.argmax()])
    root_rows = root_rows[e.name[root_rows] == name]
    spans = [
        HostSpan(
            int(e.start[r]), int(e.start[r] + e.duration[r]), raw.tracks[int(e.track[r])].pid, name, Marker("module")
        )
        for r in root_rows.tolist()
    ]
    what = f"{_steps(spans)} from calls of {raw.names[name].removeprefix('nn.Module: ')}"
    return HostSpans(tuple(sorted(spans, key=lambda w: w.start)), (Inference(what, "steps by root module", 0.9),))


def _graph_launches(launches: Launches, op_events: OpEvents) -> I64:
    """Rows of the calls that started a whole step's kernels at once."""
    call = launches.call[op_events.row]
    calls, counts = np.unique(call[call >= 0], return_counts=True)
    return calls[(counts >= GRAPH_KERNELS) & op_events.on_device]


def _by_ranges_around_graphs(
    raw: RawTrace, plan: TrackPlan, launches: Launches, op_events: OpEvents
) -> HostSpans | None:
    """Ranges of one name, its numbers aside, that hold one graph launch each: whatever they are called, they are steps.

    At least two of them must hold four of five graph launches.
    """
    e = raw.events
    graphs = _graph_launches(launches, op_events)
    around = innermost(raw, graphs, np.flatnonzero(plan.at(TrackRole.ANNOTATION) & (e.duration > 0)))
    around = around[around >= 0]
    stems = [_NUMBERS.sub("#", raw.names[n]) for n in e.name[around].tolist()]
    if len(around) < 2 or len(np.unique(around)) < len(around):
        return None
    stem, count = Counter(stems).most_common(1)[0]
    if count < 2 or count * 5 < len(graphs) * 4:
        return None
    rows = [row for row, own in zip(around.tolist(), stems, strict=True) if own == stem]
    spans = [
        HostSpan(
            int(e.start[r]), int(e.start[r] + e.duration[r]), raw.tracks[int(e.track[r])].pid, int(e.name[r]),
            Marker("range around a graph launch"),
        )
        for r in sorted(rows, key=lambda r: int(e.start[r]))
    ]  # fmt: skip
    what = f"{_steps(spans)} from ranges called {stem!r} that hold one graph launch each"
    return HostSpans(tuple(spans), (Inference(what, "steps by ranges around graph launches", 0.85),))


def _by_graphs(raw: RawTrace, launches: Launches, op_events: OpEvents) -> HostSpans | None:
    """Launches that started a whole step's kernels at once."""
    graphs = _graph_launches(launches, op_events)
    if not len(graphs):
        return None
    e = raw.events
    spans = [
        HostSpan(int(e.start[c]), int(e.start[c]), raw.tracks[int(e.track[c])].pid, int(e.name[c]), Marker("graph"))
        for c in graphs[np.argsort(e.start[graphs], kind="stable")].tolist()
    ]
    what = f"{_steps(spans)} from launches of at least {GRAPH_KERNELS} kernels at once"
    return HostSpans(tuple(spans), (Inference(what, "steps by graph launch", 0.8),), opens_early=True)


def _by_selection(raw: RawTrace, launches: Launches, op_events: OpEvents) -> HostSpans | None:
    """Token selection ends a step: between two of them lie the layers. Needs KV appends, so that training has none."""
    moment = launches.moment[op_events.row]
    order = np.argsort(moment, kind="stable")
    family, moment, rows = op_events.family[order], moment[order], op_events.row[order]
    if not (family == Family.APPEND).any() or not (family == Family.SAMPLE).any():
        return None
    significant = np.flatnonzero(np.isin(family, (Family.APPEND, Family.SAMPLE)))
    kinds = family[significant] == Family.SAMPLE
    last_of_run = np.flatnonzero(kinds & np.append(~kinds[1:], True))
    e = raw.events
    spans: list[HostSpan] = []
    begin = 0
    appends = np.flatnonzero(family == Family.APPEND)
    for position in significant[last_of_run].tolist():
        inside = np.searchsorted(appends, [begin, position])
        if inside[1] - inside[0] >= 2:
            row = int(rows[position])
            pid = raw.tracks[int(e.track[launches.call[row] if launches.call[row] >= 0 else row])].pid
            spans.append(
                HostSpan(int(moment[begin]), int(moment[position]), pid, int(e.name[row]), Marker("selection"))
            )
        begin = position + 1
    if not spans:
        return None
    what = f"{_steps(spans)}, each ending with token selection"
    return HostSpans(tuple(spans), (Inference(what, "steps by token selection", 0.6),))


def sample_scopes(raw: RawTrace, plan: TrackPlan) -> I64:
    """Rows of host annotations that enclose token selection."""
    wanted = np.array([bool(SAMPLE_SCOPES.match(n)) for n in raw.names] or [False])
    return np.flatnonzero(plan.at(TrackRole.ANNOTATION) & wanted[raw.events.name])


def steps_of_op_events(raw: RawTrace, launches: Launches, op_events: OpEvents, found: HostSpans) -> I32:
    """The step of each op event, -1 for none: by when it was launched, never by when it ran.

    Token selection launched after a window, and the copies right behind it, still belong to that step.
    """
    step = np.full(len(op_events.row), -1, np.int32)
    if not found.spans:
        return step
    e = raw.events
    call = launches.call[op_events.row]
    host = np.where(call >= 0, call, op_events.row)
    by_device = found.on_device_time and op_events.on_device
    moment = e.start[op_events.row] if by_device else launches.moment[op_events.row]
    eligible = np.ones(len(step), bool) if by_device or not op_events.on_device else call >= 0
    if not eligible.any():
        # A file of device events alone: what it can say about launching is when things ran.
        eligible = np.ones(len(step), bool)
        moment = e.start[op_events.row]
    pid_of_track = [t.pid for t in raw.tracks]
    # Ranges on the time of one device hold whatever ran then; those of several hold what ran on their own.
    pids = list(dict.fromkeys(w.pid for w in found.spans))
    of_any = by_device and len(pids) == 1
    for pid in pids:
        ids = [i for i, w in enumerate(found.spans) if w.pid == pid]
        track_here = np.array([of_any or p == pid for p in pid_of_track])
        loose = op_events.on_device & (call < 0) & (not by_device or of_any)
        here = np.flatnonzero(eligible & (track_here[e.track[op_events.row if by_device else host]] | loose))
        spans = np.array([(found.spans[i].start, found.spans[i].end) for i in ids], np.int64).reshape(-1, 2)
        local = _steps_in(spans, moment[here], op_events.family[here], found.opens_early)
        step[here] = np.where(local >= 0, np.array([*ids, -1])[local], step[here])
    return step


def _steps_in(spans: I64, moment: I64, family: np.ndarray, opens_early: bool) -> I32:
    """Steps (rows of ``spans``) of op events by their launch moment, with tails and, where so, early openings."""
    at = np.searchsorted(spans[:, 0], moment, side="right") - 1
    inside = (at >= 0) & (moment <= spans[np.maximum(at, 0), 1])
    step = np.where(inside, at, -1).astype(np.int32)
    loose = np.flatnonzero((at >= 0) & ~inside)
    n = len(spans)
    last_selection = np.full(n, np.iinfo(np.int64).min)
    selects = loose[family[loose] == Family.SAMPLE]
    np.maximum.at(last_selection, at[selects], moment[selects])
    first_other = np.full(n, np.iinfo(np.int64).max)
    after = loose[moment[loose] > last_selection[at[loose]]]
    others = after[family[after] != Family.COPY]
    np.minimum.at(first_other, at[others], moment[others])
    selected = last_selection[at[loose]] > np.iinfo(np.int64).min
    tail = (moment[loose] <= last_selection[at[loose]]) | (selected & (moment[loose] < first_other[at[loose]]))
    step[loose[tail]] = at[loose[tail]]
    if opens_early:
        early = np.concatenate([np.flatnonzero(at < 0), loose[~tail]])
        following = at[early] + 1
        step[early[following < n]] = following[following < n]
    return step
