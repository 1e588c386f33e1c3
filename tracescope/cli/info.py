"""``tracescope info``: what is in a trace, and what the import made of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tracescope.analysis.info import info_document
from tracescope.cli.output import emit_json
from tracescope.cli.trace_file import file_command
from tracescope.core import units
from tracescope.core.errors import printable
from tracescope.core.report_words import in_words
from tracescope.io.checksum import file_sha256

if TYPE_CHECKING:
    from tracescope.load import Opened


@click.command("info")
@file_command
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def info_command(opened: "Opened", *, as_json: bool) -> int:
    """What is in a trace: counts, source, model, machine, import report, how busy each device was."""
    document = info_document(opened.trace, opened.basis, opened.format_version)
    if opened.format_version is not None:
        document["file"] = {"name": opened.path.name, "sha256": file_sha256(opened.path)}
    if as_json:
        emit_json(document)
    else:
        for line in info_lines(document):
            click.echo(printable(line))
    return 0


def info_lines(info: dict[str, Any]) -> Iterator[str]:
    """The ``info`` document for people."""
    source = info["source"]
    if source["name"]:
        yield f"source      {source['name']} ({units.size(source['bytes'])}, {source['importer']})"
        yield f"sha256      {source['sha256']}{' of the source' if 'file' in info else ''}"
    else:
        yield f"source      synthesised, profile {info['profile']}" if info["profile"] else "source      unknown"
    if "file" in info and info["file"]["sha256"]:
        yield f"sha256      {info['file']['sha256']} of {info['file']['name']}"
    of = f", {units.one_of_ranks(info['ranks'])}" if (info["ranks"] or 0) > 1 else ""
    yield f"model       {info['model'] or units.MISSING}{of}"
    yield f"machine     {info['hardware'] or units.MISSING}"
    rate = units.rate(info["bandwidth_bytes_per_s"])
    yield f"bandwidth   {rate} ({info['bandwidth_source']})"
    yield f"time        {units.duration(info['span_ns'])} at {info['resolution_ns']:,} ns resolution"
    yield (
        f"contents    {units.plural(info['events'], 'event')} on {units.plural(info['tracks'], 'track')}, "
        f"{units.plural(info['steps'], 'step')} ({info['decode_steps']:,} decode), "
        f"{units.plural(info['layers'], 'layer')}, {units.plural(info['requests'], 'request')}"
    )
    if info["instants"] or info["counters"]:
        samples = f"{units.plural(info['counters'], 'counter')} with {units.plural(info['counter_samples'], 'sample')}"
        yield f"            {units.plural(info['instants'], 'instant')}, {samples}"
    for name, found in info["categories"].items():
        if found["events"]:
            moved = [
                f"{title} {units.size(found[key])}"
                for title, key in (
                    ("weights", "weight_read_bytes"), ("KV read", "kv_read_bytes"), ("KV append", "kv_append_bytes"),
                )
                if found[key] != 0
            ]  # fmt: skip
            number, _, noun = units.plural(found["events"], "event").partition(" ")
            line = f"  {name:<16}{number:>10} {noun:<6}  {units.duration(found['busy_ns']):>12} busy"
            yield line + "".join(f"  {part}" for part in moved)
    for device in info["devices"]:
        rank = "" if device["rank"] is None else f"rank {device['rank']} "
        name = device["name"] or ("host" if device["device"] is None else f"device {device['device']}")
        yield (
            f"device      {rank}{name}: busy {units.duration(device['busy_ns'])}, "
            f"idle {units.duration(device['idle_ns'])} of {units.duration(device['span_ns'])}"
        )
    for rank in info["collectives"]["rows"]:
        yield (
            f"collectives rank {rank['rank']}: {rank['collectives']:,}, waiting {units.duration(rank['wait_ns'])}, "
            f"transfer {units.duration(rank['transfer_ns'])}, arrived last {units.plural(rank['arrived_last'], 'time')}"
        )
    yield from _report_lines(info["report"])
    for assumption in info["assumptions"]:
        yield f"assumed     {assumption}"
    for note in info["notes"]:
        yield f"note        {note}"


def _report_lines(report: dict[str, Any]) -> Iterator[str]:
    if report["seen"]:
        dropped = sum(report["dropped"].values())
        yield f"import      {report['seen']:,} elements seen, {report['imported']:,} imported, {dropped:,} left out"
    for title, counts in (("left out", report["dropped"]), ("flagged", report["flagged"])):
        for reason, count in sorted(counts.items()):
            yield f"{title:<12}{reason} {count:,}: {in_words(reason)}"
    if report["truncated_at_byte"] is not None:
        yield f"truncated   at byte {report['truncated_at_byte']:,}"
    for inferred in report["inferred"]:
        yield f"inferred    {inferred['what']} (rule {inferred['rule']}, confidence {inferred['confidence']:.2f})"
    if report["unclassified_ns"]:
        yield f"unknown     {units.duration(report['unclassified_ns'])} of device time matched no rule"
