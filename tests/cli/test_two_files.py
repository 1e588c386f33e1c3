"""Several files on the command line: stderr says which is shown, and how the others open."""

from pathlib import Path

import pytest

from tracescope.cli.app import run
from tracescope.ui import startup


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.json"], ""),
        (["a.json", "b.json"], "a.json is shown, one trace at a time; b.json is not open yet."),
        (["a.json", "b.json", "c.json"], "a.json is shown, one trace at a time; b.json, c.json are not open yet."),
        (["--ranks", "a.json", "b.json"], ""),
    ],
)
def test_which_of_them_is_shown(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        (tmp_path / f"{name}.json").touch()
    monkeypatch.setattr(startup, "run_app", lambda *_files, **_options: 0)
    assert run(words) == 0
    err = capsys.readouterr().err
    assert said in err
    assert bool(err) == bool(said)
