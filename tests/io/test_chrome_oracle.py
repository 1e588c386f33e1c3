"""Every readable Chrome trace of the shared material against an independent reading of it."""

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import SHARED
from tests.kit import oracle
from tracescope.core.raw import RawCategory, RawTrace
from tracescope.io import reader_for

pytestmark = pytest.mark.slow

FILES = sorted(p.relative_to(SHARED).as_posix() for p in (SHARED / "traces").rglob("*.json*") if p.name != "INDEX.json")


def rows_of(raw: RawTrace) -> Counter[tuple[str, str, str, int, int]]:
    e, slices = raw.events, ~raw.of(RawCategory.INSTANT)
    keys = [(track.pid, track.tid) for track in raw.tracks]
    columns = zip(*(column[slices].tolist() for column in (e.name, e.track, e.start, e.duration)), strict=True)
    return Counter((raw.names[n], *keys[t], s, d) for n, t, s, d in columns)


@pytest.mark.parametrize("name", FILES or [pytest.param("", marks=pytest.mark.skip("shared material is absent"))])
def test_reader_and_oracle_agree_to_the_nanosecond(name: str) -> None:
    path = Path(SHARED / name)
    expected = oracle.load(path)
    if expected is None or not expected.phases.keys() - {""}:
        pytest.skip("not a trace, or not JSON to the standard library")
    raw = reader_for(path).read(path)
    assert raw.seen == expected.elements
    assert raw.seen == raw.imported + sum(raw.dropped.values())
    asynchronous = sum(expected.phases[phase] for phase in "bS")
    slices = ~raw.of(RawCategory.INSTANT)
    assert int(slices.sum()) == expected.events + asynchronous
    assert len(raw.events) - int(slices.sum()) == sum(expected.phases[phase] for phase in "iIRnTp")
    assert sum(len(c.time) for c in raw.counters) >= expected.phases["C"]
    if not asynchronous:
        assert rows_of(raw) == expected.rows
        assert int(raw.events.duration.sum()) == expected.total_duration
        assert int(raw.events.start[slices].min()) == expected.first_start
