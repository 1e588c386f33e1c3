"""What every command that may import a file shares: its options, what they stand for, and what was lost."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tracescope.cli.numbers import WholeRange
from tracescope.cli.options import EXIT_ASSUMED, model_from, model_options, pricing_options
from tracescope.cli.progress import MODES
from tracescope.core.errors import printable
from tracescope.core.model import ModelSpec
from tracescope.core.report import ImportReport
from tracescope.models import load_hardware

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracescope.core.trace import Trace
    from tracescope.load import ImportOptions

EXIT_LOSSES: Final = EXIT_ASSUMED
"""Done, but something of the source was left out or cut off."""

COMMON: Final = ("model", "weights", "lm_head", "kv", "hardware", "bandwidth", "context", "tp")
"""The parameters of :func:`import_options` that say what a file is, as :func:`options_from` takes them."""

_UNREAD: Final = {
    "damaged_gzip": "the gzip data is damaged or cut short at its end: what it holds may be wrong",
    "view_not_read": "a table that is a view was not read: its rows are missing",
    "trailing_text": "more text follows the end of the trace and was not read",
}

_Function = TypeVar("_Function", bound="Callable[..., object]")


def import_options(function: _Function) -> _Function:
    """Add ``--model --weights --lm-head --kv --hardware --bandwidth --context --tp --allow-truncated --progress``."""
    for option in (
        click.option("--progress", type=click.Choice(MODES), default="auto", help="Progress on stderr."),
        click.option("--allow-truncated", is_flag=True, help="A file that was cut short is fine: no exit 3 for it."),
        click.option(
            "--context",
            type=WholeRange(0, 1 << 30),
            metavar="S",
            help="Tokens cached at step 0, where no marker says so.",
        ),
        click.option("--tp", type=WholeRange(1, 1024), metavar="N", help="Ranks that the model is split over."),
        pricing_options,
        model_options,
    ):
        function = option(function)
    return function


def options_from(
    *,
    model: str | None,
    weights: str | None,
    lm_head: str | None,
    kv: str | None,
    hardware: str | None,
    bandwidth: str | None,
    context: int | None,
    tp: int | None,
    allow_truncated: bool,
    **more: Any,
) -> "tuple[ModelSpec | None, ImportOptions]":
    """The model that the options name, and all of them for the import; ``more`` are further fields of it."""
    from tracescope.load import ImportOptions

    spec = model_from(model, weights, lm_head, kv)
    return spec, ImportOptions(
        model=spec,
        hardware=None if hardware is None else load_hardware(hardware),
        bandwidth=bandwidth,
        context=context,
        ranks=tp or 0,
        allow_truncated=allow_truncated,
        **more,
    )


def say_mismatch(source: Path, trace: "Trace") -> None:
    """Say on stderr where the model named for a trace is not the one that was traced; no exit code changes for it."""
    from tracescope.analysis.check_model import model_mismatch

    for finding in model_mismatch(trace):
        click.echo(printable(f"{source.name}: {finding.text}; its bytes and floors are the named model's"), err=True)


def say_losses(source: Path, report: ImportReport, allow_truncated: bool) -> int:
    """Name on stderr what was lost, and give the exit code for it: 3, or 0 where nothing was."""
    code = 0
    if report.truncated_at_byte is not None:
        code = 0 if allow_truncated else EXIT_LOSSES
        click.echo(printable(f"{source.name}: cut short at byte {report.truncated_at_byte:,} of its text"), err=True)
    for name in report.unread:
        code = EXIT_LOSSES
        click.echo(printable(f"{source.name}: {_UNREAD[name]}"), err=True)
    dropped = sum(report.dropped.values())
    if dropped:
        code = EXIT_LOSSES
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items())
        click.echo(printable(f"{source.name}: {dropped:,} of {report.seen:,} elements left out: {reasons}"), err=True)
    return code
