"""Joins the recording of a graph's capture onto its replays: the capture has operators, shapes and modules, the replay
has the times."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import numpy as np

from tracescope.core.columns import I16, I32, I64
from tracescope.core.raw import RawTrace
from tracescope.core.report import Inference
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.names.shapes import OpShape, ShapeKind
from tracescope.recognise.ops.carriers import (
    LaunchedBy,
    carriers_on_device,
    innermost,
    launching_operators,
    prepares,
)
from tracescope.recognise.ops.layer_spans import module_layers
from tracescope.recognise.ops.op_events import OpEvents
from tracescope.recognise.tracks.launches import Launches
from tracescope.recognise.tracks.track_plan import TrackRole, plan_tracks

PIECE_KERNELS: Final = 8
"""A launch with at least this many kernels may be a replay, whatever the call is named."""

AGREE: Final = 0.95
"""The share of kernels whose recorded names must be those of the replay for a join by position."""

GRAPH_LAUNCH: Final = re.compile(r"graph_?launch", re.IGNORECASE)
CAPTURE: Final = re.compile(r"^capture_(?P<batch>\d+)_")
LAUNCH: Final = re.compile(r"^(hip|cu|cuda)\w*launch\w*kernel|^(hip|cu|cuda)mem(cpy|set)\w*async", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Captured:
    """One captured graph, which may be a piece of a model: what each launch in it belongs to, in order.

    ``kernel`` names, where recorded; ``by`` the operators, rows of the capture's file; ``layer`` -1 for none;
    ``detail`` the operator's recorded arguments with its name and module, ``""`` where it has none; ``gemm`` the
    launches' distinct matrix products in order, as positions into the launches' operators.
    """

    label: str
    batch: int
    kernel: tuple[str, ...]
    by: LaunchedBy
    layer: I16
    detail: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Joined:
    """Op events with what the capture adds; ``layer`` I16[n] is a hint, -1 for none; ``detail`` a text for each
    op event, ``""`` for none.
    """

    op_events: OpEvents
    layer: I16 | None
    detail: dict[int, str]
    inferred: tuple[Inference, ...]


def read_captures(raw: RawTrace) -> tuple[Captured, ...]:
    """The graphs that were captured in a recording, in order; none without launches.

    One a begin and end of a capture; where the file records neither, one a ``capture_…`` annotation, else the file.
    """
    plan = plan_tracks(raw)
    e = raw.events
    is_launch = np.array([bool(LAUNCH.match(n)) for n in raw.names] or [False])
    calls = np.flatnonzero(plan.at(TrackRole.HOST) & is_launch[e.name])
    calls = calls[np.argsort(e.start[calls], kind="stable")]
    pieces = _pieces(raw)
    if not len(calls):
        return ()
    by = launching_operators(raw, plan, calls)
    modules = innermost(raw, calls, _modules(raw, plan.at(TrackRole.PYTHON)))
    layer = module_layers(raw, plan, calls)
    layers = np.full(len(calls), -1, np.int16) if layer is None else layer
    found = []
    windows = _windows(raw, plan.at(TrackRole.ANNOTATION, TrackRole.HOST))
    for label, batch, low, high in _cut(windows, pieces) if pieces else windows:
        inside = np.flatnonzero((e.start[calls] >= low) & (e.start[calls] < high))
        if len(inside):
            found.append(
                Captured(
                    label,
                    batch,
                    tuple(_kernel_name(raw.details[d]) for d in e.detail[calls[inside]].tolist()),
                    LaunchedBy(by.operator[inside], by.whole[inside], by.shape[inside], by.shapes),
                    layers[inside],
                    tuple(_detail(raw, o, m) for o, m in zip(by.operator[inside], modules[inside], strict=True)),
                )
            )
    return tuple(found)


def _pieces(raw: RawTrace) -> list[tuple[int, int]]:
    """From each beginning of a capture to the end that follows it, ns as the file counts, in time order."""
    e = raw.events
    begins = np.array(["streambegincapture" in n.lower() for n in raw.names] or [False])[e.name]
    ends = np.array(["streamendcapture" in n.lower() for n in raw.names] or [False])[e.name]
    begun, ended = np.sort(e.start[begins]), np.sort(e.start[ends])
    last = int((e.start + e.duration).max()) + 1 if len(e) else 0
    limit = np.append(begun[1:], last)
    following = np.append(ended, last)[np.searchsorted(ended, begun)]
    return list(zip(begun.tolist(), np.minimum(limit, following).tolist(), strict=True))


def _cut(windows: list[tuple[str, int, int, int]], pieces: list[tuple[int, int]]) -> list[tuple[str, int, int, int]]:
    """One window a piece, called what the window around it is called; pieces outside all of them are left out."""
    found = []
    for low, high in pieces:
        around = [w for w in windows if w[2] <= low < w[3]]
        if around:
            label, batch, _, _ = min(around, key=lambda w: w[3] - w[2])
            found.append((label, batch, low, high))
    return found


def _modules(raw: RawTrace, python: np.ndarray[Any, np.dtype[np.bool_]]) -> I64:
    named = np.array([n.startswith("nn.Module: ") for n in raw.names] or [False])
    return np.flatnonzero(python & named[raw.events.name])


def _windows(raw: RawTrace, places: np.ndarray[Any, np.dtype[np.bool_]]) -> list[tuple[str, int, int, int]]:
    e = raw.events
    matches = {i: m for i, n in enumerate(raw.names) if (m := CAPTURE.match(n))}
    wanted = np.zeros(max(len(raw.names), 1), bool)
    wanted[list(matches)] = True
    rows = np.flatnonzero(places & wanted[e.name])
    if not len(rows):
        first, last = int(e.start.min()), int((e.start + e.duration).max())
        return [(raw.source.name, -1, first, last + 1)]
    return [
        (raw.names[n], int(matches[n]["batch"][:9]), int(e.start[r]), int(e.start[r] + e.duration[r]))
        for r, n in zip(rows.tolist(), e.name[rows].tolist(), strict=True)
    ]


def _decoded(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _kernel_name(detail: str) -> str:
    name = _decoded(detail).get("kernel", "") if '"kernel"' in detail else ""
    return name if isinstance(name, str) else ""


def _detail(raw: RawTrace, operator: int, module: int) -> str:
    if operator < 0 and module < 0:
        return ""
    e = raw.events
    fields: dict[str, Any] = {}
    if operator >= 0:
        recorded = _decoded(raw.details[int(e.detail[operator])])
        fields["operator"] = raw.names[int(e.name[operator])]
        fields |= {key: recorded[key] for key in ("Input Dims", "Input type") if key in recorded}
    if module >= 0:
        fields["module"] = raw.names[int(e.name[module])].removeprefix("nn.Module: ")
    return msgspec.json.encode(fields).decode()


def join_captures(raw: RawTrace, op_events: OpEvents, launches: Launches, captures: Sequence[Captured]) -> Joined:
    """Give the kernels of each replay the operators of the capture that fits it; what fits none stays as it is.

    By position, where a capture has as many launches as the replay has kernels and their names agree; else matrix
    product by matrix product, where both have as many. Of several graphs that fit, the one captured next after the
    one that was joined last: a model in pieces replays them in the order in which they were captured.
    """
    joiner = _Joiner(raw, op_events, captures)
    call = launches.call[op_events.row]
    known = np.flatnonzero(call >= 0)
    calls, counts = np.unique(call[known], return_counts=True)
    is_graph = np.array([bool(GRAPH_LAUNCH.search(n)) for n in raw.names] or [False])[raw.events.name[calls]]
    replays = calls[(counts >= PIECE_KERNELS) | is_graph]
    for graph in replays[np.argsort(raw.events.start[replays], kind="stable")].tolist():
        joiner.join(np.flatnonzero(call == graph))
    return joiner.joined()


class _Joiner:
    """Fills shapes, families, layers and details of the op events of one graph after the other."""

    def __init__(self, raw: RawTrace, op_events: OpEvents, captures: Sequence[Captured]) -> None:
        self.raw = raw
        self.op_events = op_events
        self.captures = captures
        self.family = op_events.family.copy()
        self.shape: I32 = op_events.shape.copy()
        self.shapes: list[OpShape] = list(op_events.shapes)
        self.layer = np.full(len(op_events.row), -1, np.int16)
        self.detail: dict[int, str] = {}
        self.took = raw.events.duration[op_events.row]
        self.prepared = prepares(raw, raw.events.name[op_events.row])
        self.notes: dict[str, list[tuple[int, int]]] = {}
        self.misfits = 0
        self.next = 0

    def join(self, members: I64) -> None:
        """Join the best capture onto the op events ``members`` of one graph launch, in the order in which they ran."""
        count = len(self.captures)
        in_turn = [(self.next + k) % count for k in range(count)]
        for at in in_turn:
            if self._names_agree(self.captures[at], members):
                self.next = at + 1
                return self._by_position(self.captures[at], members)
        gemms = self._gemms(members)
        for at in in_turn if len(members) >= PIECE_KERNELS else ():
            products = _products(self.captures[at])
            if len(gemms) and len(gemms) == len(products):
                self.next = at + 1
                return self._by_product(self.captures[at], gemms, products)
        self.misfits += 1
        return None

    def _names_agree(self, capture: Captured, members: I64) -> bool:
        if len(capture.kernel) != len(members):
            return False
        names = self.raw.telling_names
        ran = [names[n] for n in self.raw.events.name[self.op_events.row[members]].tolist()]
        pairs = [(a, b) for a, b in zip(capture.kernel, ran, strict=True) if a]
        same = sum(bool(a == b) for a, b in pairs)
        if pairs:
            return same >= AGREE * len(pairs)
        products = len(_products(capture))
        enough = products > 0 or len(members) >= PIECE_KERNELS
        return enough and products == len(self._gemms(members))

    def _gemms(self, members: I64) -> I64:
        found: I64 = members[self.family[members] == Family.GEMM]
        return found

    def _number(self, shapes: Sequence[OpShape]) -> I32:
        """Where each of ``shapes`` stands in this join's list, and -1 last for none."""
        low = len(self.shapes)
        self.shapes += shapes
        return np.array([*range(low, low + len(shapes)), -1], np.int32)

    def _by_position(self, capture: Captured, members: I64) -> None:
        family = self.family[members]
        own = carriers_on_device(family, capture.by, self.took[members], self.prepared[members])
        self.family[members] = family
        self.shape[members] = self._number(capture.by.shapes)[own]
        self.layer[members] = capture.layer
        self.detail |= {m: d for m, d in zip(members.tolist(), capture.detail, strict=True) if d}
        self._count(capture, "launch by launch", members)

    def _by_product(self, capture: Captured, gemms: I64, products: I64) -> None:
        self.shape[gemms] = self._number(capture.by.shapes)[capture.by.shape[products]]
        self.layer[gemms] = -1
        self.detail |= {m: capture.detail[p] for m, p in zip(gemms.tolist(), products.tolist(), strict=True)}
        self._count(capture, "matrix product by matrix product", gemms)

    def _count(self, capture: Captured, how: str, members: I64) -> None:
        kinds = np.array([*(s.kind for s in self.shapes), -1], np.int8)[self.shape[members]]
        counted = (int((kinds == ShapeKind.GEMM).sum()), int((kinds >= 0).sum()))
        self.notes.setdefault(f"{capture.label}, joined {how}", []).append(counted)

    def joined(self) -> Joined:
        """The op events with all that was joined, and what to say about it."""
        inferred = []
        for how, counts in self.notes.items():
            products, kernels = (sum(n) for n in zip(*counts, strict=True))
            replays = f"{len(counts):,} graph launch{'' if len(counts) == 1 else 'es'}"
            what = f"{replays} with shapes of {products:,} matrix products and {kernels:,} kernels from {how}"
            inferred.append(Inference(what, "graph capture joined", 0.95 if "launch by launch" in how else 0.8))
        if self.misfits or not self.notes:
            what = f"the capture fits none of {self.misfits:,} graph launches: other kernels, or another number of them"
            inferred.append(Inference(what, "graph capture does not fit", 0.9))
        op_events = replace(self.op_events, family=self.family, shape=self.shape, shapes=tuple(self.shapes))
        hinted = self.layer if (self.layer >= 0).any() else None
        return Joined(op_events, hinted, self.detail, tuple(inferred))


def _products(capture: Captured) -> I64:
    """The first launch of each matrix product of a capture, in order."""
    is_gemm = np.array([*(s.kind is ShapeKind.GEMM for s in capture.by.shapes), False])[capture.by.shape]
    at = np.flatnonzero(is_gemm)
    _, first = np.unique(capture.by.operator[at], return_index=True)
    return at[np.sort(first)]


def with_details(raw: RawTrace, joined: Joined) -> RawTrace:
    """``raw`` with what the capture recorded of each kernel beside what the replay did."""
    if not joined.detail:
        return raw
    details = list(raw.details)
    column = raw.events.detail.copy()
    known: dict[tuple[int, str], int] = {}
    for op_event, text in joined.detail.items():
        row = int(joined.op_events.row[op_event])
        key = (int(column[row]), text)
        if key not in known:
            known[key] = len(details)
            details.append(msgspec.json.encode(_decoded(raw.details[key[0]]) | _decoded(text)).decode())
        column[row] = known[key]
    return replace(raw, details=tuple(details), events=replace(raw.events, detail=column))
