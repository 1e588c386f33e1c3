"""What a synthesized run would be, before it exists: the floor of its first step and what fits into memory."""

from dataclasses import dataclass

from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.units import count, millis, plural, rate, size
from tracescope.floor.capacity import Capacity, capacity
from tracescope.floor.pricing import memory_s, ops_total_s
from tracescope.floor.step_floor import op_count
from tracescope.floor.step_ops import kv_bytes_per_token, step_totals


@dataclass(frozen=True, slots=True)
class Preview:
    """Sizes in bytes and times in ns of the first step; a time is None where no bandwidth is known.

    ``floor_ns`` is the op floor, the one that ``tracescope floor`` takes its rates from; ``weight_ns`` and ``kv_ns``
    are what the weights and the KV reads alone need of it.
    """

    weight_bytes: int
    kv_bytes: int
    kv_per_token: int
    weight_ns: float | None
    kv_ns: float | None
    floor_ns: float | None
    ops: int
    batch: int
    bandwidth: int | None
    memory: Capacity

    @property
    def rest_ns(self) -> float | None:
        """What the floor has beyond weights and KV reads: FLOPs that take longer than their bytes, appends, gathers."""
        if self.floor_ns is None or self.weight_ns is None or self.kv_ns is None:
            return None
        return max(0.0, self.floor_ns - self.weight_ns - self.kv_ns)

    @property
    def tokens_per_s(self) -> float | None:
        """Generated tokens a second at the floor."""
        floor = self.floor_ns
        return self.batch * 1e9 / floor if floor else None

    @property
    def headline(self) -> str:
        """``7.045 ms   2,271 tok/s at most``."""
        return f"{millis(self.floor_ns)} ms    {count(self.tokens_per_s)} tok/s at most, batch {self.batch}"

    @property
    def weight_label(self) -> str:
        """The arithmetic of the weights."""
        return f"{size(self.weight_bytes)} ÷ {rate(self.bandwidth)} = {millis(self.weight_ns)} ms"

    @property
    def kv_label(self) -> str:
        """The arithmetic of the KV cache."""
        return f"{size(self.kv_bytes)} ÷ {rate(self.bandwidth)} = {millis(self.kv_ns)} ms"

    @property
    def rest_label(self) -> str:
        """The time of the rest, with what it is: no single division makes it."""
        return f"compute and other = {millis(self.rest_ns)} ms"

    @property
    def memory_line(self) -> str:
        """What is used of the device's memory and how many requests still fit."""
        memory = self.memory
        used = size(memory.stored_bytes + memory.kv_stored_bytes)
        line = f"Memory: {used} of {size(memory.capacity_bytes)}"
        if not memory.fits:
            return f"{line}: does not fit at this batch and context"
        return f"{line}, room for {plural(memory.max_batch - self.batch, 'more request')} at this context"


def preview(model: ModelSpec, hardware: HardwareSpec, basis: Basis, workload: Workload) -> Preview:
    """The arithmetic of one step, through the same functions as ``tracescope floor``."""
    totals = step_totals(model, workload)
    return Preview(
        weight_bytes=totals.weight_read,
        kv_bytes=totals.kv_read,
        kv_per_token=kv_bytes_per_token(model),
        weight_ns=_ns(memory_s(totals.weight_read, basis)),
        kv_ns=_ns(memory_s(totals.kv_read, basis)),
        floor_ns=_ns(ops_total_s(model, workload, basis)),
        ops=op_count(model, workload.tensor_parallel),
        batch=workload.batch,
        bandwidth=basis.bandwidth_bytes_per_s,
        memory=capacity(model, hardware, workload),
    )


def _ns(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e9
