"""How many bytes a weight matrix or a cached token takes in each storage format, its scales and zeros counted apart."""

import re
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Final

from tracescope.core.errors import TraceError


@dataclass(frozen=True, slots=True)
class WeightDtype:
    """A storage format of linear weights: ``bits`` a value and ``side_bits`` of scale and zero a group.

    A group is ``rows`` values along the input by ``columns`` along the output; 0 stands for the whole length.
    ``flat`` groups run over the flattened matrix instead. ``compute`` is the dtype whose dense rate the FLOPs run at:
    weight-only formats compute at the 16-bit rate.
    """

    name: str
    bits: int
    side_bits: float = 0
    rows: int = 0
    columns: int = 1
    flat: bool = False
    compute: str = "bf16"

    @property
    def quantized(self) -> bool:
        """Whether it is narrower than the 16-bit formats."""
        return self.bits < 16

    def value_bytes(self, n_in: int, n_out: int) -> int:
        """Bytes of the values of a matrix with ``n_in`` inputs and ``n_out`` outputs, without scales."""
        return _bytes(n_in * n_out * self.bits)

    def side_bytes(self, n_in: int, n_out: int) -> int:
        """Bytes of the scales and zeros of such a matrix."""
        if not self.side_bits:
            return 0
        if self.flat:
            groups = _ceil_div(n_in * n_out, self.rows)
        else:
            groups = _ceil_div(n_in, self.rows or n_in) * _ceil_div(n_out, self.columns or n_out)
        return ceil(groups * self.side_bits / 8)  # exact: a few bits times a count far below 2^50

    def effective_bits(self, n_in: int = 4096, n_out: int = 4096) -> float:
        """Bits a value, scales included, of a matrix of the given shape."""
        return (self.value_bytes(n_in, n_out) + self.side_bytes(n_in, n_out)) * 8 / (n_in * n_out)


WEIGHT_DTYPES: Final[dict[str, WeightDtype]] = {
    d.name: d
    for d in (
        WeightDtype("bf16", 16),
        WeightDtype("fp16", 16, compute="fp16"),
        WeightDtype("fp32", 32, compute="fp32"),
        WeightDtype("fp8", 8, 32, 128, 128, compute="fp8"),  # one fp32 scale a block of 128 × 128
        WeightDtype("fp8-channel", 8, 32, 0, 1, compute="fp8"),
        WeightDtype("fp8-tensor", 8, 32, 0, 0, compute="fp8"),
        WeightDtype("fp8-raw", 8, compute="fp8"),
        WeightDtype("int8", 8, 16),  # one 16-bit scale an output channel
        WeightDtype("int8-raw", 8),
        WeightDtype("int4-raw", 4),
        WeightDtype("mxfp4", 4, 8, 32),
        WeightDtype("nvfp4", 4, 8, 16),
        WeightDtype("nf4", 4, 32, 64, flat=True),
        WeightDtype("nf4-double", 4, 8 + 32 / 256, 64, flat=True),  # 8-bit scales, one fp32 for 256 of them
        WeightDtype("bnb-int8", 8, 32),
        # llama.cpp blocks: the side bits are the block's bytes less its values.
        WeightDtype("q4_0", 4, 16, 32),
        WeightDtype("q4_1", 4, 32, 32),
        WeightDtype("q5_0", 5, 16, 32),
        WeightDtype("q5_1", 5, 32, 32),
        WeightDtype("q8_0", 8, 16, 32),
        WeightDtype("q4_k", 4, 128, 256),
        WeightDtype("q5_k", 5, 128, 256),
        WeightDtype("q6_k", 6, 144, 256),
        WeightDtype("q2_k", 2, 160, 256),
        WeightDtype("q3_k", 3, 112, 256),
        WeightDtype("q8_1", 8, 32, 32),
        WeightDtype("q8_k", 8, 288, 256),
        WeightDtype("iq1_s", 1, 144, 256),
        WeightDtype("iq1_m", 1, 192, 256),
        WeightDtype("iq2_xxs", 2, 16, 256),
        WeightDtype("iq2_xs", 2, 80, 256),
        WeightDtype("iq2_s", 2, 144, 256),
        WeightDtype("iq3_xxs", 3, 16, 256),
        WeightDtype("iq3_s", 3, 112, 256),
        WeightDtype("iq4_nl", 4, 16, 32),
        WeightDtype("iq4_xs", 4, 64, 256),
        WeightDtype("tq1_0", 1, 176, 256),
        WeightDtype("tq2_0", 2, 16, 256),
    )
}
"""Formats with a name of their own; the grouped integer formats below follow a pattern."""

_ALIASES: Final = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32"}
_GROUPED: Final = re.compile(r"(gptq-)?int([234568])(?:-g([1-9][0-9]{0,5}))?(-sym)?")
"""``int4-g128`` (16-bit scale and zero), ``int4-g128-sym`` (scale only), ``gptq-int4-g32`` (packed integer zeros)."""

WEIGHT_NAMES: Final = (*WEIGHT_DTYPES, "int4-g128", "int4-g32", "int4-g128-sym", "gptq-int4")


@lru_cache(maxsize=256)
def weight_dtype(name: str) -> WeightDtype:
    """The format called ``name``; raises TraceError that lists the names where there is none."""
    known = WEIGHT_DTYPES.get(_ALIASES.get(name.lower(), name.lower()))
    if known is not None:
        return known
    match = _GROUPED.fullmatch(name.lower())
    if match is None:
        raise TraceError(f"unknown weight dtype '{name}'", action="Use one of: " + " ".join(WEIGHT_NAMES))
    packed, bits, group, symmetric = match[1], int(match[2]), match[3], match[4]
    if packed:
        return WeightDtype(name.lower(), bits, 16 + (0 if symmetric else bits), int(group or 128))
    if group is None:
        raise TraceError(f"weight dtype '{name}' needs a group size", action="Write for example int4-g128 or int4-raw.")
    return WeightDtype(name.lower(), bits, 16 if symmetric else 32, int(group))


@dataclass(frozen=True, slots=True)
class KvDtype:
    """A storage format of the KV cache: ``bits`` an element, ``scale_bits`` once per token and head."""

    name: str
    bits: int
    scale_bits: int = 0

    def token_bytes(self, heads: int, width: int) -> int:
        """Bytes of one token's ``heads`` vectors of ``width`` elements."""
        return _bytes(heads * width * self.bits) + _bytes(heads * self.scale_bits)


LATENT_KV: Final = "fp8-ds-mla"
"""Latent attention's own format: 8-bit values with a scale for each 128 of them, the rotary part in 16 bit."""

KV_DTYPES: Final[dict[str, KvDtype]] = {
    d.name: d
    for d in (
        KvDtype("bf16", 16),
        KvDtype("fp16", 16),
        KvDtype("fp32", 32),
        KvDtype("fp8", 8),
        KvDtype("int8", 8),
        KvDtype("int4", 4),
        KvDtype("fp8-scaled", 8, 32),
        KvDtype("int8-scaled", 8, 32),
        KvDtype("int4-scaled", 4, 32),
        KvDtype(LATENT_KV, 8),
    )
}


def kv_dtype(name: str) -> KvDtype:
    """The KV format called ``name``; raises TraceError that lists the names where there is none."""
    known = KV_DTYPES.get(_ALIASES.get(name.lower(), name.lower()))
    if known is None:
        raise TraceError(f"unknown KV dtype '{name}'", action="Use one of: " + " ".join(KV_DTYPES))
    return known


def plain_bytes(name: str) -> int:
    """Bytes an element of an unquantized dtype (``bf16`` 2, ``fp16`` 2, ``fp32`` 4): norms, biases, embeddings."""
    return weight_dtype(name).bits // 8


def _bytes(bits: int) -> int:
    return -(-bits // 8)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)
