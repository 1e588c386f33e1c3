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
    """One foreign format.

    ``suffixes``: what its files are usually called, in lower case. ``about``: where such files come from, in
    Markdown. ``sniff`` gets the first 64 KiB of the file, gzip undone, and its path, and may go by the name where the
    content says nothing: then ``read`` says why it cannot be read. ``unzips``: ``read`` undoes gzip by itself.
    """

    name: str
    suffixes: tuple[str, ...]
    about: str
    sniff: Callable[[bytes, Path], bool]
    read: Read
    unzips: bool = False

    def named(self, path: Path) -> bool:
        """Whether the file is called as files of this format are, gzip or not."""
        return path.name.lower().removesuffix(".gz").endswith(self.suffixes)
