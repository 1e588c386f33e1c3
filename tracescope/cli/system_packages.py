"""Packages of the system: which one brings a thing here, and the one line that installs several."""

import os
import shutil
import sys
from functools import lru_cache
from importlib.resources import files
from typing import Final

MANAGERS: Final = {
    "apt-get": "apt-get update && apt-get install -y",
    "dnf": "dnf install -y",
    "pacman": "pacman -S --needed",
    "apk": "apk add",
}
"""Package managers in the order in which they are looked for, with what installs."""


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, str], ...]:
    """A row a thing: ``thing``, ``use``, and the package with each manager."""
    text = (files("tracescope") / "presets" / "system_packages.txt").read_text("utf-8")
    heads = ("thing", "use", *MANAGERS)
    return tuple(
        dict(zip(heads, line.split(), strict=True)) for line in text.splitlines() if line and not line.startswith("#")
    )


def needed_for(use: str) -> tuple[str, ...]:
    """The things that ``use`` needs (``draw``, ``x11``, ``wayland``, ``fonts``, ``python``, ``test``)."""
    return tuple(row["thing"] for row in _table() if row["use"] == use)


def manager() -> str | None:
    """The package manager of this system, None where it is none of those that are known."""
    if not sys.platform.startswith("linux"):
        return None
    return next((name for name in MANAGERS if shutil.which(name)), None)


def package_of(thing: str) -> str:
    """The package that brings ``thing`` here; empty where the package manager is not known."""
    found = manager()
    return next((row[found] for row in _table() if row["thing"] == thing), "") if found else ""


def install_line(packages: list[str]) -> str | None:
    """One line to paste that installs ``packages``, with rights if they are needed; None without a manager."""
    found = manager()
    if found is None or not packages:
        return None
    line = f"{MANAGERS[found]} {' '.join(sorted(set(packages)))}"
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return line
    if not shutil.which("sudo"):
        return f"su - -c '{line}'"
    return f"sudo sh -c '{line}'" if "&&" in line else f"sudo {line}"
