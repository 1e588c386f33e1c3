"""Several ranks of one run as one trace: ids kept apart, times on one clock, what the clocks disagree about said."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tracescope.core.category import TrackKind
from tracescope.core.collectives import match_collectives
from tracescope.core.columns import I64
from tracescope.core.errors import TraceError
from tracescope.core.report import ImportReport, Inference, Source
from tracescope.core.samples import SampleTable
from tracescope.core.trace import Dependencies, EventTable, Lanes, RequestTable, StepTable, Trace, TraceMeta
from tracescope.core.units import signed_duration
from tracescope.core.work_table import WorkTable

MAX_RANKS: Final = 1024
EPOCH_2001_NS: Final = 10**18
"""A time beyond it counts from 1970: nobody's uptime reaches 31 years."""
DAY_NS: Final = 86_400 * 10**9
MAX_APART_NS: Final = 30 * DAY_NS
"""Recordings further apart are of several runs, whatever else they share."""
_IN_NAME: Final = re.compile(r"(?:rank|tp|worker)[-_ ]?0*(\d{1,5})(?!\d)", re.IGNORECASE)
_PLACES: Final = (TrackKind.DEVICE_STREAM, TrackKind.ENGINE, TrackKind.ANNOTATION, TrackKind.HOST_THREAD)


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The rank of each file, and how it is known."""

    numbers: tuple[int, ...]
    note: str


def merge_ranks(traces: Sequence[Trace]) -> Trace:
    """One trace of ``traces``, which stay in their order; each keeps its steps, and its tracks carry its rank.

    A rank is what the file says, else what its name says, else its place in the order: it must be unique. Times stay
    on the clocks that the files carry; what carries none is said to. Raises TraceError for no file or too many, and
    for files that are plainly of several runs.
    """
    if not 0 < len(traces) <= MAX_RANKS:
        raise TraceError(f"{len(traces):,} files cannot be merged", action=f"Give 1 to {MAX_RANKS:,} ranks.")
    if len(traces) == 1:
        return traces[0]
    ranks = _ranks(traces)
    traces = [_ranked(trace, rank) for trace, rank in zip(traces, ranks.numbers, strict=True)]
    clocks = _clocks(traces, ranks.numbers)
    joiner = _Joiner(traces, clocks.shift)
    merged = Trace(
        meta=_meta(traces, ranks, clocks, _doubts(traces, ranks.numbers)),
        tracks=joiner.tracks,
        lanes=joiner.lanes(),
        events=joiner.events(),
        names=joiner.names.texts,
        work=_stacked(WorkTable, [t.work for t in traces], {}),
        details=joiner.details.texts,
        steps=joiner.steps(),
        requests=joiner.requests(),
        dependencies=joiner.dependencies(),
        samples=joiner.samples(),
    )
    skews = match_collectives(merged).skews()
    said = tuple(
        Inference(
            f"rank {rank}: its collectives end {signed_duration(skew)} against rank {ranks.numbers[0]} "
            f"(median of {count:,}): its clock is off, or it leaves them later; shown as recorded",
            "clock offset by collectives",
            0.7,
        )
        for rank, skew, count in skews
    )
    report = replace(merged.meta.report, inferred=(*merged.meta.report.inferred, *said))
    return replace(merged, meta=replace(merged.meta, report=report))


def _ranks(traces: Sequence[Trace]) -> _Ranks:
    recorded = [_recorded_rank(trace) for trace in traces]
    if len(set(recorded)) == len(recorded) and min(recorded) >= 0:
        return _Ranks(tuple(recorded), "ranks as the files record them")
    found = [_IN_NAME.search(trace.meta.source.name) for trace in traces]
    named = [int(m[1]) if m else -1 for m in found]
    if len(set(named)) == len(named) and min(named) >= 0:
        return _Ranks(tuple(named), "ranks by the names of the files: the files do not say which they are")
    return _Ranks(tuple(range(len(traces))), "ranks by the order of the files: the files do not say which they are")


def _recorded_rank(trace: Trace) -> int:
    found = {track.rank for track in trace.tracks if track.rank >= 0}
    return found.pop() if len(found) == 1 else -1


def _ranked(trace: Trace, rank: int) -> Trace:
    """``trace`` with its rank on every track, device and step."""
    labels = sorted({int(n) for n in trace.steps.label})
    position = np.zeros(len(trace.names) + 1, np.uint32)
    position[labels] = np.arange(len(labels)) + len(trace.names)
    names = (*trace.names, *(f"rank {rank} · {trace.names[n]}" for n in labels))
    tracks = tuple(replace(t, rank=rank, process=f"rank {rank} · {t.process}".rstrip(" ·")) for t in trace.tracks)
    devices = tuple(replace(d, rank=rank) for d in trace.meta.devices)
    steps = replace(trace.steps, label=position[trace.steps.label])
    return replace(trace, names=names, tracks=tracks, steps=steps, meta=replace(trace.meta, devices=devices))


@dataclass(frozen=True, slots=True)
class _Clocks:
    """The common base, how far each trace is moved to it (ns), and what is said of their clocks."""

    base: int
    shift: tuple[int, ...]
    said: tuple[Inference, ...]


def _clocks(traces: Sequence[Trace], ranks: Sequence[int]) -> _Clocks:
    spans = [(t.meta.base_ns + t.span[0], t.meta.base_ns + t.span[1]) for t in traces]
    dated = [i for i, (start, _) in enumerate(spans) if start > EPOCH_2001_NS]
    _refuse_strangers(traces, spans, dated)
    if not dated and max(s for s, _ in spans) > min(e for _, e in spans):
        what = "no rank has a wall clock, and they do not overlap on their own: each is drawn from its own start: "
        what += ", ".join(
            f"rank {rank} starts {signed_duration(start - spans[0][0])}"
            for rank, (start, _) in zip(ranks[1:8], spans[1:8], strict=False)
        )
        shift = tuple(-t.span[0] for t in traces)
        base = min(t.meta.base_ns - s for t, s in zip(traces, shift, strict=True))
        return _Clocks(base, shift, (Inference(what, "clocks of ranks", 0.3),))
    kept = dated or list(range(len(traces)))
    base = min(traces[i].meta.base_ns for i in kept)
    behind = max(spans[i][1] for i in kept) - base
    shift = tuple(t.meta.base_ns - base if i in kept else behind - t.span[0] for i, t in enumerate(traces))
    starts = [spans[i][0] for i in kept]
    spread = signed_duration(max(starts) - min(starts)).lstrip("+")
    overlap = max(starts) <= min(spans[i][1] for i in kept)
    how = "their recordings overlap, and begin" if overlap else "their recordings do not overlap on it, and begin"
    said = [Inference(f"the ranks share a clock: {how} within {spread}", "clocks of ranks", 0.8 if overlap else 0.6)]
    without = [ranks[i] for i in range(len(traces)) if i not in kept]
    if without:
        which = ", ".join(f"rank {rank}" for rank in without[:8])
        what = f"no clock in {which}: nothing says when it ran; it is drawn behind the ranks that have one"
        said.append(Inference(what, "clocks of ranks", 0.9))
    return _Clocks(base, shift, tuple(said))


def _refuse_strangers(traces: Sequence[Trace], spans: Sequence[tuple[int, int]], dated: Sequence[int]) -> None:
    """TraceError where clocks say that the files are of runs far from each other."""
    in_order = sorted(dated, key=lambda i: spans[i])
    for a, b in pairwise(in_order):
        apart = spans[b][0] - spans[a][1]
        if apart > MAX_APART_NS:
            first, later = traces[a].meta.source.name, traces[b].meta.source.name
            raise TraceError(
                f"not ranks of one run: {later} was recorded {apart // DAY_NS:,} days after {first}",
                action="Import each file by itself; tracescope FILE FILE compares two.",
            )


def _doubts(traces: Sequence[Trace], ranks: Sequence[int]) -> tuple[Inference, ...]:
    """What speaks against the files being ranks of one run, said before anything else."""
    layers = [len(np.unique(t.events.layer[t.events.layer >= 0])) for t in traces]
    steps = [int(t.steps.decode.sum()) for t in traces]
    found = []
    for what, counts in (("layers", layers), ("decode steps", steps)):
        known = {rank: count for rank, count in zip(ranks, counts, strict=True) if count}
        if len(set(known.values())) > 1 and max(known.values()) > 2 * min(known.values()):
            listed = ", ".join(f"rank {rank}: {count:,}" for rank, count in list(known.items())[:8])
            found.append(
                Inference(f"these may be no ranks of one run: they have other numbers of {what} ({listed})",
                          "files against each other", 0.5)
            )  # fmt: skip
    return tuple(found)


class _Texts:
    """Texts of several traces without repeats; ``codes[i]`` maps trace i's numbers to the joined ones."""

    def __init__(self, parts: Sequence[Sequence[str]], first: tuple[str, ...] = ()) -> None:
        known: dict[str, int] = {text: i for i, text in enumerate(first)}
        self.codes = [np.array([known.setdefault(t, len(known)) for t in part] or [0], np.uint32) for part in parts]
        self.texts = tuple(known)


class _Joiner:
    """Joins the tables; tracks of one place (streams, then annotations, then threads) stand together."""

    def __init__(self, traces: Sequence[Trace], shift: Sequence[int]) -> None:
        self.traces = traces
        self.shift = shift
        self.names = _Texts([t.names for t in traces])
        self.details = _Texts([t.details for t in traces], ("",))
        every = [(i, k) for i, t in enumerate(traces) for k in range(len(t.tracks))]
        every.sort(key=lambda at: _place(traces[at[0]].tracks[at[1]].kind))
        self.tracks = tuple(traces[i].tracks[k] for i, k in every)
        self.track_of: list[I64] = [np.zeros(len(t.tracks), np.int64) for t in traces]
        for position, (i, k) in enumerate(every):
            self.track_of[i][k] = position
        self._order_steps()
        self._order_events()

    def _order_steps(self) -> None:
        traces = self.traces
        start = np.concatenate([t.steps.start + s for t, s in zip(traces, self.shift, strict=True)])
        self.step_order = np.argsort(start, kind="stable")
        place = np.empty(len(start) + 1, np.int64)
        place[self.step_order] = np.arange(len(start))
        place[-1] = -1
        low = np.cumsum([0, *(len(t.steps) for t in traces)])
        self.step_of = [
            np.append(place[a:b], -1).astype(np.int32) for a, b in zip(low[:-1].tolist(), low[1:].tolist(), strict=True)
        ]

    def _order_events(self) -> None:
        """Blocks of whole lanes, moved: inside a lane nothing changes."""
        self.low = np.cumsum([0, *(len(t.events) for t in self.traces)])
        blocks = [
            (int(self.track_of[i][trace.lanes.track[k]]), int(trace.lanes.depth[k]), i, k)
            for i, trace in enumerate(self.traces)
            for k in range(len(trace.lanes))
        ]
        self.blocks = sorted(blocks)
        rows = [
            np.arange(self.traces[i].lanes.offset[k], self.traces[i].lanes.offset[k + 1]) + self.low[i]
            for _, _, i, k in self.blocks
        ]
        self.order: I64 = np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int64)
        self.place = np.empty(len(self.order), np.int64)
        self.place[self.order] = np.arange(len(self.order))

    def lanes(self) -> Lanes:
        """The lanes of all traces."""
        sizes = [int(self.traces[i].lanes.offset[k + 1] - self.traces[i].lanes.offset[k]) for _, _, i, k in self.blocks]
        return Lanes(
            track=np.array([b[0] for b in self.blocks], np.uint32),
            depth=np.array([b[1] for b in self.blocks], np.uint16),
            offset=np.cumsum([0, *sizes]),
        )

    def events(self) -> EventTable:
        """The events of all traces, lane by lane."""
        works = np.cumsum([0, *(len(t.work) for t in self.traces)])
        changed: dict[str, list[Any]] = {"start": [], "name": [], "detail": [], "work": [], "step": []}
        for i, trace in enumerate(self.traces):
            e = trace.events
            changed["start"].append(e.start + self.shift[i])
            changed["name"].append(self.names.codes[i][e.name])
            changed["detail"].append(self.details.codes[i][e.detail])
            changed["work"].append(e.work + np.uint32(works[i]))
            changed["step"].append(self.step_of[i][e.step])
        table = _stacked(EventTable, [t.events for t in self.traces], changed)
        return EventTable(**{f.name: getattr(table, f.name)[self.order] for f in fields(EventTable)})

    def steps(self) -> StepTable:
        """The steps of all traces in time order."""
        label = [c[t.steps.label] for c, t in zip(self.names.codes, self.traces, strict=True)]
        start = [t.steps.start + s for t, s in zip(self.traces, self.shift, strict=True)]
        table = _stacked(StepTable, [t.steps for t in self.traces], {"label": label, "start": start})
        return StepTable(**{f.name: getattr(table, f.name)[self.step_order] for f in fields(StepTable)})

    def requests(self) -> RequestTable:
        """The requests of all traces; times that are not known stay so."""
        moved = {
            name: [
                np.where(getattr(t.requests, name) >= 0, getattr(t.requests, name) + s, -1)
                for t, s in zip(self.traces, self.shift, strict=True)
            ]
            for name in ("arrival", "start", "finish")
        }
        table: RequestTable = _stacked(RequestTable, [t.requests for t in self.traces], moved)
        return table

    def dependencies(self) -> Dependencies:
        """The edges of all traces; there is none between ranks, for nothing recorded one."""
        ends = {
            name: [
                self.place[getattr(t.dependencies, name).astype(np.int64) + low]
                for t, low in zip(self.traces, self.low[:-1].tolist(), strict=True)
            ]
            for name in ("source", "target")
        }
        table = _stacked(Dependencies, [t.dependencies for t in self.traces], ends, check=False)
        order = np.lexsort((table["source"], table["kind"], table["target"]))
        return Dependencies(**{name: column[order] for name, column in table.items()})

    def samples(self) -> SampleTable:
        """The samples of all traces."""
        moved = {
            "track": [of[t.samples.track] for of, t in zip(self.track_of, self.traces, strict=True)],
            "time": [t.samples.time + s for t, s in zip(self.traces, self.shift, strict=True)],
        }
        table = _stacked(SampleTable, [t.samples for t in self.traces], moved, check=False)
        order = np.lexsort((table["time"], table["track"]))
        return SampleTable(**{name: column[order] for name, column in table.items()})


def _place(kind: TrackKind) -> int:
    return _PLACES.index(kind) if kind in _PLACES else len(_PLACES)


def _stacked(table: Any, parts: Sequence[Any], changed: dict[str, list[Any]], *, check: bool = True) -> Any:
    """The columns of ``parts`` one after the other, those in ``changed`` as given; a ``table`` or a dict."""
    columns = {
        f.name: np.concatenate(changed.get(f.name) or [getattr(p, f.name) for p in parts]) for f in fields(table)
    }
    return table(**columns) if check else columns


def _meta(traces: Sequence[Trace], ranks: _Ranks, clocks: _Clocks, doubts: tuple[Inference, ...]) -> TraceMeta:
    metas = [t.meta for t in traces]
    first = metas[0]
    hardware = {m.hardware.name: m.hardware for m in metas if m.hardware}
    bandwidth = {m.bandwidth_bytes_per_s for m in metas}
    one = len(hardware) <= 1 and len(bandwidth) == 1
    notes = [f"{len(traces):,} ranks in one trace: {ranks.note}"]
    if not one:
        notes.append("the ranks have different machines: none prices this trace until one is given")
    notes += _said_once([(r, n) for r, m in zip(ranks.numbers, metas, strict=True) for n in m.notes], len(traces))
    return replace(
        first,
        source=_source([m.source for m in metas]),
        report=_report([m.report for m in metas], ranks, (*doubts, *clocks.said)),
        model=first.model if len({m.model.name if m.model else "" for m in metas}) == 1 else None,
        hardware=first.hardware if one else None,
        bandwidth_bytes_per_s=first.bandwidth_bytes_per_s if one else None,
        bandwidth_source=first.bandwidth_source if one else "unknown",
        base_ns=clocks.base,
        resolution_ns=max(m.resolution_ns for m in metas),
        devices=tuple(d for m in metas for d in m.devices),
        notes=tuple(notes),
    )


def _source(sources: Sequence[Source]) -> Source:
    """All files as one: their names, and the hash of their hashes, one a line."""
    shown = " + ".join(s.name for s in sources[:4])
    more = f" and {len(sources) - 4:,} more" if len(sources) > 4 else ""
    digest = hashlib.sha256("\n".join(s.sha256 for s in sources).encode()).hexdigest()
    return Source(shown + more, digest, sum(s.bytes for s in sources), sources[0].importer)


def _report(reports: Sequence[ImportReport], ranks: _Ranks, clocks: tuple[Inference, ...]) -> ImportReport:
    said = [(r, i) for r, report in zip(ranks.numbers, reports, strict=True) for i in report.inferred]
    texts = _said_once([(r, i.what) for r, i in said], len(reports))
    by_text = {i.what: i for _, i in said} | {f"rank {r}: {i.what}": i for r, i in said}
    cut = [r.truncated_at_byte for r in reports if r.truncated_at_byte is not None]
    return ImportReport(
        seen=sum(r.seen for r in reports),
        imported=sum(r.imported for r in reports),
        dropped=_added([r.dropped for r in reports]),
        flagged=_added([r.flagged for r in reports]),
        truncated_at_byte=cut[0] if cut else None,
        inferred=(*clocks, *(replace(by_text[text], what=text) for text in texts)),
        unclassified_ns=sum(r.unclassified_ns for r in reports),
    )


def _added(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)


def _said_once(said: Sequence[tuple[int, str]], ranks: int) -> list[str]:
    """Sentences with their rank; one that every rank says stands once, without."""
    times = Counter(text for _, text in said)
    return list(dict.fromkeys(text if times[text] == ranks else f"rank {rank}: {text}" for rank, text in said))
