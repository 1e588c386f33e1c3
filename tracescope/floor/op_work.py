"""What one op of a step moves and computes, and the few forms that ops come in."""

from dataclasses import dataclass

from tracescope.core.category import Category, Op
from tracescope.core.model import ModelSpec
from tracescope.floor.dtypes import plain_bytes
from tracescope.floor.layer_weights import LinearWork


@dataclass(frozen=True, slots=True)
class OpWork:
    """What one op of a step moves and computes; ``layer`` is -1 outside the layers. Bytes and FLOPs are exact.

    ``embedding_gather`` is counted apart from ``weight_read``. ``activation`` is what an unfused kernel would move
    besides; it is shown but never part of a floor. ``link`` are bytes that one rank sends over
    the interconnect, ``link_reduced`` those where the switch adds up what the ranks send. ``index_read`` and
    ``state_read`` are parts of ``kv_read``, ``state_write`` of ``kv_append``.
    """

    layer: int
    op: Op
    category: Category
    roles: int
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
    def memory_bytes(self) -> int:
        """Bytes that must cross the memory bus: weights, gathered rows, KV reads and appends."""
        return self.weight_read + self.embedding_gather + self.kv_read + self.kv_append


def all_reduce_bytes(model: ModelSpec, batch: int, ranks: int) -> tuple[int, int]:
    """Bytes that one rank sends in an all-reduce of the hidden state: by itself, and with the switch's help.

    A ring sends 2(t - 1)/t of the message, the least without help; a switch that adds up gets it once.
    """
    message = batch * model.hidden * plain_bytes(model.activations)
    alone = -(-message * 2 * (ranks - 1) // ranks)
    return alone, min(message, alone)


def linear_op(op: Op, work: LinearWork, batch: int, activation: int, layer: int = -1) -> OpWork:
    """A product with weights that are read once for the whole batch."""
    read, compute = Category.WEIGHT_READ, Category.COMPUTE
    return OpWork(
        layer,
        op,
        read,
        read.role | compute.role,
        weight_read=work.weight_read,
        activation=activation,
        flops=2 * batch * work.elements,
    )


def norm_op(layer: int, weight: int, activation: int) -> OpWork:
    """A norm of ``weight`` bytes."""
    compute, read = Category.COMPUTE, Category.WEIGHT_READ
    return OpWork(layer, Op.NORM, compute, compute.role | read.role, weight_read=weight, activation=activation)


def all_reduce_op(model: ModelSpec, batch: int, ranks: int, layer: int) -> OpWork:
    """The sum of the hidden state over all ranks."""
    category = Category.COMMUNICATION
    alone, reduced = all_reduce_bytes(model, batch, ranks)
    return OpWork(layer, Op.ALL_REDUCE, category, category.role, link=alone, link_reduced=reduced)
