"""Which kernel of an operator moves its bytes: operators launch kernels that prepare, that work and that clean up."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I32, I64, U8, Bool
from tracescope.core.raw import RawTrace
from tracescope.recognise.names.kernel_rules import OPERATOR_RULES, Family, classify
from tracescope.recognise.names.shapes import GEMM_LEAVES, HELPER, OpShape, ShapeKind, is_attention, is_shaped
from tracescope.recognise.ops.attention import read_shapes
from tracescope.recognise.tracks.launches import enclosing, outermost
from tracescope.recognise.tracks.track_plan import TrackPlan, TrackRole

FAMILY_OF_SHAPE: Final = {
    ShapeKind.GEMM: Family.GEMM,
    ShapeKind.BATCHED: Family.GEMM,
    ShapeKind.ATTENTION: Family.ATTENTION,
    ShapeKind.APPEND: Family.APPEND,
    ShapeKind.EMBED: Family.EMBED,
    ShapeKind.NORM: Family.NORM,
}
"""What a kernel is that moves the bytes of such a shape."""

VAGUE: Final = (Family.ELEMENTWISE, Family.GEMM, Family.NONE, Family.EMBED)
"""Families of kernels whose name may hide what the operator is about."""

HELPS: Final = (
    Family.COPY,
    Family.ELEMENTWISE,
    Family.QUANT,
    Family.RANKING,
    Family.BOOKKEEPING,
    Family.GEMM_PART,
    Family.ATTENTION_PART,
    Family.NONE,
)
"""What prepares the kernel that carries, or finishes its work. A kernel of another family has bytes of its own."""

_PREPARES: Final = re.compile(r"fillfunctor|fill_kernel|zero_kernel|direct_copy|tofloat|tohalf|tobfloat|_cast_", re.I)
"""Fills, copies and casts by name: none of them is what an operator of products or of attention is about."""


@dataclass(frozen=True, eq=False)
class LaunchedBy:
    """The operator that ran around each of some calls: its row (-1 none), and its ``shape`` into ``shapes`` (-1 none).

    Only operators that record shapes are looked for. ``whole``: the outermost operator about the same thing around it
    (a ``linear`` around an ``addmm``), which has its bytes once. The last of ``shapes`` is that of a helper.
    """

    operator: I64
    whole: I64
    shape: I32
    shapes: tuple[OpShape, ...]


def launching_operators(raw: RawTrace, plan: TrackPlan, calls: I64) -> LaunchedBy:
    """The innermost operator with shapes around each row of ``calls`` (-1: no call is known)."""
    e = raw.events
    leaf = np.array([n in GEMM_LEAVES or is_attention(n) or is_shaped(n) for n in raw.names] or [False])
    operators = np.flatnonzero(plan.at(TrackRole.OPERATOR) & leaf[e.name])
    read = read_shapes(raw, operators)
    carrying = operators[read.of_row >= 0]
    shape_of_operator = np.full(len(e) + 1, -1, np.int32)
    shape_of_operator[operators] = read.of_row
    whole_of_operator = np.full(len(e) + 1, -1, np.int64)
    kind = kinds_of(read.shapes, shape_of_operator[carrying])
    for k in np.unique(kind).tolist():
        alike = carrying[kind == k]
        order = alike[np.lexsort((-e.duration[alike], e.start[alike], e.track[alike]))]
        whole_of_operator[alike] = enclosing(raw, alike, order[outermost(raw, order)])
    operator = innermost(raw, calls, carrying)
    return LaunchedBy(operator, whole_of_operator[operator], shape_of_operator[operator], (*read.shapes, HELPER))


def kinds_of(shapes: tuple[OpShape, ...], index: I32) -> NDArray[np.int8]:
    """The ShapeKind of each shape index, -1 for none."""
    return np.array([*(s.kind for s in shapes), -1], np.int8)[index]


def innermost(raw: RawTrace, calls: I64, outer: I64) -> I64:
    """For each row of ``calls`` (-1: none) the innermost row of ``outer`` around it on its thread, -1 for none."""
    result = np.full(len(calls), -1, np.int64)
    known = np.flatnonzero(calls >= 0)
    for level in _levels(raw, outer):
        found = enclosing(raw, calls[known], level)
        # Deeper levels come later and replace what lies around them.
        result[known] = np.where(found >= 0, found, result[known])
    return result


def _levels(raw: RawTrace, rows: I64) -> list[I64]:
    """``rows`` split into sets that do not nest within a thread, outermost first."""
    e = raw.events
    order = rows[np.lexsort((-e.duration[rows], e.start[rows], e.track[rows]))]
    levels: list[I64] = []
    while len(order):
        outer = outermost(raw, order)
        levels.append(order[outer])
        order = order[~outer]
    return levels


def prepares(raw: RawTrace, name: NDArray[np.integer]) -> Bool:
    """Which events of the ``name`` ids fill, copy or cast by their name; bool."""
    told = np.zeros(len(raw.names) + 1, bool)
    for code in np.unique(name).tolist():
        told[code] = bool(_PREPARES.search(raw.telling_names[code][:2000]))
    found: Bool = told[name]
    return found


def carriers_on_device(family: U8, by: LaunchedBy, took: I64, prepared: Bool) -> I32:
    """The shape each op event carries, -1 for none, that of a helper for those whose operator's bytes another has.

    One kernel of an operator carries: of those whose name is of the operator's family the longest, else the longest
    whose name does not say that it is about something else; never one that is ``prepared`` (fills, copies, casts).
    ``took``: how long each lasted, ns. ``family`` is changed in place where a kernel's name said nothing.
    """
    kind = kinds_of(by.shapes, by.shape)
    wanted = np.array([FAMILY_OF_SHAPE.get(ShapeKind(k), Family.NONE) for k in range(len(ShapeKind))] + [255])[kind]
    launched = by.shape >= 0
    own = launched & (family == wanted)
    # The weights of a norm are read by what is called a norm: an operator that multiplies is most often none.
    vague = launched & ~own & np.isin(family, VAGUE) & (wanted != Family.NORM) & ~prepared
    # A concatenation may be a mere copy; where another kernel can have done it, the copy prepared that.
    copies = launched & (wanted == Family.APPEND) & ((family == Family.COPY) | prepared & (family != Family.APPEND))
    standing = own * 3 + vague * 2 + (copies & ~vague) * 1
    candidates = np.flatnonzero(standing)
    order = candidates[np.lexsort((candidates, -took[candidates], -standing[candidates], by.whole[candidates]))]
    wholes, first = np.unique(by.whole[order], return_index=True)
    main = order[first]
    family[main] = wanted[main]
    shape = np.full(len(family), -1, np.int32)
    helper = launched & np.isin(by.whole, wholes) & (np.isin(family, HELPS) | (family == wanted))
    shape[helper] = len(by.shapes) - 1
    shape[main] = by.shape[main]
    return shape


def family_of_operator(raw: RawTrace, plan: TrackPlan, calls: I64) -> U8:
    """The family of the innermost operator around each of ``calls`` whose name a rule knows; Family.NONE for none."""
    e = raw.events
    operators = np.flatnonzero(plan.at(TrackRole.OPERATOR))
    if not len(operators) or not (calls >= 0).any():
        return np.zeros(len(calls), np.uint8)
    family_of_name, _ = classify(raw.names, e.name[operators], OPERATOR_RULES)
    known = operators[family_of_name[e.name[operators]] != Family.NONE]
    around = innermost(raw, calls, known)
    return np.where(around >= 0, family_of_name[e.name[around]], np.uint8(Family.NONE)).astype(np.uint8)
