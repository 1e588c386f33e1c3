"""What stands in bars: amounts in the resource lanes, titles and durations elsewhere."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from tracescope.core import units
from tracescope.lod.planes import Plane
from tracescope.view.document import Document
from tracescope.view.lane_rows import Row

MOST_KEPT: Final = 20_000


Labels = Callable[[int], tuple[str, ...]]


def labels_of(document: Document, row: Row) -> Labels | None:
    """The texts of an event in a row, longest first; None where bars carry none. Those of recent events are kept."""
    make = _texts(document, row)
    return None if make is None else _kept(document, row.key, make)


def event_labels(document: Document) -> Labels:
    """Title and duration of an event, then its title."""
    return _kept(document, "title", _titles(document))


def _kept(document: Document, name: str, make: Labels) -> Labels:
    kept = document.remembered("labels", name, dict[int, tuple[str, ...]])
    if len(kept) > MOST_KEPT:
        kept.clear()

    def labels(event: int) -> tuple[str, ...]:
        texts = kept.get(event)
        if texts is None:
            texts = kept[event] = make(event)
        return texts

    return labels


def _texts(document: Document, row: Row) -> Labels | None:
    work, events = document.trace.work, document.trace.events
    column = {
        Plane.WEIGHTS: work.weight_read, Plane.KV_READS: work.kv_read, Plane.COMPUTE: work.flops,
    }.get(row.plane) if row.plane is not None else None  # fmt: skip
    if row.plane is Plane.KV_APPENDS:
        return None
    if column is not None:

        def amounts(event: int) -> tuple[str, ...]:
            count = int(column[events.work[event]])
            if count < 0:
                return (f"{document.title_of(event)}, bytes unknown", "bytes unknown")
            if not count:
                return ()
            return flop_texts(count) if row.plane is Plane.COMPUTE else size_texts(count)

        return amounts

    return _titles(document)


def _titles(document: Document) -> Labels:
    def titles(event: int) -> tuple[str, ...]:
        title = document.title_of(event)
        took = units.duration(int(document.trace.events.duration[event]))
        return f"{title}  {took}", title

    return titles


@lru_cache(maxsize=4096)
def flop_texts(count: int) -> tuple[str, ...]:
    """The label of an amount of FLOPs."""
    return (units.flops(count),)


@lru_cache(maxsize=4096)
def size_texts(count: int) -> tuple[str, ...]:
    """``117.4 MB``, the same without decimals, then without its unit where that is MB, as in most bars."""
    text = units.size(count)
    number, _, unit = text.partition(" ")
    rounded = f"{float(number):.0f}"
    return (text, f"{rounded} {unit}", rounded) if unit == "MB" else (text, f"{float(number):.1f} {unit}")
