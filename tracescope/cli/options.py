"""Options that several commands share, and the model, workload and basis that they stand for."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

import click

from tracescope.cli.numbers import Share, WholeRange
from tracescope.core import units
from tracescope.core.errors import printable
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.core.quantity import parse_size
from tracescope.floor.dtypes import weight_dtype
from tracescope.models import load_hardware, load_model, make_basis

EXIT_ASSUMED: Final = 3
"""Done, but with config values filled in by assumption."""

_SAID: Final = 10

_Function = TypeVar("_Function", bound=Callable[..., object])

MODEL_OPTIONS: Final = (
    click.option(
        "--model", metavar="NAME|FILE|DIR", help="A built-in model, a config.json, a .gguf file or a directory."
    ),
    click.option("--weights", metavar="DTYPE", help="Storage of the linear weights: bf16, fp8, int8, int4-g128 ..."),
    click.option("--lm-head", metavar="DTYPE", help="Storage of the output head (default: as the config says)."),
    click.option("--kv", metavar="DTYPE", help="Storage of the KV cache: bf16, fp8, int8, fp8-scaled ..."),
)
STEP_OPTIONS: Final = (
    click.option("--batch", type=WholeRange(1, 1 << 20), default=1, show_default=True, help="Requests in a step."),
    click.option(
        "--context", type=WholeRange(0, 1 << 30), default=0, show_default=True, help="Tokens cached at step 0."
    ),
)
MEMORY_OPTIONS: Final = (
    click.option("--tp", type=WholeRange(1, 1024), default=1, show_default=True, help="Tensor-parallel ranks."),
    click.option("--block", type=WholeRange(1, 1 << 20), default=16, show_default=True, help="Tokens in a KV block."),
    click.option(
        "--utilization",
        type=Share(),
        default=0.9,
        show_default=True,
        help="Share of the memory that may be used.",
    ),
    click.option("--reserve", default="0", metavar="BYTES", help="Memory kept free besides, such as 2GB."),
    click.option("--pinned", default="0", metavar="BYTES", help="Weights that stay on chip and are not read again."),
    click.option("--prefix", metavar="P:M", help="The first P tokens are the same in each group of M requests."),
    click.option("--prefix-aware", is_flag=True, help="The kernel reads a shared prefix once a group, not M times."),
)
WORKLOAD_OPTIONS: Final = STEP_OPTIONS + MEMORY_OPTIONS
PRICING_OPTIONS: Final = (
    click.option("--hardware", metavar="NAME|FILE.toml", help="A built-in machine, or a file that describes one."),
    click.option("--bandwidth", metavar="RATE", help="datasheet (default), sustained, or a rate such as 3.0TB/s."),
)


ACTIVATIONS_OPTION: Final = click.option(
    "--activations", is_flag=True, help="Show unfused activations as a term of their own; no floor counts them."
)


def _apply(options: tuple[Callable[[_Function], _Function], ...], function: _Function) -> _Function:
    for option in reversed(options):
        function = option(function)
    return function


def model_options(function: _Function) -> _Function:
    """Add ``--model --weights --lm-head --kv`` (parameters ``model weights lm_head kv``, None where not given)."""
    return _apply(MODEL_OPTIONS, function)


def workload_options(function: _Function) -> _Function:
    """Add ``--batch --context --tp --block --utilization --reserve --pinned --prefix --prefix-aware``."""
    return _apply(WORKLOAD_OPTIONS, function)


def memory_options(function: _Function) -> _Function:
    """Add what :func:`workload_options` adds but for ``--batch`` and ``--context``."""
    return _apply(MEMORY_OPTIONS, function)


def activations_option(function: _Function) -> _Function:
    """Add ``--activations``, for commands that show by formula what a step moves."""
    return _apply((ACTIVATIONS_OPTION,), function)


def pricing_options(function: _Function) -> _Function:
    """Add ``--hardware --bandwidth`` (None where not given)."""
    return _apply(PRICING_OPTIONS, function)


def model_from(
    model: str | None, weights: str | None = None, lm_head: str | None = None, kv: str | None = None
) -> ModelSpec | None:
    """The model that the options name; None where none is named. A dtype without a model is a usage error."""
    if model is None:
        if weights or lm_head or kv:
            raise click.UsageError("--weights, --lm-head and --kv need --model")
        return None
    return load_model(model, weights=weights, lm_head=lm_head, kv=kv)


def workload_from(
    *,
    batch: int,
    context: int,
    tp: int,
    block: int,
    utilization: float,
    reserve: str,
    pinned: str = "0",
    prefix: str | None = None,
    prefix_aware: bool = False,
) -> Workload:
    """The workload that the options describe."""
    tokens, group = (0, 1) if prefix is None else parse_prefix(prefix)
    if prefix is None and prefix_aware:
        raise click.UsageError("--prefix-aware needs --prefix P:M")
    if tokens > context:
        raise click.UsageError(f"--prefix {prefix}: the prefix is longer than the context of {context:,} tokens")
    return Workload(
        batch, context, block, utilization, parse_size(reserve), tp, parse_size(pinned), tokens, group, prefix_aware
    )


def parse_prefix(text: str) -> tuple[int, int]:
    """Tokens and requests a group out of ``P:M``; raises a usage error for anything else."""
    match = re.fullmatch(r"([0-9]{1,9}):([1-9][0-9]{0,8})", text.strip())
    if match is None:
        raise click.UsageError(f"--prefix {text}: write P:M, such as 1024:8 for 1,024 tokens in groups of 8 requests")
    return int(match[1]), int(match[2])


def basis_from(hardware: str | None, bandwidth: str | None, model: ModelSpec | None = None) -> Basis:
    """What prices bytes: FLOPs run at the rate of ``model``'s weights where a model is known."""
    compute = "bf16" if model is None else weight_dtype(model.weights).compute
    return make_basis(None if hardware is None else load_hardware(hardware), bandwidth, compute)


def say_assumptions(model: ModelSpec | None) -> int:
    """Name on stderr what the config did not say, and give the exit code for it: 3, or 0 where nothing was assumed."""
    if model is None or not model.assumptions:
        return 0
    for assumption in model.assumptions[:_SAID]:
        click.echo(printable(f"tracescope: {model.name}: {assumption}"), err=True)
    if len(model.assumptions) > _SAID:
        click.echo(
            f"tracescope: {units.plural(len(model.assumptions) - _SAID, 'more assumption')}; --json lists all", err=True
        )
    return EXIT_ASSUMED
