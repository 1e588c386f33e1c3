"""Fixtures for every test: where the shared public material is, if it is there at all."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared_path(relative: str) -> Path:
    """A file of the shared material beside the checkout; skips the test where it is absent."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"shared material is absent: {relative}")
    return path


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """``shared("traces/…")``: the path, or a skip with the reason."""
    return shared_path
