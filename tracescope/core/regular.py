"""Refusing what only looks like a file: reading a pipe or a device may never end."""

import stat
from pathlib import Path

from tracescope.core.errors import TraceError


def require_regular(path: Path) -> None:
    """Raise TraceError where ``path``, symbolic links followed, is a pipe, a socket or a device.

    What is missing, and a folder, pass: whoever opens the path says it better.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise TraceError(f"{path} is not a regular file", action="Save its content to a file first.")
