"""What the tip under the pointer says about an event."""

from tracescope.core.category import EventFlag
from tracescope.core.units import duration, size
from tracescope.view.document import Document
from tracescope.view.floor_words import event_floor


def tip_text(document: Document, event: int) -> str:
    """Two or three plain lines: what it is, its duration and floor, its bytes and gap."""
    events = document.trace.events
    took, layer = int(events.duration[event]), int(events.layer[event])
    floor, moved = event_floor(document, event), document.bytes_of(event)
    lines = [document.title_of(event) + (f", layer {layer}" if layer >= 0 else "")]
    lines.append(f"{duration(took)}, floor {'none' if floor is None else duration(floor)}")
    parts = [] if moved is None else [size(moved)]
    if floor is not None:
        gap = took - floor
        parts.append(f"gap {duration(gap)}" if gap >= 0 else f"{duration(-gap)} below its floor")
    if parts:
        lines.append(", ".join(parts))
    if EventFlag.UNFINISHED in EventFlag(int(events.flags[event])):
        lines.append("its end was not recorded")
    name = document.trace.names[int(events.name[event])]
    if name != document.title_of(event):
        lines.append(name if len(name) <= 120 else name[:119] + "…")
    return "\n".join(lines)
