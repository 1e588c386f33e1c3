"""What ``tracescope synth`` does with requests: its options, the requests they stand for, and what is said of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import click
import numpy as np
from click.core import ParameterSource

from tracescope.analysis.requests import requests_table
from tracescope.cli.import_options import EXIT_LOSSES, say_losses
from tracescope.cli.numbers import Whole
from tracescope.cli.requests import summary_lines
from tracescope.core import units
from tracescope.core.errors import printable
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.request_stream import RequestStream
from tracescope.core.trace import Trace
from tracescope.io.requests import read_requests
from tracescope.synth.calibrated import HostOverhead
from tracescope.synth.decode import synthesize
from tracescope.synth.distributions import ARRIVALS, LENGTHS, draw_requests, parse_arrivals, parse_lengths
from tracescope.synth.queueing import REQUESTS
from tracescope.synth.serving import DETAILS, OPS, STEPS, Served, serve_requests

DEFAULT_STEPS: Final = 128
DEFAULT_MAX_BATCH: Final = 256
_NEEDS_REQUESTS: Final = ("max_batch", "count", "prompt", "output")

_Function = TypeVar("_Function", bound=Callable[..., object])

ARRIVAL_OPTIONS: Final = (
    click.option(
        "--requests",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Requests to serve: Azure, BurstGPT or vidur CSV, Mooncake lines, or a vLLM benchmark result.",
    ),
    click.option("--arrivals", metavar="PROCESS", help=f"Draw requests instead: {ARRIVALS}."),
    click.option("--prompt", metavar="DIST", help=f"Prompt tokens of drawn requests: {LENGTHS}."),
    click.option("--output", metavar="DIST", help="Tokens that each drawn request generates, likewise."),
    click.option(
        "--count", type=Whole(), help=f"How many requests to draw (default {REQUESTS:,}), or to take of the file."
    ),
    click.option(
        "--max-batch", type=Whole(), help=f"Requests that decode at once, at most (default {DEFAULT_MAX_BATCH})."
    ),
    click.option(
        "--detail",
        type=click.Choice(DETAILS),
        help="steps: one event a step and request phase (default with requests); ops: every operation.",
    ),
    click.option("--window", metavar="A:B", help="With --detail ops: only steps A to B - 1 in operations."),
)
ARRIVAL_PARAMETERS: Final = ("requests", "arrivals", "prompt", "output", "count", "max_batch", "detail", "window")


def arrival_options(function: _Function) -> _Function:
    """Add ``--requests --arrivals --prompt --output --count --max-batch --detail --window``."""
    for option in reversed(ARRIVAL_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for; None where it does not say."""

    steps: int | None
    profile: str
    seed: int
    host: HostOverhead
    requests: Path | None
    arrivals: str | None
    prompt: str | None
    output: str | None
    count: int | None
    max_batch: int | None
    detail: str | None
    window: str | None

    @property
    def serves(self) -> bool:
        """Whether requests arrive, rather than being there from the start."""
        return self.requests is not None or self.arrivals is not None

    def refuse_without_requests(self) -> None:
        """Raise a usage error for an option that only means something where requests arrive."""
        for name in _NEEDS_REQUESTS:
            if getattr(self, name) is not None:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --requests FILE or --arrivals PROCESS")

    def steps_in_full(self, default: str) -> tuple[str, tuple[int, int] | None]:
        """The detail and the window of steps; a window alone asks for operations."""
        detail = self.detail or (OPS if self.window else default)
        if self.window is None:
            return detail, None
        if detail != OPS:
            raise click.UsageError("--window needs --detail ops")
        first, colon, last = self.window.partition(":")
        if not (colon and first.strip().isdecimal() and last.strip().isdecimal() and len(self.window) < 24):
            raise click.UsageError(f"--window {self.window}: write A:B, such as 1000:1050 for fifty steps")
        return detail, (int(first), int(last))


def refuse_mixed(names: tuple[str, ...]) -> None:
    """Raise a usage error where an option of the fixed workload stands beside arriving requests."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            hint = "--max-batch limits the batch" if name == "batch" else "each request brings its own prompt"
            raise click.UsageError(f"--{name} does not go with --requests or --arrivals: {hint}")


def stream_of(wanted: Wanted) -> RequestStream:
    """The requests to serve, from the file or drawn."""
    if wanted.requests is not None:
        if wanted.arrivals or wanted.prompt or wanted.output:
            raise click.UsageError("--requests has arrivals and lengths of its own: leave out the other options")
        return _first(read_requests(wanted.requests), wanted.count)
    if wanted.prompt is None or wanted.output is None:
        raise click.UsageError("--arrivals needs --prompt DIST and --output DIST")
    return draw_requests(
        parse_arrivals(wanted.arrivals or ""),
        parse_lengths(wanted.prompt),
        parse_lengths(wanted.output),
        count=REQUESTS if wanted.count is None else wanted.count,
        seed=_seed(wanted),
    )


def _first(stream: RequestStream, count: int | None) -> RequestStream:
    if count is None or count >= len(stream):
        return stream
    if count < 1:
        raise click.UsageError(f"--count {count}: serve at least one request")
    note = f"only the first {count:,} of the {len(stream):,} requests in the file"
    return RequestStream(
        arrival=stream.arrival[:count],
        prompt=stream.prompt[:count],
        output=stream.output[:count],
        base_ns=stream.base_ns,
        source=stream.source,
        report=stream.report,
        description=stream.description,
        notes=(*stream.notes, note),
    )


def _seed(wanted: Wanted) -> int:
    if wanted.seed < 0:
        raise click.UsageError(f"a seed of {wanted.seed} is out of range")
    return wanted.seed


def serve(model: ModelSpec, basis: Basis, workload: Workload, wanted: Wanted) -> Served:
    """Serve the requests that were asked for."""
    if wanted.steps is not None and wanted.steps < 1:
        raise click.UsageError(f"cannot synthesise {wanted.steps} steps; use --steps 1 or more")
    detail, window = wanted.steps_in_full(STEPS)
    return serve_requests(
        model,
        basis,
        workload,
        stream_of(wanted),
        max_batch=DEFAULT_MAX_BATCH if wanted.max_batch is None else wanted.max_batch,
        steps=wanted.steps,
        profile=wanted.profile,
        seed=_seed(wanted),
        host=wanted.host,
        detail=detail,
        window=window,
    )


def fixed(model: ModelSpec, basis: Basis, workload: Workload, wanted: Wanted) -> Trace:
    """A trace of requests that are all there from the start and stay, in the detail that was asked for."""
    steps = DEFAULT_STEPS if wanted.steps is None else wanted.steps
    detail, window = wanted.steps_in_full(OPS)
    if (detail, window) == (OPS, None) or steps < 1:
        return synthesize(
            model, basis, workload, steps=steps, profile=wanted.profile, seed=wanted.seed, host=wanted.host
        )
    there = np.zeros(workload.batch, np.int64)
    stream = RequestStream(there, there + workload.context, there + steps)
    return serve_requests(
        model,
        basis,
        workload,
        stream,
        max_batch=workload.batch,
        profile=wanted.profile,
        seed=_seed(wanted),
        host=wanted.host,
        detail=detail,
        window=window,
        unlimited=True,
    ).trace


def say_served(out: Path, served: Served, basis: Basis) -> int:
    """Say what became of the requests, and give the exit code: 3 where some were left out or refused."""
    trace, schedule = served.trace, served.schedule
    lasted = int((trace.steps.start + trace.steps.duration)[-1])
    click.echo(
        printable(
            f"{out}: {units.plural(len(trace.steps), 'step')}, {units.plural(len(trace.events), 'event')} over "
            f"{units.duration(lasted)} ({trace.meta.profile} profile, modelled)"
        )
    )
    for line in summary_lines(requests_table(trace, basis).summary):
        click.echo(printable(line))
    click.echo("tracescope: prompt processing is not simulated: every request starts with its prompt cached", err=True)
    code = say_losses(Path(trace.meta.source.name), trace.meta.report, allow_truncated=False)
    refused = int(schedule.refused.sum())
    if refused:
        click.echo(
            f"tracescope: {units.plural(refused, 'request')} refused: more KV cache needed than there is", err=True
        )
    return max(code, EXIT_LOSSES if refused else 0)
