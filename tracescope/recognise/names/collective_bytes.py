"""The bytes that a collective sends over the link, from the message that a profiler recorded with its kernel."""

from typing import Any, Final

from tracescope.core.arguments import recorded_arguments
from tracescope.recognise.names.shapes import OpShape, ShapeKind

ITEM_BYTES: Final[dict[str, int]] = {
    "double": 8,
    "float": 4,
    "bfloat16": 2,
    "half": 2,
    "long": 8,
    "int": 4,
    "short": 2,
    "char": 1,
    "signed char": 1,
    "byte": 1,
    "unsigned char": 1,
    "bool": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
}
"""Bytes an element by the profiler's names of types, lower-cased."""


def read_collective(detail: str) -> OpShape | None:
    """What one rank sends for a collective by its recorded arguments (a JSON object); None where they do not say.

    Counted for the algorithm that sends least: an all-reduce sends 2 (n - 1) / n of its message, and 1 × where the
    switch adds up what the ranks send; a gather or a scatter (n - 1) / n of the whole, the rest their message. A
    broadcast and what is sent to one rank count as one message.
    """
    if '"Collective name"' not in detail:
        return None
    recorded = recorded_arguments(detail)
    if recorded is None:
        return None
    name, dtype = recorded.get("Collective name"), recorded.get("dtype")
    sent, received = _count(recorded.get("In msg nelems")), _count(recorded.get("Out msg nelems"))
    ranks = _count(recorded.get("Group size"))
    if not isinstance(name, str) or not isinstance(dtype, str) or sent is None or received is None:
        return None
    size = ITEM_BYTES.get(dtype.lower().removeprefix("c10::").removeprefix("at::"))
    if size is None:
        return None
    kind = name.lower().replace("_", "")
    elements = _elements(kind, sent, received, ranks)
    if elements is None:
        return None
    reduced = min(sent, elements) if "allreduce" in kind else elements
    return OpShape(ShapeKind.COLLECTIVE, activation=0, link=elements * size, link_reduced=reduced * size, flops=0)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48 else None


def _elements(name: str, sent: int, received: int, ranks: int | None) -> int | None:
    """Elements that one rank sends, rounded up."""
    if ranks == 1:
        return 0
    if "allreduce" in name:
        return None if ranks is None else -(-2 * (ranks - 1) * sent // ranks)
    if "reducescatter" in name or "alltoall" in name:
        return None if ranks is None else -(-(ranks - 1) * sent // ranks)
    if "allgather" in name:
        return None if ranks is None else -(-(ranks - 1) * received // ranks)
    return max(sent, received)
