"""Requests from JSON: Mooncake lines (and RAGPulse, timed traces of vLLM), and results of vLLM's serving benchmark."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tracescope.core.errors import TraceError
from tracescope.io.requests.rows import MILLISECONDS, SECONDS, BadCellError, RequestRows, number_ns, tokens

EXPECTED: Final = (
    "expected lines with timestamp, input_length and output_length, or a benchmark result with input_lens, "
    "output_lens and start_times"
)
_FAULTS: Final = (msgspec.DecodeError, ValueError, RecursionError)


class _Line(msgspec.Struct):
    """What counts of one line; the rest (such as the hashes of its blocks) is skipped."""

    timestamp: Any = None
    input_length: Any = None
    output_length: Any = None
    delay: Any = None


_LINES: Final = msgspec.json.Decoder(_Line)


def collect_json(name: str, text: str) -> tuple[RequestRows, str]:
    """The requests of one JSON text and the name of its layout. Raises TraceError where it is none that is known."""
    whole = _whole(text)
    if isinstance(whole, dict) and "input_lens" in whole:
        return _benchmark(name, whole), "vLLM benchmark result"
    if isinstance(whole, list):
        lines: Iterator[_Line | None] = (_item(item) for item in whole)
    else:
        lines = (_line(line) for line in text.splitlines() if line.strip())
    made, known = RequestRows(), 0
    for line in lines:
        if line is None:
            made.drop("bad_json")
            continue
        known += line.input_length is not None and line.output_length is not None
        if line.timestamp is None and line.delay is not None:
            # A turn of a conversation that begins so long after the one before has ended: nobody knows when that is.
            made.drop("delay_after_turn")
            continue
        try:
            # RAGPulse counts seconds, as text; all others count milliseconds, whatever else their lines say.
            unit = SECONDS if isinstance(line.timestamp, str) else MILLISECONDS
            made.add(
                number_ns(_text(line.timestamp), unit), *(_tokens(t) for t in (line.input_length, line.output_length))
            )
        except BadCellError as reason:
            made.drop(str(reason))
    if not known:
        raise TraceError(f"{name}: JSON, but not requests of a kind that is known", action=EXPECTED)
    return made, "Mooncake lines"


def _whole(text: str) -> Any:
    """The text as one JSON value; None where it is not one."""
    try:
        return msgspec.json.decode(text)
    except _FAULTS:
        pass
    try:
        return json.loads(text)  # bare NaN and Infinity, as Python's own writer leaves them
    except _FAULTS:
        return None


def _line(text: str) -> _Line | None:
    try:
        return _LINES.decode(text)
    except _FAULTS:
        return None


def _item(value: Any) -> _Line | None:
    try:
        return msgspec.convert(value, _Line)
    except _FAULTS:
        return None


def _text(value: Any) -> str:
    """A JSON number or text as decimal text; floats keep the digits that the file has."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise BadCellError("missing_value" if value is None else "bad_number")
    return value if isinstance(value, str) else repr(value)


def _tokens(value: Any) -> int:
    return tokens(_text(value))


def _benchmark(name: str, result: dict[str, Any]) -> RequestRows:
    prompts, outputs = result["input_lens"], result.get("output_lens")
    if not isinstance(prompts, list) or not isinstance(outputs, list):
        raise TraceError(f"{name}: input_lens and output_lens are not lists of lengths", action=EXPECTED)
    starts = result.get("start_times")
    if starts is None and str(result.get("request_rate")) == "inf":
        starts = [0.0] * len(prompts)
    if not isinstance(starts, list):
        raise TraceError(
            f"{name}: the benchmark recorded no start_times, so no request has an arrival", action=EXPECTED
        )
    if not len(prompts) == len(outputs) == len(starts):
        raise TraceError(
            f"{name}: {len(prompts):,} input_lens, {len(outputs):,} output_lens and {len(starts):,} start_times",
            action="The three lists must be of one length.",
        )
    errors = result.get("errors")
    failed = errors if isinstance(errors, list) and len(errors) == len(prompts) else [""] * len(prompts)
    made = RequestRows()
    for start, prompt, output, error in zip(starts, prompts, outputs, failed, strict=True):
        if error:
            made.drop("failed")
            continue
        try:
            made.add(number_ns(_text(start), SECONDS), _tokens(prompt), _tokens(output))
        except BadCellError as reason:
            made.drop(str(reason))
    return made
