"""Bytes and FLOPs of one decode step, op by op, as exact integers: what is read once, what grows with the context.

The expected number of distinct experts of a mixture is the one quantity here that is an expectation; bytes made of it
are whole numbers that add up to the rounded expectation of the step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tracescope.core.category import Category, Op
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.dtypes import plain_bytes
from tracescope.floor.kept_modules import kept_modules
from tracescope.floor.kv_cache import kv_bytes_per_token, kv_bytes_per_token_per_layer
from tracescope.floor.layer_ops import layer_ops
from tracescope.floor.layer_weights import (
    LinearWork,
    beside_work,
    embedding_norm_bytes,
    expert_reads,
    final_norm_bytes,
    lm_head_work,
    norm_bytes,
    row_bytes,
    scale_bytes,
    side_row_bytes,
    stored_bytes,
    truth,
)
from tracescope.floor.matrices import Matrix, Shard, layer_matrices, shard
from tracescope.floor.op_work import OpWork, all_reduce_bytes, linear_op, norm_op

__all__ = [
    "LinearWork",
    "Matrix",
    "OpWork",
    "Shard",
    "StepTotals",
    "all_reduce_bytes",
    "closing_ops",
    "counted_ops",
    "kv_bytes_per_token",
    "kv_bytes_per_token_per_layer",
    "layer_groups",
    "layer_matrices",
    "layer_ops",
    "lm_head_work",
    "norm_bytes",
    "opening_ops",
    "scale_bytes",
    "shard",
    "step_ops",
    "step_totals",
    "stored_bytes",
    "weight_read_bytes",
]


def opening_ops(model: ModelSpec, workload: Workload) -> tuple[OpWork, ...]:
    """What a step does before its first layer: launch, embedding gather, block-table lookup."""
    rows = row_bytes(model) + side_row_bytes(model)
    if model.position_rows:
        rows += model.hidden * plain_bytes(model.activations)
    ranks = workload.tensor_parallel
    embedding_norm = embedding_norm_bytes(model, ranks)
    host, read = Category.HOST, Category.WEIGHT_READ
    return (
        OpWork(-1, Op.LAUNCH, host, host.role),
        OpWork(
            -1,
            Op.EMBED,
            read,
            read.role,
            weight_read=embedding_norm,
            embedding_gather=workload.batch * rows,
        ),
        OpWork(-1, Op.BLOCK_TABLE, Category.COMPUTE, Category.COMPUTE.role),
        *(linear_op(Op.OTHER, beside_work(model, ranks), workload.batch, 0) for _ in model.beside[:1]),
    )


def closing_ops(model: ModelSpec, workload: Workload) -> tuple[OpWork, ...]:
    """What a step does after its last layer: final norm, lm_head, token selection."""
    batch, ranks = workload.batch, workload.tensor_parallel
    logits = batch * shard(model, ranks).vocab * plain_bytes(model.activations)
    select = Category.TOKEN_SELECTION
    return (
        norm_op(-1, final_norm_bytes(model, ranks), 0),
        linear_op(Op.LM_HEAD, lm_head_work(model, ranks), batch, logits),
        OpWork(-1, Op.SAMPLE, select, select.role),
    )


def step_ops(model: ModelSpec, workload: Workload) -> tuple[OpWork, ...]:
    """Every op of one decode step in program order, launch first and token selection last.

    Weights pinned on chip are left out of every op in equal share: (1 − f) of each is read.
    """
    ops = tuple(_step_ops(model, workload))
    return _without_pinned(ops, workload.pinned_bytes) if workload.pinned_bytes else ops


def _step_ops(model: ModelSpec, workload: Workload) -> Iterator[OpWork]:
    yield from opening_ops(model, workload)
    for layer in range(model.layers):
        yield from layer_ops(model, workload, layer)
    yield from closing_ops(model, workload)


def _without_pinned(ops: tuple[OpWork, ...], pinned: int) -> tuple[OpWork, ...]:
    """``ops`` reading only what is not pinned; whole bytes, and exactly ``pinned`` (or everything) less in sum."""
    whole = sum(op.weight_read for op in ops)
    left = max(0, whole - pinned)
    running = done = 0
    found = []
    for op in ops:
        running += op.weight_read
        upto = running * left // whole if whole else 0
        found.append(replace(op, weight_read=upto - done))
        done = upto
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Sums over the ops of one step, one rank's view: bytes and FLOPs, exact."""

    weight_read: int = 0
    embedding_gather: int = 0
    kv_read: int = 0
    kv_append: int = 0
    activation: int = 0
    link: int = 0
    link_reduced: int = 0
    flops: int = 0
    index_read: int = 0
    state_read: int = 0
    state_write: int = 0

    @property
    def streamed_bytes(self) -> int:
        """Weights, KV reads and KV appends: what T_mem counts (the embedding gather is not in it)."""
        return self.weight_read + self.kv_read + self.kv_append


@lru_cache(maxsize=512)
def layer_groups(model: ModelSpec, batch: int = 1, ranks: int = 1) -> tuple[tuple[int, int], ...]:
    """Layers that do the same work, as (one of them, how many): the work of a step without listing every layer."""
    stated = truth(model, ranks)
    if not (model.unconverted or model.kinds or model.experts or stated):
        return ((0, model.layers),)
    reads = expert_reads(model, batch, ranks)
    first: dict[object, int] = {}
    count: dict[object, int] = {}
    for layer in range(model.layers):
        bytes_read = (reads[layer] if reads else 0, stated.layers[layer] if stated else None)
        kind = (kept_modules(model, layer), model.layer(layer), bytes_read)
        first.setdefault(kind, layer)
        count[kind] = count.get(kind, 0) + 1
    return tuple((first[kind], count[kind]) for kind in first)


def counted_ops(model: ModelSpec, workload: Workload) -> tuple[tuple[OpWork, int], ...]:
    """The ops of one step with how often each occurs, layers of one kind listed once; not in program order."""
    if workload.pinned_bytes:
        return tuple((op, 1) for op in step_ops(model, workload))
    outside = (*opening_ops(model, workload), *closing_ops(model, workload))
    groups = layer_groups(model, workload.batch, workload.tensor_parallel)
    inside = ((op, n) for layer, n in groups for op in layer_ops(model, workload, layer))
    return (*((op, 1) for op in outside), *inside)


def step_totals(model: ModelSpec, workload: Workload) -> StepTotals:
    """The sums over one step of ``model``."""
    counted = counted_ops(model, workload)
    return StepTotals(*(sum(getattr(op, name) * n for op, n in counted) for name in StepTotals.__dataclass_fields__))


@lru_cache(maxsize=1024)
def weight_read_bytes(model: ModelSpec, ranks: int = 1, batch: int = 1) -> int:
    """Weights one rank reads in a step: linears, norms, biases, scales and the output head.

    The same whatever the batch, but for a mixture of experts: a larger batch is expected to use more of them.
    """
    return step_totals(model, Workload(batch=batch, tensor_parallel=ranks)).weight_read
