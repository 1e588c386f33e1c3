"""Recorded tensor shapes: the bytes and FLOPs of one operator, read from its arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import Any

from tracescope.core.arguments import recorded_arguments


class ShapeKind(IntEnum):
    """What the shapes describe."""

    GEMM = 0
    ATTENTION = 1
    APPEND = 2
    EMBED = 3
    NORM = 4
    COLLECTIVE = 5
    BATCHED = 6
    """A product batched over its leading axis: of activations, or with weights that are stacked; its place tells."""
    HELPER = 7
    """None of its own: another kernel carries the bytes of the operator that launched this one."""


@dataclass(frozen=True, slots=True)
class OpShape:
    """Amounts read from shapes; -1 where the shapes do not say (a list of tensors carries no type).

    ``weight``, ``gather``, ``kv``, ``append``, ``activation``, ``link``, ``link_reduced`` bytes; ``append_elements``
    where only the count is known; ``batch``, ``queries`` (query tokens a request; of a concatenation the tokens that
    are joined on), ``keys`` (tokens in the cache, those included); ``kv_per_token`` bytes of K and V for one token of
    one request; ``kv_itemsize`` bytes an element. Of a matrix product ``rows``, ``inner`` and ``columns``: rows of all
    its matrices, the dimension summed over, and the columns of one.
    """

    kind: ShapeKind
    weight: int = 0
    gather: int = 0
    kv: int = 0
    append: int = 0
    append_elements: int = 0
    activation: int = -1
    link: int = 0
    link_reduced: int = 0
    flops: int = -1
    batch: int = -1
    queries: int = -1
    keys: int = -1
    kv_per_token: int = -1
    kv_itemsize: int = -1
    heads: int = -1
    rows: int = -1
    inner: int = -1
    columns: int = -1


HELPER = OpShape(ShapeKind.HELPER, activation=0, flops=0)

ITEM_BYTES = {
    "double": 8,
    "float": 4,
    "c10::BFloat16": 2,
    "c10::Half": 2,
    "at::BFloat16": 2,
    "long int": 8,
    "long": 8,
    "int": 4,
    "short": 2,
    "signed char": 1,
    "unsigned char": 1,
    "bool": 1,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2fnuz": 1,
    "c10::qint8": 1,
    "c10::quint8": 1,
    "c10::complex<float>": 8,
}
"""Bytes an element of the types the profiler writes."""

GEMM_LEAVES = frozenset({"aten::mm", "aten::addmm", "aten::_int_mm", "aten::_scaled_mm", "aten::bmm", "aten::baddbmm"})
"""The operators that run the multiplication; what encloses them only prepares."""
GEMM_WRAPPERS = frozenset({"aten::linear", "aten::matmul"})
APPENDS = frozenset({"aten::cat", "aten::index_copy_", "aten::index_put_", "aten::_index_put_impl_"})
_TOKENS_FIRST = ("::_flash_attention_forward", "::_efficient_attention_forward", "::_cudnn_attention_forward")
NORMS = frozenset({"aten::rms_norm", "aten::layer_norm", "aten::mul"})


def is_attention(name: str) -> bool:
    """Whether an operator's name says fused attention."""
    fused = "scaled_dot_product" in name or "flash_attention" in name or "efficient_attention" in name
    return fused and "backward" not in name


def is_shaped(name: str) -> bool:
    """Whether an operator of this name may carry shapes worth reading."""
    return (
        name in GEMM_LEAVES
        or name in GEMM_WRAPPERS
        or name in APPENDS
        or name in NORMS
        or name == "aten::embedding"
        or is_attention(name)
    )


def read_shape(name: str, detail: str) -> OpShape | None:
    """What operator ``name`` moves by its recorded arguments ``detail`` (a JSON object); None where they do not say."""
    if not detail or not is_shaped(name):
        return None
    recorded = recorded_arguments(detail)
    if recorded is None:
        return None
    arguments = {key.lower(): value for key, value in recorded.items()}
    dims, types = arguments.get("input dims"), arguments.get("input type")
    if not isinstance(dims, list) or not isinstance(types, list) or len(types) < len(dims):
        return None
    if name in APPENDS:
        return _append(name, dims, types, arguments.get("concrete inputs"))
    if not all(_is_dims(d) for d in dims):
        return None
    sizes = [ITEM_BYTES.get(t) if isinstance(t, str) else None for t in types]
    if name in GEMM_LEAVES or name in GEMM_WRAPPERS:
        return _gemm(name, dims, sizes)
    if name == "aten::embedding":
        return _embedding(dims, sizes)
    if is_attention(name):
        return _attention([_heads_first(name, d) for d in dims[:3]], sizes)
    return _norm(name, dims, sizes)


def _is_dims(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(n, int) and n >= 0 for n in value)


def _times(count: int, size: int | None) -> int:
    return -1 if size is None else count * size


def _gemm(name: str, dims: list[list[int]], sizes: Sequence[int | None]) -> OpShape | None:
    first = 1 if name in ("aten::addmm", "aten::baddbmm") else 0
    if len(dims) < first + 2:
        return None
    a, b = dims[first], dims[first + 1]
    if len(a) < 2 or len(b) < 2:
        return None
    if len(b) > 2:
        return _batched(a, b, sizes[first + 1])
    inner, columns = (b[1], b[0]) if name == "aten::linear" else (b[0], b[1])
    if a[-1] != inner:
        return None
    rows = prod(a[:-1])
    added = dims[0] if first else dims[2] if name == "aten::linear" and len(dims) > 2 else []
    bias = columns if added == [columns] else 0
    return OpShape(
        ShapeKind.GEMM,
        weight=_times(inner * columns + bias, sizes[first + 1]),
        activation=_times(rows * (inner + columns), sizes[first]),
        flops=2 * rows * inner * columns,
        rows=rows,
        inner=inner,
        columns=columns,
    )


def _batched(a: list[int], b: list[int], size: int | None) -> OpShape | None:
    """A matrix product batched over heads, tables or experts; ``kv`` is what it reads where it turns out to attend.

    A product over an inner dimension of 1 is an outer product (rotary angles) and tells nothing.
    """
    if len(a) != len(b) or a[-1] != b[-2] or a[-1] < 2:
        return None
    return OpShape(
        ShapeKind.BATCHED,
        weight=-1,
        kv=_times(prod(b), size),
        flops=2 * prod(a) * b[-1],
        queries=a[-2],
        batch=a[0] if len(a) == 4 else -1,
        kv_itemsize=-1 if size is None else size,
        rows=prod(a[:-1]),
        inner=a[-1],
        columns=b[-1],
    )


def _embedding(dims: list[list[int]], sizes: Sequence[int | None]) -> OpShape | None:
    if len(dims) < 2 or len(dims[0]) != 2:
        return None
    tokens = prod(dims[1])
    return OpShape(ShapeKind.EMBED, gather=_times(tokens * dims[0][1], sizes[0]), flops=0)


def _heads_first(name: str, dims: list[int]) -> list[int]:
    """[requests, heads, tokens, width] of an operand of attention ``name``.

    The operators below ``scaled_dot_product_…`` take tokens before heads.
    """
    return [dims[0], dims[2], dims[1], dims[3]] if name.endswith(_TOKENS_FIRST) and len(dims) == 4 else dims


def _attention(dims: list[list[int]], sizes: Sequence[int | None]) -> OpShape | None:
    if len(dims) < 3 or any(len(d) != 4 for d in dims[:3]):
        return None
    (batch, heads, queries, width), (_, kv_heads, keys, _), (_, _, _, value_width) = dims[:3]
    size = sizes[1]
    per_token = _times(kv_heads * (width + value_width), size)
    return OpShape(
        ShapeKind.ATTENTION,
        kv=-1 if per_token < 0 else batch * keys * per_token,
        activation=_times(batch * heads * queries * (width + value_width), sizes[0]),
        flops=2 * batch * heads * queries * keys * (width + value_width),
        batch=batch,
        queries=queries,
        keys=keys,
        kv_per_token=per_token,
        kv_itemsize=-1 if size is None else size,
        heads=heads,
    )


def _append(name: str, dims: list[Any], types: list[Any], concrete: Any) -> OpShape | None:
    if name == "aten::cat":
        return _cat(dims, concrete)
    source = 3 if name == "aten::index_copy_" else 2
    if len(dims) <= source or not _is_dims(dims[0]) or not _is_dims(dims[source]) or len(dims[0]) < 3:
        return None
    elements = prod(dims[source])
    size = ITEM_BYTES.get(types[0]) if isinstance(types[0], str) else None
    return OpShape(ShapeKind.APPEND, append=_times(elements, size), append_elements=elements, flops=0)


def _cat(dims: list[Any], concrete: Any) -> OpShape | None:
    """What may be a KV append: past and new K (or V) joined along the token axis, the last but one.

    Many things are joined so (a class token, a prompt's text and image): ``attention.growing`` tells a cache.
    """
    parts = dims[0] if dims else None
    if not isinstance(parts, list) or len(parts) != 2 or not all(_is_dims(p) for p in parts) or len(parts[1]) < 3:
        return None
    past, new = parts
    axis = concrete[1] if isinstance(concrete, list) and len(concrete) > 1 else ""
    # A cache that is still empty is a tensor without axes: [0].
    empty = past == [0]
    same = empty or (len(past) == len(new) and past[:-2] == new[:-2] and past[-1] == new[-1])
    if not same or axis not in ("-2", str(len(new) - 2)):
        return None
    tokens = new[-2] + (0 if empty else past[-2])
    return OpShape(ShapeKind.APPEND, append=-1, append_elements=prod(new), queries=new[-2], keys=tokens)


def _norm(name: str, dims: list[list[int]], sizes: Sequence[int | None]) -> OpShape | None:
    if name == "aten::mul":
        # The last operator of a norm that is written out: a vector of weights times the rows.
        for one, other in ((0, 1), (1, 0)):
            if len(dims) == 2 and len(dims[one]) == 1 and len(dims[other]) >= 2 and dims[other][-1] == dims[one][0]:
                return OpShape(ShapeKind.NORM, weight=_times(dims[one][0], sizes[one]), flops=0)
        return None
    weights = [(d, s) for d, s in zip(dims[1:], sizes[1:], strict=False) if len(d) == 1 and dims[0][-1:] == d]
    known = all(size for _, size in weights)
    return OpShape(ShapeKind.NORM, weight=sum(_times(d[0], s) for d, s in weights) if known else -1, flops=0)
