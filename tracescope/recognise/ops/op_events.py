"""Op events: the events that are one op each, in the order of their step. Layers and op names are read off them.

On a device every event is an op event. Without a device an op event is an outermost operator that a rule knows; what
that operator calls belongs to it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I32, I64, U8, U16, Bool
from tracescope.core.raw import RawTrace
from tracescope.recognise.names.collective_bytes import read_collective
from tracescope.recognise.names.kernel_rules import KERNEL_RULES, OPERATOR_RULES, Family, Rule, classify
from tracescope.recognise.names.shapes import GEMM_LEAVES, OpShape, ShapeKind, is_attention, is_shaped, read_shape
from tracescope.recognise.tracks.launches import Launches, enclosing, outermost
from tracescope.recognise.tracks.track_plan import TrackPlan, TrackRole

I8 = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class OpEvents:
    """``row`` of each op event in the source, in (start, source) order; ``family``, further ``roles``, and ``shape``.

    ``shape`` indexes ``shapes`` (-1: none). ``member`` rows are inside an op event and ``member_of`` says in which one
    (operators only); a member may carry the op event's bytes: ``member_shape``, -1 where it does not.
    """

    row: I64
    family: U8
    roles: U16
    shape: I32
    member: I64
    member_of: I64
    member_shape: I32
    shapes: tuple[OpShape, ...]
    on_device: bool


@dataclass(frozen=True, eq=False)
class _Shapes:
    """The distinct shapes of some rows: ``of_row`` int32 per row (-1 none) into ``shapes``."""

    of_row: I32
    shapes: tuple[OpShape, ...]


def _shapes_of(raw: RawTrace, rows: I64) -> _Shapes:
    """Read the shapes of ``rows`` once per distinct (name, detail)."""
    e = raw.events
    of_row = np.full(len(rows), -1, np.int32)
    shaped = np.array([is_shaped(n) for n in raw.names] or [False])[e.name[rows]] & (e.detail[rows] > 0)
    picked = np.flatnonzero(shaped)
    key = e.name[rows[picked]].astype(np.int64) << 32 | e.detail[rows[picked]]
    distinct, inverse = np.unique(key, return_inverse=True)
    shapes: list[OpShape] = []
    index: dict[OpShape, int] = {}
    number = np.full(len(distinct), -1, np.int32)
    for i, k in enumerate(distinct.tolist()):
        shape = read_shape(raw.names[k >> 32], raw.details[k & 0xFFFFFFFF])
        if shape is not None:
            if shape not in index:
                index[shape] = len(shapes)
                shapes.append(shape)
            number[i] = index[shape]
    of_row[picked] = number[inverse.reshape(-1)]
    return _Shapes(of_row, tuple(shapes))


def _kinds(shapes: tuple[OpShape, ...], index: I32) -> I8:
    """The ShapeKind of each shape index, -1 for none."""
    return np.array([*(s.kind for s in shapes), -1], np.int8)[index]


def device_op_events(raw: RawTrace, plan: TrackPlan, launches: Launches, rules: tuple[Rule, ...] = ()) -> OpEvents:
    """Every device event as an op event, with the shapes of the operator that launched it where those are recorded.

    ``rules`` are tried before the built-in ones.
    """
    e = raw.events
    row = np.flatnonzero(plan.at(TrackRole.DEVICE))
    row = row[np.argsort(e.start[row], kind="stable")]
    family_of_name, roles_of_name = classify(raw.telling_names, e.name[row], (*rules, *KERNEL_RULES))
    family = family_of_name[e.name[row]]
    roles = roles_of_name[e.name[row]]
    by = launching_operators(raw, plan, launches.call[row])
    none = np.empty(0, np.int64)
    shape = carriers_on_device(family, by)
    shapes = list(by.shapes)
    messages = np.flatnonzero(family == Family.COMMUNICATION)
    for detail in np.unique(e.detail[row[messages]]).tolist():
        message = read_collective(raw.details[detail])
        if message is not None:
            shape[messages[e.detail[row[messages]] == detail]] = len(shapes)
            shapes.append(message)
    return OpEvents(row, family, roles, shape, none, none, none.astype(np.int32), tuple(shapes), True)


@dataclass(frozen=True, eq=False)
class LaunchedBy:
    """The operator that ran around each of some calls: its row (-1 none), and its ``shape`` into ``shapes`` (-1 none).

    Only operators that record shapes are looked for.
    """

    operator: I64
    shape: I32
    shapes: tuple[OpShape, ...]


def launching_operators(raw: RawTrace, plan: TrackPlan, calls: I64) -> LaunchedBy:
    """The innermost operator with shapes around each row of ``calls`` (-1: no call is known)."""
    e = raw.events
    leaf = np.array([n in GEMM_LEAVES or is_attention(n) or is_shaped(n) for n in raw.names] or [False])
    operators = np.flatnonzero(plan.at(TrackRole.OPERATOR) & leaf[e.name])
    read = _shapes_of(raw, operators)
    carrying = operators[read.of_row >= 0]
    shape_of_operator = np.full(len(e) + 1, -1, np.int32)
    shape_of_operator[operators] = read.of_row
    operator = innermost(raw, calls, carrying)
    return LaunchedBy(operator, shape_of_operator[operator], read.shapes)


def innermost(raw: RawTrace, calls: I64, outer: I64) -> I64:
    """For each row of ``calls`` (-1: none) the innermost row of ``outer`` around it on its thread, -1 for none."""
    result = np.full(len(calls), -1, np.int64)
    known = np.flatnonzero(calls >= 0)
    for level in _levels(raw, outer):
        found = enclosing(raw, calls[known], level)
        # Deeper levels come later and replace what lies around them.
        result[known] = np.where(found >= 0, found, result[known])
    return result


def carriers_on_device(family: U8, by: LaunchedBy) -> I32:
    """The shape each op event carries, -1 for none: one kernel of an operator, the first of the family it is about.

    ``family`` is changed in place where a kernel's name says nothing and its operator's shapes do.
    """
    kind = _kinds(by.shapes, by.shape)
    vague = np.isin(family, (Family.ELEMENTWISE, Family.GEMM, Family.NONE, Family.EMBED))
    family[vague & (kind == ShapeKind.APPEND)] = Family.APPEND
    family[vague & (kind == ShapeKind.ATTENTION)] = Family.ATTENTION
    wanted = np.array(
        [
            Family.GEMM,
            Family.ATTENTION,
            Family.APPEND,
            Family.EMBED,
            Family.NORM,
            Family.NONE,
        ]
    )[kind]
    carries = (by.shape >= 0) & (family == wanted)
    _, first = np.unique(by.operator[carries], return_index=True)
    main = np.zeros(len(family), bool)
    main[np.flatnonzero(carries)[first]] = True
    return np.where(main, by.shape, -1).astype(np.int32)


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


def operator_op_events(raw: RawTrace, plan: TrackPlan, rules: tuple[Rule, ...] = ()) -> OpEvents:
    """The outermost known operators of a trace without a device as op events, and their members.

    ``rules`` are tried before the built-in ones.
    """
    e = raw.events
    rows = np.flatnonzero(plan.at(TrackRole.OPERATOR))
    rows = rows[np.lexsort((-e.duration[rows], e.start[rows], e.track[rows]))]
    read = _shapes_of(raw, rows)
    family_of_name, roles_of_name = classify(raw.names, e.name[rows], (*rules, *OPERATOR_RULES))
    family = family_of_name[e.name[rows]]
    kind = _kinds(read.shapes, read.of_row)
    name_is = {n: i for i, n in enumerate(raw.names)}
    family[(kind == ShapeKind.ATTENTION) & (family == Family.GEMM)] = Family.ATTENTION
    family[(kind == ShapeKind.APPEND) & (e.name[rows] == name_is.get("aten::cat", -1))] = Family.APPEND
    family[(kind != ShapeKind.APPEND) & (family == Family.APPEND)] = Family.ELEMENTWISE
    known = np.flatnonzero(family != Family.NONE)
    root = np.zeros(len(rows), bool)
    root[known[outermost(raw, rows[known])]] = True
    owner = np.cumsum(root) - 1
    roots = np.flatnonzero(root)
    inside = ~root & (owner >= 0)
    if len(roots):
        of = roots[np.maximum(owner, 0)]
        inside &= (e.track[rows] == e.track[rows[of]]) & (e.start[rows] < e.start[rows[of]] + e.duration[rows[of]])
    members = np.flatnonzero(inside)
    member_of = owner[members]
    reader = _Operators(rows, family, kind, read.of_row)
    shape, member_shape = _carriers(raw, reader, roots, members, member_of)
    # What no rule knows and lies in no op event (a compiled region, say) is one of its own around those inside it.
    loose = np.flatnonzero(~root & ~inside)
    roots = np.concatenate([roots, loose])
    shape = np.concatenate([shape, np.full(len(loose), -1, np.int32)])
    by_time = np.lexsort((-e.duration[rows[roots]], e.start[rows[roots]]))
    rank = np.empty(len(roots), np.int64)
    rank[by_time] = np.arange(len(roots))
    op_events = OpEvents(
        rows[roots][by_time],
        family[roots][by_time],
        roles_of_name[e.name[rows[roots]]][by_time],
        shape[by_time],
        rows[members],
        rank[member_of] if len(members) else member_of,
        member_shape,
        read.shapes,
        False,
    )
    _join_written_out(raw, op_events)
    return op_events


def unclassified_ns(raw: RawTrace, op_events: OpEvents, counted: Bool) -> int:
    """Time of the ``counted`` op events (bool[n]) that no rule matched, less what known operators inside took."""
    e = raw.events
    unknown = op_events.row[counted & (op_events.family == Family.NONE)]
    if op_events.on_device or not len(unknown):
        return int(e.duration[unknown].sum())
    unknown = unknown[np.lexsort((-e.duration[unknown], e.start[unknown], e.track[unknown]))]
    outer = unknown[outermost(raw, unknown)]
    known = op_events.row[op_events.family != Family.NONE]
    inside = known[enclosing(raw, known, outer) >= 0]
    return int(e.duration[outer].sum() - e.duration[inside].sum())


@dataclass(frozen=True, eq=False)
class _Operators:
    """All operators sorted by (thread, start, -duration): source rows, families, shape kinds and shape indices."""

    rows: I64
    family: U8
    kind: I8
    shape: I32


def _carriers(raw: RawTrace, operators: _Operators, roots: I64, members: I64, member_of: I64) -> tuple[I32, I32]:
    """Which events carry the bytes of each op event: the operators that run the product, else the op event itself."""
    rows, family, kind, shape = operators.rows, operators.family, operators.kind, operators.shape
    e = raw.events
    leaf_name = np.array([n in GEMM_LEAVES or is_attention(n) for n in raw.names] or [False])
    is_leaf = leaf_name[e.name[rows]] & (shape >= 0)
    wanted = np.array(
        [Family.GEMM, Family.ATTENTION, Family.APPEND, Family.EMBED, Family.NORM, 255],
        np.uint8,
    )[kind]
    leaf_member = is_leaf[members] & (wanted[members] == family[roots[member_of]])
    # Of nested leaves (fused attention inside fused attention) the innermost one carries.
    leaf_member_rows = np.flatnonzero(leaf_member)
    if len(leaf_member_rows) > 1:
        position = members[leaf_member_rows]
        end = e.start[rows[position]] + e.duration[rows[position]]
        same = member_of[leaf_member_rows][1:] == member_of[leaf_member_rows][:-1]
        contains_next = same & (e.start[rows[position]][1:] < end[:-1])
        leaf_member[leaf_member_rows[:-1][contains_next]] = False
    has_leaf = np.zeros(len(roots), bool)
    has_leaf[member_of[leaf_member]] = True
    own = (wanted[roots] == family[roots]) | ((kind[roots] == ShapeKind.NORM) & (family[roots] == Family.ELEMENTWISE))
    root_shape = np.where(has_leaf | ~own, -1, shape[roots]).astype(np.int32)
    return root_shape, np.where(leaf_member, shape[members], -1).astype(np.int32)


def _join_written_out(raw: RawTrace, op_events: OpEvents) -> None:
    """Mark norms and rotations that are written out in elementary operators, in place (the op events are still ours).

    A norm: the mean of squares, ``rsqrt`` and two products, the last with a vector of weights. A rotation: the half
    that is negated, joined and added.
    """
    e = raw.events
    name = e.name[op_events.row]
    number = {n: i for i, n in enumerate(raw.names)}
    codes = {short: number.get(f"aten::{short}", -1) for short in ("rsqrt", "pow", "mul", "to", "neg", "cat", "add")}
    loose = op_events.family == Family.ELEMENTWISE
    for at in np.flatnonzero((name == codes["rsqrt"]) & loose).tolist():
        back = [i for i in range(max(at - 5, 0), at) if name[i] == codes["pow"]]
        if not back:
            continue
        low = back[-1] - 1 if back[-1] and name[back[-1] - 1] == codes["to"] else back[-1]
        products = [i for i in range(at + 1, min(at + 6, len(name))) if name[i] == codes["mul"]]
        high = next((i for i in products if op_events.shape[i] >= 0), products[0] if products else at)
        op_events.family[low : high + 1] = Family.NORM_PART
        op_events.family[low] = Family.NORM_OPENING if op_events.shape[high] >= 0 else Family.NORM
    for at in np.flatnonzero((name == codes["neg"]) & loose).tolist():
        low = next((i for i in range(at - 1, max(at - 5, -1), -1) if name[i] == codes["mul"]), at)
        adds = [i for i in range(at + 1, min(at + 6, len(name))) if name[i] == codes["add"]]
        if adds and codes["cat"] in name[at : adds[0]]:
            op_events.family[low : adds[0] + 1] = Family.ROPE
    # A product with a vector outside a norm is no norm's weight.
    elementwise = (op_events.family == Family.ELEMENTWISE) & (op_events.shape >= 0)
    op_events.shape[elementwise] = -1
