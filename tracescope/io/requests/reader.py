"""Opens a file of requests, whatever its kind, and says what was left out of it."""

import gzip
import hashlib
import io
import zlib
from pathlib import Path
from typing import Final

from tracescope.core.errors import TraceError
from tracescope.core.regular import require_regular
from tracescope.core.report import Source
from tracescope.core.request_stream import RequestStream
from tracescope.io.requests import csv_rows, json_rows

LARGEST: Final = 1 << 30
"""Bytes of text: some twenty million requests."""

_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def read_requests(path: Path) -> RequestStream:
    """The requests in ``path`` in order of arrival.

    Azure 2023 and 2024, BurstGPT and vidur CSV, Mooncake lines and results of vLLM's serving benchmark are told apart
    by the names in them; plain or gzip. Rows that cannot be used are counted in the report, by reason. Raises
    TraceError where the file cannot be read, is of no such kind, or holds no request that can be used.
    """
    data = _bytes(path)
    plain = _plain(path.name, data)
    if plain.startswith((b"PK\x03\x04", b"PAR1", b"\x89HDF")):
        raise TraceError(f"{path.name}: a binary file, not a table of requests", action=csv_rows.EXPECTED)
    text = plain.decode(next((codec for mark, codec in _MARKS if plain.startswith(mark)), "utf-8"), "replace")
    is_json = text.lstrip()[:1] in ("{", "[")
    made, layout = (json_rows.collect_json if is_json else csv_rows.collect_csv)(path.name, text)
    if made.seen and not made.arrival:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in made.dropped.items())
        raise TraceError(f"{path.name}: none of its {made.seen:,} requests can be used ({reasons})")
    source = Source(path.name, hashlib.sha256(data).hexdigest(), len(data), f"requests: {layout}")
    return made.stream(source, layout)


def _bytes(path: Path) -> bytes:
    require_regular(path)
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise TraceError(
                f"{path.name}: {size:,} bytes are too many for a file of requests", action="Use a part of it."
            )
        return path.read_bytes()
    except OSError as error:
        raise TraceError(f"{path.name}: cannot be read: {error.strerror or error}", action="Check the path.") from error


def _plain(name: str, data: bytes) -> bytes:
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            plain = packed.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{name}: the gzip data is damaged or cut short", action="Copy the file again.") from error
    if len(plain) > LARGEST:
        raise TraceError(f"{name}: unpacks to more than {LARGEST:,} bytes", action="Use a part of it.")
    return plain
