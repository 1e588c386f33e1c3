"""``--host-overhead``: what an engine's host adds to a step, by the name of the engine or as a time."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

import click

from tracescope.cli.durations import parse_ns
from tracescope.core import units
from tracescope.core.errors import TraceError
from tracescope.synth.calibrated import NO_HOST, HostOverhead, vllm_host
from tracescope.synth.prediction import VLLM

_Function = TypeVar("_Function", bound=Callable[..., object])

HOST_OPTION: Final = click.option(
    "--host-overhead",
    default=VLLM,
    show_default=True,
    metavar="none|vllm|SECONDS",
    help="What the host adds to a predicted step: that of vLLM (fitted), nothing, or a time a request and step.",
)


def host_option(function: _Function) -> _Function:
    """Add ``--host-overhead`` (parameter ``host_overhead``, text)."""
    return HOST_OPTION(function)


def parse_host(text: str) -> HostOverhead:
    """The overhead that ``text`` names: ``none``, ``vllm``, seconds as a plain number, or a time such as ``60us``."""
    word = text.strip().lower()
    if word in (VLLM, NO_HOST.name):
        return vllm_host() if word == VLLM else NO_HOST
    plain = re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,12})?", word)
    try:
        each = parse_ns(f"{word}s" if plain else word)
    except TraceError as error:
        raise TraceError(
            f"--host-overhead {text}: no host and no time", action="Write none, vllm, 60us or seconds such as 0.001."
        ) from error
    return HostOverhead(units.duration(each), 0.0, float(each)) if each else NO_HOST
