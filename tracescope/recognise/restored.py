"""Our own Chrome export as the trace that it was: steps, layers and bytes stand in it and need not be recognised."""

from dataclasses import fields
from typing import Any, Final

import msgspec
import numpy as np

from tracescope import __version__
from tracescope.core.assemble import flagged_overlaps, lay_out
from tracescope.core.category import BytesFrom, Category, Op, TrackKind
from tracescope.core.columns import I64
from tracescope.core.exported import AMOUNTS, DERIVED, KEY, SUB_LANE, VERSION, ExportHeader
from tracescope.core.hardware import Basis
from tracescope.core.raw import RawTrace
from tracescope.core.report import ImportReport, Inference
from tracescope.core.samples import SampleTable
from tracescope.core.trace import Device, EventTable, StepTable, Trace, TraceMeta, Track
from tracescope.core.work_table import WorkTable
from tracescope.recognise.dependencies import find_dependencies
from tracescope.recognise.tracks.launches import find_launches
from tracescope.recognise.tracks.track_plan import plan_tracks

_OPS: Final = {op.label: op for op in Op if op.label is not None}
_CATEGORIES: Final = {category.label: category for category in Category}
_SAID: Final = frozenset({"op", "category", "roles", "flags", "step", "layer", "bytes_from", "floor_ns"})
_OWN: Final = _SAID | frozenset(AMOUNTS.values())
_COLUMNS: Final = {"category": 0, "roles": 1, "op": 2, "layer": 3, "step": 4, "work": 5, "detail": 7}
"""Columns of events by their place in what an event's arguments say."""
_FAULTS: Final = (msgspec.ValidationError, ValueError, TypeError, KeyError, IndexError, OverflowError)


def restored(raw: RawTrace, basis: Basis | None) -> Trace | None:
    """The trace that ``raw`` is an export of; None where it is none, or says something that cannot be."""
    if KEY not in raw.metadata:
        return None
    try:
        header = msgspec.convert(raw.metadata[KEY], ExportHeader)
        return _Restorer(raw, header).trace(basis) if header.export == VERSION else None
    except _FAULTS:
        return None


class _Restorer:
    """Reads the arguments of an export back into columns."""

    def __init__(self, raw: RawTrace, header: ExportHeader) -> None:
        self.raw = raw
        self.header = header
        self.tracks = tuple(Track(TrackKind(t.kind), t.name, t.process, t.device, t.rank) for t in header.tracks)
        known = {(t.pid, t.tid): i for i, t in enumerate(header.tracks) if t.pid >= 0}
        place = np.array([known.get(_ids(t.pid, t.tid), -1) for t in raw.tracks] or [-1], np.int64)
        self.track = place[raw.events.track]
        self.rows = np.flatnonzero(self.track >= 0)
        self._work: dict[tuple[int, ...], int] = {(*[-1] * len(AMOUNTS), int(BytesFrom.NONE)): 0}
        self._details: dict[str, int] = {"": 0}

    def trace(self, basis: Basis | None) -> Trace:
        """Everything as a Trace; ValueError where its parts do not fit each other."""
        raw, header = self.raw, self.header
        e, rows = raw.events, self.rows
        laid = lay_out(self.track[rows], e.start[rows], e.duration[rows], self.tracks)
        order = rows[laid.order]
        said = np.array([self._said(text) for text in raw.details], np.int64)[e.detail[order]]
        names = list(raw.names)
        labels = [self._number(names, label) for label in header.labels]
        steps = StepTable(
            label=np.array(labels, np.uint32),
            **self._step_columns(),
        )
        flags = e.flags[order] | said[:, 6].astype(np.uint8)
        columns: dict[str, Any] = {name: said[:, at] for name, at in _COLUMNS.items()}
        events = EventTable(
            start=e.start[order],
            duration=e.duration[order],
            name=e.name[order],
            flags=flagged_overlaps(flags, laid),
            **columns,
        )
        amounts = np.array(list(self._work), np.int64).T
        work: dict[str, Any] = dict(zip([*AMOUNTS, "bytes_from"], amounts, strict=True))
        position = np.full(len(e) + 1, -1, np.int64)
        position[order] = np.arange(len(order))
        call = find_launches(raw, plan_tracks(raw)).call[order]
        return Trace(
            meta=self._meta(basis, int(steps.decode.sum())),
            tracks=self.tracks,
            lanes=laid.lanes,
            events=events,
            names=tuple(names) or ("",),
            work=WorkTable(**work),
            details=tuple(self._details),
            steps=steps,
            dependencies=find_dependencies(position[call], events, steps),
            samples=self._samples(),
        )

    def _step_columns(self) -> dict[str, Any]:
        return {f.name: np.array(self.header.steps[f.name], np.int64) for f in fields(StepTable) if f.name != "label"}

    @staticmethod
    def _number(names: list[str], label: str) -> int:
        if label not in names:
            names.append(label)
        return names.index(label)

    def _said(self, text: str) -> tuple[int, ...]:
        """(category, roles, op, layer, step, work, flags, detail) of an event with the arguments ``text``."""
        said: dict[str, Any] = msgspec.json.decode(text) if text else {}
        category = _CATEGORIES[said.get("category", Category.HOST.label)]
        amounts = tuple(int(said.get(argument, -1)) for argument in AMOUNTS.values())
        origin = int(said.get("bytes_from", BytesFrom.NONE))
        recorded = {key: value for key, value in said.items() if key not in _OWN}
        detail = msgspec.json.encode(recorded).decode() if recorded else ""
        return (
            category,
            int(said.get("roles", category.role)),
            _OPS[said["op"]] if "op" in said else Op.NONE,
            int(said.get("layer", -1)),
            int(said.get("step", -1)),
            self._work.setdefault((*amounts, origin), len(self._work)),
            int(said.get("flags", 0)),
            self._details.setdefault(detail, len(self._details)),
        )

    def _samples(self) -> SampleTable:
        counters = {t.name: i for i, t in enumerate(self.tracks) if t.kind is TrackKind.COUNTER}
        found = sorted(
            ((counters[c.name], c) for c in self.raw.counters if c.name in counters and c.name not in DERIVED),
            key=lambda one: one[0],
        )
        if not found:
            return SampleTable.empty()
        order: list[I64] = [np.argsort(c.time, kind="stable") for _, c in found]
        return SampleTable(
            track=np.repeat([t for t, _ in found], [len(o) for o in order]).astype(np.uint32),
            time=np.concatenate([c.time[o] for (_, c), o in zip(found, order, strict=True)]),
            value=np.concatenate([c.value[o] for (_, c), o in zip(found, order, strict=True)]),
        )

    def _meta(self, basis: Basis | None, decode: int) -> TraceMeta:
        raw, header = self.raw, self.header
        names = {d.device: d.name for d in raw.devices}
        used = dict.fromkeys((t.device, t.rank) for t in self.tracks if t.kind is TrackKind.DEVICE_STREAM)
        what = (
            f"steps, layers and bytes as an export of tracescope says ({len(header.labels):,} steps, {decode:,} decode)"
        )
        return TraceMeta(
            created_by=f"tracescope {__version__}",
            source=raw.source,
            report=ImportReport(
                seen=raw.seen,
                imported=raw.imported,
                dropped=dict(raw.dropped),
                flagged=dict(raw.flagged),
                truncated_at_byte=raw.truncated_at_byte,
                inferred=(Inference(what, "own export", 0.99),),
            ),
            hardware=basis.hardware if basis else None,
            bandwidth_bytes_per_s=basis.bandwidth_bytes_per_s if basis else None,
            bandwidth_source=basis.bandwidth_source if basis else "unknown",
            compute_dtype=basis.compute_dtype if basis else "bf16",
            base_ns=header.base_ns,
            resolution_ns=header.resolution_ns,
            devices=tuple(Device(device, rank, names.get(device, "")) for device, rank in used),
            notes=tuple(header.notes),
        )


def _ids(pid: str, tid: str) -> tuple[int, int]:
    plain = pid.isdecimal() and tid.isdecimal()
    return (int(pid), int(tid) % SUB_LANE) if plain else (-1, -1)
