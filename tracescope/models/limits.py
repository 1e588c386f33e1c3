"""Reading JSON and TOML that somebody else wrote: a size limit, strict numbers, one clear sentence on failure."""

import difflib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tracescope.core.errors import TraceError
from tracescope.core.regular import require_regular

MAX_BYTES: Final = 16 << 20
"""The largest public config.json is a few hundred kB (long lists of unconverted modules); 16 MiB refuses the rest."""

_SHOWN = 60


def read_text(path: Path) -> str:
    """The text of a small UTF-8 file; raises TraceError where it is missing, a directory, too large or not text."""
    require_regular(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise TraceError(f"{path}: larger than {MAX_BYTES >> 20} MiB, which no config file is")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not UTF-8 text (byte {error.start})") from None


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``; raises TraceError for anything else, NaN included."""
    text = read_text(path)
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        raise TraceError(f"{path}: nested too deeply to be a config") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise TraceError(f"{path}: not JSON{_place(text, str(error))}: {error}") from None
    if not isinstance(value, dict):
        raise TraceError(f"{path}: holds {shown(value)}, not a JSON object of config keys")
    return value


def read_toml(path: Path) -> dict[str, Any]:
    """The TOML document in ``path``; raises TraceError where it is not one."""
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise TraceError(f"{path}: not TOML: {error or 'nested too deeply'}") from None


def shown(value: Any) -> str:
    """A value from a file for a message: short, whatever it is."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _place(text: str, message: str) -> str:
    """Line and column of the byte that ``message`` names, counted from 1."""
    match = re.search(r"\(byte (\d+)\)", message)
    if match is None:
        return ""
    before = text.encode()[: int(match[1])].decode(errors="replace")
    return f" at line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


def did_you_mean(name: str, known: Sequence[str], otherwise: str) -> str:
    """The known names close to a mistyped one, all of them where none is close, and what else may be done."""
    word = re.sub(r"[^a-z0-9.]", "", name.casefold())
    bare = {re.sub(r"[^a-z0-9.]", "", one.casefold()): one for one in known}
    begins = [one for short, one in bare.items() if word and short.startswith(word)]
    close = difflib.get_close_matches(word, list(bare), n=4, cutoff=0.6)
    found = list(dict.fromkeys([*begins, *(bare[short] for short in close)]))[:6]
    if found:
        return f"Did you mean {', '.join(found)}? Or {otherwise}."
    return f"Known: {' '.join(known)}; or {otherwise}."
