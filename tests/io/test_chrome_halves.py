"""Two processes read what one reads: the same columns, tables and counts, whatever the second half holds."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracescope.core.raw import RawEvents, RawTrace
from tracescope.io.chrome import halves
from tracescope.io.chrome.reader import read

pytestmark = pytest.mark.slow

EVENTS = 14_000


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Every file is large enough for two processes; what became of each offer of the second one."""
    monkeypatch.setattr(halves, "SPLIT_FROM_BYTES", 1 << 20)
    monkeypatch.setattr(halves, "processors", lambda: 2)
    outcomes: list[bool] = []
    join = halves.SecondHalf.join

    def watched(half: halves.SecondHalf, *rest: Any) -> bool:
        outcomes.append(join(half, *rest))
        return outcomes[-1]

    monkeypatch.setattr(halves.SecondHalf, "join", watched)
    return outcomes


def alone(path: Path) -> RawTrace:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halves, "SPLIT_FROM_BYTES", 1 << 60)
        return read(path)


def assert_same(one: RawTrace, two: RawTrace) -> None:
    for column in fields(RawEvents):
        a, b = getattr(one.events, column.name), getattr(two.events, column.name)
        assert a.dtype == b.dtype, column.name
        np.testing.assert_array_equal(a, b, err_msg=column.name)
    for field in fields(RawTrace):
        if field.name != "events":
            assert getattr(one, field.name) == getattr(two, field.name), field.name


def event(i: int) -> str:
    """Names, categories, threads, arguments and flows of which some appear in one half only, some in both."""
    late = "late" if i > EVENTS * 3 // 4 else "early"
    if i % 7 == 3:
        flow = f'"0x{i // 14:x}"' if i % 2 else str(i // 14)
        return f'{{"ph": "{"sf"[i // 7 % 2]}", "cat": "ac2g", "id": {flow}, "pid": 1, "tid": 2, "ts": {i}.5}}'
    if i % 1000 == 5:
        return f'{{"ph": "M", "name": "thread_name", "pid": 1, "tid": {i % 11}, "args": {{"name": "thread {late}"}}}}'
    return (
        f'{{"ph": "X", "cat": "{late} op", "name": "λ {late} {i % 13}", "pid": 1, "tid": {i % 11 + 5 * (i > 9000)},'
        f' "ts": {i * 3}.{i % 1000:03d}, "dur": {i % 5}.25, "args": {{"External id": {i}, "correlation": {i},'
        f' "grid": [{i % 17}, {i // 4000}, 1], "what": "{"." * 100}"}}}}'
    )


def written(path: Path, change: Callable[[list[str]], None] = lambda _: None, form: str = "object") -> Path:
    events = [event(i) for i in range(EVENTS)]
    change(events)
    body = ",\n".join(events)
    if form == "object":
        body = f'{{"schemaVersion": 1, "traceEvents": [{body}], "traceName": "t", "schemaVersion": 2}}'
    elif form == "bare":
        body = f"[{body}]"
    elif form == "one line":
        body = '{"traceEvents": [' + ",".join(events) + "]}"
    elif form == "cut":
        body = f'{{"traceEvents": [{body[:-30]}'
    path.write_text(body, encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["object", "bare", "one line"])
def test_two_processes_give_what_one_gives(tmp_path: Path, joined: list[bool], form: str) -> None:
    path = written(tmp_path / "t.json", form=form)
    two = read(path)
    assert joined == [True]
    assert two.imported == two.seen == EVENTS
    assert_same(alone(path), two)


def _pairs(events: list[str]) -> None:
    events[-9:-7] = [
        '{"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 1}',
        '{"ph": "E", "pid": 1, "tid": 1, "ts": 9}',
    ]


def _damage(events: list[str]) -> None:
    events[-9] = r'{"ph": "X", "name": "C:\path", "pid": 1, "tid": 1, "ts": 1, "dur": inf}'


def _early_pairs(events: list[str]) -> None:
    events[9:11] = ['{"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 1}', '{"ph": "E", "pid": 1, "tid": 1, "ts": 9}']


def _deep(events: list[str]) -> None:
    deep = "[" * 600 + "]" * 600
    events[-9] = f'{{"ph": "X", "name": "n", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {{"deep": {deep}}}}}'


@pytest.mark.parametrize("change", [_pairs, _damage, _early_pairs, _deep])
def test_a_half_that_needs_one_reader_is_read_by_one(
    tmp_path: Path, joined: list[bool], change: Callable[[list[str]], None]
) -> None:
    path = written(tmp_path / "t.json", change)
    two = read(path)
    assert joined == [False]
    assert_same(alone(path), two)


def test_a_cut_file_is_read_by_one(tmp_path: Path, joined: list[bool]) -> None:
    path = written(tmp_path / "t.json", form="cut")
    two = read(path)
    assert joined == [False]
    assert two.truncated_at_byte == path.stat().st_size
    assert_same(alone(path), two)


def test_a_boundary_inside_a_string_is_not_believed(tmp_path: Path, joined: list[bool]) -> None:
    """Source text that looks like two events lies across the middle of the file."""

    def quote(events: list[str]) -> None:
        looks_like = '}, {\\"ph\\": 1 },{"'.replace('"', "'") + "},  { " * 20
        hidden = '"a": "' + looks_like * 9000 + '", "b": "' + "}, {" + '"'
        events[EVENTS // 2] = f'{{"ph": "X", "name": "s", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {{{hidden}}}}}'

    path = written(tmp_path / "t.json", quote)
    assert_same(alone(path), read(path))
    text = path.read_text(encoding="utf-8").replace("'ph'", '\\"ph\\"')
    path.write_text(text, encoding="utf-8")
    assert_same(alone(path), read(path))


def test_a_boundary_inside_an_argument_is_not_believed(tmp_path: Path, joined: list[bool]) -> None:
    """A list of objects in one event's arguments, as long as a quarter of the file, looks like events."""

    def nest(events: list[str]) -> None:
        inner = ",".join(f'{{"ph": "X", "name": "inner {i}"}}' for i in range(29_000))
        events[EVENTS // 2] = (
            f'{{"ph": "X", "name": "s", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {{"list": [{inner}]}}}}'
        )

    path = written(tmp_path / "t.json", nest)
    two = read(path)
    assert True not in joined
    assert two.seen == EVENTS
    assert_same(alone(path), two)


def test_without_the_other_process_one_reads_on(
    tmp_path: Path, joined: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halves, "_COMMAND", "raise SystemExit(1)")
    path = written(tmp_path / "t.json")
    two = read(path)
    assert joined == [False]
    assert_same(alone(path), two)


def test_the_other_process_ends_with_this_one(tmp_path: Path) -> None:
    path = written(tmp_path / "t.json")
    low = path.read_text(encoding="utf-8").index('},\n{"ph": "X"') + 1
    other = subprocess.Popen(
        [sys.executable, "-c", halves._COMMAND, str(path), str(low), "object"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,  # never read: it would wait for ever
    )
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdin.close()
    assert other.wait(timeout=60) == 1
    other.stdout.close()


def test_a_window_keeps_a_core_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACESCOPE_WINDOW", raising=False)
    free = halves.processors()
    monkeypatch.setenv("TRACESCOPE_WINDOW", "1")
    assert halves.processors() == free - 1
