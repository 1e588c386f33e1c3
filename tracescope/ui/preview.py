"""What a synthesized run would be, before it exists: the floor of its first step and what fits into memory."""

from dataclasses import dataclass

from tracescope.core.arithmetic import kv_bytes_per_token, step_ops, step_totals
from tracescope.core.capacity import Capacity, capacity
from tracescope.core.hardware import Basis, HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.units import count, millis, rate, size


@dataclass(frozen=True, slots=True)
class Preview:
    """Sizes in bytes and times in ns of the first step; a time is None where no bandwidth is known."""

    weight_bytes: int
    kv_bytes: int
    kv_per_token: int
    weight_ns: float | None
    kv_ns: float | None
    ops: int
    batch: int
    bandwidth: int | None
    memory: Capacity

    @property
    def floor_ns(self) -> float | None:
        """Weights and KV read: what the bar shows."""
        return None if self.weight_ns is None or self.kv_ns is None else self.weight_ns + self.kv_ns

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
    def memory_line(self) -> str:
        """What is used of the device's memory and how many requests still fit."""
        memory = self.memory
        used = size(memory.stored_bytes + memory.kv_stored_bytes)
        line = f"Memory: {used} of {size(memory.capacity_bytes)}"
        if not memory.fits:
            return f"{line}: does not fit at this batch and context"
        room = memory.max_batch - self.batch
        return f"{line}, room for {room:,} more request{'' if room == 1 else 's'} at this context"


def preview(model: ModelSpec, hardware: HardwareSpec, basis: Basis, workload: Workload) -> Preview:
    """The arithmetic of one step, through the same functions as ``tracescope floor``."""
    totals = step_totals(model, workload)
    bandwidth = basis.bandwidth_bytes_per_s
    kv = totals.kv_read
    return Preview(
        weight_bytes=totals.weight_read,
        kv_bytes=kv,
        kv_per_token=kv_bytes_per_token(model),
        weight_ns=None if bandwidth is None else totals.weight_read * 1e9 / bandwidth,
        kv_ns=None if bandwidth is None else kv * 1e9 / bandwidth,
        ops=len(step_ops(model, workload)),
        batch=workload.batch,
        bandwidth=bandwidth,
        memory=capacity(model, hardware, workload),
    )
