"""What a reader of a foreign format is: a name, a way to recognise a file by its content, and a way to read it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tracescope.core.raw import RawTrace

Progress = Callable[[int, int], None]
"""Called now and then with (bytes of the file read, bytes of the file)."""


class Read(Protocol):
    """Read one whole file; raises TraceError where it cannot be read at all."""

    def __call__(self, path: Path, *, progress: Progress | None = None, allow_truncated: bool = False) -> RawTrace: ...


@dataclass(frozen=True, slots=True)
class Importer:
    """One foreign format. ``sniff`` gets the first 64 KiB of the file as they lie on disk, and its path."""

    name: str
    sniff: Callable[[bytes, Path], bool]
    read: Read
