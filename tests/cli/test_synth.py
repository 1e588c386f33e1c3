"""``tracescope synth``: what it writes, what it says, what it refuses."""

from pathlib import Path

import pytest

from tracescope.cli.app import run
from tracescope.io.native import read

LESSON = ["--model", "lesson-20gb", "--hardware", "lesson-1tbs"]


def synth(path: Path, *options: str) -> int:
    return run(["synth", *LESSON, "--steps", "3", "-o", str(path), *options])


def test_it_writes_the_trace_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lesson.tscope.h5"
    assert synth(path, "--batch", "4") == 0
    said = capsys.readouterr()
    assert "3 steps, 1,218 events, median step 20.001 ms" in said.out
    assert said.err == ""
    found = read(path)
    assert found.pyramid is not None
    assert found.trace.steps.generated_tokens.tolist() == [4, 4, 4]
    assert found.trace.meta.model is not None
    assert found.trace.meta.model.name == "lesson-20gb"
    assert (found.trace.meta.profile, found.trace.meta.seed) == ("ideal", 0)


def test_an_option_that_would_change_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert synth(tmp_path / "x.tscope.h5", "--activations") == 2
    assert "--activations" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("profile", ["ideal", "realistic"])
def test_one_seed_gives_one_file(tmp_path: Path, profile: str) -> None:
    for name in "ab":
        assert synth(tmp_path / name, "--profile", profile, "--seed", "5") == 0
    assert synth(tmp_path / "c", "--profile", profile, "--seed", "6") == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


def test_what_does_not_fit_is_made_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.tscope.h5"
    assert synth(path, "--batch", "64", "--context", "65536") == 3
    assert "does not fit:" in capsys.readouterr().err
    assert path.exists()


def test_what_outgrows_the_memory_is_said_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # 72 GB less 22.25 GB of weights hold 303,600 tokens of 163,840 B: 18 requests of 16,670, not of 17,269.
    assert synth(tmp_path / "a", "--batch", "18", "--context", "16670", "--steps", "2") == 0
    quiet = capsys.readouterr().err
    assert synth(tmp_path / "b", "--batch", "18", "--context", "16670", "--steps", "600") == 3
    assert "does not fit at the last step" in capsys.readouterr().err
    assert quiet == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--hardware", "lesson-1tbs", "-o", "x"], "--model is needed"),
        (["--model", "lesson-20gb", "-o", "x"], "--hardware"),
        ([*LESSON], "-o OUT.tscope.h5 is needed"),
        ([*LESSON, "-o", "x", "--profile", "hopeful"], "'realistic', 'calibrated'"),
        ([*LESSON, "-o", "x", "--steps", "0"], "0 steps"),
        ([*LESSON, "-o", "x", "--steps", "999999999999"], "events"),
        ([*LESSON, "-o", "x", "--seed", "-1"], "seed"),
    ],
)
def test_refusals_are_one_clear_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["synth", *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert 1 <= len(said.err.splitlines()) <= 3
    assert said.out == ""
    assert not list(tmp_path.iterdir())
