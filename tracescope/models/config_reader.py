"""One config while it is read: values under any of their spellings, checked, with what was assumed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tracescope.core.errors import TraceError
from tracescope.models.families import ALIASES
from tracescope.models.limits import shown
from tracescope.models.model_family import Flag

_LARGEST: Final = {"num_hidden_layers": 10_000, "vocab_size": 1 << 28}
_LARGEST_SIZE: Final = 1 << 24  # hidden sizes and head counts; the largest public model has 53,248


@dataclass(slots=True)
class Reader:
    """One config while it is read: ``where`` names the file and place, ``notes`` collect the assumptions."""

    config: Mapping[str, Any]
    where: str
    notes: list[str] = field(default_factory=list)

    def given(self, name: str) -> tuple[str, Any] | None:
        """The key under which the value ``name`` stands, and the value; None where absent or null everywhere."""
        found: tuple[str, Any] | None = None
        for key in ALIASES.get(name, (name,)):
            value = self.config.get(key)
            if value is None:
                continue
            if found is not None and found[1] != value:
                raise TraceError(
                    f"{self.where}: {found[0]} is {shown(found[1])} but {key} is {shown(value)}",
                    action="They mean the same thing; correct the one that is wrong.",
                )
            found = found or (key, value)
        return found

    def mentions(self, name: str) -> bool:
        """Whether a key of ``name`` is there at all, null included: an explicit null is an answer."""
        return any(key in self.config for key in ALIASES.get(name, (name,)))

    def whole(self, name: str) -> int | None:
        """A positive whole number, None where absent; raises TraceError for anything else."""
        found = self.given(name)
        return None if found is None else self.checked(name, *found)

    def checked(self, name: str, key: str, value: Any) -> int:
        """``value`` of ``key`` as a positive whole number no larger than anything of that name can be."""
        largest = _LARGEST.get(name, _LARGEST_SIZE)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TraceError(f"{self.where}: {key} must be a whole number, got {shown(value)}")
        if not 0 < value <= largest:
            raise TraceError(f"{self.where}: {key} is {shown(value)}; it must be between 1 and {largest:,}")
        return value

    def required(self, name: str) -> int:
        """A whole number without which nothing can be counted."""
        value = self.whole(name)
        if value is None:
            raise TraceError(
                f"{self.where}: {name} is missing",
                action="Known spellings: " + ", ".join(ALIASES.get(name, (name,))),
            )
        return value

    def truth(self, key: str) -> bool | None:
        """A true or false, None where absent; raises TraceError for anything else."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, bool):
            raise TraceError(f"{self.where}: {key} must be true or false, got {shown(value)}")
        return value

    def flag(self, flag: Flag) -> bool:
        """A fact of the family, or the value of the key that decides it."""
        if isinstance(flag, bool):
            return flag
        value = self.truth(flag[0])
        return flag[1] if value is None else value

    def number(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """The whole number under exactly ``key``; ``default`` where it is absent, which is then a class default.

        Raises TraceError where there is neither, or where the value is no such number.
        """
        value = self.config.get(key)
        if value is None:
            if default is None:
                raise TraceError(f"{self.where}: {key} is missing")
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise TraceError(f"{self.where}: {key} must be a whole number, got {shown(value)}")
        if not least <= value <= _LARGEST_SIZE:
            raise TraceError(f"{self.where}: {key} is {shown(value)}; it must be between {least} and {_LARGEST_SIZE:,}")
        return value

    def listed(self, key: str, layers: int) -> list[Any] | None:
        """The list of one value a layer under ``key``, None without one; raises TraceError for another length."""
        value = self.config.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise TraceError(f"{self.where}: {key} must be a list of one value a layer, got {shown(value)}")
        if len(value) != layers:
            raise TraceError(f"{self.where}: {key} lists {len(value)} layers but num_hidden_layers is {layers}")
        return value
