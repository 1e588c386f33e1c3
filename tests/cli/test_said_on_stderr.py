"""What stderr says of options that a trace or a machine cannot follow, and of a trace with nothing in it."""

from pathlib import Path

import pytest

from tests.cli.test_hints import SYNTH, recording, said
from tracescope.cli.app import run


@pytest.mark.parametrize("command", ["steps", "check", "info", "layers"])
@pytest.mark.parametrize("ranks", ["3", "1024"])
def test_ranks_that_engines_refuse_are_refused_of_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, ranks: str
) -> None:
    code, out, err = said(capsys, command, str(recording(tmp_path)), "--model", "llama-3-8b", "--tp", ranks)
    assert (code, out) == (2, "")
    assert f"do not divide over {ranks} ranks" in err


def test_a_split_that_keeps_heads_twice_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "info", str(recording(tmp_path)), "--model", "llama-3-8b", "--tp", "16")
    assert "8 KV heads on 16 ranks: each is kept, with its cache, on 2 of them" in out


def test_what_an_import_has_decided_is_said_of_each_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "two.tscope.h5")
    assert run([*SYNTH, "--tp", "2", "-o", path]) == 0
    code, out, err = said(capsys, "info", path, "--tp", "4", "--context", "9")
    assert code == 0
    assert "one of 2 ranks" in out
    assert "two.tscope.h5 is already imported, so --tp and --context change nothing: import the original again" in err
    assert "--tp changes nothing" in said(capsys, "steps", path, "--tp", "4")[2]
    assert "nothing" not in said(capsys, "steps", path)[2]


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}'])
def test_a_trace_without_events_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    path = tmp_path / "empty.json"
    path.write_text(text)
    for command in ("info", "check"):
        assert "empty.json holds no event with a time" in said(capsys, command, str(path))[2]


def test_ranks_on_a_machine_without_a_link_rate_leave_the_other_floors(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "floor", "--model", "llama-3-8b", "--hardware", "m2-ultra", "--tp", "4")
    assert code == 0
    assert "the link rate between ranks is missing" in out
    assert "not known without the link rate between ranks" in out
    assert "predicted" not in out


def test_a_host_that_is_none_is_named_with_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "floor", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--host-overhead", "blah")
    assert code == 2
    assert "--host-overhead blah" in err
    assert "seconds" in err
