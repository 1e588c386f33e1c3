"""No command writes over what it reads: the user's original is left as it was, whatever name leads to it."""

import shutil
from pathlib import Path

import pytest

from tracescope.cli.app import run

SAID = "would overwrite its own input; choose another name"
MODEL = ["--model", "lesson-20gb", "--hardware", "lesson-1tbs"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    assert run(["synth", *MODEL, "--steps", "2", "-o", str(folder / "a.tscope.h5")]) == 0
    assert run(["export", str(folder / "a.tscope.h5"), "-o", str(folder / "a.trace.json")]) == 0
    return folder


def refused(arguments: list[str], original: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = original.read_bytes()
    capsys.readouterr()
    assert run(arguments) == 2
    assert SAID in capsys.readouterr().err
    assert original.read_bytes() == before
    assert not [path for path in original.parent.iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize(("command", "name"), [("import", "a.trace.json"), ("export", "x.trace.json")])
def test_a_trace(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, name: str) -> None:
    original = tmp_path / name
    shutil.copy(made / "a.trace.json", original)
    link = tmp_path / f"link-{name}"
    link.symlink_to(original)
    for source, out in ((original, original), (original, link), (link, original)):
        refused([command, str(source), "-o", str(out)], original, capsys)


def test_a_trace_in_the_folder(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = tmp_path / "rank0.json"
    shutil.copy(made / "a.trace.json", original)
    refused(["import", str(tmp_path), "-o", str(original)], original, capsys)
    table = tmp_path / "steps.json"
    for _ in range(2):  # what is no trace is not read, so it may be replaced
        assert run(["export", str(tmp_path), "-o", str(table), "--table", "steps"]) in (0, 3)
        assert table.read_bytes().startswith(b"{")


def test_a_trace_with_the_name_of_a_picture(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = tmp_path / "trace.png"
    shutil.copy(made / "a.tscope.h5", original)
    refused(["render", str(original), "-o", str(original)], original, capsys)


def test_what_describes_the_model_the_machine_and_the_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    config, machine, requests = folder / "config.json", tmp_path / "m.toml", tmp_path / "requests.csv"
    config.write_text(
        '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, '
        '"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "torch_dtype": "bfloat16", '
        '"max_position_embeddings": 128, "tie_word_embeddings": false}'
    )
    machine.write_text('name = "m"\n')
    requests.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,10,2\n")
    by_file, by_folder = ["--model", str(config)], ["--model", str(folder)]
    for command in ("synth", "sweep"):
        rest = ["--hardware", "lesson-1tbs", "-o", str(config)]
        refused([command, *by_file, *rest], config, capsys)
        refused([command, *by_folder, *rest], config, capsys)
        refused([command, "--model", "lesson-20gb", "--hardware", str(machine), "-o", str(machine)], machine, capsys)
    refused(["synth", *MODEL, "--requests", str(requests), "-o", str(requests)], requests, capsys)
