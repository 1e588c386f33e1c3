"""The slow path for one event that does not parse: what writers are known to get wrong, repaired and counted."""

import re
from collections import Counter
from typing import Final

import msgspec

from tracescope.io.chrome.event import ABSENT, EVENT, LOOSE, UNREADABLE, Event, Ident

MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 40

STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("?)', re.DOTALL)
"""A JSON string; group 1 is empty where the text ends inside it (matched all the same: searching stays linear)."""

_TOKEN: Final = re.compile(
    STRING.pattern + rb"|(?<![\w.])([-+]?(?:infinity|inf|nan))(?![\w.])", re.DOTALL | re.IGNORECASE
)
_NESTING: Final = re.compile(STRING.pattern + rb"|[\[\]{}]", re.DOTALL)
_BAD_ESCAPE: Final = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPE: Final = re.compile(r'\\(["\\])|\\')
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_SURROGATE: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)(?:(\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|\\ud[89a-f][0-9a-f]{2})", re.I
)
_CLOSE: Final = re.compile(rb'"(?=\s*(?:[:}\]]|,\s*(?:["\[{]|-?\d|true|false|null)|\Z))')
_NAME_START: Final = re.compile(rb'"name"\s*:\s*"')
_NAME_END: Final = re.compile(rb'"\s*(?:\}|,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp|cname)"\s*:)')
"""A name reaches to the next key that events have: it may hold quotes and commas, as C++ and Python calls do."""
_BARE_QUOTE: Final = re.compile(rb'(?<!\\)"')
_LONE_BACKSLASH: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\\Z")
_KEY: Final = re.compile(rb'([,{]\s*)([A-Za-z_]\w*)"(\s*:)')
_BRACKETS: Final = re.compile(rb"[\[{]|[\]}]")


def decode_tolerantly(text: bytes, flagged: Counter[str]) -> Event | None:
    """The event written by ``text``, repaired where needed; None where nothing makes it an object.

    Repairs are counted in ``flagged`` (one per string or number) only when they led to an event.
    """
    for repair in (_as_is, repair_tokens, _repair_quotes):
        counts: Counter[str] = Counter()
        event = _decode_one(repair(text, counts), counts)
        if event is not None:
            flagged.update(+counts)
            return event
    return None


def depth_of(text: bytes) -> int:
    """The deepest nesting of brackets outside strings."""
    deepest = depth = 0
    for match in _BRACKETS.finditer(STRING.sub(b"", text)):
        depth += 1 if match[0] in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _decode_one(text: bytes, counts: Counter[str]) -> Event | None:
    try:  # decoding skips over text in arguments without looking at its encoding
        if not text.isascii():
            text.decode("utf-8")
    except UnicodeDecodeError:
        return None
    try:
        return EVENT.decode(text)
    except UNREADABLE:
        pass
    try:
        return _coerce(LOOSE.decode(text), counts)
    except UNREADABLE:
        return _without_args(text, counts) if depth_of(text) > MAX_DEPTH else None


def _without_args(text: bytes, counts: Counter[str]) -> Event | None:
    """An event whose arguments nest too deep for any parser: everything but the arguments."""
    start = re.search(rb'"args"\s*:\s*(?=[{\[])', text)
    if start is None:
        return None
    end, depth = start.end(), 0
    for match in _NESTING.finditer(text, start.end()):
        depth += (match[0] in (b"[", b"{")) - (match[0] in (b"]", b"}"))
        if not depth:
            end = match.end()
            break
    rest = text[: start.end()] + b"null" + text[end:]
    if depth or depth_of(rest) > MAX_DEPTH:
        return None
    event = _decode_one(rest, counts)
    if event is not None:
        counts["too_deep"] += 1
    return event


def _as_is(text: bytes, counts: Counter[str]) -> bytes:
    return text


def repair_tokens(text: bytes, counts: Counter[str]) -> bytes:
    """Bare inf and nan become null; strings get valid UTF-8, valid escapes and no raw control characters."""

    def token(match: re.Match[bytes]) -> bytes:
        if match[2] is not None:
            counts["nonfinite_number"] += 1
            return b"null"
        return _repair_string(match[0], counts) if match[1] else match[0]

    return _TOKEN.sub(token, text)


def _repair_string(quoted: bytes, counts: Counter[str]) -> bytes:
    try:
        text = quoted[1:-1].decode("utf-8")
    except UnicodeDecodeError:
        text = quoted[1:-1].decode("utf-8", "replace")
        counts["text_repaired"] += 1
    if "\\" in text:
        if _BAD_ESCAPE.search(text):  # then its other backslashes are not escapes either: \new_model.py
            text = _ESCAPE.sub(lambda m: m[0] if m[1] else "\\\\", text)
            counts["escapes_repaired"] += 1
        fixed = _SURROGATE.sub(lambda m: m[0] if m[2] else m[1] + "\ufffd", text)
        if fixed != text:
            text = fixed
            counts["text_repaired"] += 1
    if _CONTROL.search(text):
        text = _CONTROL.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
        counts["control_characters"] += 1
    return b'"' + text.encode() + b'"'


def _repair_quotes(text: bytes, counts: Counter[str]) -> bytes:
    """Quotes inside strings are escaped: a string ends only at a quote that JSON could go on from."""
    text, lost = _KEY.subn(rb'\1"\2"\3', text)

    def escaped(inside: bytes) -> bytes:
        fixed = _BARE_QUOTE.sub(rb"\"", inside)
        counts["quotes_repaired"] += fixed != inside
        if _LONE_BACKSLASH.search(fixed):  # a directory: its last backslash would escape the closing quote
            fixed += b"\\"
            counts["escapes_repaired"] += 1
        return fixed

    start = _NAME_START.search(text)
    end = _NAME_END.search(text, start.end()) if start else None
    if start and end:
        text = text[: start.end()] + escaped(text[start.end() : end.start()]) + text[end.start() :]
    pieces = []
    at = 0
    while (opening := text.find(b'"', at)) >= 0:
        closing = _CLOSE.search(text, opening + 1)
        if closing is None:
            break
        pieces.append(text[at:opening] + b'"' + escaped(text[opening + 1 : closing.start()]) + b'"')
        at = closing.end()
    pieces.append(text[at:])
    counts["quotes_repaired"] += lost
    return repair_tokens(b"".join(pieces), counts)


def _coerce(fields: dict[str, msgspec.Raw], counts: Counter[str]) -> Event:
    """An event whose fields have the wrong JSON type: text from numbers, arguments from anything."""
    args = fields.get("args", ABSENT)
    if depth_of(bytes(args)) > MAX_DEPTH:
        counts["too_deep"] += 1
        args = ABSENT
    return Event(
        ph=_text(fields.get("ph")),
        cat=_text(fields.get("cat")),
        name=_text(fields.get("name")),
        pid=_ident(fields.get("pid")),
        tid=_ident(fields.get("tid")),
        ts=fields.get("ts", ABSENT),
        dur=fields.get("dur", ABSENT),
        id=fields.get("id", ABSENT),
        id2=fields.get("id2", ABSENT),
        args=args,
    )


def _text(raw: msgspec.Raw | None) -> str:
    if raw is None or bytes(raw) == b"null":
        return ""
    text = bytes(raw)
    return str(msgspec.json.decode(text, type=str)) if text.startswith(b'"') else text.decode()


def _ident(raw: msgspec.Raw | None) -> Ident:
    if raw is None:
        return None
    text = bytes(raw)
    if text.startswith(b'"'):
        return str(msgspec.json.decode(text, type=str))
    if text == b"null":
        return None
    try:
        return msgspec.json.decode(text, type=int | float) if len(text) <= MAX_DIGITS else text[:MAX_DIGITS].decode()
    except msgspec.DecodeError:
        return text.decode()
