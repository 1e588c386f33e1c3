"""What stderr says beside a trace: which option would give what is unknown, and which one given changes nothing."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracescope.core import units
from tracescope.core.model import ModelSpec
from tracescope.models import contradiction

if TYPE_CHECKING:
    from tracescope.core.trace import Trace
    from tracescope.load import Opened

_OF_AN_IMPORT: Final = ("model", "tp", "context")
"""The options that say what a recording is: what is imported has its answer to them."""


def hints(opened: "Opened", spec: ModelSpec | None, given: Mapping[str, Any]) -> Iterator[str]:
    """The sentences for a trace that was opened with the model ``spec`` and the options ``given`` (None: not given)."""
    trace, name = opened.trace, opened.path.name
    imported = opened.format_version is not None
    idle = [f"--{option}" for option in _OF_AN_IMPORT if given[option] is not None] if imported else []
    if idle:
        change, it = ("changes", "it") if len(idle) == 1 else ("change", "them")
        said = " and ".join(idle)
        yield f"{name} is already imported, so {said} {change} nothing: import the original again with {it}"
    if not len(trace.events):
        yield f"{name} holds no event with a time"
    unknown = 0 if trace.meta.model is not None or spec is not None else events_without_bytes(trace)
    if unknown:
        how = "import the original again with --model NAME" if imported else "--model NAME gives them"
        yield (
            f"{name} names no model, so bytes of {units.plural(unknown, 'event')} are unknown: {how} "
            "(tracescope presets models)"
        )
    mismatch = contradiction(opened.basis.hardware, trace.meta.devices) if given["hardware"] is not None else None
    if mismatch is not None:
        yield mismatch


def events_without_bytes(trace: "Trace") -> int:
    """How many events of the device inside steps have no bytes of one kind or another."""
    events, work = trace.events, trace.work
    counted = trace.on_device[trace.event_lane] & (events.step >= 0)
    unknown = (work.weight_read < 0) | (work.kv_read < 0) | (work.kv_append < 0)
    return int(np.count_nonzero(unknown[events.work[counted]]))
