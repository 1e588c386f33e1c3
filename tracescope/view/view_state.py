"""What is being looked at: one frozen, serialisable value that history, export, notes and undo all share."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

from tracescope.core.timerange import TimeRange


@dataclass(frozen=True, slots=True)
class ViewState:
    """A view of one document.

    ``visible``: the time range shown in the lanes, ns relative to the trace's base; ``step``: the current step
    (ordinal over all rows of the step table; -1 where the trace has none); ``event``: the selected event id, -1 none;
    ``layer``: the selected layer, -1 none; ``playhead`` in ns, None when hidden; ``overlays``: the keys shown;
    ``selection``: a dragged time range; ``first_track``: vertical scroll in rows; ``search``: the text searched for.
    """

    visible: TimeRange
    step: int = -1
    event: int = -1
    layer: int = -1
    playhead: int | None = None
    overlays: frozenset[str] = field(default=frozenset({"path", "floor"}))
    selection: TimeRange | None = None
    first_track: int = 0
    search: str = ""

    def with_(self, **changes: Any) -> Self:
        """A copy with some fields replaced."""
        return replace(self, **changes)

    def toggled(self, overlay: str) -> Self:
        """A copy with one overlay switched."""
        return replace(self, overlays=self.overlays ^ {overlay})

    def to_json(self) -> dict[str, Any]:
        """A plain JSON object."""
        return {
            "visible": _pair(self.visible), "step": self.step, "event": self.event, "layer": self.layer,
            "playhead": self.playhead, "overlays": sorted(self.overlays), "selection": _pair(self.selection),
            "first_track": self.first_track, "search": self.search,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
        selection = data["selection"]
        return cls(
            visible=TimeRange(*data["visible"]), step=data["step"], event=data["event"], layer=data["layer"],
            playhead=data["playhead"], overlays=frozenset(data["overlays"]),
            selection=None if selection is None else TimeRange(*selection),
            first_track=data["first_track"], search=data["search"],
        )  # fmt: skip


def _pair(time_range: TimeRange | None) -> list[int] | None:
    return None if time_range is None else [time_range.start, time_range.end]
