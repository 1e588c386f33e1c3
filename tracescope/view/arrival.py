"""What is said beside a trace that was just opened."""

from collections.abc import Sequence
from pathlib import Path

from tracescope.core.hardware import Basis
from tracescope.core.trace import Trace
from tracescope.models import contradiction


def one_at_a_time(shown: str, others: Sequence[Path]) -> str:
    """The sentence for files that were asked for together, of which only one is shown."""
    names = ", ".join(other.name for other in others[:3]) + (" …" if len(others) > 3 else "")
    return f"{shown} is shown, one trace at a time; {names} {'is' if len(others) == 1 else 'are'} not open yet."


def arrival_notes(trace: Trace, basis: Basis, *, foreign: bool) -> list[str]:
    """Sentences about a trace: what was lost on the way, what is not in it, and what it is not priced as."""
    said = []
    report = trace.meta.report
    if foreign and report.truncated_at_byte is not None:
        said.append(f"The file is cut short at byte {report.truncated_at_byte:,} of its text.")
    if foreign and report.dropped:
        dropped = sum(report.dropped.values())
        reasons = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in report.dropped.items())
        said.append(f"{dropped:,} of {report.seen:,} elements were left out: {reasons} (see Data quality).")
    if not len(trace.events):
        said.append("It holds no events.")
    elif not len(trace.steps):
        said.append("No decode step was recognised: the trace is shown as a plain timeline.")
    mismatch = contradiction(basis.hardware, trace.meta.devices)
    if mismatch is not None:
        said.append(f"{mismatch[0].upper()}{mismatch[1:]}.")
    return said
