"""Numbers on the command line: Python reads digits of any script, underscores and nan; a person means 0 to 9."""

import math
import re
from typing import Any, Final

import click

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")


class Whole(click.types.IntParamType):
    """A whole number, in the digits 0 to 9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; a usage error for anything else."""
        return super().convert(_plain(self, value, param, ctx), param, ctx)


class WholeRange(click.IntRange):
    """A whole number within bounds, in the digits 0 to 9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; a usage error for anything else."""
        return super().convert(_plain(self, value, param, ctx), param, ctx)


class Share(click.FloatRange):
    """A part of a whole: above 0, at most 1."""

    def __init__(self) -> None:
        super().__init__(0, 1, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; a usage error for anything else, nan included."""
        if isinstance(value, str) and not value.isascii():
            self.fail(f"'{value}' is not a number.", param, ctx)
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"'{value}' is not a number.", param, ctx)
        return number


def _plain(
    kind: click.types.ParamType[Any], value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> Any:
    if isinstance(value, str) and not _WHOLE.fullmatch(value.strip()):
        kind.fail(f"'{value}' is not a whole number.", param, ctx)
    return value
