"""Everything the arithmetic says about one decode step: bytes, floors, capacity, energy, verdict, in one object."""

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from tracescope.core import units
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.capacity import Capacity, capacity
from tracescope.floor.dependence import DependenceCost, dependence_cost
from tracescope.floor.energy import Energy, EnergySplit, energy_j, energy_split, power_note
from tracescope.floor.experts import distinct_of, expectation_note
from tracescope.floor.layer_weights import prediction_bytes
from tracescope.floor.one_change import one_change_sentences
from tracescope.floor.prefill import PrefillFloor, prefill_floor
from tracescope.floor.pricing import compute_s, link_s, memory_s, ops_total_s, sent_bytes
from tracescope.floor.state import state_is_known
from tracescope.floor.step_ops import (
    StepTotals,
    counted_ops,
    kv_bytes_per_token,
    scale_bytes,
    step_totals,
    stored_bytes,
)
from tracescope.floor.tensor_parallel import split_notes
from tracescope.floor.verdict import Crossovers, Verdict, crossovers, verdict


@dataclass(frozen=True, slots=True)
class StepFloor:
    """One decode step of ``model`` under ``workload`` priced with ``basis``; seconds, None where not known.

    ``floor_memory_s`` counts weights, KV reads and appends; ``floor_ops_s`` sums the ops one after another, embedding
    gather and communication included. Energy is that of a step that takes ``floor_ops_s``.
    """

    model: ModelSpec
    workload: Workload
    basis: Basis
    totals: StepTotals
    ops: int
    scale_bytes: int
    stored_bytes: int
    kv_bytes_per_token: int
    floor_weight_s: float | None
    floor_memory_s: float | None
    floor_compute_s: float | None
    floor_roofline_s: float | None
    floor_ops_s: float | None
    energy: Energy | None
    energy_split: EnergySplit | None
    capacity: Capacity | None
    verdict: Verdict | None
    crossovers: Crossovers
    notes: tuple[str, ...]
    moves: tuple[str, ...] = ()
    """What one change would do, a sentence each."""
    dependence: DependenceCost | None = None
    distinct_experts: Decimal | None = None
    """Distinct experts that a layer is expected to read; None without a mixture."""
    prefill: PrefillFloor | None = None
    """Reading the context as one prompt, by formula; None for an empty context."""

    @property
    def activation_s(self) -> float | None:
        """What unfused activations would add, in seconds: not physics, and in no floor."""
        return memory_s(self.totals.activation, self.basis)

    @property
    def group_energy(self) -> Energy | None:
        """The energy of all ranks, which generate the tokens together; ``energy`` is one rank's."""
        return None if self.energy is None else self.energy.times(self.workload.tensor_parallel)

    @property
    def sent_bytes(self) -> int:
        """Bytes that one rank sends over its link in the step, by what the machine's switch does."""
        return sent_bytes(self.totals.link, self.totals.link_reduced, self.basis)

    @property
    def floor_link_s(self) -> float | None:
        """Σ link bytes ÷ link rate: the part of the op floor that is communication; 0 without any."""
        return link_s(self.sent_bytes, self.basis) if self.sent_bytes else 0.0

    @property
    def link_by(self) -> str | None:
        """How the all-reduces are counted: the way that sends least on this machine; None without any."""
        if not self.sent_bytes:
            return None
        return "the switch adds up: 1 × the message" if self.basis.switch_reduces else "ring: 2(t − 1)/t × the message"

    @property
    def state_read_bytes(self) -> int | None:
        """State that the step reads, and as much that it writes; None where the size of one is not known."""
        return self.totals.state_read if state_is_known(self.model) else None

    @property
    def expectation(self) -> str | None:
        """What the bytes of a mixture rest on; None without one."""
        experts = self.model.experts
        return None if experts is None else expectation_note(experts, self.workload.batch)

    @property
    def generated_tokens_per_s_max(self) -> float | None:
        """Generated tokens/s of the whole batch at the op floor, if every generated token is accepted."""
        return self.workload.batch / self.floor_ops_s if self.floor_ops_s else None

    @property
    def steps_per_s_max(self) -> float | None:
        """Steps/s at the weight-streaming floor: 1 / T_w."""
        return 1 / self.floor_weight_s if self.floor_weight_s else None


def step_floor(model: ModelSpec, workload: Workload, basis: Basis) -> StepFloor:
    """Compute every number of one step; nothing is looked up that the arguments do not give."""
    split_notes(model, workload.tensor_parallel)  # what cannot be split has no floor
    fitting = capacity(model, basis.hardware, workload) if basis.hardware else None
    cross = crossovers(model, workload, basis, fitting)
    floor = assemble_floor(
        model,
        workload,
        basis,
        step_totals(model, workload),
        ops_total_s(model, workload, basis),
        fitting=fitting,
        verdict=verdict(model, workload, basis, fitting),
        cross=cross,
        dependence=dependence_cost(model, workload, basis),
    )
    return replace(floor, moves=one_change_sentences(model, workload, basis, fitting, cross))


def assemble_floor(
    model: ModelSpec,
    workload: Workload,
    basis: Basis,
    total: StepTotals,
    ops_s: float | None,
    *,
    fitting: Capacity | None,
    verdict: Verdict | None,
    cross: Crossovers,
    dependence: DependenceCost | None,
) -> StepFloor:
    """Everything else about a step whose totals, op floor, capacity and verdict are worked out; without ``moves``."""
    ranks = workload.tensor_parallel
    moving, computing = memory_s(total.streamed_bytes, basis), compute_s(total.flops, basis)
    spent = split = None
    sent = sent_bytes(total.link, total.link_reduced, basis)
    notes = [*basis.notes, *split_notes(model, ranks)]
    if basis.energy is not None and ops_s is not None:
        kv = total.kv_read + total.kv_append
        spent = energy_j(total.streamed_bytes, total.flops, sent, ops_s, basis.energy, basis.tdp_w)
        split = energy_split(
            weight_bytes=total.weight_read,
            kv_bytes=kv,
            flops=total.flops,
            link_bytes=sent,
            seconds=ops_s,
            model=basis.energy,
            tdp_w=basis.tdp_w,
        )
        note = power_note(total.streamed_bytes, total.flops, sent, ops_s, basis.energy, basis.tdp_w)
        notes += [note] if note else []
        if sent and basis.energy.link_pj_per_bit is None:
            notes.append("link energy is not counted: no sourced value is known")
    if model.max_positions is not None and workload.context >= model.max_positions:
        notes.append(f"the context is past the model's {model.max_positions:,} positions")
    notes += [*_memory_notes(model, workload, basis), *_prediction_notes(model)]
    return StepFloor(
        model=model,
        workload=workload,
        basis=basis,
        totals=total,
        ops=op_count(model, ranks),
        scale_bytes=scale_bytes(model, ranks, workload.batch),
        stored_bytes=stored_bytes(model, ranks),
        kv_bytes_per_token=kv_bytes_per_token(model, ranks),
        floor_weight_s=memory_s(total.weight_read, basis),
        floor_memory_s=moving,
        floor_compute_s=computing,
        floor_roofline_s=None if moving is None else max(moving, computing or 0.0),
        floor_ops_s=ops_s,
        energy=spent,
        energy_split=split,
        capacity=fitting,
        verdict=verdict,
        crossovers=cross,
        notes=tuple(notes),
        dependence=dependence,
        prefill=prefill_floor(model, basis, workload.context, ranks),
        distinct_experts=None if model.experts is None else distinct_of(model.experts, workload.batch),
    )


@lru_cache(maxsize=256)
def op_count(model: ModelSpec, ranks: int = 1) -> int:
    """How many ops one step has; neither batch nor context changes it."""
    return sum(n for _, n in counted_ops(model, Workload(tensor_parallel=ranks)))


def _prediction_notes(model: ModelSpec) -> list[str]:
    if not model.prediction_layers:
        return []
    layers = units.plural(model.prediction_layers, "layer")
    size = units.size(prediction_bytes(model))
    return [
        f"{layers} of multi-token prediction ({size}) not counted as stored: engines load such layers for "
        "speculative decoding alone"
    ]


def _memory_notes(model: ModelSpec, workload: Workload, basis: Basis) -> list[str]:
    notes = []
    cache = basis.hardware.llc_bytes if basis.hardware else None
    if workload.pinned_bytes:
        notes.append(
            f"{units.size(workload.pinned_bytes)} of the weights are taken as pinned on chip and not read; a stream "
            "larger than a cache that evicts has no hits otherwise"
        )
        if cache is not None and workload.pinned_bytes > cache:
            notes.append(f"that is more than the {units.size(cache)} of last-level cache the machine has")
    if model.tensors is not None and workload.tensor_parallel > 1:
        notes.append("one rank's bytes are by formula: the checkpoint's tensors are those of the whole model")
    return notes
