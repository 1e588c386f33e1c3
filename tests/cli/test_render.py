"""``tracescope render`` from the command line: files, refusals and exit codes."""

from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from tracescope.cli.app import run
from tracescope.core.model import Workload
from tracescope.io import save
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize
from tracescope.ui.picture import view_in_picture


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    basis = make_basis(load_hardware("lesson-1tbs"))
    trace = synthesize(load_model("lesson-20gb"), basis, Workload(1, 100), steps=3, profile="ideal", seed=0)
    path = tmp_path_factory.mktemp("render") / "lesson.tscope.h5"
    save.write(path, trace)
    return path


def test_the_same_command_writes_the_same_file(
    qapp: object, trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "one.png", tmp_path / "two.png"]
    for path in paths:
        assert run(["render", str(trace_file), "-o", str(path), "--step", "1", "--size", "1200x720"]) == 0
        assert capsys.readouterr().out == f"wrote {path}\n"
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert QImage(str(paths[0])).size().width() == 1200


def test_scale_theme_and_range(qapp: object, trace_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "dark.png"
    arguments = ["--scale", "2", "--theme", "dark", "--range", "1ms:3ms", "--size", "1000x720", "--layer", "3"]
    assert run(["render", str(trace_file), "-o", str(path), *arguments]) == 0
    image = QImage(str(path))
    assert (image.width(), image.height()) == (2000, 1440)
    assert image.pixelColor(2, 2).name().upper() == "#1E2228"
    view, _ = view_in_picture(path)
    assert view.visible.duration == 2_000_000
    assert view.layer == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "x.svg"], "pictures are written as PNG"),
        (["-o", "x.pdf"], "pictures are written as PNG"),
        (["-o", "x.png", "--view", "roofline"], "--view roofline"),
        (["-o", "x.png", "--size", "9x9"], "too small"),
        (["-o", "x.png", "--size", "100000x900"], "too large"),
        (["-o", "x.png", "--size", "big"], "not a size"),
        (["-o", "x.png", "--scale", "0"], "scale"),
        (["-o", "x.png", "--step", "99"], "no step 99"),
        (["-o", "x.png", "--layer", "99"], "no layer 99"),
        (["-o", "x.png", "--range", "5ms"], "not a range"),
        (["-o", "x.png", "--range", "5ms:1ms"], "empty"),
        (["-o", "x.png", "--overlays", "glow"], "no overlay 'glow'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:  # fmt: skip
    arguments = [str(tmp_path / word) if word.startswith("x.") else word for word in arguments]
    assert run(["render", str(trace_file), *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) <= 3
    assert not list(tmp_path.iterdir())
