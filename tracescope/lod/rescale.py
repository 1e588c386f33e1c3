"""Floor shares of a stored pyramid on another basis: how much longer or shorter the floors of each row became."""

from dataclasses import dataclass, field

import numpy as np

from tracescope.core.columns import I64
from tracescope.core.trace import Trace
from tracescope.lod.planes import PLANES, Plane, PlaneFloors, PlaneMembers
from tracescope.lod.pyramid import LANE_ROW, Pyramid

_BY_MEMBER = (Plane.COMMUNICATION, Plane.SELECTION)
"""Planes whose floors are the events' own, so that those of other events must be left out of the sum."""


@dataclass(frozen=True, slots=True)
class FloorScales:
    """What the floor shares of each plane and lane are multiplied by; 1 where nothing is said.

    Bytes take longer on a slower memory, FLOPs and transfers do not: so a plane of FLOPs keeps its shares, and a row
    with both changes by what its events change by together.
    """

    planes: dict[Plane, float] = field(default_factory=dict)
    lanes: dict[int, float] = field(default_factory=dict)

    def of_plane(self, plane: Plane) -> float:
        """The factor of a resource lane."""
        return self.planes.get(plane, 1.0)

    def of_lane(self, lane: int) -> float:
        """The factor of a lane of the trace."""
        return self.lanes.get(lane, 1.0)


SAME_FLOORS = FloorScales()


def floor_scales(
    trace: Trace, pyramid: Pyramid, members: PlaneMembers, stored: PlaneFloors, now: PlaneFloors
) -> FloorScales:
    """Factors for the rows of ``pyramid``, which was priced with the floors ``stored``, to show the floors ``now``."""
    offset, work = trace.lanes.offset.tolist(), trace.events.work

    def counts(lane: int, plane: Plane = Plane.PATH) -> I64:
        rows = slice(offset[lane], offset[lane + 1])
        chosen = work[rows]
        if plane in _BY_MEMBER:
            inside = members.contains(plane, chosen, trace.events.roles[rows], trace.events.category[rows])
            chosen = chosen[inside]
        return np.bincount(chosen, minlength=len(trace.work))

    def factor(plane: Plane, count: I64) -> float:
        before = float(count @ stored.ns[plane])
        return float(count @ now.ns[plane]) / before if before > 0 else 1.0

    own = pyramid.row_index[pyramid.row_kind == LANE_ROW].tolist()
    drawn = [plane for plane in PLANES if pyramid.row_of_plane(plane) >= 0]
    device = np.flatnonzero(trace.on_device).tolist() if drawn else []
    whole = sum((counts(lane) for lane in device), np.zeros(len(trace.work), np.int64))
    planes = {}
    for plane in drawn:
        if plane in _BY_MEMBER:
            count = sum((counts(lane, plane) for lane in device), np.zeros(len(trace.work), np.int64))
        else:
            count = whole
        planes[plane] = factor(plane, count)
    return FloorScales(planes, {lane: factor(Plane.PATH, counts(lane)) for lane in own})
