"""``tracescope check``: impossible numbers and broken invariants."""

from typing import TYPE_CHECKING

import click

from tracescope.analysis.check import CheckResult, check
from tracescope.analysis.findings import ERROR, Finding
from tracescope.cli.output import emit_json
from tracescope.cli.trace_file import EXIT_FAILED, file_command
from tracescope.core.errors import printable
from tracescope.core.units import plural

if TYPE_CHECKING:
    from tracescope.load import Opened


@click.command("check")
@file_command
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def check_command(opened: "Opened", *, as_json: bool) -> int:
    """Look for what cannot be true: exit code 1 if anything is."""
    from tracescope.load import damage_of

    result = check(opened.trace, opened.basis)
    if damage := damage_of(opened.path):
        result = CheckResult((Finding("checksum", ERROR, 1, None, damage), *result.findings))
    if as_json:
        emit_json(result.document())
    else:
        for finding in result.findings:
            click.echo(printable(f"{finding.severity}: {finding.rule} ({finding.count:,}): {finding.text}"))
        errors = sum(f.severity == "error" for f in result.findings)
        click.echo("nothing impossible found" if result.ok else f"{plural(errors, 'kind')} of error")
    return 0 if result.ok else EXIT_FAILED
