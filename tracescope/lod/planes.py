"""Resource lanes: which events move weights, KV, results or tokens, each plane with the floor of its own bytes."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracescope.core.category import KIND_OF_CATEGORY, KINDS, MUTED_CATEGORIES, Category
from tracescope.core.columns import I64, U8, Bool
from tracescope.core.hardware import Basis
from tracescope.core.work_table import WorkTable
from tracescope.floor.pricing import compute_s, memory_s, work_floor_ns

F64 = NDArray[np.float64]


class Plane(IntEnum):
    """One resource lane of the device. Values are stored in files: append, never renumber."""

    PATH = 0
    """Every device event for the time in which it is the one that counts."""
    WEIGHTS = 1
    KV_READS = 2
    KV_APPENDS = 3
    COMPUTE = 4
    COMMUNICATION = 5
    SELECTION = 6


PLANES: Final = tuple(Plane)

KIND_OF_PLANE: Final[dict[Plane, int]] = {plane: plane - 1 for plane in PLANES if plane is not Plane.PATH}
"""Index into ``KINDS`` of the plane's own kind; the path has all of them."""

_CATEGORIES: Final[dict[Plane, tuple[Category, ...]]] = {
    Plane.WEIGHTS: (Category.WEIGHT_READ,),
    Plane.KV_READS: (Category.KV_READ,),
    Plane.KV_APPENDS: (Category.KV_APPEND,),
    Plane.COMPUTE: (Category.COMPUTE, Category.OTHER),
    Plane.COMMUNICATION: (Category.COMMUNICATION, Category.COPY),
    Plane.SELECTION: (Category.TOKEN_SELECTION, Category.HOST),
}

KIND_INDEX: Final[U8] = np.array([KINDS.index(KIND_OF_CATEGORY[c]) for c in Category], np.uint8)
"""Index into ``KINDS`` of each Category value."""

MUTED: Final[Bool] = np.array([c in MUTED_CATEGORIES for c in Category])
"""Which Category values are drawn muted."""


@dataclass(frozen=True, eq=False, slots=True)
class PlaneFloors:
    """Floors of every work row in every plane: ``ns`` float64[planes, rows], ``known`` bool[planes, rows].

    In the path it is the event's own floor (the larger of its bytes and its FLOPs, and its transfer); in a resource
    lane the time that lane's bytes alone need, so that a bar's solid part is what that lane explains of it.
    """

    ns: F64
    known: Bool

    def of(self, plane: Plane, work: NDArray[np.integer]) -> tuple[I64, Bool]:
        """Rounded floors (0 where unknown) and whether they are known, of events with these work rows."""
        known = self.known[plane][work]
        return np.where(known, np.rint(self.ns[plane][work]), 0).astype(np.int64), known


def plane_floors(work: WorkTable, basis: Basis) -> PlaneFloors:
    """Price every work row in every plane on ``basis``."""
    ns = np.zeros((len(PLANES), len(work)))
    known = np.zeros((len(PLANES), len(work)), bool)
    ns[Plane.PATH], known[Plane.PATH] = work_floor_ns(work, basis)
    weights = np.where(work.weight_read < 0, -1, work.weight_read + np.maximum(work.embedding_gather, 0))
    for plane, seconds in (
        (Plane.WEIGHTS, memory_s(weights, basis)),
        (Plane.KV_READS, memory_s(work.kv_read, basis)),
        (Plane.KV_APPENDS, memory_s(work.kv_append, basis)),
        (Plane.COMPUTE, compute_s(work.flops, basis)),
    ):
        known[plane] = ~np.isnan(seconds)
        ns[plane] = np.where(known[plane], seconds * 1e9, 0)
    for plane in (Plane.COMMUNICATION, Plane.SELECTION):
        ns[plane], known[plane] = ns[Plane.PATH], known[Plane.PATH]
    return PlaneFloors(ns, known)


@dataclass(frozen=True, eq=False, slots=True)
class PlaneMembers:
    """Which events lie in which plane: a lookup by work row (bool[planes, rows]) or by role bit (int[planes])."""

    by_work: Bool
    by_role: I64

    @classmethod
    def of(cls, work: WorkTable) -> "PlaneMembers":
        """The membership tables of a trace's work table."""
        by_work = np.zeros((len(PLANES), len(work)), bool)
        by_work[Plane.PATH] = True
        by_work[Plane.WEIGHTS] = (work.weight_read > 0) | (work.embedding_gather > 0)
        by_work[Plane.KV_READS] = work.kv_read > 0
        by_work[Plane.KV_APPENDS] = work.kv_append > 0
        by_work[Plane.COMPUTE] = work.flops > 0
        by_work[Plane.COMMUNICATION] = work.link > 0
        roles = [sum(c.role for c in _CATEGORIES.get(plane, ())) for plane in PLANES]
        return cls(by_work, np.array(roles, np.int64))

    def masks(self, work: NDArray[np.integer], roles: NDArray[np.unsignedinteger], category: NDArray[np.integer]) -> U8:
        """The planes of each event as bits ``1 << plane``, uint8: for all planes of many events at once."""
        planes = np.arange(len(PLANES), dtype=np.int64)
        of_work = (self.by_work.astype(np.int64) << planes[:, None]).sum(axis=0).astype(np.uint8)
        bits = np.arange(1 << 16)[:, None] & self.by_role
        of_roles = ((bits != 0) << planes).sum(axis=1).astype(np.uint8)
        of_category = of_roles[1 << np.arange(len(KIND_INDEX))]
        mask: U8 = of_work[work] | of_roles[roles] | of_category[category]
        return mask

    def contains(
        self, plane: Plane, work: NDArray[np.integer], roles: NDArray[np.integer], category: NDArray[np.integer]
    ) -> Bool:
        """Which events (by their work row, roles and category columns) lie in ``plane``."""
        bits = roles.astype(np.int64) | (1 << category.astype(np.int64))
        inside: Bool = self.by_work[plane][work] | ((bits & self.by_role[plane]) != 0)
        return inside
