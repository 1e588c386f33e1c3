"""A small run of the SQLite harness; larger ones are started by hand."""

from pathlib import Path

from tests.fuzz import fuzz_sqlite


def test_mutated_exports(tmp_path: Path) -> None:
    totals = fuzz_sqlite.run(fuzz_sqlite.own_seeds(tmp_path), 300, base=5, folder=tmp_path, keep=tmp_path / "found")
    assert sum(totals.values()) == 300
    assert {kind: totals[kind] for kind in fuzz_sqlite.FINDINGS} == dict.fromkeys(fuzz_sqlite.FINDINGS, 0)
    assert totals["refused"] > 60
    assert totals["read"] > 60
