"""Op events: the events that are one op each, in the order of their step. Layers and op names are read off them.

On a device every event is an op event. Without a device an op event is an outermost operator that a rule knows; what
that operator calls belongs to it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracescope.core.columns import I32, I64, U8, U16, Bool
from tracescope.core.ownership import union_of
from tracescope.core.raw import RawTrace
from tracescope.core.report import Inference
from tracescope.core.units import duration, plural
from tracescope.recognise.names.collective_bytes import read_collective
from tracescope.recognise.names.compiler_ops import family_by_compiler
from tracescope.recognise.names.kernel_rules import KERNEL_RULES, OPERATOR_RULES, Family, Rule, classify
from tracescope.recognise.names.shapes import GEMM_LEAVES, OpShape, ShapeKind, is_attention
from tracescope.recognise.ops.attention import read_shapes, unfounded_appends, with_attention_of, written_out
from tracescope.recognise.ops.carriers import (
    FAMILY_OF_SHAPE,
    carriers_on_device,
    family_of_operator,
    kinds_of,
    launching_operators,
    prepares,
)
from tracescope.recognise.tracks.launches import Launches, outermost
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
    inferred: tuple[Inference, ...] = ()


def device_op_events(raw: RawTrace, plan: TrackPlan, launches: Launches, rules: tuple[Rule, ...] = ()) -> OpEvents:
    """Every device event as an op event, with the shapes of the operator that launched it where those are recorded.

    ``rules`` are tried before the built-in ones.
    """
    e = raw.events
    row = np.flatnonzero(plan.at(TrackRole.DEVICE))
    row = row[np.argsort(e.start[row], kind="stable")]
    name = e.name[row]
    family_of_name, roles_of_name = classify(raw.telling_names, name, (*rules, *KERNEL_RULES))
    family = family_of_name[name]
    _by_compiler(raw, row, family)
    by = launching_operators(raw, plan, launches.call[row])
    shape = carriers_on_device(family, by, e.duration[row], prepares(raw, name))
    inferred = _by_operator(raw, plan, launches.call[row], row, family)
    part = written_out(raw, name, family, shape, by.shapes)
    shapes, as_attention = with_attention_of(by.shapes)
    family[part], shape[part] = Family.ATTENTION, as_attention[shape[part]]
    told, _ = classify(raw.telling_names, name, rules) if rules else (np.zeros(len(raw.names), np.uint8), None)
    unfounded = unfounded_appends(raw, name, family) & (told[name] == Family.NONE)
    family[unfounded], shape[unfounded] = Family.ELEMENTWISE, -1
    shapes, shape = _messages(raw, row, family, shapes, shape)
    none = np.empty(0, np.int64)
    return OpEvents(row, family, roles_of_name[name], shape, none, none, none.astype(np.int32), shapes, True, inferred)


def _messages(
    raw: RawTrace, row: I64, family: U8, shapes: tuple[OpShape, ...], shape: I32
) -> tuple[tuple[OpShape, ...], I32]:
    """``shapes`` and ``shape`` with the messages that were recorded with collectives."""
    e = raw.events
    grown = list(shapes)
    messages = np.flatnonzero(family == Family.COMMUNICATION)
    for detail in np.unique(e.detail[row[messages]]).tolist():
        message = read_collective(raw.details[detail])
        if message is not None:
            shape[messages[e.detail[row[messages]] == detail]] = len(grown)
            grown.append(message)
    return tuple(grown), shape


def _by_compiler(raw: RawTrace, row: I64, family: U8) -> None:
    """What a compiler says of its own op, in place, where the op's name tells no more than that it is one."""
    e = raw.events
    vague = np.flatnonzero(np.isin(family, (Family.NONE, Family.ELEMENTWISE)))
    detail = e.detail[row[vague]]
    said = np.zeros(len(raw.details) + 1, np.uint8)
    for code in np.unique(detail).tolist():
        said[code] = family_by_compiler(raw.details[code])
    family[vague] = np.where(said[detail] != Family.NONE, said[detail], family[vague])


def _by_operator(raw: RawTrace, plan: TrackPlan, call: I64, row: I64, family: U8) -> tuple[Inference, ...]:
    """Give kernels without a rule the class of the operator that launched them, in place, and say how many took it."""
    loose = np.flatnonzero(family == Family.NONE)
    family[loose] = family_of_operator(raw, plan, call[loose])
    took = loose[family[loose] != Family.NONE]
    if not len(took):
        return ()
    spent = int(raw.events.duration[row[took]].sum())
    names = len(np.unique(raw.events.name[row[took]]))
    what = (
        f"{plural(len(took), 'kernel')} of {plural(names, 'name')} without a rule ({duration(spent)}) are counted as "
        "what the operator is that launched them"
    )
    return (Inference(what, "kernels by their operator", 0.7),)


def operator_op_events(raw: RawTrace, plan: TrackPlan, rules: tuple[Rule, ...] = ()) -> OpEvents:
    """The outermost known operators of a trace without a device as op events, and their members.

    ``rules`` are tried before the built-in ones.
    """
    e = raw.events
    rows = np.flatnonzero(plan.at(TrackRole.OPERATOR))
    rows = rows[np.lexsort((-e.duration[rows], e.start[rows], e.track[rows]))]
    read = read_shapes(raw, rows)
    family_of_name, roles_of_name = classify(raw.names, e.name[rows], (*rules, *OPERATOR_RULES))
    family = family_of_name[e.name[rows]]
    kind = kinds_of(read.shapes, read.of_row)
    name_is = {n: i for i, n in enumerate(raw.names)}
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
    op_events = _with_attention(raw, op_events)
    _join_written_out(raw, op_events)
    return op_events


def _with_attention(raw: RawTrace, op_events: OpEvents) -> OpEvents:
    """Attention that is written out in operators, and no KV appends where nothing attends."""
    name = raw.events.name[op_events.row]
    carried = op_events.shape.copy()
    inside = np.flatnonzero(op_events.member_shape >= 0)
    carried[op_events.member_of[inside]] = op_events.member_shape[inside]
    op_events.family[written_out(raw, name, op_events.family, carried, op_events.shapes)] = Family.ATTENTION
    # Whatever attends, a batched product in it is a part of it.
    shapes, as_attention = with_attention_of(op_events.shapes)
    attends = op_events.family == Family.ATTENTION
    op_events.shape[attends] = as_attention[op_events.shape[attends]]
    of = op_events.member_of[inside]
    within = inside[attends[of]]
    op_events.member_shape[within] = as_attention[op_events.member_shape[within]]
    unfounded = unfounded_appends(raw, name, op_events.family)
    op_events.family[unfounded], op_events.shape[unfounded] = Family.ELEMENTWISE, -1
    op_events.member_shape[inside[unfounded[of]]] = -1
    return replace(op_events, shapes=shapes)


def unclassified_ns(raw: RawTrace, op_events: OpEvents, counted: Bool) -> int:
    """Time of the ``counted`` op events (bool[n]) that no rule matched; of operators, which nest, the time in which no
    known one ran.
    """
    e = raw.events
    none = op_events.family == Family.NONE
    if op_events.on_device or not (none & counted).any():
        return int(e.duration[op_events.row[counted & none]].sum())
    busy, known = (union_of(e.start[rows], e.start[rows] + e.duration[rows])
                   for rows in (op_events.row[counted], op_events.row[counted & ~none]))  # fmt: skip
    return busy - known


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
        [*(FAMILY_OF_SHAPE.get(ShapeKind(k), 255) for k in range(len(ShapeKind))), 255],
        np.uint8,
    )[kind]
    attends = (kind[members] == ShapeKind.BATCHED) & (family[roots[member_of]] == Family.ATTENTION)
    leaf_member = is_leaf[members] & ((wanted[members] == family[roots[member_of]]) | attends)
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
