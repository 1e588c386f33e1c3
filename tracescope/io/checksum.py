"""The checksum of a file, as any other tool computes it."""

from hashlib import sha256
from pathlib import Path
from typing import Final

_PIECE: Final = 1 << 20


def file_sha256(path: Path) -> str | None:
    """SHA-256 of the bytes of ``path`` as they lie on disk, hex; None for a folder or what cannot be read."""
    digest = sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()
