"""A solid part of a floor, whatever bar it is drawn in: its kind's letter, its time, its arithmetic. No Qt here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tracescope.core import units
from tracescope.core.hardware import Basis

_LEAST_IN_MS: Final = 10_000
_LEAST_SHOWN: Final = 0.5
"""Half a ns: what a floor in whole ns says nothing of is no part of one that is not rounded either."""


@dataclass(frozen=True, slots=True)
class FloorPart:
    """The kind's letter, ns, and texts from long to short."""

    letter: str
    ns: float
    texts: tuple[str, ...]


def moved_part(letter: str, word: str, ns: float, amount: int | None, bytes_per_s: int | None) -> FloorPart:
    """A part that is an amount over a rate; ``amount`` None where the part is only what is known of it."""
    took = _time(ns)
    if amount is None:
        return FloorPart(letter, ns, (f"{word}, known {took}", *_short(letter, word, ns)))
    sum_of = f"{units.size(amount)} ÷ {units.rate(bytes_per_s)} = {took}"
    return FloorPart(letter, ns, (f"{word} {sum_of}", f"{letter} {sum_of}", *_short(letter, word, ns)))


def computed_part(ns: float) -> FloorPart:
    """What ops bound by FLOPs take beyond their bytes: no single division makes it."""
    return FloorPart("C", ns, (f"compute beyond its bytes {_time(ns)}", *_short("C", "compute", ns)))


def parts_of(ns: Mapping[str, float], amounts: Mapping[str, int | None], basis: Basis) -> tuple[FloorPart, ...]:
    """The parts of a floor that take time, in the order in which every bar has them.

    Both by ``weight_read``, ``kv_read``, ``embedding_gather``, ``kv_append``, ``link``; ``compute`` has no amount.
    """
    memory, link = basis.bandwidth_bytes_per_s, basis.link_bytes_per_s
    made = (
        moved_part("W", "weights", ns["weight_read"], amounts["weight_read"], memory),
        moved_part("W", "embedding rows", ns["embedding_gather"], amounts["embedding_gather"], memory),
        moved_part("K", "KV", ns["kv_read"], amounts["kv_read"], memory),
        moved_part("A", "KV appends", ns["kv_append"], amounts["kv_append"], memory),
        computed_part(ns["compute"]),
        moved_part("X", "communication", ns["link"], amounts["link"], link),
    )
    return tuple(part for part in made if part.ns >= _LEAST_SHOWN)


def _time(ns: float) -> str:
    """In ms, as the other parts of a floor are, unless three decimals would say little of it."""
    return f"{units.millis(ns)} ms" if ns >= _LEAST_IN_MS else units.duration(ns)


def _short(letter: str, word: str, ns: float) -> tuple[str, ...]:
    return f"{word} {_time(ns)}", f"{letter} {_time(ns)}", letter
