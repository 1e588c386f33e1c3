"""Where imported traces are kept: native files in the user's cache, at most 2 GiB, least recently used out first."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from tracescope import __version__

CACHE_LIMIT = 2 << 30


def cache_folder() -> Path:
    """The folder of imported traces."""
    return Path(platformdirs.user_cache_dir("tracescope", appauthor=False)) / "imports"


def cached_path(source: Path, options: Sequence[str], others: Sequence[Path] = ()) -> Path:
    """Where the import of ``source`` (and ``others`` with it) with ``options`` (command-line words) belongs.

    The name depends on the files' places, sizes and times of change (of all files in a folder), the options with the
    rules that they name, and the version, so that an entry is used again exactly while it is still right.
    """
    files = [text for path in (source, *others) for text in _stamp(path)]
    rules = [text for option in options if option.endswith(".toml") for text in _stamp(Path(option))]
    key = "\0".join([*files, *rules, __version__, *options])
    return cache_folder() / f"{hashlib.sha256(key.encode(errors='surrogateescape')).hexdigest()[:32]}.tscope.h5"


def _stamp(path: Path) -> list[str]:
    """What changes when a file does, or any file in a folder."""
    paths = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    stamps = [str(path.resolve())]
    for file in paths:
        stat = file.stat()
        stamps += [file.name, str(stat.st_size), str(stat.st_mtime_ns)]
    return stamps


def touch(path: Path) -> None:
    """Mark an entry as used just now."""
    os.utime(path)


def trim(folder: Path, limit: int = CACHE_LIMIT, keep: Path | None = None) -> None:
    """Delete entries, the least recently used first, until the rest fits into ``limit`` bytes; ``keep`` stays."""
    entries = []
    for path in folder.glob("*.tscope.h5*"):
        try:
            stat = path.stat()
        except OSError:
            continue  # another window removed it meanwhile
        entries.append((stat.st_mtime_ns, stat.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        if path != keep:
            path.unlink(missing_ok=True)
            total -= size
