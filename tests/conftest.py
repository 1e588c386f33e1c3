"""Fixtures for every test: where the shared public material is, if it is there at all."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["COLUMNS"] = "200"  # tables for people fit the terminal, and workers of a parallel run claim a narrow one

# A busy machine is not a failure, and the same commit passes or fails the same way everywhere; to search further,
# run with --hypothesis-profile=default.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

pytest.register_assert_rewrite("tests.kit")

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


SLOW_FIXTURES = {"shared", "qapp", "qtbot"}
SLOW_FOLDERS = {"cases", "cli", "fuzz"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what asks for a window or for the shared material, and the folders that start processes."""
    for item in items:
        if SLOW_FIXTURES & set(getattr(item, "fixturenames", ())) or SLOW_FOLDERS & set(item.path.parts[-2:-1]):
            item.add_marker("slow")
