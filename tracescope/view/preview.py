"""What a synthesized run would be, before it exists: the floor of its first step and what fits into memory."""

from dataclasses import dataclass
from math import fsum

import numpy as np

from tracescope.core.errors import TraceError
from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.units import count, millis, one_of_ranks, plural, size
from tracescope.floor.capacity import Capacity, capacity
from tracescope.floor.pricing import compute_beyond_s, link_s, memory_s, ops_total_s, sent_bytes
from tracescope.floor.step_floor import op_count
from tracescope.floor.step_ops import StepTotals, counted_ops, kv_bytes_per_token, step_totals
from tracescope.floor.tensor_parallel import split_notes
from tracescope.view.part_words import FloorPart, parts_of


@dataclass(frozen=True, slots=True)
class Preview:
    """Sizes in bytes and times in ns of the first step.

    ``floor_ns`` is the op floor, the one that ``tracescope floor`` takes its rates from, and ``parts`` are what it is
    made of. Bytes, capacity and times are those of one of ``ranks``.
    """

    weight_bytes: int
    kv_per_token: int
    floor_ns: float
    parts: tuple[FloorPart, ...]
    ops: int
    batch: int
    memory: Capacity
    ranks: int = 1
    notes: tuple[str, ...] = ()
    """What splitting the model over the ranks does beyond dividing its bytes."""

    @property
    def tokens_per_s(self) -> float | None:
        """Generated tokens a second at the floor."""
        return self.batch * 1e9 / self.floor_ns if self.floor_ns else None

    @property
    def headline(self) -> str:
        """``7.045 ms   2,271 tok/s at most``."""
        return f"{millis(self.floor_ns)} ms    {count(self.tokens_per_s)} tok/s at most, batch {self.batch}"

    @property
    def memory_line(self) -> str:
        """What is used of the device's memory and how many requests still fit."""
        memory = self.memory
        used = size(memory.stored_bytes + memory.kv_stored_bytes)
        of = f" of {one_of_ranks(self.ranks)}" if self.ranks > 1 else ""
        line = f"Memory{of}: {used} of {size(memory.capacity_bytes)}"
        if not memory.fits:
            return f"{line}: does not fit at this batch and context"
        return f"{line}, room for {plural(memory.max_batch - self.batch, 'more request')} at this context"


def preview(model: ModelSpec, hardware: HardwareSpec, basis: Basis, workload: Workload) -> Preview:
    """The arithmetic of one step, through the same functions as ``tracescope floor``.

    Raises TraceError where the model cannot be split over the ranks, or the machine cannot price what they send.
    """
    ranks = workload.tensor_parallel
    notes = split_notes(model, ranks)
    totals, floor = step_totals(model, workload), ops_total_s(model, workload, basis)
    if floor is None:
        raise TraceError("the floor of a link transfer is not known", action="use a machine whose link rate is known")
    return Preview(
        weight_bytes=totals.weight_read,
        kv_per_token=kv_bytes_per_token(model, ranks),
        floor_ns=floor * 1e9,
        parts=_parts(model, workload, basis, totals),
        ops=op_count(model, ranks),
        batch=workload.batch,
        memory=capacity(model, hardware, workload),
        ranks=ranks,
        notes=notes,
    )


def _parts(model: ModelSpec, workload: Workload, basis: Basis, totals: StepTotals) -> tuple[FloorPart, ...]:
    """What the op floor is made of, in the words and the order of the step bar."""
    amounts = {name: getattr(totals, name) for name in ("weight_read", "kv_read", "embedding_gather", "kv_append")}
    seconds = {name: memory_s(amount, basis) for name, amount in amounts.items()}
    amounts["link"] = sent_bytes(totals.link, totals.link_reduced, basis)
    seconds["link"] = link_s(amounts["link"], basis)
    ops = np.array([(op.memory_bytes, op.flops, n) for op, n in counted_ops(model, workload)], np.float64)
    seconds["compute"] = fsum(compute_beyond_s(ops[:, 0], ops[:, 1], basis) * ops[:, 2])
    return parts_of({name: (found or 0.0) * 1e9 for name, found in seconds.items()}, amounts, basis)
