"""What each op event asks to be counted: its place, its shapes, and whether it carries the bytes of its op."""

from typing import Any, Final

import numpy as np

from tracescope.core.columns import I32, I64, Bool
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.ops.op_events import OpEvents
from tracescope.recognise.ops.reading import Reading
from tracescope.recognise.work.work import Claims

_WHOLES: Final = {
    Family.ATTENTION_PART: (Family.ATTENTION,),
    Family.GEMM_PART: (Family.GEMM, Family.EXPERTS),
}
"""The kernels that carry the bytes of an op of which a part is only the rest."""

_BETWEEN: Final = (Family.COPY, Family.WAIT, Family.BOOKKEEPING, *_WHOLES)
"""What may run between a kernel and the rest of its op."""


def claims_of(op_events: OpEvents, reading: Reading, step: I32) -> Claims:
    """Claims of all op events, then of their members; one whose member carries its bytes carries none itself."""
    of = op_events.member_of
    delegated = np.zeros(len(op_events.row), bool)
    delegated[of[op_events.member_shape >= 0]] = True

    def both(values: Any) -> I64:
        return np.concatenate([values, values[of]]).astype(np.int64)

    main = (reading.main | parts_alone(op_events, reading, step)) & ~delegated
    return Claims(
        shape=np.concatenate([op_events.shape, op_events.member_shape]).astype(np.int64),
        op=both(reading.op),
        category=both(reading.category),
        layer=both(reading.layer),
        section=both(reading.section),
        ordinal=both(reading.ordinal),
        carries=np.concatenate([main | (op_events.shape >= 0), op_events.member_shape >= 0]),
        step=both(step),
        also=both(op_events.roles),
    )


def parts_alone(op_events: OpEvents, reading: Reading, step: I32) -> Bool:
    """Which op events are named like a part of an op whose main kernel is not there; bool.

    It is there where it ran in the layer, or just before in the step. Otherwise a name is all that is known, and what
    the kernel moved is unknown, not 0.
    """
    family = op_events.family
    order = np.lexsort((np.arange(len(family)), step))
    place = step.astype(np.int64) * (int(reading.layer.max(initial=-1)) + 2) + reading.layer
    alone = np.zeros(len(family), bool)
    for part, wholes in _WHOLES.items():
        rows = np.flatnonzero(family == part)
        whole = np.isin(family, wholes)
        in_layer = (step[rows] >= 0) & (reading.layer[rows] >= 0) & np.isin(place[rows], place[whole])
        alone[rows] = ~in_layer & ~_follows(whole[order], np.isin(family, _BETWEEN)[order], step[order], order)[rows]
    return alone


def _follows(whole: Bool, between: Bool, step: I32, order: I64) -> Bool:
    """Which op events come after a ``whole`` one of their step with nothing but ``between`` in between; bool, by row.

    The arguments are in the order in which the op events ran, step by step; ``order`` gives their rows.
    """
    at = np.arange(len(whole))
    last = np.maximum.accumulate(np.where(whole | ~between, at, 0)) if len(at) else at
    follows = np.zeros(len(whole), bool)
    follows[order] = whole[last] & (step[last] == step) & (step >= 0)
    return follows
