"""Opening and saving anything, what prices it, and the import command with its exit codes."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tracescope.cli.app import run
from tracescope.cli.import_ import report_lines
from tracescope.cli.import_options import say_mismatch
from tracescope.core.category import Op
from tracescope.core.errors import TraceError
from tracescope.core.model import Workload
from tracescope.core.report import ImportReport, Inference
from tracescope.load import ImportOptions, basis_of, import_file, open_trace, save_trace
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.recognise.strip import strings_in
from tracescope.synth.decode import synthesize

KERNEL = {"ph": "X", "cat": "kernel", "name": "nvjet_tst", "pid": 0, "tid": 7, "ts": 10.5, "dur": 2.25}


def write(path: Path, events: list[object], device: str = "", cut: int = 0) -> Path:
    properties = [{"id": 0, "name": device}] if device else []
    text = json.dumps({"schemaVersion": 1, "deviceProperties": properties, "traceEvents": events})
    path.write_text(text[: len(text) - cut] if cut else text)
    return path


def test_a_saved_import_opens_as_the_same_trace_with_a_pyramid(tmp_path: Path) -> None:
    source = write(tmp_path / "a.json", [KERNEL, {**KERNEL, "ts": 20.0}], "NVIDIA H100 80GB HBM3")
    trace = import_file(source)
    save_trace(tmp_path / "a.tscope.h5", trace)
    opened = open_trace(tmp_path / "a.tscope.h5")
    assert opened.pyramid is not None
    assert opened.trace.meta == trace.meta
    for column in ("start", "duration", "category", "work", "step"):
        assert np.array_equal(getattr(opened.trace.events, column), getattr(trace.events, column))
    assert opened.trace.meta.source.name == "a.json"
    assert opened.trace.meta.source.bytes == source.stat().st_size
    assert len(opened.trace.meta.source.sha256) == 64


def test_the_device_name_chooses_the_machine_and_the_user_overrides_it(tmp_path: Path) -> None:
    source = write(tmp_path / "a.json", [KERNEL], "NVIDIA H100 80GB HBM3")
    opened = open_trace(source)
    assert (opened.basis.hardware or load_hardware("l4")).name == "h100-sxm"
    assert opened.basis.bandwidth_source == "datasheet"
    other = open_trace(source, ImportOptions(hardware=load_hardware("mi300x"), bandwidth="3.0TB/s"))
    assert other.basis.bandwidth_bytes_per_s == 3_000_000_000_000
    assert other.basis.bandwidth_source == "user"
    assert other.trace.meta.bandwidth_source == "user"


def test_a_file_without_a_known_device_has_no_bandwidth(tmp_path: Path) -> None:
    basis = open_trace(write(tmp_path / "a.json", [KERNEL], "Unheard-of Accelerator")).basis
    assert (basis.hardware, basis.bandwidth_bytes_per_s, basis.bandwidth_source) == (None, None, "unknown")


def test_a_stored_bandwidth_stays_and_options_price_anew(tmp_path: Path) -> None:
    source = write(tmp_path / "a.json", [KERNEL], "NVIDIA H100 80GB HBM3")
    save_trace(tmp_path / "a.tscope.h5", import_file(source, ImportOptions(bandwidth="2TB/s")))
    opened = open_trace(tmp_path / "a.tscope.h5")
    assert (opened.basis.bandwidth_bytes_per_s, opened.basis.bandwidth_source) == (2_000_000_000_000, "user")
    again = basis_of(opened.trace.meta, ImportOptions(bandwidth="datasheet"))
    assert (again.bandwidth_bytes_per_s, again.bandwidth_source) == (3_350_000_000_000, "datasheet")


def test_what_is_no_trace_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    for name in ("a.txt", "absent.json"):
        with pytest.raises(TraceError, match=name):
            open_trace(tmp_path / name)


def test_progress_counts_up_to_the_size_of_the_file(tmp_path: Path) -> None:
    source = write(tmp_path / "a.json", [KERNEL] * 20_000)
    seen: list[tuple[int, int]] = []
    import_file(source, progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {total for _, total in seen} == {source.stat().st_size}
    assert all(done <= total for done, total in seen)


def test_the_command_says_what_it_saw_and_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "a.json", [KERNEL, {**KERNEL, "ts": 20.0}])
    assert run(["import", str(source), "-o", str(tmp_path / "out.tscope.h5")]) == 0
    out, err = capsys.readouterr()
    assert "seen 2 = imported 2 + dropped 0" in out
    assert "no decode step was recognised" in out
    assert err == ""
    assert len(open_trace(tmp_path / "out.tscope.h5").trace.events) == 2


def test_losses_end_with_3_and_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "a.json", [KERNEL, {"ph": "E", "pid": 1, "tid": 1, "ts": 3}])
    assert run(["import", str(source), "-o", str(tmp_path / "out.tscope.h5")]) == 3
    assert "1 of 2 elements left out: 1 misplaced_end" in capsys.readouterr().err
    assert (tmp_path / "out.tscope.h5").exists()


def test_a_cut_file_ends_with_3_unless_that_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "a.json", [KERNEL] * 50, cut=2)
    command = ["import", str(source), "-o", str(tmp_path / "out.tscope.h5")]
    assert run(command) == 3
    assert "cut short at byte" in capsys.readouterr().err
    assert run([*command, "--allow-truncated"]) == 0
    assert open_trace(tmp_path / "out.tscope.h5").trace.meta.report.truncated_at_byte is not None


def test_usage_errors_and_refusals_end_with_2_in_at_most_three_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "a.json", [KERNEL])
    out = ["-o", str(tmp_path / "out.tscope.h5")]
    save_trace(tmp_path / "a.tscope.h5", import_file(source))
    for arguments in (
        [str(source)],
        [str(tmp_path / "absent.json"), *out],
        [str(source), *out, "--weights", "int8"],
        [str(source), *out, "--model", "no-such-model"],
        [str(source), *out, "--bandwidth", "fast"],
        [str(tmp_path / "a.tscope.h5"), *out],
    ):
        assert run(["import", *arguments]) == 2
        message = capsys.readouterr().err
        assert 1 <= len(message.splitlines()) <= 3, message


def test_progress_as_json_lines_ends_with_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.json.gz"
    source.write_bytes(gzip.compress(json.dumps({"traceEvents": [KERNEL] * 3}).encode()))
    assert run(["import", str(source), "-o", str(tmp_path / "o.tscope.h5"), "--progress", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["stage"] for line in lines][-2:] == ["save", "done"]
    assert all(set(line) == {"stage", "done", "total"} for line in lines)


def test_an_import_is_the_same_file_twice(tmp_path: Path) -> None:
    source = write(tmp_path / "a.json", [KERNEL, {**KERNEL, "ts": 11.0, "name": "other"}])
    for name in ("one", "two"):
        save_trace(tmp_path / f"{name}.tscope.h5", import_file(source, ImportOptions(model=load_model("qwen3-8b"))))
    assert (tmp_path / "one.tscope.h5").read_bytes() == (tmp_path / "two.tscope.h5").read_bytes()


def test_the_command_takes_rules_a_capture_and_several_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write(tmp_path / "r0.json", [{**KERNEL, "name": "cake"}])
    second = write(tmp_path / "r1.json", [{**KERNEL, "name": "cake"}])
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\npattern = "cake"\nfamily = "attention"\n')
    out = tmp_path / "out.tscope.h5"
    words = [str(first), str(second), "-o", str(out), "--rules", str(rules), "--capture", str(first)]
    assert run(["import", *words]) == 0
    said = capsys.readouterr().out
    assert "classified by 1 rule of the user" in said
    assert "capture fits none" in said
    assert "ranks by the order of the files" in said
    trace = open_trace(out).trace
    assert (trace.events.op == Op.ATTENTION).all()
    assert sorted({t.rank for t in trace.tracks}) == [0, 1]


def test_the_command_leaves_private_names_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "anneliese.json", [{**KERNEL, "args": {"path": "/home/anneliese/x.py", "stream": 7}}])
    out = tmp_path / "out.tscope.h5"
    assert run(["import", str(source), "-o", str(out), "--strip-names"]) == 0
    capsys.readouterr()
    trace = open_trace(out).trace
    assert "anneliese" not in "\n".join(strings_in(trace))
    assert json.loads(trace.details[trace.events.detail[0]]) == {"stream": 7}


@pytest.mark.parametrize("option", ["--rules", "--capture"])
def test_a_second_file_that_is_missing_is_refused(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "a.json", [KERNEL])
    out = tmp_path / "out.tscope.h5"
    assert run(["import", str(source), "-o", str(out), option, str(tmp_path / "gone")]) == 2
    assert "gone" in capsys.readouterr().err
    assert not out.exists()


def test_a_wrong_model_and_what_is_not_listed_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = synthesize(load_model("lesson-20gb"), make_basis(load_hardware("h100-sxm")), Workload(1, 10), steps=1)
    wrong = replace(trace, meta=replace(trace.meta, model=load_model("llama-3-8b")))
    say_mismatch(tmp_path / "a.json", wrong)
    said = capsys.readouterr().err
    assert said.startswith("a.json: the trace shows ")
    assert "has 32" in said
    say_mismatch(tmp_path / "a.json", trace)
    assert capsys.readouterr().err == ""
    report = ImportReport(0, 0, inferred=tuple(Inference(f"no. {i}", "made", 0.5) for i in range(15)))
    lines = report_lines(tmp_path, replace(trace, meta=replace(trace.meta, report=report)))
    assert "… and 3 more; tracescope info lists them" in lines
