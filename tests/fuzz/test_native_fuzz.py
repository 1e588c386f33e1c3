"""Small runs of the two harnesses; larger ones are started by hand (see each file)."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import fuzz_native, kill_save


@pytest.mark.parametrize(("make", "count"), [(fuzz_native.own_seeds, 300), (fuzz_native.foreign_seeds, 100)])
def test_mutated_files(tmp_path: Path, make: Callable[[Path], list[fuzz_native.Seed]], count: int) -> None:
    totals = fuzz_native.run(make(tmp_path), count, base=11, folder=tmp_path, keep=tmp_path / "found")
    assert sum(totals.values()) == count
    assert {kind: totals[kind] for kind in fuzz_native.FINDINGS} == dict.fromkeys(fuzz_native.FINDINGS, 0)
    assert totals["refused"] > count // 4


def test_the_harness_sees_a_crash_and_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A harness that could not tell would pass anything."""

    def broken(path: Path) -> str:
        first = path.read_bytes()[-1]
        if first % 3 == 0:
            os.abort()
        if first % 3 == 1:
            time.sleep(30)
        raise ValueError("a bug")

    monkeypatch.setattr(fuzz_native.native, "read", broken)
    monkeypatch.setattr(fuzz_native, "DEADLINE_S", 0.3)
    seeds = [fuzz_native.Seed(str(i), bytes([i] * 50), tuple(range(50)), ()) for i in range(3)]
    totals = fuzz_native.run(seeds, 12, base=1, folder=tmp_path)
    assert sum(totals.values()) == 12
    assert all(totals[kind] > 0 for kind in fuzz_native.FINDINGS)


def test_killed_saves(tmp_path: Path) -> None:
    totals = kill_save.run(tmp_path, count=12, events=500, base=3)
    assert totals[kill_save.LOST] == 0
    assert totals["old"] + totals["new"] == 12
    assert totals["killed"] > 0
