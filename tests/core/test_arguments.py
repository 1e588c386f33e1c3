"""Recorded arguments are a JSON object or nothing, however they are damaged."""

import pytest

from tracescope.core.arguments import recorded_arguments


def test_an_object_gives_its_values() -> None:
    assert recorded_arguments('{"device": 0, "grid": [1, 2, 3]}') == {"device": 0, "grid": [1, 2, 3]}
    assert recorded_arguments("{}") == {}


@pytest.mark.parametrize("text", ["", "[1]", "7", "null", '{"a": 1', "grid 1", '{"a":' + "[" * 100_000])
def test_anything_else_gives_nothing(text: str) -> None:
    assert recorded_arguments(text) is None
