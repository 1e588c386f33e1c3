"""Evidence of attention and of a cache: a softmax between two products, a concatenation whose result grows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from tracescope.core.columns import I32, I64, U8, U32, Bool
from tracescope.core.raw import RawTrace
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.names.shapes import OpShape, ShapeKind, is_shaped, read_shape

_SOFTMAX: Final = re.compile(r"soft_?max", re.IGNORECASE)
_LOG_SOFTMAX: Final = re.compile(r"log_?soft_?max|cross_?entropy|nll_?loss", re.IGNORECASE)
_CACHE: Final = re.compile(r"cache|kv|k_set_rows", re.IGNORECASE)
"""Words of a kernel or an operator that writes into a cache and nothing else."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """The distinct shapes of some rows: ``of_row`` int32 per row (-1 none) into ``shapes``."""

    of_row: I32
    shapes: tuple[OpShape, ...]


def read_shapes(raw: RawTrace, rows: I64) -> Shapes:
    """Read the shapes of ``rows`` once per distinct (name, detail); concatenations stay where they join a cache."""
    e = raw.events
    of_row = np.full(len(rows), -1, np.int32)
    shaped = np.array([is_shaped(n) for n in raw.names] or [False])[e.name[rows]] & (e.detail[rows] > 0)
    picked = np.flatnonzero(shaped)
    key = e.name[rows[picked]].astype(np.int64) << 32 | e.detail[rows[picked]]
    distinct, inverse = np.unique(key, return_inverse=True)
    shapes: dict[OpShape, int] = {}
    number = np.full(len(distinct), -1, np.int32)
    for i, k in enumerate(distinct.tolist()):
        shape = read_shape(raw.names[k >> 32], raw.details[k & 0xFFFFFFFF])
        if shape is not None:
            number[i] = shapes.setdefault(shape, len(shapes))
    kept = np.append(growing(list(shapes)), False)
    of_row[picked] = np.where(kept[number], number, -1)[inverse.reshape(-1)]
    return Shapes(of_row, tuple(shapes))


def growing(shapes: Sequence[OpShape]) -> Bool:
    """Which of ``shapes`` stand: all, but for concatenations of what is no cache; bool.

    A cache grows: it was empty, or its result is what another of its kind begins with, or attention sees all of it
    with no more queries than were joined on. Never more is joined on than was there.
    """
    seen = {(s.queries, s.keys) for s in shapes if s.kind is ShapeKind.ATTENTION}
    seen |= {(s.queries, s.columns) for s in shapes if s.kind is ShapeKind.BATCHED}
    joins = [s for s in shapes if _is_join(s)]
    before = {(s.append_elements // s.queries, s.keys - s.queries) for s in joins if s.queries}
    after = {(s.append_elements // s.queries, s.keys) for s in joins if s.queries}
    return np.array([not _is_join(s) or _grows(s, seen, before, after) for s in shapes], bool)


def _is_join(shape: OpShape) -> bool:
    return shape.kind is ShapeKind.APPEND and shape.keys >= 0


def _grows(s: OpShape, seen: set[tuple[int, int]], before: set[tuple[int, int]], after: set[tuple[int, int]]) -> bool:
    past, width = s.keys - s.queries, s.append_elements // max(s.queries, 1)
    if past == 0:
        return True
    return s.queries <= past and ((s.queries, s.keys) in seen or (width, s.keys) in before or (width, past) in after)


def is_softmax(name: str) -> bool:
    """Whether a kernel or an operator of this name weighs keys; the logarithm of one is of a loss or of sampling."""
    return bool(_SOFTMAX.search(name)) and not _LOG_SOFTMAX.search(name)


def written_out(raw: RawTrace, name: U32, family: U8, shape: I32, shapes: tuple[OpShape, ...]) -> Bool:
    """Which op events are products of an attention that is written out; bool.

    Two batched products are attention where a softmax, and no other product, stands between them, and the second
    begins with what the first left. ``family`` and ``name`` are those of the op events in the order in which they ran.
    """
    part = np.zeros(len(shape), bool)
    batched = np.array([*(s.kind is ShapeKind.BATCHED for s in shapes), False])[shape]
    candidates = np.flatnonzero(batched).tolist()
    if len(candidates) < 2:
        return part
    weighs = np.zeros(len(raw.names) + 1, bool)
    for code in np.unique(name).tolist():
        weighs[code] = is_softmax(raw.telling_names[code][:2000])
    softmax = np.cumsum(weighs[name])
    products = np.cumsum(np.isin(family, (Family.GEMM, Family.EXPERTS)) | batched)
    for first, second in pairwise(candidates):
        one, two = shapes[shape[first]], shapes[shape[second]]
        between = softmax[second] > softmax[first] and products[second] - products[first] == 1
        if between and one.rows == two.rows and one.columns == two.inner:
            part[[first, second]] = True
    return part


def with_attention_of(shapes: tuple[OpShape, ...]) -> tuple[tuple[OpShape, ...], I32]:
    """``shapes`` with a shape of attention for each batched product, and where each shape's stands (its own, else)."""
    grown = list(shapes)
    as_part = np.arange(len(shapes) + 1, dtype=np.int32)
    as_part[-1] = -1
    for i, shape in enumerate(shapes):
        if shape.kind is ShapeKind.BATCHED:
            as_part[i] = len(grown)
            grown.append(replace(shape, kind=ShapeKind.ATTENTION, weight=0))
    return tuple(grown), as_part


def unfounded_appends(raw: RawTrace, name: U32, family: U8) -> Bool:
    """Which op events are taken for KV appends though nothing in the recording attends, nor their name says cache."""
    attends = np.isin(family, (Family.ATTENTION, Family.ATTENTION_PART)).any()
    appends = family == Family.APPEND
    if attends or not appends.any():
        return np.zeros(len(family), bool)
    said = np.zeros(len(raw.names) + 1, bool)
    for code in np.unique(name[appends]).tolist():
        said[code] = bool(_CACHE.search(raw.telling_names[code]))
    found: Bool = appends & ~said[name]
    return found
