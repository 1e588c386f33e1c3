"""``tracescope import``: a foreign trace, recognised, as a native file, with a report of everything on the way."""

import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from tracescope.cli.options import EXIT_ASSUMED, model_from, model_options, pricing_options, say_assumptions
from tracescope.core import units
from tracescope.core.errors import TraceError, printable
from tracescope.core.report import ImportReport
from tracescope.core.trace import Trace
from tracescope.io import native
from tracescope.load import ImportOptions, import_files, save_trace
from tracescope.models import load_hardware
from tracescope.recognise.user_rules import load_rules

EXIT_LOSSES = EXIT_ASSUMED
_LISTED = 12


@click.command("import")
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="INPUT…")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT.tscope.h5", help="The file to write.")
@model_options
@pricing_options
@click.option(
    "--context", type=click.IntRange(0, 1 << 30), metavar="S", help="Tokens cached at step 0, where no marker says so."
)
@click.option("--capture", type=click.Path(path_type=Path), metavar="FILE", help="A recording of the graphs' capture.")
@click.option("--rules", type=click.Path(path_type=Path), metavar="FILE", help="Kernel rules before the built-in ones.")
@click.option("--strip-names", is_flag=True, help="Leave names of hosts, users and folders out of the result.")
@click.option("--allow-truncated", is_flag=True, help="A file that was cut short is fine: no exit code 3 for it.")
@click.option("--progress", type=click.Choice(("auto", "json", "none")), default="auto", help="Progress on stderr.")
def import_command(
    *,
    sources: tuple[Path, ...],
    output: Path | None,
    model: str | None,
    weights: str | None,
    lm_head: str | None,
    kv: str | None,
    hardware: str | None,
    bandwidth: str | None,
    context: int | None,
    capture: Path | None,
    rules: Path | None,
    strip_names: bool,
    allow_truncated: bool,
    progress: str,
) -> int:
    """Recognise steps, layers and bytes in a recorded trace and save it as a native file.

    Several files, or a folder with one file a rank, become one trace.
    """
    source = sources[0]
    if output is None:
        raise click.UsageError("-o OUT.tscope.h5 is needed: the file to write")
    if len(sources) == 1 and not source.is_dir() and native.is_native(source):
        raise TraceError(f"{source.name}: already a tracescope file", action="Open it as it is.")
    spec = model_from(model, weights, lm_head, kv)
    options = ImportOptions(
        model=spec,
        hardware=load_hardware(hardware) if hardware else None,
        bandwidth=bandwidth,
        context=context,
        allow_truncated=allow_truncated,
        rules=load_rules(rules) if rules else (),
        capture=capture,
        strip_names=strip_names,
    )
    say = _teller(progress)
    trace = import_files(sources, options, lambda done, total: say("read", done, total))
    say("save", 0, 1)
    save_trace(output, trace)
    say("done", 1, 1)
    for line in report_lines(output, trace):
        click.echo(printable(line))
    return max(say_losses(source, trace.meta.report, allow_truncated), say_assumptions(spec))


def _teller(mode: str) -> Callable[[str, int, int], None]:
    """Says how far the import is: JSON lines, or one line of text that is written over, on a terminal only."""
    if mode == "json":
        return _tell_json
    if mode == "auto" and sys.stderr.isatty():
        return _tell_terminal
    return lambda stage, done, total: None


def _tell_json(stage: str, done: int, total: int) -> None:
    sys.stderr.write(msgspec.json.encode({"stage": stage, "done": done, "total": total}).decode() + "\n")
    sys.stderr.flush()


def _tell_terminal(stage: str, done: int, total: int) -> None:
    if stage == "done":
        sys.stderr.write("\r\x1b[K")
    else:
        share = done / total if total else 1.0
        sys.stderr.write(f"\r\x1b[K{stage} {units.percent(share) if stage == 'read' else '…'}")
    sys.stderr.flush()


def report_lines(output: Path, trace: Trace) -> list[str]:
    """The import report as text: counts, what was inferred by which rule, what is not known."""
    report = trace.meta.report
    decode = int(trace.steps.decode.sum())
    lines = [
        f"{output}: {len(trace.events):,} events on {len(trace.tracks)} tracks, "
        f"{len(trace.steps):,} steps ({decode:,} decode)",
        f"seen {report.seen:,} = imported {report.imported:,} + dropped {sum(report.dropped.values()):,}"
        + "".join(f" ({count:,} {reason})" for reason, count in report.dropped.items()),
    ]
    if report.flagged:
        lines.append("flagged: " + ", ".join(f"{count:,} {name}" for name, count in report.flagged.items()))
    lines += [
        f"inferred: {inference.what} [{inference.rule}, confidence {inference.confidence:.2f}]"
        for inference in report.inferred[:_LISTED]
    ]
    if report.unclassified_ns:
        lines.append(f"device time that no rule matched: {units.duration(report.unclassified_ns)}")
    lines += list(trace.meta.notes)
    return lines


def say_losses(source: Path, report: ImportReport, allow_truncated: bool) -> int:
    """Name on stderr what was lost, and give the exit code for it: 3, or 0 where nothing was."""
    code = 0
    if report.truncated_at_byte is not None:
        code = 0 if allow_truncated else EXIT_LOSSES
        click.echo(printable(f"{source.name}: cut short at byte {report.truncated_at_byte:,} of its text"), err=True)
    dropped = sum(report.dropped.values())
    if dropped:
        code = EXIT_LOSSES
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items())
        click.echo(printable(f"{source.name}: {dropped:,} of {report.seen:,} elements left out: {reasons}"), err=True)
    return code
