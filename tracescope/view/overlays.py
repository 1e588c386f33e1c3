"""What can be laid over the lanes: one table from which actions, settings, toolbar and ``render`` take theirs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tracescope.view.document import Document


@dataclass(frozen=True, slots=True)
class Overlay:
    """One overlay. ``keys`` switch it; ``icon`` names its picture in the toolbar; ``does`` is said of its switch.

    ``available`` says whether it has anything to show of a trace that has steps.
    """

    key: str
    title: str
    keys: tuple[str, ...]
    icon: str
    does: str
    available: "Callable[[Document], bool]"


OVERLAYS: Final[tuple[Overlay, ...]] = (
    Overlay(
        "path",
        "Device time",
        ("C",),
        "path",
        "the lane of device time, in which every instant counts once",
        lambda _: True,
    ),
    Overlay("floor", "Floor", ("B",), "floor", "floors, and the gap above them", lambda d: d.has_floor),
    Overlay("energy", "Energy", ("E",), "energy", "energy by source", lambda d: d.basis.energy is not None),
)
"""Every overlay; what one paints is a function beside the lanes, listed by the same key."""

OVERLAY_KEYS: Final = tuple(overlay.key for overlay in OVERLAYS)


def shown_overlays(document: "Document") -> frozenset[str]:
    """The overlays that have anything to show: a trace without steps has no time that counts, and no floor to draw."""
    if not document.has_steps:
        return frozenset()
    return frozenset(overlay.key for overlay in OVERLAYS if overlay.available(document))
