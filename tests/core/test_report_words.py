"""Every reason that any reader counts under has a sentence, and ``info`` prints it; JSON keeps the reason."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracescope.cli.app import run
from tracescope.core.report_words import REASONS, in_words
from tracescope.io.chrome.collector import DROPPED_PHASES
from tracescope.io.nsys.reader import LEFT_OUT
from tracescope.io.rocpd.reader import LEFT_OUT as LEFT_OUT_OF_ROCPD

PACKAGE = Path(__file__).parents[2] / "tracescope"
CALLS = {"drop", "_leave", "flag", "BadCellError"}
COUNTERS = {"dropped", "flagged", "_flagged"}


def named(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def texts(node: ast.AST) -> Iterator[str]:
    """Texts that ``node`` may stand for; what a conditional compares with is none of them."""
    if isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Call) and named(node.func) == "get":
        yield from texts(node.args[-1])


def reasons_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and named(node.func) in CALLS and node.args:
            yield from texts(node.args[0])
        elif isinstance(node, ast.Subscript) and named(node.value) in COUNTERS:
            yield from texts(node.slice)
        elif isinstance(node, ast.Assign) and any(named(target) in COUNTERS for target in node.targets):
            yield from (key.value for key in getattr(node.value, "keys", ()) if isinstance(key, ast.Constant))


def used() -> set[str]:
    modules = [path for part in ("io", "recognise") for path in (PACKAGE / part).rglob("*.py")]
    found = {reason for path in modules for reason in reasons_in(ast.parse(path.read_text()))}
    direct = {"sub_nanosecond", "missing_duration"}  # counted under in a loop over pairs
    return found | direct | set(DROPPED_PHASES.values()) | set(LEFT_OUT.values()) | set(LEFT_OUT_OF_ROCPD.values())


def test_every_reason_has_a_sentence_and_every_sentence_a_reason() -> None:
    assert len(used()) > 50
    assert used() == set(REASONS)


def test_sentences_are_sentences() -> None:
    for reason, text in REASONS.items():
        assert " " in text, reason
        assert "_" not in text, reason
        assert not text.endswith("."), reason


def test_a_reason_of_another_version_is_spelled_as_words() -> None:
    assert in_words("something_of_tomorrow") == "something of tomorrow"


def test_info_says_what_a_reason_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 5}
    backwards = {**kernel, "ts": 10, "dur": -1}
    arrow = {"ph": "f", "id": 3, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 1}
    path.write_text(json.dumps({"traceEvents": [kernel, backwards, arrow]}))
    assert run(["info", str(path)]) == 3
    said = capsys.readouterr().out
    assert "flagged     lone_flow_end 1: an arrow whose start is not in the file" in said
    assert "left out    negative_duration 1: it would end before it starts" in said
    assert run(["info", str(path), "--json"]) == 3
    report = json.loads(capsys.readouterr().out)["report"]
    assert (report["flagged"], report["dropped"]) == ({"lone_flow_end": 1}, {"negative_duration": 1})
