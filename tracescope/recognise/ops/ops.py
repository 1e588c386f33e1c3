"""Op names by position: which GEMM is qkv, o, gate_up, down or lm_head, and which event of an op is its main one."""

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from tracescope.core.category import Category, Op
from tracescope.core.columns import I16, U8, U16, Bool
from tracescope.recognise.names.kernel_rules import CATEGORY_OF_FAMILY, OP_OF_FAMILY, PARTS, Family
from tracescope.recognise.ops.layer_spans import Span, find_layers
from tracescope.recognise.ops.repeats import period_layers


class Section(IntEnum):
    """Where in a layer an op lies; tells the norms of a layer apart."""

    OUTSIDE = 0
    BEFORE_QKV = 1
    BEFORE_ATTENTION = 2
    AFTER_ATTENTION = 3
    EXPERTS_IN_TWO = 4
    """Products of experts in two kernels: gate and up in the first, down in the second."""
    EXPERTS_IN_THREE = 5
    """The same with gate and up apart."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """The reading of one sequence of families; arrays of one entry an op event.

    ``main``: this op event carries the bytes of its op; companions (reduce, combine, second norms of qk-norm) carry 0.
    ``ordinal`` counts the main op events of one op and section within a layer. ``layers``: how many were found.
    """

    layer: I16
    op: U16
    category: U8
    section: U8
    ordinal: U8
    main: Bool
    layers: int
    by_period: bool = False
    """Whether the layers are a mere repetition: then no op has a name by its place."""


def read_pattern(family: U8, hint: I16 | None = None, *, repeats: bool = False) -> Pattern:
    """Layers and op names of one step from the families of its op events in order; ``hint`` gives known layers.

    ``repeats``: where nothing else tells layers, look for a stretch that repeats.
    """
    given = family.tolist()
    sequence: list[int] = [Family.NORM if f == Family.NORM_OPENING else f for f in given]
    reader = _Reader(sequence, given)
    spans = find_layers(sequence) if hint is None else _hinted(sequence, hint)
    first = spans[0].low if spans else len(sequence)
    last = spans[-1].high if spans else 0
    for i, f in enumerate(sequence):
        if f == Family.EMBED and i >= first:
            reader.op[i], reader.category[i] = Op.OTHER, Category.COMPUTE
        if f == Family.SAMPLE and i < last:
            # A softmax or top-k before the last layer's end chooses experts or weighs keys, not tokens.
            reader.op[i], reader.category[i] = Op.OTHER, Category.COMPUTE
        if f == Family.RANKING and spans and i >= last:
            reader.op[i], reader.category[i] = Op.SAMPLE, Category.TOKEN_SELECTION
    for span in spans:
        reader.read_layer(span)
    if spans:
        reader.read_tail(last)
        return reader.pattern(len(spans))
    layers = period_layers(sequence) if repeats else []
    for layer, (low, high) in enumerate(layers):
        reader.layer[low:high] = [layer] * (high - low)
    return replace(reader.pattern(len(layers)), by_period=bool(layers))


def _hinted(sequence: list[int], hint: I16) -> list[Span]:
    """Spans from layers that are known, each op event carrying its own."""
    spans = []
    for layer in [n for n in np.unique(hint).tolist() if n >= 0]:
        inside = np.flatnonzero(hint == layer)
        low, high = int(inside[0]), int(inside[-1]) + 1
        mixers = [
            i for i in range(low, high) if sequence[i] in (Family.APPEND, Family.ATTENTION, Family.ATTENTION_PART)
        ]
        spans.append(Span(layer, low, high, mixers[0] if mixers else high, mixers[-1] if mixers else high))
    return sorted(spans, key=lambda s: s.low)


class _Reader:
    """Fills op, category, section and main of one sequence, layer by layer."""

    def __init__(self, sequence: list[int], given: list[int]) -> None:
        self.sequence = sequence
        n = len(sequence)
        self.op = [OP_OF_FAMILY[Family(f)] for f in sequence]
        self.category = [CATEGORY_OF_FAMILY[Family(f)] for f in sequence]
        self.layer = [-1] * n
        self.section = [Section.OUTSIDE] * n
        self.main = [f not in PARTS for f in given]

    def read_layer(self, span: Span) -> None:
        """Name the op events of one layer."""
        inside = range(span.low, span.high)
        gemms = [i for i in inside if self.sequence[i] == Family.GEMM]
        before = [i for i in gemms if i < span.mix_low]
        after = [i for i in gemms if i > span.mix_high]
        first_gemm = before[0] if before else span.mix_low
        for i in inside:
            self.layer[i] = span.layer
            if i > span.mix_high:
                self.section[i] = Section.AFTER_ATTENTION
            else:
                self.section[i] = Section.BEFORE_QKV if i < first_gemm else Section.BEFORE_ATTENTION
        names = (Op.Q, Op.K, Op.V) if len(before) == 3 else (Op.QKV,) * len(before)
        self._name(before, names)
        if after:
            self._name(after[:1], (Op.O,))
            self._read_mlp(span, after[1:])
        self._parts(inside)
        self._only_first(inside, Op.ATTENTION)
        self._only_first(inside, Op.KV_APPEND)

    def _read_mlp(self, span: Span, gemms: list[int]) -> None:
        experts = [i for i in range(span.mix_high, span.high) if self.sequence[i] == Family.EXPERTS]
        routed = experts or [i for i in range(span.mix_high, span.high) if self.sequence[i] == Family.ROUTING]
        if routed:
            for i in gemms:
                self.op[i] = Op.ROUTER if i < routed[0] else Op.OTHER
            kernels = {2: Section.EXPERTS_IN_TWO, 3: Section.EXPERTS_IN_THREE}.get(len(experts))
            for i in experts if kernels else ():
                self.section[i] = kernels or Section.AFTER_ATTENTION
            return
        names = {1: (Op.DOWN,), 2: (Op.GATE_UP, Op.DOWN), 3: (Op.GATE, Op.UP, Op.DOWN)}
        self._name(gemms, names.get(len(gemms), (Op.OTHER,) * len(gemms)))

    def _name(self, op_events: list[int], names: tuple[Op, ...]) -> None:
        for i, name in zip(op_events, names, strict=True):
            self.op[i] = name

    def _parts(self, inside: range) -> None:
        """The reduction of a split GEMM takes the op of the GEMM before it."""
        current = Op.OTHER
        for i in inside:
            if self.sequence[i] == Family.GEMM:
                current = self.op[i]
            elif self.sequence[i] == Family.GEMM_PART:
                self.op[i] = current

    def _only_first(self, inside: range, op: Op) -> None:
        found = [i for i in inside if self.op[i] == op and self.main[i]]
        for i in found[1:]:
            self.main[i] = False

    def read_tail(self, low: int) -> None:
        """After the last layer: the last GEMM is the output head; with its reduction, if it was split."""
        tail = range(low, len(self.sequence))
        gemms = [i for i in tail if self.sequence[i] == Family.GEMM]
        if gemms:
            self.op[gemms[-1]] = Op.LM_HEAD
        self._parts(tail)

    def pattern(self, layers: int) -> Pattern:
        """The finished reading."""
        n = len(self.sequence)
        ordinal = [0] * n
        seen: dict[tuple[int, int, int], int] = {}
        for i in range(n):
            key = (self.layer[i], self.op[i], self.section[i])
            ordinal[i] = min(seen.get(key, 0), 255)
            if self.main[i]:
                seen[key] = ordinal[i] + 1
        return Pattern(
            np.array(self.layer, np.int16),
            np.array(self.op, np.uint16),
            np.array(self.category, np.uint8),
            np.array(self.section, np.uint8),
            np.array(ordinal, np.uint8),
            np.array(self.main, bool),
            layers,
        )
