"""A small run of the harness of foreign formats; larger ones are started by hand."""

from pathlib import Path

import pytest

from tests.fuzz import fuzz_foreign
from tests.fuzz.fuzz_native import FINDINGS


@pytest.mark.parametrize("kind", fuzz_foreign.KINDS)
def test_mutated_traces(tmp_path: Path, kind: str) -> None:
    totals = fuzz_foreign.run(kind, 300, base=5, folder=tmp_path, keep=tmp_path / "found")
    assert sum(totals.values()) == 300
    assert {outcome: totals[outcome] for outcome in FINDINGS} == dict.fromkeys(FINDINGS, 0)
    assert totals["refused"] > 60
    assert totals["read"] > 20
