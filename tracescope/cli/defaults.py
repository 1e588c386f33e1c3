"""Which values decide the printed numbers although nobody gave them: said wherever such numbers are printed."""

from typing import Final

import click
from click.core import ParameterSource

_SAID: Final = {
    "batch": None,
    "context": None,
    "tp": None,
    "block": None,
    "utilization": None,
    "reserve": None,
    "bandwidth": "datasheet",
    "steps": "128",
    "profile": None,
}
"""Parameters in the order in which they are said, with what stands for a default that is None."""
_EMPTY_CACHE: Final = " (an empty KV cache)"


def _defaults_taken(without: tuple[str, ...]) -> dict[str, str]:
    """Values of the running command's options that nobody gave, by parameter name; ``without`` some of them."""
    context = click.get_current_context()
    taken = {}
    for name, stands_for in _SAID.items():
        given = context.params.get(name)
        if name not in context.params or name in without:
            continue
        if context.get_parameter_source(name) in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP):
            value = stands_for if given is None else str(given)
            if value is not None:
                taken[name] = value
    if context.params.get("hardware") is None:  # then no bandwidth is known at all
        taken.pop("bandwidth", None)
    return taken


def assumed_line(*, without: tuple[str, ...] = ()) -> str | None:
    """The sentence with all of them, as options that could be given; None where every value was given."""
    taken = _defaults_taken(without)
    if not taken:
        return None
    said = [
        f"--{name} {value}{_EMPTY_CACHE if (name, value) == ('context', '0') else ''}" for name, value in taken.items()
    ]
    return f"assumed, for no option says otherwise: {', '.join(said)}"
