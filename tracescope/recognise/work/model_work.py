"""What the model says an op of a step moves: looked up by the op's place, scaled to the step's requests."""

from dataclasses import dataclass
from typing import Final

from tracescope.core.category import Op
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.kv_cache import cache_token_bytes
from tracescope.floor.layer_weights import expert_reads
from tracescope.floor.matrices import expert_matrices, share
from tracescope.floor.step_ops import (
    OpWork,
    closing_ops,
    layer_matrices,
    layer_ops,
    opening_ops,
)
from tracescope.recognise.ops.ops import Section

_PARTS: dict[Op, tuple[Op, str]] = {
    Op.Q: (Op.QKV, "self_attn.q_proj"),
    Op.K: (Op.QKV, "self_attn.k_proj"),
    Op.V: (Op.QKV, "self_attn.v_proj"),
    Op.GATE: (Op.GATE_UP, "mlp.gate_proj"),
    Op.UP: (Op.GATE_UP, "mlp.up_proj"),
}
"""Ops that are finer than the model's: the whole they are part of, and the weight that is theirs."""


_EXPERT_KERNELS: Final[dict[Section, tuple[slice, ...]]] = {
    Section.EXPERTS_IN_TWO: (slice(0, -1), slice(-1, None)),
    Section.EXPERTS_IN_THREE: (slice(0, 1), slice(1, 2), slice(2, None)),
}
"""Which of an expert's matrices (gate, up and down) the first, second and third kernel multiplies."""


@dataclass(frozen=True, slots=True)
class OpPlace:
    """Where an op stands: its layer (-1 outside the layers), what it is, and the how-manieth of its kind there."""

    layer: int
    op: Op
    section: Section
    ordinal: int


class ModelWork:
    """One model's work for one request with an empty cache, by place, as one of ``ranks`` ranks does it."""

    def __init__(self, model: ModelSpec, ranks: int = 1) -> None:
        self.model = model
        self.ranks = ranks
        self.one = Workload(batch=1, context=0, tensor_parallel=ranks)
        self.layers_differ = bool(model.unconverted or model.kinds or model.experts or model.tensors)
        self._by_place: dict[OpPlace, OpWork] = {}
        for op in (*opening_ops(model, self.one), *closing_ops(model, self.one)):
            self._by_place[OpPlace(-1, op.op, Section.OUTSIDE, 0)] = op
        for layer in range(model.layers if self.layers_differ else min(model.layers, 1)):
            self._add_layer(layer)

    def _add_layer(self, layer: int) -> None:
        section = Section.BEFORE_QKV
        seen: dict[tuple[Op, Section], int] = {}
        for op in layer_ops(self.model, self.one, layer):
            key = (op.op, section)
            where = section if op.op is Op.NORM else Section.OUTSIDE
            self._by_place[OpPlace(layer, op.op, where, seen.get(key, 0))] = op
            seen[key] = seen.get(key, 0) + 1
            if op.op is Op.QKV:
                section = Section.BEFORE_ATTENTION
            elif op.op is Op.ATTENTION:
                section = Section.AFTER_ATTENTION

    def at(self, place: OpPlace) -> OpWork | None:
        """The work of the op at ``place``; None where the model has none there."""
        if place.layer >= self.model.layers:
            return None
        if place.section in _EXPERT_KERNELS:
            return self._by_place.get(OpPlace(place.layer, Op.EXPERTS, Section.OUTSIDE, 0))
        layer = place.layer if self.layers_differ else min(place.layer, 0)
        section = place.section if place.op is Op.NORM and layer >= 0 else Section.OUTSIDE
        whole, module = _PARTS.get(place.op, (place.op, ""))
        found = self._by_place.get(OpPlace(layer, whole, section, place.ordinal))
        return self._part(found, module) if found is not None and module else found

    def experts_read(self, place: OpPlace, tokens: int) -> int:
        """Expert bytes that the kernel at ``place`` is expected to read for ``tokens``: those of its own matrices."""
        return self._of_kernel(place, expert_reads(self.model, tokens, self.ranks)[place.layer])

    def expert_flops(self, place: OpPlace, flops: int) -> int:
        """Its share of the ``flops`` of all products of the experts."""
        return self._of_kernel(place, flops)

    def _of_kernel(self, place: OpPlace, amount: int) -> int:
        """The part of ``amount`` that is of one of several kernels, by elements; whole numbers that add up to it."""
        kernels = _EXPERT_KERNELS.get(place.section, (slice(None),))
        elements = [matrix.elements for matrix in expert_matrices(self.model, self.ranks)]
        upto = 0
        for kernel in kernels[: place.ordinal]:
            upto += sum(elements[kernel])
        here = upto + sum(elements[kernels[place.ordinal]]) if place.ordinal < len(kernels) else upto
        return amount * here // sum(elements) - amount * upto // sum(elements)

    def attention(self, layer: int, batch: int, context: int) -> tuple[int, int]:
        """KV bytes and FLOPs of attention for ``batch`` decoding requests with ``context`` cached tokens between
        them.

        Where the layer does not read everything, the requests are taken to be of one length; ``batch`` -1 is not
        known, and then so are the FLOPs, and the bytes of such a layer.
        """
        attention = self.model.layer(layer).attention
        if attention is None:
            return 0, 0
        if not attention.limited:
            tokens = context
        elif batch > 0:
            tokens = batch * attention.attended(-(-context // batch))
        else:
            return UNKNOWN, UNKNOWN
        read = tokens * cache_token_bytes(self.model, attention, self.ranks)
        if batch < 0:
            return read, UNKNOWN
        latent, heads = attention.latent, share(attention.heads, self.ranks)
        if latent is not None:
            return read, 2 * heads * (2 * latent.kv_rank + latent.rope_dim) * tokens
        return read, 4 * heads * attention.head_dim * (tokens + batch)

    def _part(self, whole: OpWork, module: str) -> OpWork:
        """The share of one weight of a fused op, by its number of elements."""
        matrices = [m for m in layer_matrices(self.model, self.ranks, max(whole.layer, 0)) if m.op is whole.op]
        total = sum(m.elements for m in matrices)
        before = 0
        for matrix in matrices:
            low = whole.weight_read * before // total
            before += matrix.elements
            if matrix.module == module:
                high = whole.weight_read * before // total
                return OpWork(
                    whole.layer,
                    whole.op,
                    whole.category,
                    whole.roles,
                    weight_read=high - low,
                    flops=2 * matrix.elements,
                )
        return whole
