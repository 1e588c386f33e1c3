"""What a newcomer is told beside the numbers: which option gives bytes, what was assumed, what does not agree."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tracescope.cli.app import run
from tracescope.core.trace import UNKNOWN, Device
from tracescope.load import ImportOptions, open_trace
from tracescope.models import contradiction, load_hardware

SYNTH = ["synth", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--steps", "2"]


def recording(folder: Path, device: str = "NVIDIA H100 80GB HBM3") -> Path:
    """Two marked decode steps of one kernel each, on a named device, with no shapes."""
    path = folder / "trace.json"
    events: list[dict[str, Any]] = []
    for step in range(2):
        mark = {"ph": "X", "cat": "gpu_user_annotation", "name": "execute_context_0(0)_generation_2(2)"}
        events.append({**mark, "pid": 0, "tid": 7, "ts": 100 * step, "dur": 60})
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm_kernel", "pid": 0, "tid": 7, "args": {"device": 0}}
        events.append({**kernel, "ts": 100 * step + 10, "dur": 30})
    properties = [{"id": 0, "name": device, "totalGlobalMem": 80 << 30}]
    path.write_text(json.dumps({"deviceProperties": properties, "traceEvents": events}))
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(list(words))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("command", ["steps", "layers", "info", "events"])
def test_a_trace_without_a_model_names_the_option_that_gives_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    path = recording(tmp_path)
    code, _, err = said(capsys, command, str(path))
    assert code == 0
    assert err.count("\n") == 1
    assert "bytes of 2 events are unknown: --model NAME gives them" in err
    assert "--model NAME" not in said(capsys, command, str(path), "--model", "llama-3-8b")[2]
    assert "--model NAME" in said(capsys, command, str(path), "--json")[2]


def test_an_imported_trace_is_to_be_imported_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.tscope.h5"
    assert run(["import", str(recording(tmp_path)), "-o", str(out)]) == 0
    assert "import the original again with --model NAME" in said(capsys, "steps", str(out))[2]
    code, _, err = said(capsys, "steps", str(out), "--model", "llama-3-8b")
    assert code == 0
    assert "is already imported, so --model changes nothing" in err


def test_a_trace_with_a_model_needs_no_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.tscope.h5"
    assert run([*SYNTH, "-o", str(out)]) == 0
    assert said(capsys, "layers", str(out))[2] == ""


@pytest.mark.parametrize(
    ("hardware", "device", "differs"),
    [
        ("h100-sxm", "NVIDIA H100 80GB HBM3", False),
        ("mi300x", "NVIDIA H100 80GB HBM3", True),
        ("h100-pcie", "NVIDIA H100 80GB HBM3", True),
        ("h100-sxm", "NVIDIA H100 NVL", False),
        ("h100-sxm", "NVIDIA A100-SXM4-80GB", True),
        ("h100-sxm", "Tesla V100-SXM2-32GB", True),
        ("mi300x", "gfx942", False),
        ("mi300x", "", False),
        ("dgx-spark", "NVIDIA GB10", False),
        ("lesson-1tbs", "NVIDIA H100 80GB HBM3", True),
    ],
)
def test_a_machine_that_is_not_the_recorded_one(hardware: str, device: str, *, differs: bool) -> None:
    found = contradiction(load_hardware(hardware), [Device(0, UNKNOWN, device)])
    assert (found is not None) == differs
    if found is not None:
        assert device in found


@pytest.mark.parametrize(("name", "differs"), [("our-h100", False), ("our-b300", True), ("ours", False)])
def test_a_machine_of_ones_own_is_compared_by_its_number(tmp_path: Path, name: str, *, differs: bool) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f"[hardware.{name}]\nbandwidth = 3e12\ncapacity = 8e10\nflops = {{ bf16 = 9e14 }}\n")
    found = contradiction(load_hardware(str(file)), [Device(0, UNKNOWN, "NVIDIA H100 80GB HBM3")])
    assert (found is not None) == differs


def test_the_contradiction_is_said_noted_and_changes_no_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path)
    sentence = "the trace was recorded on NVIDIA H100 80GB HBM3, but its floors are those of AMD Instinct MI300X"
    code, out, err = said(capsys, "info", str(path), "--hardware", "mi300x", "--json")
    assert code == 0
    assert sentence in err
    assert sentence in json.loads(out)["notes"]
    assert sentence not in said(capsys, "info", str(path), "--hardware", "h100-sxm", "--json")[2]
    native = tmp_path / "out.tscope.h5"
    code, _, err = said(capsys, "import", str(path), "--hardware", "mi300x", "-o", str(native))
    assert code == 0
    assert sentence in err
    assert sentence in open_trace(native, ImportOptions()).basis.notes
    assert sentence not in said(capsys, "steps", str(native))[2]


def test_what_does_not_fit_is_made_said_and_exits_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.tscope.h5"
    large = ["synth", "--model", "llama-3-70b", "--hardware", "h100-sxm", "--steps", "2", "-o", str(out)]
    code, _, err = said(capsys, *large)
    assert code == 3
    assert "does not fit" in err
    assert out.exists()
    assert said(capsys, *large, "--tp", "4")[0] == 0


def test_floor_says_what_it_assumed_and_only_that(capsys: pytest.CaptureFixture[str]) -> None:
    floor = ["floor", "--model", "llama-3-8b", "--hardware", "h100-sxm"]
    _, out, _ = said(capsys, *floor)
    assert "--batch 1, --context 0 (an empty KV cache), --tp 1, --block 16, --utilization 0.9" in out
    assert "--bandwidth datasheet" in out
    given = [*floor, "--context", "0", "--batch", "1", "--tp", "1", "--block", "16", "--utilization", "0.9"]
    given += ["--reserve", "0", "--bandwidth", "datasheet"]
    assert "no option says otherwise" not in said(capsys, *given)[1]
    assert "--context" not in said(capsys, *floor, "--context", "512")[1]


def test_sweep_and_synth_say_what_they_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "sweep", "--model", "llama-3-8b", "--hardware", "h100-sxm", "--batch", "1")
    assert "otherwise: --context 512,4096,32768, --tp 1, --block 16, --utilization 0.9" in out
    _, out, _ = said(capsys, *SYNTH, "-o", str(tmp_path / "a.tscope.h5"))
    assert "otherwise: --batch 1, --context 0 (an empty KV cache)" in out
    assert "--steps" not in out
    assert "--profile ideal" in out


def test_a_bandwidth_without_a_time_is_refused_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "floor", "--model", "llama-3-8b", "--bandwidth", "3000GB")
    assert code == 2
    assert "Write 3000GB/s " in err


def test_info_names_the_checksum_of_the_source_and_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, native = recording(tmp_path), tmp_path / "out.tscope.h5"
    assert run(["import", str(source), "-o", str(native)]) == 0
    of_source, of_file = (sha256(path.read_bytes()).hexdigest() for path in (source, native))
    _, out, _ = said(capsys, "info", str(native))
    assert f"sha256      {of_source} of the source\n" in out
    assert f"sha256      {of_file} of out.tscope.h5\n" in out
    _, out, _ = said(capsys, "info", str(native), "--json")
    assert json.loads(out)["file"] == {"name": "out.tscope.h5", "sha256": of_file}
    _, out, _ = said(capsys, "info", str(source))
    assert f"sha256      {of_source}\n" in out
    assert of_file not in out
