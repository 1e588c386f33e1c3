"""What every op of every step moves and computes: the grid of steps × ops that a timing profile then puts in time."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import BytesFrom, Op
from tracescope.core.columns import I16, I64, U8, U16, U32
from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.work_table import WorkTable
from tracescope.floor.pricing import F64, compute_binds, work_floor_ns
from tracescope.floor.step_ops import OpWork, step_ops

QUANTITIES: Final = (
    "weight_read",
    "embedding_gather",
    "kv_read",
    "kv_append",
    "activation",
    "link",
    "link_reduced",
    "flops",
    "index_read",
    "state_read",
    "state_write",
)
LARGEST: Final = 2**62
"""Amounts up to here fit int64 with room for one addition; anything above is a typing mistake, not a machine."""

MEMORY, COMPUTE, LINK, HOST = range(4)
ENGINES: Final = ("memory", "compute", "link", "host")


@dataclass(frozen=True, eq=False)
class Plan:
    """``steps`` decode steps of the same ops in the same order.

    ``op``, ``category``, ``roles``, ``layer``: one value an op. ``work`` u32[steps, ops] indexes ``table``.
    ``engine`` (an index of ENGINES), ``floor_ns`` (unrounded) and ``table`` have one value a work row, except that
    ``host`` marks the ops that run on the host whatever their row.
    """

    op: U8
    category: U8
    roles: U16
    layer: I16
    host: NDArray[np.bool_]
    work: U32
    table: WorkTable
    engine: U8
    floor_ns: NDArray[np.float64]

    @property
    def steps(self) -> int:
        """How many steps."""
        return int(self.work.shape[0])

    @property
    def ops(self) -> int:
        """How many ops one step has."""
        return int(self.work.shape[1])


def plan_steps(model: ModelSpec, basis: Basis, workload: Workload, steps: int) -> Plan:
    """The plan of ``steps`` steps; the context of every request grows by one token a step.

    Raises TraceError when the bandwidth is not known or an amount does not fit 62 bits.
    """
    if basis.bandwidth_bytes_per_s is None:
        raise TraceError("synth needs a memory bandwidth", action="name a machine with --hardware or give --bandwidth")
    first = step_ops(model, workload)
    work, rows = _work_rows(model, workload, first, steps)
    return plan_of(first, work, rows, basis)


def plan_of(ops: tuple[OpWork, ...], work: U32, rows: I64, basis: Basis) -> Plan:
    """A plan from ``work`` u32[steps, ops], which indexes ``rows`` int64[rows, quantities].

    ``ops`` say what each column is.

    Raises TraceError where the basis cannot price a row.
    """
    table, floor_ns = priced_table(rows, basis)
    return Plan(
        op=np.array([o.op for o in ops], np.uint8),
        category=np.array([o.category for o in ops], np.uint8),
        roles=np.array([o.roles for o in ops], np.uint16),
        layer=np.array([o.layer for o in ops], np.int16),
        host=np.array([o.op == Op.LAUNCH for o in ops], bool),
        work=work,
        table=table,
        engine=binding_engine(table, basis),
        floor_ns=floor_ns,
    )


def priced_table(rows: I64, basis: Basis) -> tuple[WorkTable, F64]:
    """Amounts int64[rows, quantities] (row 0: nothing known) as a work table, and the floors of its rows in ns.

    Raises TraceError where the basis cannot price a row.
    """
    bytes_from = np.full(len(rows), BytesFrom.MODEL, np.uint8)
    bytes_from[0] = BytesFrom.NONE
    table = WorkTable.of(**{name: rows[:, i] for i, name in enumerate(QUANTITIES)}, bytes_from=bytes_from)
    floor_ns, known = work_floor_ns(table, basis)
    if not known[1:].all():
        raise TraceError("the floor of a link transfer is not known", action="use a machine whose link rate is known")
    return table, floor_ns


def amounts(ops: tuple[OpWork, ...]) -> list[tuple[int, ...]]:
    """What each op moves and computes, in the order of ``QUANTITIES``."""
    return [tuple(int(getattr(o, name)) for name in QUANTITIES) for o in ops]


def _work_rows(model: ModelSpec, workload: Workload, first: tuple[OpWork, ...], steps: int) -> tuple[U32, I64]:
    """Work ids u32[steps, ops] and their rows int64[rows, quantities]; row 0 is "nothing known".

    Amounts that grow by the same number every step (full attention) are written as straight lines; where the last or
    the middle step is off that line (a window fills up), every step is asked for by itself.
    """

    def at(step: int) -> list[tuple[int, ...]]:
        return amounts(step_ops(model, replace(workload, context=workload.context + step)))

    start, last = amounts(first), at(steps - 1)
    refuse_large(start, last)
    growth = [tuple(b - a for a, b in zip(x, y, strict=True)) for x, y in zip(start, at(1), strict=True)]
    for step in {steps // 2, steps - 1}:
        line = [tuple(a + step * g for a, g in zip(x, y, strict=True)) for x, y in zip(start, growth, strict=True)]
        if line != at(step):
            return _listed([at(s) for s in range(steps)])
    return _on_lines(start, growth, steps)


def refuse_large(start: list[tuple[int, ...]], last: list[tuple[int, ...]]) -> None:
    """Raise TraceError where an amount of the ``start`` or the ``last`` step leaves 62 bits."""
    if max(max(row) for row in start + last) >= LARGEST:
        raise TraceError(
            "one operation of this step would move more than 2^62 bytes or FLOPs",
            action="check --batch, --context and --steps",
        )


def _listed(by_step: list[list[tuple[int, ...]]]) -> tuple[U32, I64]:
    index: dict[tuple[int, ...], int] = {(-1,) * len(QUANTITIES): 0}
    work = np.array([[index.setdefault(row, len(index)) for row in rows] for rows in by_step], np.uint32)
    return work, np.array(list(index), np.int64)


def _on_lines(start: list[tuple[int, ...]], growth: list[tuple[int, ...]], steps: int) -> tuple[U32, I64]:
    lines = list(zip(start, growth, strict=True))
    still = list(dict.fromkeys(line for line in lines if not any(line[1])))
    moving = list(dict.fromkeys(line for line in lines if any(line[1])))
    first_moving = 1 + len(still)
    work = np.empty((steps, len(lines)), np.uint32)
    step = np.arange(steps, dtype=np.int64)
    fixed_id = {line: 1 + i for i, line in enumerate(still)}
    moving_id = {line: first_moving + i for i, line in enumerate(moving)}
    work[:] = np.array([fixed_id.get(line, 0) for line in lines], np.uint32)
    for column, line in enumerate(lines):
        if line in moving_id:
            work[:, column] = moving_id[line] + step * len(moving)
    rows = np.empty((first_moving + steps * len(moving), len(QUANTITIES)), np.int64)
    rows[0] = -1
    for i, line in enumerate(still):
        rows[1 + i] = line[0]
    for i, line in enumerate(moving):
        rows[first_moving + i :: len(moving)] = np.array(line[0]) + step[:, None] * np.array(line[1])
    return work, rows


def binding_engine(table: WorkTable, basis: Basis) -> U8:
    """The engine that bounds each work row: the link if it moves bytes there, else whichever takes longer."""
    moved = table.weight_read + table.embedding_gather + table.kv_read + table.kv_append
    engine = np.where(moved > 0, MEMORY, COMPUTE).astype(np.uint8)
    engine[compute_binds(moved, table.flops, basis)] = COMPUTE
    engine[table.link > 0] = LINK
    return engine
