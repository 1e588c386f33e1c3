"""The latency of a step's all-reduces, beside its floor: which events of a trace they are."""

import numpy as np

from tracescope.core.category import Op
from tracescope.synth.latency import Latency, latency_of
from tracescope.view.document import Document


def latency_of_step(document: Document, step: int) -> Latency | None:
    """The latency of the all-reduces of ``step``, computed once; None where it has none."""
    return document.remembered("latency", step, lambda: latency_of(_all_reduces(document, step), document.basis))


def _all_reduces(document: Document, step: int) -> int:
    """How many one rank takes part in: the most of any device, where the trace has several."""
    trace = document.trace
    ids = trace.step_events(step)
    tracks = trace.lanes.track[trace.event_lane[ids[trace.events.op[ids] == Op.ALL_REDUCE]]]
    devices = np.array([track.device for track in trace.tracks], np.int64)[tracks]
    return int(np.unique(devices, return_counts=True)[1].max(initial=0))
