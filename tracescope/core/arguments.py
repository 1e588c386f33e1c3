"""Arguments that a recorder kept with an event: the text of one JSON object, stored once for all that share it."""

from typing import Any

import msgspec


def recorded_arguments(text: str) -> dict[str, Any] | None:
    """The arguments in ``text`` by their names as recorded; None where it is no JSON object."""
    if not text:
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
