"""``tracescope sweep``: the arithmetic for every pair of a batch and a context."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from tracescope.analysis.sweep_table import Queue, frontier_table, sweep_table
from tracescope.cli.beside_floor import Beside, how_predicted, prediction_error
from tracescope.cli.csv_file import write_csv
from tracescope.cli.defaults import assumed_line
from tracescope.cli.durations import parse_deadline
from tracescope.cli.floor import floor_document
from tracescope.cli.host_overhead import host_option, parse_host
from tracescope.cli.numbers import WholeRange
from tracescope.cli.options import (
    activations_option,
    basis_from,
    memory_options,
    model_from,
    model_options,
    pricing_options,
    say_assumptions,
    workload_from,
)
from tracescope.cli.output import emit_json, emit_table
from tracescope.cli.own_input import refuse_to_overwrite
from tracescope.core import units
from tracescope.core.errors import TraceError, printable
from tracescope.floor.energy import error_words
from tracescope.floor.pricing import F64
from tracescope.floor.sweep import Sweep, sweep
from tracescope.synth.distributions import parse_arrivals, parse_lengths
from tracescope.synth.prediction import Predictor
from tracescope.synth.queueing import queue_wait
from tracescope.synth.timing import IDEAL, PROFILES

_SHOWN = 200
_LONGEST_LIST = 4096
_MOST_QUEUES = 256
_RUNS = 6


@click.command("sweep")
@model_options
@click.option("--batch", default="1,2,4,8,16,32,64", show_default=True, metavar="B,B,...", help="Requests in a step.")
@click.option("--context", default="512,4096,32768", show_default=True, metavar="S,S,...", help="Tokens cached.")
@memory_options
@activations_option
@pricing_options
@host_option
@click.option("--deadline", metavar="TIME", help="What each token may take, such as 50ms.")
@click.option("--arrivals", metavar="poisson:RATE", help="Requests/s that come: adds utilisation and queue wait.")
@click.option("--output", metavar="DIST", help="Tokens that each of them generates, such as 128 or exponential:200.")
@click.option(
    "--profile", type=click.Choice(PROFILES), default=IDEAL, show_default=True, help="How long steps of the queue take."
)
@click.option("--seed", type=WholeRange(0), default=0, show_default=True, help="Of the arrivals.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="OUT.csv", help="Write the cells as CSV.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def sweep_command(
    *,
    model: str | None,
    weights: str | None,
    lm_head: str | None,
    kv: str | None,
    batch: str,
    context: str,
    hardware: str | None,
    bandwidth: str | None,
    host_overhead: str,
    deadline: str | None,
    arrivals: str | None,
    output: str | None,
    profile: str,
    seed: int,
    activations: bool,
    out: Path | None,
    as_json: bool,
    **memory: Any,
) -> int:
    """The bytes, floors, capacity and energy of a step for every batch and context, and what binds."""
    if (arrivals is None) != (output is None):
        raise click.UsageError("--arrivals and --output belong together: when requests come, and what each generates")
    spec = model_from(model, weights, lm_head, kv)
    if spec is None:
        raise click.UsageError("--model is needed; 'tracescope presets models' lists the built-in ones")
    if out is not None:
        refuse_to_overwrite(out, model=model, hardware=hardware)
    basis = basis_from(hardware, bandwidth, spec)
    batches, contexts = parse_counts("--batch", batch), parse_counts("--context", context)
    common = workload_from(batch=1, context=min(contexts), **memory)
    limit = None if deadline is None else parse_deadline(deadline) / 1e9
    swept = sweep(spec, common, basis, batches, contexts, deadline_s=limit)
    predictor = Predictor(spec, basis, common, parse_host(host_overhead))
    queue = None
    if arrivals is not None and output is not None:
        queue = queues(swept, arrivals, output, profile, seed)
    if out is not None:
        write_csv(out, sweep_table(swept, queue, predicted_s(swept, predictor)))
    if as_json:
        emit_json(sweep_document(swept, queue, predictor, activations=activations))
    else:
        _print(swept, queue, predictor)
        if out is not None:
            click.echo(printable(f"{out}: {units.plural(swept.shape[0] * swept.shape[1], 'cell')}"))
    return say_assumptions(spec)


def parse_counts(option: str, text: str) -> list[int]:
    """Whole numbers out of ``1,4,16``, in the given order without repetitions."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 12 for part in parts):
        raise click.UsageError(f"{option} {text}: write whole numbers with commas between, such as 1,4,16")
    counts = list(dict.fromkeys(int(part) for part in parts))
    if len(counts) > _LONGEST_LIST:
        raise click.UsageError(f"{option}: {len(counts):,} numbers are more than {_LONGEST_LIST:,}")
    return counts


def sweep_document(
    swept: Sweep, queue: Queue | None, predictor: Predictor, *, activations: bool = False
) -> dict[str, Any]:
    """``rows``: a ``floor`` document a cell with ``binds`` and ``fits``; ``frontiers``: a row a context."""
    document: dict[str, Any] = {
        "rows": [_row(swept, queue, predictor, at, activations=activations) for at in np.ndindex(*swept.shape)]
    }
    document["frontiers"] = list(frontier_table(swept).rows())
    if swept.deadline_s is not None:
        document["deadline_s"] = swept.deadline_s
    return document


def _row(
    swept: Sweep, queue: Queue | None, predictor: Predictor, at: tuple[int, ...], *, activations: bool
) -> dict[str, Any]:
    row, column = at
    floor = swept.cell(row, column)
    document = {**floor_document(floor), **Beside.of(floor, predictor).document()}
    if document["verdict"] is not None:
        del document["verdict"]["moves"]  # sentences about changes: the frontiers say it for all cells at once
    if activations:
        document["activation_s"] = floor.activation_s
    document["binds"] = swept.binding(row, column)
    document["fits"] = None if swept.fits is None else bool(swept.fits[row, column])
    if swept.deadline_s is not None and swept.floor_ops_s is not None:
        document["meets_deadline"] = bool(swept.floor_ops_s[row, column] <= swept.deadline_s)
    if queue is not None:
        document |= {
            "utilisation": _known(queue.utilisation[row, column]),
            "queue_wait_s": _known(queue.wait_s[row, column]),
            "queue_wait_low_s": _known(queue.low_s[row, column]),
            "queue_wait_high_s": _known(queue.high_s[row, column]),
        }
    return document


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def queues(swept: Sweep, arrivals: str, output: str, profile: str, seed: int) -> Queue:
    """Utilisation and queue wait of every cell: its batch is the most that decode at once, its context the prompt.

    The runs are those of ``synth --arrivals … --prompt CONTEXT --output … --max-batch BATCH``, by the same code.
    """
    process, lengths = parse_arrivals(arrivals), parse_lengths(output)
    rows, columns = swept.shape
    if rows * columns > _MOST_QUEUES:
        raise TraceError(
            f"{rows * columns:,} cells with arrivals would be simulated for hours", action=f"use at most {_MOST_QUEUES}"
        )
    found = Queue.of(swept.shape)
    for at in np.ndindex(rows, columns):
        if sys.stderr.isatty():
            click.echo(f"\rqueue of cell {at[0] * columns + at[1] + 1} of {rows * columns} ", nl=False, err=True)
        cell = swept.workload_at(*at)
        wait = queue_wait(
            swept.model,
            swept.basis,
            cell,
            arrivals=process,
            prompt=parse_lengths(str(cell.context)),
            output=lengths,
            max_batch=cell.batch,
            runs=_RUNS,
            profile=profile,
            seed=seed,
        )
        found.utilisation[at] = np.nan if wait.refused == 1 else wait.utilisation
        for array, value in ((found.wait_s, wait.wait_s), (found.low_s, wait.low_s), (found.high_s, wait.high_s)):
            array[at] = np.nan if value is None else value
    if sys.stderr.isatty():
        click.echo("", err=True)
    return found


def predicted_s(swept: Sweep, predictor: Predictor) -> F64 | None:
    """What the step of each cell is predicted to take, float64[b, c]; None where nothing can be predicted."""
    found = [[predictor.at(batch, context) for context in swept.context.tolist()] for batch in swept.batch.tolist()]
    known = [[cell.step_s for cell in row if cell is not None] for row in found]
    return np.array(known) if all(len(row) == len(swept.context) for row in known) else None


def _print(swept: Sweep, queue: Queue | None, predictor: Predictor) -> None:
    basis = swept.basis
    machine = basis.hardware.title if basis.hardware else "no machine"
    rate = units.rate(basis.bandwidth_bytes_per_s) if basis.bandwidth_bytes_per_s else "bandwidth not known"
    head = [f"{swept.model.title or swept.model.name} on {machine}", f"{rate} ({basis.bandwidth_source})"]
    ranks = swept.workload.tensor_parallel
    click.echo(printable(" · ".join([*head, *([f"{units.one_of_ranks(ranks)}, energy of all"] if ranks > 1 else [])])))
    assumed = assumed_line()
    if assumed is not None:
        click.echo(assumed)
    click.echo()
    emit_table(sweep_table(swept, queue, predicted_s(swept, predictor)), _SHOWN)
    click.echo()
    if swept.deadline_s is not None:
        click.echo(f"deadline {units.seconds(swept.deadline_s)} a token, asked of the floor: a real step takes longer")
    emit_table(frontier_table(swept), _SHOWN)
    example = predictor.at(int(swept.batch[0]), int(swept.context[0]))
    if example is not None:
        click.echo(f"predicted: a step by the {how_predicted(example)}; {prediction_error(example)}")
    for line in _energy_lines(swept):
        click.echo(line)
    if queue is not None:
        click.echo(f"queue wait: mean of {_RUNS} simulated runs; one more run lies in the interval with 95 %")
        click.echo(
            "first come first served; the context is each request's prompt, cached when it starts (not simulated)"
        )


def _energy_lines(swept: Sweep) -> Iterator[str]:
    fit, tdp = swept.basis.energy, swept.basis.tdp_w
    if swept.energy_j is None or swept.floor_ops_s is None or fit is None:
        return
    yield f"energy a token: modelled, of a step that takes its floor's time; {fit.level} level, {error_words(fit)}"
    if tdp is not None and (swept.energy_j[1] >= tdp * swept.floor_ops_s * (1 - 1e-9)).any():
        yield f"where the energy fit says more than the board's {tdp:,.0f} W, which is its fault, it is cut to that"
