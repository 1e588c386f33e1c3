"""Put a file in place whole or not at all, and never over something that is no file or that is being read.

What is written goes to a new file of a name nobody else uses, in the same folder, and is renamed over the destination
once it is on the disk. A symbolic link is followed: what it names is replaced, the link stays.
"""

import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from tracescope.core.errors import TraceError

_ACTIONS: Final = {
    errno.ENOSPC: "Free some space, or save to another disk.",
    errno.EDQUOT: "Free some space, or save to another disk.",
    errno.ENOENT: "Make the folder first.",
    errno.ENOTDIR: "Save to a folder.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.ELOOP: "Choose another name: this link leads back to itself.",
}
_NAME_KEPT: Final = 40
"""Characters of the destination's name in the temporary one, which so stays below any limit."""


def write_atomically(path: Path, data: bytes | Callable[[BinaryIO], None]) -> None:
    """Write ``data``, or what it writes when called with an open file, to ``path``; replaces a file that is there.

    Raises TraceError where that fails, and leaves the destination as it was and no other file behind then, as for any
    other exception.
    """
    target = target_of(path)
    try:
        part, descriptor = _new_part(target)
    except OSError as error:
        raise failed(path, error) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                data(file)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(part, target)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):
            raise failed(path, error) from None
        raise
    sync_folder(target.parent)


def refuse_own_input(out: Path, inputs: Iterable[Path]) -> None:
    """Raise TraceError where ``out`` is one of the files that are read for it, by whatever name or link."""
    for path in inputs:
        try:
            same = os.path.samefile(out, path)
        except (OSError, ValueError):  # one of them is not there
            continue
        if same:
            raise TraceError(f"{out} would overwrite its own input; choose another name")


def target_of(path: Path) -> Path:
    """Where the file really goes: through a symbolic link to what it names. Refuses what is not a plain file."""
    try:
        target = path.resolve() if path.is_symlink() else path
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except OSError as error:
        raise failed(path, error) from None
    except RuntimeError:  # how a circle of links is told before Python 3.13
        raise failed(path, OSError(errno.ELOOP, os.strerror(errno.ELOOP))) from None
    if not stat.S_ISREG(mode):
        raise TraceError(f"{path} is not a regular file, so nothing is saved there.", action="Choose a file name.")
    if not os.access(target, os.W_OK):
        raise failed(path, OSError(errno.EACCES, os.strerror(errno.EACCES)))
    return target


def failed(path: Path, error: OSError) -> TraceError:
    """The refusal for an operating system's error: what went wrong at ``path``, and what helps."""
    what = error.strerror or str(error)
    return TraceError(
        f"{path} cannot be saved: {what}.", action=_ACTIONS.get(error.errno or 0, "Save to another folder.")
    )


def put_in_place(part: Path, target: Path) -> None:
    """Rename ``part`` to ``target``, with the permissions of the file that it replaces."""
    with suppress(FileNotFoundError):
        part.chmod(target.stat().st_mode & 0o777)
    tries = 10 if sys.platform == "win32" else 1  # there a file open elsewhere cannot be replaced until it is closed
    for left in reversed(range(tries)):
        try:
            part.replace(target)
            return
        except PermissionError:
            if not left:
                raise
            time.sleep(0.1)


def sync_folder(folder: Path) -> None:
    """Make the renaming itself durable; the new file is already in place, so a failure here is not an error."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _new_part(target: Path) -> tuple[Path, int]:
    """A new file beside ``target``, open for writing, with the permissions of any new file (mkstemp's are 0600)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        part = target.with_name(f".{target.name[:_NAME_KEPT]}.{secrets.token_hex(8)}.part")
        with suppress(FileExistsError):
            return part, os.open(part, flags, 0o666)
