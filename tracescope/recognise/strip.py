"""Takes names of people, machines and folders out of a trace: what is left says what ran, not where or whose."""

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

import msgspec

from tracescope.core.raw import RawTrace
from tracescope.core.trace import Trace

KEYS: Final = re.compile(
    r"host_?name|user_?name|^user$|^host$|^login$|_?path$|^path|directory|^cwd$|^env|argv|cmd_?line|command_?line|"
    r"trace_?name|job_|tw_|^file(_?info)?$|e-?mail|address|^uuid$|serial|trace_?id",
    re.IGNORECASE,
)
"""Names of header keys and arguments whose values are left out."""

_NAMES: Final = re.compile(r"host_?name|user_?name|^user$|^host$|^login$", re.IGNORECASE)

_POSIX: Final = re.compile(r"(?<![\w.~/])(?:file://)?(?:~/|/)(?:[^\s/:\"'<>|(),;]+/)+")
_WINDOWS: Final = re.compile(r"(?<!\w)(?:[A-Za-z]:|\\\\)(?:\\|/)*(?:[^\\/:\"'<>|(),;\n]+[\\/]+)+")
_HOME: Final = re.compile(r"(?:/home/|/users/|\\users\\)([^/\\\s:\"']{2,64})", re.IGNORECASE)
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_IP: Final = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_COMMON: Final = frozenset({"root", "user", "python", "host", "localhost", "app", "runner", "test", "none", "shared"})

_RANK: Final = re.compile(r"(?:rank|tp|worker)[-_ ]?0*(\d{1,5})(?!\d)", re.IGNORECASE)

REMOVED: Final = "…"


def strip_names(trace: Trace, raw: RawTrace) -> Trace:
    """``trace``, recognised from ``raw``, without names of hosts, users and folders in any of its texts.

    A path keeps its last part: ``/home/ann/serve/model.py(3): forward`` becomes ``…/model.py(3): forward``. The names
    that the header gives for its host and user, and those of home folders, are taken out wherever they stand; of the
    file's own name only its rank is left, for a profiler puts the host there.
    """
    stripper = _Stripper(_private_words(raw))
    meta = trace.meta
    report = replace(meta.report, inferred=tuple(replace(i, what=stripper.text(i.what)) for i in meta.report.inferred))
    rank = _RANK.search(meta.source.name)
    return replace(
        trace,
        meta=replace(
            meta,
            source=replace(meta.source, name=f"rank{rank[1]}" if rank else "trace"),
            report=report,
            devices=tuple(replace(d, name=stripper.text(d.name)) for d in meta.devices),
            assumptions=tuple(map(stripper.text, meta.assumptions)),
            notes=tuple(map(stripper.text, meta.notes)),
        ),
        names=tuple(map(stripper.text, trace.names)),
        details=tuple(map(stripper.detail, trace.details)),
        tracks=tuple(replace(t, name=stripper.text(t.name), process=stripper.text(t.process)) for t in trace.tracks),
    )


def _private_words(raw: RawTrace) -> frozenset[str]:
    """Names of the host and the user: from the header, and from the home folders that stand in texts."""
    words = {w for w in _named(raw.metadata)}
    for texts in (raw.names, raw.details, raw.full_names, (msgspec.json.encode(_plain(raw.metadata)).decode(),)):
        for text in texts:
            if "home" in text or "sers" in text:
                words.update(_HOME.findall(text))
    return frozenset(w for w in words if len(w) > 2 and w.lower() not in _COMMON)


def _named(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and _NAMES.search(str(key)):
                yield inner
            else:
                yield from _named(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named(inner)


def _plain(value: Any) -> Any:
    """``value`` as something JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


class _Stripper:
    """Cleans texts and JSON values; the same text is the same afterwards wherever it stands."""

    def __init__(self, words: frozenset[str]) -> None:
        ordered = sorted(words, key=len, reverse=True)
        self._words = re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE) if ordered else None

    def text(self, text: str) -> str:
        """One text without folders and private words."""
        if "/" in text or "\\" in text:
            text = _WINDOWS.sub(f"{REMOVED}/", text)
            text = _POSIX.sub(f"{REMOVED}/", text)
        if "@" in text:
            text = _MAIL.sub(REMOVED, text)
        text = _IP.sub(REMOVED, text)
        return self._words.sub(REMOVED, text) if self._words else text

    def detail(self, text: str) -> str:
        """One JSON object of arguments; what is none is cleaned as text."""
        if not text:
            return text
        try:
            recorded = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return self.text(text)
        return msgspec.json.encode(self.value(recorded)).decode()

    def value(self, value: Any) -> Any:
        """A JSON value without what names people and places."""
        if isinstance(value, dict):
            return {self.text(str(k)): self.value(v) for k, v in value.items() if not KEYS.search(str(k))}
        if isinstance(value, list | tuple):
            return [self.value(v) for v in value]
        return self.text(value) if isinstance(value, str) else value


def strings_in(value: Any) -> Iterable[str]:
    """Every text inside a dataclass, a container or a text itself: to look for what should not be there."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from strings_in(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from strings_in(inner)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from strings_in(getattr(value, f.name))
