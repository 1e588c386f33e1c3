"""Nothing of the host, the user and their folders is left in any text of a stripped trace, and the numbers stay."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.kit.recordings import Recording, decode_kernels
from tracescope.core.raw import RawTrace
from tracescope.io import native
from tracescope.load import ImportOptions, import_file, save_trace
from tracescope.recognise.recognise import recognise
from tracescope.recognise.strip import strings_in, strip_names

PRIVATE = ("anneliese", "gpu-box-17", "10.1.2.3", "secret_project", "ann@example.org", "bert")


def private_recording() -> RawTrace:
    recording = Recording()
    recording.add("execute_context_0(0)_generation_4(4)", "user_annotation", 0, 1000)
    recording.add("/home/anneliese/secret_project/serve/model.py(31): forward", "python_function", 5, 900)
    recording.add(r"C:\Users\bert\secret_project\run.py(2): main", "python_function", 6, 890)
    recording.add("torch/nn/modules/module.py(1739): _call_impl", "python_function", 7, 880)
    recording.add("rpc to gpu-box-17 (10.1.2.3)", "cpu_op", 8, 2, detail={"path": "/srv/x", "Call": "ann@example.org"})
    recording.add("cudaMalloc", "cuda_runtime", 9, 2, detail={"hostname": "gpu-box-17", "bytes": 5, "who": "anneliese"})
    recording.launch(10, decode_kernels(2))
    raw = recording.raw("NVIDIA H100")
    return replace(
        raw,
        source=replace(raw.source, name="gpu-box-17_4711.rank3.pt.trace.json"),
        metadata={"host_name": "gpu-box-17", "extra": {"username": "anneliese"}, "cwd": "/home/anneliese"},
        tracks=tuple(replace(t, process=t.process and "python /home/anneliese/run.py") for t in raw.tracks),
        notes=("recorded by Anneliese",),
    )


def test_no_text_holds_a_private_word() -> None:
    raw = private_recording()
    plain = recognise(raw)
    before = "\n".join(strings_in(plain)).lower()
    assert all(word in before for word in PRIVATE)
    stripped = strip_names(plain, raw)
    left = "\n".join(strings_in(stripped)).lower()
    assert [word for word in PRIVATE if word in left] == []
    assert "…/model.py(31): forward" in stripped.names
    assert "…/run.py(2): main" in stripped.names
    assert "torch/nn/modules/module.py(1739): _call_impl" in stripped.names
    assert stripped.meta.source.name == "rank3"
    assert stripped.meta.devices[0].name == "NVIDIA H100"


def test_numbers_and_kernels_stay() -> None:
    raw = private_recording()
    plain = recognise(raw)
    stripped = strip_names(plain, raw)
    for name in ("start", "duration", "op", "category", "layer", "step", "work"):
        assert np.array_equal(getattr(stripped.events, name), getattr(plain.events, name))
    kernels = set(decode_kernels(2))
    assert kernels <= set(stripped.names)
    assert any(json.loads(d).get("bytes") == 5 for d in stripped.details if d)


def test_the_saved_file_holds_none_either(tmp_path: Path) -> None:
    source = tmp_path / "gpu-box-17_4711.pt.trace.json"
    events = [
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7}},
        {"ph": "X", "cat": "cpu_op", "name": "/home/anneliese/a.py: f", "pid": 9, "tid": 9, "ts": 1, "dur": 2},
    ]
    head = {"host_name": "gpu-box-17", "username": "anneliese", "traceName": "/home/anneliese/t.json"}
    source.write_text(json.dumps({**head, "traceEvents": events}))
    trace = import_file(source, ImportOptions(strip_names=True))
    out = tmp_path / "out.tscope.h5"
    save_trace(out, trace)
    texts = "\n".join(strings_in(native.read(out).trace)).lower()
    assert "anneliese" not in texts
    assert "gpu-box" not in texts
    assert b"anneliese" not in out.read_bytes()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a / b", "a / b"),
        ("aten::div", "aten::div"),
        ("void f<int>(char const*, int)", "void f<int>(char const*, int)"),
        ("file:///tmp/x/y.json", "…/y.json"),
        ("~/x/y.py", "…/y.py"),
        ("cuda 12.4.1.0", "cuda …"),  # four numbers with dots may be an address
        ("version 12.4.1", "version 12.4.1"),
    ],
)
def test_only_what_looks_like_a_place_is_removed(text: str, left: str) -> None:
    recording = Recording()
    recording.add(text, "cpu_op", 0, 1)
    raw = recording.raw()
    assert strip_names(recognise(raw), raw).names == (left,)
