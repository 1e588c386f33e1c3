"""The line above a table for people: what was traced, and what prices it."""

from typing import TYPE_CHECKING

from tracescope.analysis.step_workload import ranks_of
from tracescope.core import units
from tracescope.core.errors import printable

if TYPE_CHECKING:
    from tracescope.load import Opened


def heading(opened: "Opened", deadline_ns: int | None = None) -> str:
    """Model, machine, bandwidth with its source and, where one is given, the deadline of a step, on one line."""
    meta, basis = opened.trace.meta, opened.basis
    machine = basis.hardware or meta.hardware
    rate = basis.bandwidth_bytes_per_s
    parts = [
        (meta.model.title or meta.model.name) if meta.model else "model unknown",
        machine.title if machine else "machine unknown",
        f"{units.rate(rate)} ({units.bandwidth_source(basis.bandwidth_source)})" if rate else "bandwidth unknown",
    ]
    ranks = ranks_of(opened.trace)
    if ranks > 1:
        parts.append(units.one_of_ranks(ranks))
    if deadline_ns is not None:
        parts.append(f"deadline {units.duration(deadline_ns)} a step")
    return printable(" · ".join(parts))
