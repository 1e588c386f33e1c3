"""One open trace and everything derived from it, computed once and kept. No Qt here."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from tracescope.analysis.breakdown import StepBreakdown, break_down
from tracescope.analysis.constraints import ThreeConstraints, three_constraints
from tracescope.analysis.floor_parts import FloorParts, floor_parts
from tracescope.analysis.gap_causes import GapCause, gap_causes
from tracescope.analysis.gap_rows import GapRow, gap_rows
from tracescope.analysis.step_workload import ranks_of
from tracescope.analysis.steps import StepSeries, step_series
from tracescope.core.category import Category, Op, StepKind
from tracescope.core.columns import I64, Bool
from tracescope.core.hardware import Basis
from tracescope.core.timerange import TimeRange
from tracescope.core.trace import Trace
from tracescope.core.work_table import UNKNOWN
from tracescope.lod.fold import Content, Scene, lane_in_sight, planes_in_sight
from tracescope.lod.moved import Moved, moved_in_sight
from tracescope.lod.plain_lanes import PlainLanes, plain_lanes_in_sight
from tracescope.lod.planes import Plane, PlaneFloors, PlaneMembers, plane_floors
from tracescope.lod.pyramid import Pyramid, build_pyramid
from tracescope.lod.rescale import SAME_FLOORS, floor_scales
from tracescope.models import make_basis
from tracescope.view.step_layers import LayerSpan, layers_of
from tracescope.view.view_state import ViewState

Result = TypeVar("Result")

_VIEWS_KEPT: Final = 64
_PICTURES_KEPT: Final = 12
_MOST_STEPS_WITH_LAYERS: Final = 4
LONGEST_NAME: Final = 256
"""Names in files run to thousands of characters; no more than this is ever drawn."""
TYPICAL: Final = 0.1
"""A step this close to the median duration, as a share of it, is a typical one."""
FIRST_LAYERS: Final = 2.5
"""How many layers the first view of a step shows: few enough that its bars carry their names."""


def clipped(name: str) -> str:
    """As much of a name as is ever drawn."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


class Document:
    """A trace with a basis, and memoised results about it. A change of basis is a new Document.

    ``pyramid`` may come with the trace: priced on ``pyramid_basis``, or where that is None, as the trace was made.

    Every method is safe to call from one thread at a time; results are shared and must not be changed.
    """

    def __init__(
        self,
        trace: Trace,
        basis: Basis,
        path: Path,
        pyramid: Pyramid | None = None,
        pyramid_basis: Basis | None = None,
    ) -> None:
        self.trace = trace
        self.basis = basis
        self.path = path
        self._pyramid = pyramid
        self._pyramid_basis = pyramid_basis
        self._memo: dict[tuple[str, Hashable], object] = {}
        self._views: dict[Hashable, object] = {}
        self._pictures: dict[Hashable, object] = {}

    @cached_property
    def ranks(self) -> int:
        """Over how many ranks the model is split; bytes and times are one rank's, energy is all ranks'."""
        return ranks_of(self.trace)

    def remembered(self, name: str, key: Hashable, make: Callable[[], Result]) -> Result:
        """The result of ``make()``, computed once for (``name``, ``key``). Old results go when there are many."""
        slot = (name, key)
        if slot not in self._memo:
            if len(self._memo) > 2000:
                self._memo.clear()
            self._memo[slot] = make()
        return self._memo[slot]  # type: ignore[return-value]  # each name is used with one type

    @property
    def name(self) -> str:
        """The file name, for titles and captions."""
        return self.path.name

    @property
    def has_floor(self) -> bool:
        """Whether a bandwidth is known, so that floors can be drawn at all."""
        return self.basis.bandwidth_bytes_per_s is not None

    @property
    def has_steps(self) -> bool:
        """Whether any step was recognised."""
        return len(self.trace.steps) > 0

    @cached_property
    def given_pyramid(self) -> Pyramid | None:
        """The pyramid that came with the trace, where it fits and was priced, on whatever bandwidth; else None."""
        stored = self._pyramid
        priced = stored is not None and (stored.bandwidth_bytes_per_s > 0 or not self.has_floor)
        return stored if stored is not None and priced and stored.fits(self.trace) else None

    @cached_property
    def pyramid(self) -> Pyramid:
        """The level-of-detail pyramid; built here, which takes seconds for millions of events, where none was given."""
        return self.given_pyramid or build_pyramid(self.trace, self.basis)

    def repriced(self, basis: Basis) -> "Document":
        """The same trace on another basis, drawn from the same pyramid where that was priced."""
        return Document(self.trace, basis, self.path, self.pyramid, self.pyramid_basis)

    @cached_property
    def pyramid_basis(self) -> Basis:
        """What the floor shares of the pyramid were priced on."""
        stored = self.given_pyramid
        if stored is None:
            return self.basis
        meta = self.trace.meta
        made = self._pyramid_basis or make_basis(meta.hardware, None, meta.compute_dtype)
        return replace(made, bandwidth_bytes_per_s=stored.bandwidth_bytes_per_s or None)

    @cached_property
    def floors(self) -> PlaneFloors:
        """Floors of every work row in every plane; none is known without a bandwidth, not even those that are 0."""
        floors = plane_floors(self.trace.work, self.basis)
        return floors if self.has_floor else PlaneFloors(floors.ns, np.zeros_like(floors.known))

    @cached_property
    def members(self) -> PlaneMembers:
        """Which events lie in which plane."""
        return PlaneMembers.of(self.trace.work)

    @cached_property
    def scene(self) -> Scene:
        """What the lanes are drawn from."""
        stored, now = (
            (basis.bandwidth_bytes_per_s, basis.peak_flops_per_s, basis.link_bytes_per_s)
            for basis in (self.pyramid_basis, self.basis)
        )
        scales = SAME_FLOORS
        if stored != now:
            before = plane_floors(self.trace.work, self.pyramid_basis)
            scales = floor_scales(self.trace, self.pyramid, self.members, before, self.floors)
        return Scene(self.trace, self.pyramid, self.members, self.floors, scales)

    def planes(self, visible: TimeRange, width: int) -> dict[Plane, Content]:
        """The resource lanes over ``width`` pixel columns; only the last few views are kept."""
        return self._recent(("planes", visible, width), lambda: planes_in_sight(self.scene, visible, width))

    def moved(self, visible: TimeRange, width: int) -> Moved:
        """What bytes and FLOPs use of the roof in each pixel column."""
        return self._recent(("moved", visible, width), lambda: moved_in_sight(self.scene, visible, width))

    def unknown_columns(self, visible: TimeRange, width: int) -> Bool:
        """Which pixel columns mostly hold time of which the bytes are not known, bool[width]."""

        def make() -> Bool:
            exact = self.moved(visible, width).unknown
            if exact is not None or not self.has_steps:
                return exact > 0.5 if exact is not None else np.zeros(width, bool)
            # Stored levels do not tell what is unknown: then all of such a step is left blank.
            edges = np.linspace(visible.start, visible.end, width + 1)
            middle = ((edges[:-1] + edges[1:]) / 2).astype(np.int64)
            step = np.searchsorted(self.trace.steps.start, middle, side="right") - 1
            at = np.maximum(step, 0)
            hidden: Bool = (step >= 0) & (middle < self.step_ends[at]) & (self.series.memory_bytes[at] < 0)
            return hidden

        return self._recent(("unknown columns", visible, width), make)

    def tracks(self, lanes: tuple[int, ...], visible: TimeRange, width: int) -> PlainLanes:
        """Many lanes of the trace at once over ``width`` pixel columns."""
        asked = np.array(lanes, np.int64)
        return self._recent(
            ("tracks", lanes, visible, width), lambda: plain_lanes_in_sight(self.scene, asked, visible, width)
        )

    def lane(self, lane: int, visible: TimeRange, width: int) -> Content:
        """One lane of the trace over ``width`` pixel columns."""
        return self._recent(("lane", lane, visible, width), lambda: lane_in_sight(self.scene, lane, visible, width))

    def pictured(self, name: str, key: Hashable, make: Callable[[], Result]) -> Result:
        """As :meth:`remembered`, for pictures: they are large, so only the few used last are kept."""
        slot = (name, key)
        picture = self._pictures.pop(slot) if slot in self._pictures else make()
        self._pictures[slot] = picture
        if len(self._pictures) > _PICTURES_KEPT:
            del self._pictures[next(iter(self._pictures))]
        return picture  # type: ignore[return-value]  # each name is used with one type

    def forget_views(self) -> None:
        """Let what is kept of recent views go."""
        self._views.clear()

    def _recent(self, key: Hashable, make: Callable[[], Result]) -> Result:
        if key not in self._views:
            if len(self._views) >= _VIEWS_KEPT:
                del self._views[next(iter(self._views))]
            self._views[key] = make()
        return self._views[key]  # type: ignore[return-value]  # a key belongs to one kind of content

    @cached_property
    def series(self) -> StepSeries:
        """Bytes and floors of every step."""
        return step_series(self.trace, self.basis)

    @cached_property
    def floor_parts(self) -> FloorParts:
        """What the floor of every step is made of."""
        return floor_parts(self.trace, self.basis, self.series)

    def breakdown(self, step: int) -> StepBreakdown:
        """Events, floors and exposed time of one step."""
        return self.remembered("breakdown", step, lambda: break_down(self.trace, self.basis, step))

    def gap_causes(self, step: int) -> tuple[GapCause, ...]:
        """Where the gap of one step goes; the parts sum to its duration less its op floor."""
        return self.remembered("causes", step, lambda: gap_causes(self.trace, self.breakdown(step)))

    def constraints(self, step: int) -> ThreeConstraints:
        """Capacity, bandwidth and dependency of one step."""
        return self.remembered("constraints", step, lambda: three_constraints(self.trace, self.basis, step))

    # Ranges and the first view

    @cached_property
    def whole_range(self) -> TimeRange:
        """From the first start to the last end of the trace."""
        return TimeRange(*self.trace.span)

    def step_range(self, step: int) -> TimeRange:
        """The time of one step."""
        start = int(self.trace.steps.start[step])
        return TimeRange(start, start + int(self.trace.steps.duration[step]))

    @cached_property
    def first_step(self) -> int:
        """The step to open on: the first decode step whose duration is typical; -1 where there is no step.

        Typical is within a tenth of the median after warm-up: the first step alone is often an outlier.
        """
        steps = self.trace.steps
        for wanted in (steps.decode & ~steps.warm_up, steps.decode, np.ones(len(steps), bool)):
            found = np.flatnonzero(wanted)
            if len(found):
                median = float(np.median(steps.duration[found]))
                off = np.abs(steps.duration[found] - median)
                return int(found[np.argmax(off <= max(TYPICAL * median, float(off.min())))])
        return UNKNOWN

    def initial_view(self) -> ViewState:
        """The first view: two and a half layers in the middle of the first typical step, or the whole trace."""
        step = self.first_step
        if step < 0:
            return ViewState(self.whole_range)
        layers = self.layer_spans(step)
        if len(layers) < 4:
            return ViewState(self.step_range(step), step=step)
        middle = layers[3 * len(layers) // 8]
        width = round(FIRST_LAYERS * middle.duration_ns)
        start = middle.start - width // 4
        return ViewState(TimeRange(start, start + width), step=step, layer=middle.layer)

    # Facts about events

    def reads(self, step: int) -> dict[Plane, int]:
        """How many device events of a step lie in each plane."""
        return self.remembered("reads", step, lambda: self._reads(step))

    def _reads(self, step: int) -> dict[Plane, int]:
        ids = self.breakdown(step).events
        events = self.trace.events
        columns = events.work[ids], events.roles[ids], events.category[ids]
        return {plane: int(self.members.contains(plane, *columns).sum()) for plane in Plane}

    def matching(self, search: str) -> Callable[[I64], Bool]:
        """A function telling which event ids match a search: a plain substring of the name or the op, any case."""
        names, ops = self.remembered("search", search, lambda: self._matching(search.casefold()))
        events = self.trace.events
        return lambda ids: names[events.name[ids]] | ops[events.op[ids]]

    def _matching(self, wanted: str) -> tuple[Bool, Bool]:
        names = np.array([wanted in name.casefold() for name in self.trace.names], bool)
        ops = np.array([op.label is not None and wanted in op.label for op in Op], bool)
        return names, ops

    def title_of(self, event: int) -> str:
        """The op's name, or the event's own where no op is known."""
        events = self.trace.events
        label = Op(int(events.op[event])).label
        if label is not None and label != "other":
            return label
        return clipped(self.trace.names[int(events.name[event])])

    @cached_property
    def plain_events(self) -> Bool:
        """Which events nothing is known of but their names and times: they belong to no kind."""
        events = self.trace.events
        plain = (Category.HOST, Category.OTHER)
        unknown: Bool = (events.op == Op.NONE) & (events.work == 0) & (events.step < 0)
        return unknown & np.isin(events.category, plain)

    def bytes_of(self, event: int) -> int | None:
        """Memory bytes the event moved, None where any of them is unknown."""
        moved = int(self.trace.work.memory_bytes[self.trace.events.work[event]])
        return None if moved == UNKNOWN else moved

    # Per-step tables

    def layer_spans(self, step: int) -> tuple[LayerSpan, ...]:
        """The layers of a step in time order; each reaches to the next layer's first event."""
        return self.remembered("layers", step, lambda: layers_of(self.trace, self.breakdown(step)) if step >= 0 else ())

    def layers_in_sight(self, visible: TimeRange) -> tuple[LayerSpan, ...]:
        """The layers that intersect ``visible``; none where so many steps are in sight that no head would be read."""

        def make() -> tuple[LayerSpan, ...]:
            steps = self.steps_in_sight(visible)
            if len(steps) > _MOST_STEPS_WITH_LAYERS:
                return ()
            spans = (span for step in steps for span in self.layer_spans(step))
            return tuple(span for span in spans if visible.overlaps(span.start, span.end))

        return self._recent(("layers in sight", visible), make)

    @cached_property
    def step_ends(self) -> I64:
        """The end of every step, int64 ns."""
        return self.trace.steps.start + self.trace.steps.duration

    def steps_in_sight(self, visible: TimeRange) -> range:
        """The steps that may intersect ``visible``: steps are in order of start, and only a few end late."""
        high = int(np.searchsorted(self.trace.steps.start, visible.end))
        low = int(np.searchsorted(self._latest_end, visible.start, side="right"))
        return range(min(low, high), high)

    @cached_property
    def _latest_end(self) -> I64:
        return np.maximum.accumulate(self.step_ends) if self.has_steps else self.step_ends

    def off_the_floor(self, step: int) -> tuple[GapRow, ...]:
        """One row an op and layer of a step, largest gap first; gaps and idle time sum to its gap."""
        return self.remembered("gap rows", step, lambda: gap_rows(self.trace, self.basis, step))

    def step_title(self, step: int) -> str:
        """``Step 7``, or with its kind where it is not a decode step."""
        kind = StepKind(int(self.trace.steps.kind[step]))
        return f"Step {step}" if kind is StepKind.DECODE else f"Step {step} ({kind.label})"
