"""The words of a picture: the headline that states the finding, the run line, and the caption with all it must name."""

from collections.abc import Callable
from typing import Final

import tracescope
from tracescope.core import units
from tracescope.core.category import StepKind
from tracescope.core.work_table import UNKNOWN
from tracescope.floor.energy import error_words
from tracescope.io.checksum import file_sha256
from tracescope.view.document import Document
from tracescope.view.step_facts import context_of, step_facts
from tracescope.view.view_state import ViewState

SHA_SHOWN: Final = 12


def sha256_of(document: Document) -> str:
    """SHA-256 of the file the document was opened from, hex; empty where it is not there any more."""
    source = document.trace.meta.source
    if source.sha256 and source.name == document.path.name:
        return source.sha256
    return document.remembered("sha256", 0, lambda: file_sha256(document.path) or "")


def checksum_words(document: Document) -> str:
    """The checksum of the file that was opened and, where that was made from another, of its source as well."""
    source, own = document.trace.meta.source.sha256, sha256_of(document)
    said = f"sha256 {own[:SHA_SHOWN]}" if own else "sha256 unknown"
    return said if source in ("", own) else f"{said} (source {source[:SHA_SHOWN]})"


def headline(document: Document, view: ViewState) -> str:
    """One sentence that states what the picture shows."""
    if view.step < 0:
        return f"{document.name}: no decode step was recognised"
    facts = step_facts(document, view.step)
    kind = StepKind(int(document.trace.steps.kind[view.step]))
    start = f"{units.millis(facts.duration_ns)} ms per {kind.label} step"
    if facts.floor_ns is not None and facts.partly_known:
        known = f"{facts.floor_words}, gap {units.millis(facts.gap_ns)} ms"
        return f"{start}: {known}; bytes of the others, {units.millis(facts.unknown_ns)} ms, unknown"
    if facts.floor_ns is None or facts.share is None or facts.gap_ns is None:
        return f"{start}; no floor known, because {facts.no_floor_because}"
    if facts.gap_ns < 0:
        return f"{start}: faster than its floor, so bytes or bandwidth are wrong"
    share = units.percent(facts.share, 1)
    above = f"{units.millis(facts.gap_ns)} ms above the floor"
    without = f"; {units.plural(facts.ops_without_floor, 'op')} without floor" if facts.ops_without_floor else ""
    return f"{start}: {share} of floor speed, {above}{without}"


def machine(document: Document) -> str:
    """The machine by name, or by what the trace says of its devices; empty where nothing is known."""
    if document.basis.hardware is not None:
        return document.basis.hardware.title
    names = {device.name for device in document.trace.meta.devices if device.name}
    return ", ".join(sorted(names))


def model_words(document: Document) -> str:
    """Such as ``llama-3-8b bf16``; ``model unknown`` where none is."""
    model = document.trace.meta.model
    return f"{model.name} {model.weights}" if model is not None else "model unknown"


def bandwidth_words(document: Document) -> str:
    """The bandwidth with its source, or that it is not known."""
    basis = document.basis
    if basis.bandwidth_bytes_per_s is None:
        return "bandwidth unknown"
    return f"{units.rate(basis.bandwidth_bytes_per_s)} ({units.bandwidth_source(basis.bandwidth_source)})"


def run_line(document: Document, view: ViewState) -> str:
    """Model, machine, batch, context, which step of how many, how many devices."""
    words = [model_words(document)]
    name, rate = machine(document), document.basis.bandwidth_bytes_per_s
    if name or rate:
        words.append(", ".join(part for part in (name, units.rate(rate) if rate else "") if part))
    if view.step >= 0:
        batch = int(document.trace.steps.batch[view.step])
        words.append(f"batch {batch:,}" if batch >= 0 else "batch unknown")
        context = context_of(document, view.step)
        if context:
            words.append(context)
        words.append(units.place("step", view.step, len(document.trace.steps)))
    else:
        events, tracks = len(document.trace.events), len(document.trace.tracks)
        words.append(f"{units.plural(events, 'event')} on {units.plural(tracks, 'track')}")
    if document.ranks > 1:
        words.append(units.one_of_ranks(document.ranks))
    devices = len(document.trace.meta.devices)
    if devices:
        words.append("one device" if devices == 1 else f"{devices} devices")
    return " · ".join(words)


def caption_parts(document: Document, view: ViewState, left_out: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Every statement the caption must carry, in order; what is not known says so, what has no room too."""
    meta = document.trace.meta
    origin = f'synthetic trace, profile "{meta.profile}"' if meta.synthetic else "measured trace"
    parts = [
        document.name,
        checksum_words(document),
        origin,
        model_words(document),
        machine(document) or "machine unknown",
        f"bandwidth {bandwidth_words(document)}" if document.has_floor else "bandwidth unknown",
        _peak_words(document),
    ]
    if document.ranks > 1:
        parts.append(f"bytes and times of {units.one_of_ranks(document.ranks)}, energy of all")
    if view.step >= 0:
        parts += _step_words(document, view.step)
    parts.append(_energy_words(document))
    return (*parts, *left_out)


def version_words() -> str:
    """The product and its version."""
    return f"tracescope {tracescope.__version__}"


def _peak_words(document: Document) -> str:
    basis = document.basis
    if not basis.peak_flops_per_s:
        return "peak unknown"
    return f"peak {units.peak(basis.peak_flops_per_s, basis.compute_dtype)} dense (datasheet)"


def _step_words(document: Document, step: int) -> list[str]:
    steps = document.trace.steps
    batch, tokens = int(steps.batch[step]), int(steps.generated_tokens[step])
    words = [f"batch {batch:,}" if batch >= 0 else "batch unknown"]
    if tokens == UNKNOWN or batch < 1:
        words.append("tokens per request unknown")
    else:
        words.append(
            "one token per request per step" if tokens == batch else f"{units.plural(tokens, 'token')} per step"
        )
    words.append(units.ALL_ACCEPTED if bool(steps.all_accepted[step]) else "acceptance unknown")
    return words


def _energy_words(document: Document) -> str:
    energy = document.basis.energy
    if energy is None:
        return "energy: no model for this machine"
    bit, flop, watts = (
        units.significant(fits[1], 6) for fits in (energy.memory_pj_per_bit, energy.flop_pj, energy.static_w)
    )
    fit = f"energy {bit} pJ/bit, {flop} pJ/FLOP, {watts} W static, {energy.level} level"
    source = energy.source.partition(";")[0].removeprefix(energy.word).lstrip(": ")
    return f"{fit}, {error_words(energy)}" + (f" ({source})" if source else "")


def wrapped(parts: tuple[str, ...], width_of: Callable[[str], float], width: float, between: str = " · ") -> list[str]:
    """``parts`` joined by ``between`` into as few lines of at most ``width`` as possible; parts are not broken."""
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]}{between}{part}" if lines else part
        if lines and width_of(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines
