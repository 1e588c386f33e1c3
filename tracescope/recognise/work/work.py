"""Bytes and FLOPs of every event: from recorded shapes, else from the model, else unknown; and how it is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import BytesFrom, Category, Op, StepKind
from tracescope.core.columns import I64, U16, U32
from tracescope.core.work_table import UNKNOWN, WorkTable
from tracescope.floor.step_ops import OpWork
from tracescope.recognise.names.shapes import OpShape, ShapeKind
from tracescope.recognise.ops.ops import Section
from tracescope.recognise.work.model_work import ModelWork, OpPlace

GEMM_OPS = frozenset({Op.QKV, Op.Q, Op.K, Op.V, Op.O, Op.GATE_UP, Op.GATE, Op.UP, Op.DOWN, Op.LM_HEAD, Op.EXPERTS})
BYTELESS_OPS = frozenset({Op.ROPE, Op.ACT, Op.SAMPLE, Op.BLOCK_TABLE, Op.ROUTER, Op.LAUNCH})
"""Ops that move activations only: neither weights nor cache, so that their floor is 0 by definition."""

MAX_AMOUNT = 1 << 62
"""Bytes or FLOPs of one event: more is an absurd shape, and would not fit the columns."""
AMOUNTS = tuple(name for name in WorkTable.__dataclass_fields__ if name != "bytes_from")


@dataclass(frozen=True, slots=True)
class WorkRow:
    """One row of the work table; -1 is unknown."""

    weight_read: int = 0
    embedding_gather: int = 0
    kv_read: int = 0
    kv_append: int = 0
    activation: int = UNKNOWN
    link: int = 0
    flops: int = UNKNOWN
    bytes_from: BytesFrom = BytesFrom.NONE
    index_read: int = 0
    state_read: int = 0
    state_write: int = 0
    link_reduced: int = 0
    recorded: int = UNKNOWN


NOTHING_KNOWN = WorkRow(-1, -1, -1, -1, -1, -1, -1, BytesFrom.NONE, -1, -1, -1, -1, -1)
COMPANION = WorkRow(activation=0, flops=0)
"""A reduce, combine or second norm: the bytes of its op are its main kernel's."""


@dataclass(frozen=True, slots=True)
class StepSetting:
    """What is known of one step when its bytes are counted; -1 where not known.

    ``context`` tokens cached before the step, summed over ``batch`` requests, of a mixed step over the ``decodes`` of
    them that decode; ``tokens`` computed in it. ``allocated``: its shapes show the allocated cache, so that they do not
    tell how much of it was read.
    """

    kind: StepKind = StepKind.OTHER
    batch: int = UNKNOWN
    context: int = UNKNOWN
    tokens: int = UNKNOWN
    context_from: BytesFrom = BytesFrom.NONE
    allocated: bool = False
    decodes: int = UNKNOWN

    @property
    def attending(self) -> int:
        """The requests over which ``context`` is summed; -1 where not known."""
        return self.decodes if self.kind is StepKind.MIXED else self.batch


@dataclass(frozen=True, eq=False)
class Claims:
    """What each event claims: arrays of one entry an event.

    ``shape`` indexes shapes (-1 none); ``op``, ``layer``, ``section``, ``ordinal`` its place; ``carries``: it is the
    main event of its op; ``step`` -1 outside the steps; ``also`` the further roles of a fused kernel.
    """

    shape: I64
    op: I64
    category: I64
    layer: I64
    section: I64
    ordinal: I64
    carries: np.ndarray[tuple[int], np.dtype[np.bool_]]
    step: I64
    also: I64


@dataclass(frozen=True, eq=False)
class Counted:
    """The work table and, for each event, its row and its roles; ``beyond``: events whose amounts are impossible."""

    table: WorkTable
    work: U32
    roles: U16
    beyond: int = 0


def count_work(
    claims: Claims, shapes: Sequence[OpShape], facts: Sequence[StepSetting], model: ModelWork | None
) -> Counted:
    """One work row for each distinct claim. Arithmetic is per distinct claim, never per event."""
    counter = _Counter(shapes, model)
    distinct_facts = list(dict.fromkeys([StepSetting(), *facts]))
    position = {fact: i for i, fact in enumerate(distinct_facts)}
    fact_of_step = np.array([*(position[f] for f in facts), 0], np.int64)  # step -1 finds the last entry
    layers = np.maximum(claims.layer, -1) if model and model.layers_differ else np.minimum(claims.layer, 0)
    columns: tuple[NDArray[Any], ...] = (
        claims.shape + 1,
        claims.op,
        claims.category,
        layers + 1,
        claims.section,
        claims.ordinal,
        claims.carries,
        fact_of_step[claims.step],
        claims.also,
    )
    key = _packed(columns)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    rows: dict[WorkRow, int] = {NOTHING_KNOWN: 0}
    row_of = np.zeros(len(first), np.uint32)
    role_of = np.zeros(len(first), np.uint16)
    for i, at in enumerate(first.tolist()):
        shape, op, category, layer, section, ordinal, carries, fact, also = (int(column[at]) for column in columns)
        place = OpPlace(layer - 1, Op(op), Section(section), ordinal)
        row = counter.row(place, Category(category), shape - 1, bool(carries), distinct_facts[fact])
        if carries and also & Category.KV_APPEND.role and row.kv_append == 0:
            row = replace(row, kv_append=counter.appended(place.layer, distinct_facts[fact]))
        row_of[i] = rows.setdefault(row, len(rows))
        role_of[i] = _roles(row, Op(op), Category(category), bool(carries))
    work = row_of[inverse.reshape(-1)]
    within = [_within(row) for row in rows]
    beyond = np.array([a != b for a, b in zip(rows, within, strict=True)])
    return Counted(_table(within), work, role_of[inverse.reshape(-1)], int(beyond[work].sum()))


def _packed(columns: Sequence[NDArray[Any]]) -> I64:
    """One int64 a row of several small non-negative integers."""
    key = np.zeros(len(columns[0]), np.int64)
    for row in columns:
        key = key * (int(row.max(initial=0)) + 1) + row
    return key


def _table(rows: list[WorkRow]) -> WorkTable:
    names = [n for n in WorkTable.__dataclass_fields__ if n != "bytes_from"]
    return WorkTable(
        **{n: np.array([getattr(r, n) for r in rows], np.int64) for n in names},
        bytes_from=np.array([r.bytes_from for r in rows], np.uint8),
    )


def _within(row: WorkRow) -> WorkRow:
    """``row`` with the amounts that no machine moves made unknown: such a shape was not recorded, it is damaged."""
    beyond: dict[str, Any] = {n: UNKNOWN for n in AMOUNTS if getattr(row, n) > MAX_AMOUNT}
    return replace(row, **beyond) if beyond else row


def _roles(row: WorkRow, op: Op, category: Category, carries: bool) -> int:
    roles = category.role
    if not carries:
        return roles
    if op in GEMM_OPS or category in (Category.KV_READ, Category.WEIGHT_READ):
        roles |= Category.COMPUTE.role if op is not Op.EMBED else 0
    if row.weight_read > 0 or (op is Op.NORM and row.weight_read != 0):  # routers and sinks read a little too
        roles |= Category.WEIGHT_READ.role
    return roles


class _Counter:
    """Turns one claim into one work row."""

    def __init__(self, shapes: Sequence[OpShape], model: ModelWork | None) -> None:
        self.shapes = shapes
        self.model = model
        # A concatenation does not record its type; the cache's is what attention reads.
        sizes = {s.kv_itemsize for s in shapes if s.kind is ShapeKind.ATTENTION and s.kv_itemsize > 0}
        self.kv_itemsize = sizes.pop() if len(sizes) == 1 else UNKNOWN

    def row(self, place: OpPlace, category: Category, shape: int, carries: bool, facts: StepSetting) -> WorkRow:
        op = place.op
        if shape >= 0:
            return self._from_shape(self.shapes[shape], facts)
        if op in (Op.NONE, Op.OTHER) and category is not Category.WEIGHT_READ:
            return NOTHING_KNOWN
        if not carries:
            return COMPANION
        known = self.model.at(place) if self.model else None
        if known is not None and facts.kind is not StepKind.OTHER:
            return self._from_model(known, facts, place)
        if known is None and self.model is not None and place.ordinal > 0:
            # A second kernel of an op that the model counts once (the norm of K beside that of Q).
            return COMPANION
        return _unknown(op, category)

    def appended(self, layer: int, facts: StepSetting) -> int:
        """What a kernel that appends beside its main work appends, by the model; -1 where that is not known."""
        known = self.model.at(OpPlace(layer, Op.KV_APPEND, Section.OUTSIDE, 0)) if self.model else None
        if known is None or facts.kind is StepKind.OTHER:
            return UNKNOWN
        return _scaled(known.kv_append, facts.tokens)

    def _from_shape(self, shape: OpShape, facts: StepSetting) -> WorkRow:
        row = WorkRow(
            weight_read=shape.weight,
            embedding_gather=shape.gather,
            activation=shape.activation,
            link=shape.link,
            link_reduced=shape.link_reduced,
            flops=shape.flops,
            bytes_from=BytesFrom.SHAPE,
        )
        if shape.kind is ShapeKind.APPEND:
            size = self.kv_itemsize
            known = shape.append if shape.append >= 0 else shape.append_elements * size if size > 0 else UNKNOWN
            return replace(row, kv_append=known)
        if shape.kind is ShapeKind.BATCHED:
            # Its second operand may be weights (stacked ones), a cache or neither.
            return replace(row, kv_read=UNKNOWN, kv_append=UNKNOWN)
        if shape.kind is not ShapeKind.ATTENTION:
            return row
        if not facts.allocated or shape.keys < 0:
            return replace(row, kv_read=shape.kv)
        if facts.context < 0 or facts.batch < 0 or shape.kv_per_token < 0:
            return replace(row, kv_read=UNKNOWN, flops=UNKNOWN, bytes_from=BytesFrom.NONE)
        # The used part of a cache that was allocated in full: the context and the token just appended.
        used = facts.context + facts.batch
        per_token = shape.flops // (shape.batch * shape.keys)
        return replace(row, kv_read=used * shape.kv_per_token, flops=used * per_token, bytes_from=facts.context_from)

    def _from_model(self, known: OpWork, facts: StepSetting, place: OpPlace) -> WorkRow:
        assert self.model is not None
        rows = facts.batch if known.op in (Op.LM_HEAD, Op.SAMPLE) else facts.tokens
        row = WorkRow(
            weight_read=known.weight_read,
            embedding_gather=_scaled(known.embedding_gather, rows),
            kv_append=_scaled(known.kv_append, rows),
            activation=_scaled(known.activation, rows),
            link=_scaled(known.link, rows),
            link_reduced=_scaled(known.link_reduced, rows),
            flops=_scaled(known.flops, rows),
            bytes_from=BytesFrom.MODEL,
        )
        if known.op is Op.EXPERTS:  # how many of them depends on the tokens: an expectation
            read = self.model.experts_read(place, rows) if rows > 0 else UNKNOWN
            flops = self.model.expert_flops(place, row.flops) if rows > 0 else UNKNOWN
            return replace(row, weight_read=read, flops=flops)
        if known.op is not Op.ATTENTION:
            return row
        if facts.context < 0:
            return replace(row, kv_read=UNKNOWN, flops=UNKNOWN, bytes_from=BytesFrom.NONE)
        read, flops = self.model.attention(place.layer, facts.attending, facts.context)
        decode = facts.kind is StepKind.DECODE
        return replace(row, kv_read=read, flops=flops if decode else UNKNOWN, bytes_from=facts.context_from)


def _scaled(amount: int, rows: int) -> int:
    if amount == 0:
        return 0
    return amount * rows if rows >= 0 else UNKNOWN


def _unknown(op: Op, category: Category) -> WorkRow:
    """A recognised op whose bytes nobody gave: -1 where it moves that kind, 0 where it does not."""
    # FLOPs are counted for matrix products and attention only; everything else has none by definition.
    if op in BYTELESS_OPS and category is not Category.WEIGHT_READ:
        return WorkRow(flops=0)
    if op is Op.EMBED:
        return WorkRow(embedding_gather=UNKNOWN, flops=0)
    if op is Op.NORM:
        return WorkRow(weight_read=UNKNOWN, flops=0)
    if category is Category.WEIGHT_READ:
        # By its name alone a product may also be one of an attention that is written out.
        return WorkRow(weight_read=UNKNOWN, kv_read=UNKNOWN)
    if category is Category.KV_READ:
        return WorkRow(kv_read=UNKNOWN)
    if category is Category.KV_APPEND:
        return WorkRow(kv_append=UNKNOWN, flops=0)
    if category is Category.COMMUNICATION:
        return WorkRow(link=UNKNOWN, link_reduced=UNKNOWN, flops=0)
    return NOTHING_KNOWN
