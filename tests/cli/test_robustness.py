"""What surrounds a command: pipes, closed and full outputs, signals, names and numbers nobody expects."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracescope.cli.app import run

TRACE = b'{"traceEvents":[' + b",".join(
    b'{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%d,"dur":5,"args":{"device":0,"stream":7}}' % (i * 10)
    for i in range(400)
) + b"]}"  # fmt: skip
COMMAND = [sys.executable, "-m", "tracescope"]

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux devices")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line.replace("tracescope", f"{sys.executable} -m tracescope")],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **environment},
    )  # fmt: skip


@posix
@pytest.mark.parametrize(
    "arguments", [["info", "F"], ["floor", "--model", "F"], ["floor", "--model", "qwen3-8b", "--hardware", "F"],
                  ["import", "F", "-o", "x.tscope.h5"], ["import", "a.json", "--rules", "F", "-o", "x.tscope.h5"]],
)  # fmt: skip
def test_a_pipe_is_refused_and_not_waited_for(arguments: list[str], tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    link = tmp_path / "link"
    link.symlink_to(fifo)
    words = [str(link) if word == "F" else word for word in arguments]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert "is not a regular file" in done.stderr


@linux
def test_a_name_that_is_not_utf8_is_in_the_json_all_the_same(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.json"))).write_bytes(TRACE)
    done = subprocess.run(
        [*COMMAND, "info", "--json", b"a\xff.json"], capture_output=True, check=False, cwd=tmp_path, timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


@posix
@pytest.mark.parametrize("options", ["", "--json"])
def test_json_and_text_in_an_ascii_terminal(options: str) -> None:
    done = shell(f"tracescope presets {options}", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


@posix
@pytest.mark.parametrize("options", ["", "--json"])
def test_a_closed_output_is_one_sentence(options: str) -> None:
    done = shell(f"tracescope presets {options} >&-")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "closed" in done.stderr


@linux
@pytest.mark.parametrize("options", ["", "--json", "--help"])
def test_a_full_disk_is_one_sentence(options: str) -> None:
    done = shell(f"tracescope presets {options} >/dev/full")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "No space left" in done.stderr


@posix
@pytest.mark.parametrize("options", ["", "--json"])
@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_that_goes_is_no_fault(options: str, reader: str) -> None:
    done = shell(f"tracescope presets {options} | {reader}")
    assert (done.returncode, done.stderr) == (0, "")


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.0, 1.0])
def test_a_signal_is_quiet_while_it_starts_and_works(number: signal.Signals, after: float, tmp_path: Path) -> None:
    arguments = ["synth", "--model", "qwen3-8b", "--hardware", "h100-sxm", "--steps", "100000"]
    out = tmp_path / "x.tscope.h5"
    process = subprocess.Popen([*COMMAND, *arguments, "-o", str(out)], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    _wait_for_handlers(process.pid)
    time.sleep(after)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"")
    assert not out.exists()


def _wait_for_handlers(pid: int) -> None:
    """Until the process catches SIGTERM: before that it is Python itself that is starting."""
    mask = 1 << (signal.SIGTERM - 1)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "SigCgt" in line)
        if int(caught.split()[1], 16) & mask:
            return
        time.sleep(0.005)
    raise AssertionError("no handler of SIGTERM was set")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lambda: _flipped(gzip.compress(TRACE), -6), "damaged"),
        (lambda: _flipped(gzip.compress(TRACE), -2), "damaged"),
        (lambda: gzip.compress(TRACE)[:-4], "damaged"),
        (lambda: TRACE + TRACE, "more text follows"),
    ],
    ids=["checksum", "length", "cut trailer", "second document"],
)
def test_a_file_that_may_be_incomplete_is_a_loss(
    data: "object", said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(data)
    path = tmp_path / "t.json"
    path.write_bytes(data())
    assert run(["info", str(path)]) == 3
    assert said in capsys.readouterr().err


def _flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "arguments", [["--utilization", "nan"], ["--utilization", "٠.٥"], ["--batch", "３"], ["--batch", "1_0"],
                  ["--model", ""], ["--hardware", ""]],
)  # fmt: skip
def test_odd_values_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["floor", "--model", "qwen3-8b", "--hardware", "h100-sxm", *arguments]) == 2
    assert 1 <= len(capsys.readouterr().err.splitlines()) <= 2


def test_an_absurd_shape_is_unknown_and_flagged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 9,
          "args": {"External id": 5, "Input Dims": [[3_000_000_000] * 2, [3_000_000_000] * 2],
                   "Input type": ["c10::BFloat16", "c10::BFloat16"]}}  # fmt: skip
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
              "args": {"External id": 5, "correlation": 8}}  # fmt: skip
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm_bf16", "pid": 0, "tid": 7, "ts": 5, "dur": 5,
              "args": {"External id": 5, "correlation": 8, "device": 0, "stream": 7}}  # fmt: skip
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [op, launch, kernel]}), encoding="utf-8")
    assert run(["info", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["flagged"] == {"impossible_amount": 1}
