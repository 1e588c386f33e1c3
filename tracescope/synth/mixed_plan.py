"""What every op of steps with changing batches moves: the same grid as of a fixed workload, from sums over requests."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tracescope.core.columns import I64, U32
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.step_ops import OpWork, counted_ops, step_ops
from tracescope.synth.plan import QUANTITIES, Plan, amounts, plan_of, refuse_large
from tracescope.synth.step_times import GROWING, Caps, Growth, find_growth

_GROWN: Final = 1 << 31
"""Where the ids of rows that grow begin while the number of the others is not settled."""
_COLUMNS: Final = {name: QUANTITIES.index(name) for name in GROWING}


@dataclass(frozen=True, eq=False)
class Load:
    """What some steps carry: ``batch`` int64[steps], and ``tokens_read`` int64[caps, steps] for each kind of window."""

    batch: I64
    tokens_read: I64
    caps: Caps

    def __len__(self) -> int:
        return len(self.batch)

    def part(self, rows: slice) -> "Load":
        """Some of the steps."""
        return Load(self.batch[rows], self.tokens_read[:, rows], self.caps)


def plan_load(model: ModelSpec, basis: Basis, workload: Workload, load: Load) -> Plan:
    """The ops of every step of ``load``, in program order, with the bytes that its requests make them move."""
    parts = _Rows()
    work = np.empty((len(load), 0), np.uint32)
    first: tuple[OpWork, ...] = ()
    for batch in np.unique(load.batch).tolist():
        ops = _ops_of(model, workload, batch)
        first = first or tuple(ops(0))
        if work.shape[1] == 0:
            work = np.empty((len(load), len(first)), np.uint32)
        steps = np.flatnonzero(load.batch == batch)
        work[steps] = parts.add(ops, batch, load.tokens_read[:, steps], load.caps)
    return plan_of(first, parts.settled(work), parts.rows(), basis)


def step_rows(model: ModelSpec, workload: Workload, load: Load) -> I64:
    """The sums of every step of ``load`` over its ops, int64[steps, quantities]."""
    out = np.zeros((len(load), len(QUANTITIES)), np.int64)
    for batch in np.unique(load.batch).tolist():

        def counted(context: int, batch: int = batch) -> tuple[tuple[OpWork, int], ...]:
            return counted_ops(model, replace(workload, batch=batch, context=context))

        growth = find_growth(lambda context: [op for op, _ in counted(context)], batch)
        steps = np.flatnonzero(load.batch == batch)
        for i, (op, count) in enumerate(counted(0)):
            out[steps] += count * np.array(amounts((op,))[0])
            if i in growth:
                tokens = count * load.tokens_read[load.caps.index(growth[i].cap), steps]
                for name, column in _COLUMNS.items():
                    out[steps, column] += tokens * getattr(growth[i], name)
    return out


def _ops_of(model: ModelSpec, workload: Workload, batch: int) -> Callable[[int], tuple[OpWork, ...]]:
    return lambda context: step_ops(model, replace(workload, batch=batch, context=context))


class _Rows:
    """Work rows without repetition: those of a batch size once, those that grow once a step and kind."""

    def __init__(self) -> None:
        self._index: dict[tuple[int, ...], int] = {(-1,) * len(QUANTITIES): 0}
        self._blocks: list[I64] = []
        self._grown = 0

    def add(self, ops: Callable[[int], tuple[OpWork, ...]], batch: int, tokens: I64, caps: Caps) -> U32:
        """Work ids uint32[steps, ops] of steps of one batch size that read ``tokens`` int64[caps, steps].

        Ids of rows that grow count from 2^31 until :meth:`rows` has settled how many there are before them.
        """
        growth = find_growth(ops, batch)
        own = amounts(tuple(ops(0)))
        refuse_large(own, own)
        steps = tokens.shape[1]
        work = np.empty((steps, len(own)), np.uint32)
        seen: dict[tuple[tuple[int, ...], Growth], int] = {}
        for column, row in enumerate(own):
            grown = growth.get(column)
            if grown is None:
                work[:, column] = self._index.setdefault(row, len(self._index))
                continue
            key = (row, grown)
            if key not in seen:
                seen[key] = self._grown
                self._grown += steps
                block = np.tile(np.array(row, np.int64), (steps, 1))
                read = tokens[caps.index(grown.cap)]
                for name, place in _COLUMNS.items():
                    block[:, place] += read * getattr(grown, name)
                self._blocks.append(block)
            work[:, column] = _GROWN + seen[key] + np.arange(steps)
        return work

    def rows(self) -> I64:
        """All rows, int64[rows, quantities]; those that grow after the others."""
        still = np.array(list(self._index), np.int64)
        return np.concatenate([still, *self._blocks])

    def settled(self, work: U32) -> U32:
        """Ids as :meth:`add` gave them, now as rows of :meth:`rows`."""
        return np.where(work >= _GROWN, work - _GROWN + len(self._index), work).astype(np.uint32)
