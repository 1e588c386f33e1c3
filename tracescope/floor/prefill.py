"""What decoding is compared with, by formula and not simulated: reading a prompt, two ways of filling a batch."""

from dataclasses import dataclass
from typing import Final

from tracescope.core import units
from tracescope.core.category import Op
from tracescope.core.hardware import Basis
from tracescope.core.layer_parts import Attention
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.kv_cache import kv_bytes_per_token
from tracescope.floor.layer_weights import lm_head_work
from tracescope.floor.matrices import share
from tracescope.floor.pricing import compute_s, memory_s
from tracescope.floor.state import state_bytes_per_request
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

    Weights are read once, every token's K and V and the last state written once. Linear FLOPs are those of a decode
    step for each token, the output head's for the last one alone; attention is causal and as far as the
    layer reaches.
    """
    if tokens < 1:
        return None
    one = Workload(tensor_parallel=ranks)
    linear = attention = 0
    for layer, n in layer_groups(model, 1, ranks):
        ops = layer_ops(model, one, layer)
        linear += n * sum(op.flops for op in ops if op.op is not Op.ATTENTION)
        attention += n * _attention_flops(model.layer(layer).attention, tokens, ranks)
    head = 2 * lm_head_work(model, ranks).elements
    flops = tokens * linear + head + attention
    cache = tokens * kv_bytes_per_token(model, ranks) + state_bytes_per_request(model, ranks)
    moved = weight_read_bytes(model, ranks, tokens) + cache
    return PrefillFloor(tokens, flops, moved, compute_s(flops, basis), memory_s(moved, basis))


def _attention_flops(attention: Attention | None, tokens: int, ranks: int) -> int:
    """Causal attention over a whole prompt: token i sees min(i, window) tokens, itself included."""
    if attention is None:
        return 0
    pairs = _pairs(attention, tokens)
    heads = share(attention.heads, ranks)
    latent = attention.latent
    if latent is not None:  # a prompt is not worth absorbing: keys and values are unpacked
        scored = 2 * pairs * heads * (latent.nope_dim + latent.rope_dim + latent.v_dim)
    else:
        scored = 4 * pairs * heads * attention.head_dim
    indexer = attention.indexer
    return scored + (0 if indexer is None else tokens * (tokens + 1) * indexer.heads * indexer.dim)


def _pairs(attention: Attention, tokens: int) -> int:
    """Pairs of a token and one that it sees, itself included."""
    if attention.chunk is not None:
        whole, rest = divmod(tokens, attention.chunk)
        return whole * _triangle(attention.chunk) + _triangle(rest)
    most = attention.most_attended
    reach = tokens if most is None else min(most + 1, tokens)
    return _triangle(reach) + (tokens - reach) * reach


def _triangle(tokens: int) -> int:
    return tokens * (tokens + 1) // 2
