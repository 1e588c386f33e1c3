"""What decoding is compared with, by formula and not simulated: reading a prompt, two ways of filling a batch."""

from dataclasses import dataclass
from typing import Final

from tracescope.core import units
from tracescope.core.category import Op
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.kv_cache import kv_bytes_per_token
from tracescope.floor.layer_weights import lm_head_work
from tracescope.floor.pricing import compute_s, memory_s
from tracescope.floor.step_ops import layer_groups, layer_ops, weight_read_bytes

SCHEDULING: Final = (
    "static batching runs a batch until its longest answer ends, so that mean ÷ longest of its slots work; continuous "
    "batching fills a slot as soon as it is free: longest ÷ mean times the generated tokens/s (by formula, not "
    "simulated)"
)


@dataclass(frozen=True, slots=True)
class PrefillFloor:
    """Reading one prompt of ``tokens`` in one pass: seconds are None where the basis does not price them."""

    tokens: int
    flops: int
    memory_bytes: int
    compute_s: float | None
    memory_s: float | None

    @property
    def floor_s(self) -> float | None:
        """The longer of the two; None where either is not known."""
        known = self.compute_s is not None and self.memory_s is not None
        return max(self.compute_s or 0.0, self.memory_s or 0.0) if known else None

    @property
    def sentence(self) -> str | None:
        """The arithmetic in words; None where it has no time."""
        if self.compute_s is None or self.memory_s is None:
            return None
        bound = "compute" if self.compute_s > self.memory_s else "memory"
        compute = f"{units.flops(self.flops)} ÷ {units.flop_rate(self.flops / self.compute_s)}"
        memory = f"{units.size(self.memory_bytes)} ÷ {units.rate(self.memory_bytes / self.memory_s)}"
        return (
            f"a prompt of {self.tokens:,} tokens, read in one pass (by formula, not simulated): max({compute} = "
            f"{units.seconds(self.compute_s)}, {memory} = {units.seconds(self.memory_s)}): {bound}-bound"
        )


def prefill_floor(model: ModelSpec, basis: Basis, tokens: int, ranks: int = 1) -> PrefillFloor | None:
    """The floor of one prompt, one rank's share; None for an empty prompt.

    Weights are read once, every token's K and V written once. Linear FLOPs are those of a decode step for each token,
    the output head's for the last one alone; attention is causal and bounded by each layer's window.
    """
    if tokens < 1:
        return None
    one = Workload(tensor_parallel=ranks)
    linear = attention = 0
    for layer, n in layer_groups(model, 1, ranks):
        ops = layer_ops(model, one, layer)
        linear += n * sum(op.flops for op in ops if op.op is not Op.ATTENTION)
        attention += n * _attention_flops(model, layer, tokens, ranks)
    head = 2 * lm_head_work(model, ranks).elements
    flops = tokens * linear + head + attention
    moved = weight_read_bytes(model, ranks, tokens) + tokens * kv_bytes_per_token(model, ranks)
    return PrefillFloor(tokens, flops, moved, compute_s(flops, basis), memory_s(moved, basis))


def _attention_flops(model: ModelSpec, layer: int, tokens: int, ranks: int) -> int:
    """Causal attention over a whole prompt: token i sees min(i, window) tokens, itself included."""
    window = model.window(layer)
    if window == 0:
        return 0
    reach = tokens if window is None else min(window, tokens)
    pairs = reach * (reach + 1) // 2 + (tokens - reach) * reach
    heads = -(-model.heads // ranks)
    latent = model.latent
    if latent is not None:  # a prompt is not worth absorbing: keys and values are unpacked
        return 2 * pairs * heads * (latent.nope_dim + latent.rope_dim + latent.v_dim)
    return 4 * pairs * heads * model.head_dim
