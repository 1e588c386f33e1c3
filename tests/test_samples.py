"""The sample traces: small, listed, what the product makes today, and free of private names."""

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from tracescope.cli.app import run
from tracescope.core.trace import Trace
from tracescope.io.native import read

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_traces"
NAMES = ["cpu_llama4_decode16", "lesson-20gb_b1", "lesson-20gb_b4", "llama-3-8b_h100_b16_c4096"]


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_samples", ROOT / "packaging" / "make_samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sample(name: str) -> Trace:
    return read(SAMPLES / f"{name}.tscope.h5").trace


def test_the_samples_are_listed_and_small() -> None:
    files = sorted(SAMPLES.glob("*.h5"))
    assert [f.name.removesuffix(".tscope.h5") for f in files] == NAMES
    assert sum(f.stat().st_size for f in files) < 3_000_000
    lines = (SAMPLES / "README.md").read_text(encoding="utf-8").splitlines()
    for file in files:
        assert sum(line.startswith(f"- `{file.name}`") for line in lines) == 1


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_synthesised_sample_is_what_the_product_makes(
    name: str, maker: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again.tscope.h5"
    assert run(["synth", *maker.SYNTHESISED[name].split(), "-o", str(again)]) == 0, capsys.readouterr().err
    made, kept = read(again).trace, sample(name)
    assert (made.events.start == kept.events.start).all()
    assert (made.events.duration == kept.events.duration).all()
    assert made.meta == kept.meta


def test_the_lesson_is_in_the_samples() -> None:
    one, four = sample("lesson-20gb_b1"), sample("lesson-20gb_b4")
    assert one.steps.duration[0] // 1_000_000 == four.steps.duration[0] // 1_000_000 == 20
    assert (four.steps.generated_tokens == 4 * one.steps.generated_tokens).all()


def test_the_recorded_sample_has_its_steps() -> None:
    trace = sample("cpu_llama4_decode16")
    assert int(trace.steps.decode.sum()) == 16
    assert len(trace.steps) == 17
    assert trace.meta.profile == ""
    assert trace.meta.report.seen == trace.meta.report.imported + sum(trace.meta.report.dropped.values())


def test_private_names_are_taken_out_before_the_import(maker: ModuleType, tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5115289069861.856, "dur": 2.5},
        {"ph": "X", "cat": "python_function", "name": "/home/someone/job/run.py(3): f", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "X", "cat": "cpu_op", "name": "a/b", "pid": 1, "tid": 1, "ts": 2, "dur": 1},
    ]
    top = {"host_name": "box-17", "username": "someone", "traceName": "/opt/x/t.json", "traceEvents": events}
    recorded, clean = tmp_path / "in.gz", tmp_path / "out.gz"
    recorded.write_bytes(gzip.compress(json.dumps(top).encode()))
    removed = maker.write_without_private_names(recorded, clean)
    text = gzip.decompress(clean.read_bytes()).decode()
    assert removed >= {"box-17", "someone", "/opt/x/t.json", "/home/someone/job/"}
    assert not [word for word in removed if word in text]
    assert "5115289069861.856" in text
    left = json.loads(text)["traceEvents"]
    assert [e["name"] for e in left] == ["aten::mm", "run.py(3): f", "a/b"]


def test_the_search_finds_a_name_that_was_left(maker: ModuleType) -> None:
    path = SAMPLES / "lesson-20gb_b1.tscope.h5"
    assert maker.holds(path, "lesson-20gb")
    assert maker.holds(path, "attention")
    assert not maker.holds(path, "lesson-20")
    assert not maker.holds(path, "someone")
