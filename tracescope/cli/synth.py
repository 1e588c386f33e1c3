"""``tracescope synth``: a decode trace computed from a model and a machine."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from tracescope.cli.defaults import assumed_line
from tracescope.cli.host_overhead import host_option, parse_host
from tracescope.cli.numbers import Whole
from tracescope.cli.options import (
    EXIT_ASSUMED,
    basis_from,
    model_from,
    model_options,
    pricing_options,
    say_assumptions,
    workload_from,
    workload_options,
)
from tracescope.cli.own_input import refuse_to_overwrite
from tracescope.cli.serving import (
    ARRIVAL_PARAMETERS,
    DEFAULT_STEPS,
    Wanted,
    arrival_options,
    fixed,
    refuse_mixed,
    say_served,
    serve,
)
from tracescope.core import units
from tracescope.core.errors import printable
from tracescope.core.hardware import HardwareSpec
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.trace import Trace
from tracescope.floor.capacity import capacity
from tracescope.load import save_trace
from tracescope.synth.timing import IDEAL, PROFILES


@click.command("synth")
@model_options
@workload_options
@pricing_options
@host_option
@arrival_options
@click.option(
    "--steps", type=Whole(), help=f"Decode steps (default: {DEFAULT_STEPS}, or until every arriving request is served)."
)
@click.option("--seed", type=Whole(), default=0, show_default=True, help="The same seed gives the same file.")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default=IDEAL,
    show_default=True,
    help="ideal: every op exactly on its floor; realistic: typical kernels, gaps and a host above it; calibrated: "
    "fitted to public measurements (tracescope presets calibration).",
)
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="OUT.tscope.h5", help="The file to write.")
def synth_command(
    *,
    model: str | None,
    weights: str | None,
    lm_head: str | None,
    kv: str | None,
    hardware: str | None,
    bandwidth: str | None,
    host_overhead: str,
    steps: int | None,
    seed: int,
    profile: str,
    out: Path | None,
    **rest: Any,
) -> int:
    """Make a decode trace of a model on a machine.

    Without --requests or --arrivals: --batch fixed requests, one token each a step. With them: requests arrive, wait,
    decode and leave by continuous batching, first come first served; each starts with its prompt cached, for prompt
    processing is not simulated.
    """
    asked = {name: rest.pop(name) for name in ARRIVAL_PARAMETERS}
    spec = model_from(model, weights, lm_head, kv)
    if spec is None:
        raise click.UsageError("--model is needed; 'tracescope presets models' lists the built-in ones")
    if hardware is None and bandwidth is None:
        raise click.UsageError("--hardware (or a rate with --bandwidth) is needed; see 'tracescope presets hardware'")
    if out is None:
        raise click.UsageError("-o OUT.tscope.h5 is needed: the file to write")
    read = (asked["requests"],) if asked["requests"] is not None else ()
    refuse_to_overwrite(out, read, model=model, hardware=hardware)
    basis = basis_from(hardware, bandwidth, spec)
    workload = workload_from(**rest)
    wanted = Wanted(steps=steps, profile=profile, seed=seed, host=parse_host(host_overhead), **asked)
    if wanted.serves:
        refuse_mixed(("batch", "context"))
        served = serve(spec, basis, workload, wanted)
        save_trace(out, served.trace)
        code = say_served(out, served, basis)
        _say_defaults(without=("batch", "context", "steps"))
        return max(code, say_assumptions(spec))
    wanted.refuse_without_requests()
    trace = fixed(spec, basis, workload, wanted)
    save_trace(out, trace)
    click.echo(printable(f"{out}: {_summary(trace)}"))
    _say_defaults()
    fits = basis.hardware is None or _say_where_it_does_not_fit(spec, basis.hardware, workload, len(trace.steps))
    return max(0 if fits else EXIT_ASSUMED, say_assumptions(spec))


def _say_defaults(without: tuple[str, ...] = ()) -> None:
    line = assumed_line(without=without)
    if line is not None:
        click.echo(line)


def _say_where_it_does_not_fit(model: ModelSpec, hardware: HardwareSpec, workload: Workload, steps: int) -> bool:
    """Say on stderr where memory is too small, at the first step or only at the last; whether it fits in both."""
    last = replace(workload, context=workload.context + steps - 1)
    for when, state in (("", workload), (" at the last step", last)):
        needed = capacity(model, hardware, state)
        if not needed.fits:
            total = needed.stored_bytes + needed.kv_stored_bytes + needed.other_bytes
            click.echo(
                f"tracescope: does not fit{when}: {units.size(total)} of weights, KV cache and reserve in "
                f"{units.size(needed.usable_bytes)} usable; room for {needed.max_batch:,} such requests",
                err=True,
            )
            return False
    return True


def _summary(trace: Trace) -> str:
    typical = float(np.median(trace.steps.duration))
    return (
        f"{units.plural(len(trace.steps), 'step')}, {units.plural(len(trace.events), 'event')}, "
        f"median step {units.duration(typical)} ({trace.meta.profile} profile, modelled)"
    )
