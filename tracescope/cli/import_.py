"""``tracescope import``: a foreign trace, recognised, as a native file, with a report of everything on the way."""

from pathlib import Path
from typing import Any

import click

from tracescope.cli.import_options import import_options, options_from, say_losses, say_mismatch
from tracescope.cli.options import say_assumptions
from tracescope.cli.own_input import refuse_to_overwrite
from tracescope.cli.progress import ProgressMeter
from tracescope.core import units
from tracescope.core.category import EventFlag
from tracescope.core.errors import TraceError, printable
from tracescope.core.trace import Trace
from tracescope.io import native
from tracescope.io.gate import inspect
from tracescope.load import import_files, save_trace
from tracescope.models import contradiction
from tracescope.recognise.names.user_rules import load_rules

_LISTED = 12


@click.command("import")
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="INPUT…")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT.tscope.h5", help="The file to write.")
@import_options
@click.option("--capture", type=click.Path(path_type=Path), metavar="FILE", help="A recording of the graphs' capture.")
@click.option("--rules", type=click.Path(path_type=Path), metavar="FILE", help="Kernel rules before the built-in ones.")
@click.option("--strip-names", is_flag=True, help="Leave names of hosts, users and folders out of the result.")
def import_command(
    *,
    sources: tuple[Path, ...],
    output: Path | None,
    capture: Path | None,
    rules: Path | None,
    strip_names: bool,
    progress: str,
    **common: Any,
) -> int:
    """Recognise steps, layers and bytes in a recorded trace and save it as a native file.

    Several files, or a folder with one file a rank, become one trace.
    """
    source = sources[0]
    if output is None:
        raise click.UsageError("-o OUT.tscope.h5 is needed: the file to write")
    if len(sources) == 1 and not source.is_dir() and native.is_native(source):
        inspect(source)  # what is no tracescope file, or a damaged one, is named as what it is
        raise TraceError(f"{source.name}: already a tracescope file", action="Open it as it is.")
    read = [*sources, *(path for path in (capture, rules) if path is not None)]
    refuse_to_overwrite(output, read, model=common["model"], hardware=common["hardware"])
    spec, options = options_from(
        rules=load_rules(rules) if rules else (), capture=capture, strip_names=strip_names, **common
    )
    meter = ProgressMeter(progress)
    trace = import_files(sources, options, meter)
    meter.say("save", 0, 1)
    save_trace(output, trace)
    meter.say("done", 1, 1)
    meter.finish()
    for line in report_lines(output, trace):
        click.echo(printable(line))
    say_mismatch(source, trace)
    mismatch = contradiction(options.hardware, trace.meta.devices)
    if mismatch is not None:
        click.echo(printable(f"tracescope: {mismatch}"), err=True)
    return max(say_losses(source, trace.meta.report, options.allow_truncated), say_assumptions(spec))


def report_lines(output: Path, trace: Trace) -> list[str]:
    """The import report as text: counts, what was inferred by which rule, what is not known."""
    report = trace.meta.report
    decode, slices = int(trace.steps.decode.sum()), len(trace.events) - trace.events.flagged(EventFlag.INSTANT)
    lines = [
        f"{output}: {units.plural(slices, 'event')} on {units.plural(len(trace.tracks), 'track')}, "
        f"{units.plural(len(trace.steps), 'step')} ({decode:,} decode)",
        f"seen {report.seen:,} = imported {report.imported:,} + dropped {sum(report.dropped.values()):,}"
        + "".join(f" ({count:,} {reason})" for reason, count in report.dropped.items()),
    ]
    if report.flagged:
        lines.append("flagged: " + ", ".join(f"{count:,} {name}" for name, count in report.flagged.items()))
    lines += [
        f"inferred: {inference.what} [{inference.rule}, confidence {inference.confidence:.2f}]"
        for inference in report.inferred[:_LISTED]
    ]
    if len(report.inferred) > _LISTED:
        lines.append(f"… and {len(report.inferred) - _LISTED:,} more; tracescope info lists them")
    if report.unclassified_ns:
        lines.append(f"device time that no rule matched: {units.duration(report.unclassified_ns)}")
    lines += list(trace.meta.notes)
    return lines
