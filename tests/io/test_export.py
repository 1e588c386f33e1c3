"""Chrome trace JSON: what other viewers need of it, and that our own reader gets the same integers back."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracescope.cli.app import run
from tracescope.core.category import EventFlag, TrackKind
from tracescope.core.hardware import Basis
from tracescope.core.model import Workload
from tracescope.core.trace import Trace
from tracescope.core.work_table import WorkTable
from tracescope.io.chrome_export import bandwidth_reached, write_chrome
from tracescope.load import ImportOptions, open_trace, save_trace
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize

RECORDED = [
    ("traces/kineto_inference/sglang_Qwen3-8B_decode.json.gz", "qwen3-8b"),
    ("traces/own/hf_llama4_decode16_nostack.pt.trace.json.gz", None),
    ("cases/09-overlapping-kernels-one-stream/trace.json", None),
]


def made(profile: str = "realistic") -> tuple[Trace, Basis]:
    basis = make_basis(load_hardware("h100-sxm"))
    return synthesize(load_model("llama-3-8b"), basis, Workload(batch=4, context=100), steps=3, profile=profile), basis


def integers(trace: Trace, without: str = "async step") -> Counter[tuple[str, int, int]]:
    """Names with absolute times; the steps, which are no events of the trace, left out."""
    own = np.array([t.name != without for t in trace.tracks])[trace.lanes.track[trace.event_lane]]
    e, base = trace.events, trace.meta.base_ns
    rows = zip(e.name[own].tolist(), e.start[own].tolist(), e.duration[own].tolist(), strict=True)
    return Counter((trace.names[n], start + base, duration) for n, start, duration in rows)


@pytest.mark.parametrize(("file", "model"), RECORDED)
def test_a_recording_comes_back_with_equal_integers_and_steps(
    shared: Callable[[str], Path], tmp_path: Path, file: str, model: str | None
) -> None:
    options = ImportOptions(model=load_model(model) if model else None, bandwidth="5.3TB/s")
    opened = open_trace(shared(file), options)
    out = tmp_path / "out.trace.json"
    write_chrome(out, opened.trace, opened.basis)
    again = open_trace(out, options).trace
    assert integers(again) == integers(opened.trace)
    assert again.meta.report.dropped == {}
    for column in ("kind", "duration", "batch", "context_tokens", "host_wait"):
        assert getattr(again.steps, column).tolist() == getattr(opened.trace.steps, column).tolist()
    assert len(again.dependencies) == len(opened.trace.dependencies)


def test_a_synthesised_run_comes_back_with_equal_integers(tmp_path: Path) -> None:
    trace, basis = made()
    out = tmp_path / "out.trace.json"
    write_chrome(out, trace, basis)
    assert integers(open_trace(out).trace) == integers(trace)


def events_of(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def test_other_viewers_find_names_slices_that_nest_flows_and_counters(tmp_path: Path) -> None:
    trace, basis = made("ideal")
    out = tmp_path / "out.trace.json"
    write_chrome(out, trace, basis)
    events = events_of(out)
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == len(trace.events)
    for e in slices:
        assert {"name", "pid", "tid", "ts", "dur", "args"} <= set(e)
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in slices} <= named
    counters = Counter(e["name"] for e in events if e["ph"] == "C")
    assert counters["bandwidth of the floor GB/s"] == 2 * len(trace.steps)
    assert counters["bandwidth reached GB/s"] > 100
    begun = [e["id"] for e in events if e["ph"] == "b"]
    assert begun == [e["id"] for e in events if e["ph"] == "e"] == list(range(len(trace.steps)))


def test_the_ideal_run_reaches_the_bandwidth_of_its_floor() -> None:
    trace, basis = made("ideal")
    times, rates = bandwidth_reached(trace)
    assert (np.diff(times) > 0).all()
    assert basis.bandwidth_bytes_per_s is not None
    large = rates[rates > 0.99 * basis.bandwidth_bytes_per_s / 1e9]
    spent = np.append(np.diff(times), 0)
    assert float((rates * spent).sum()) == pytest.approx(
        sum(
            int(np.maximum(column[trace.events.work], 0).sum())
            for column in (
                trace.work.weight_read,
                trace.work.embedding_gather,
                trace.work.kv_read,
                trace.work.kv_append,
            )
        ),
        rel=1e-6,
    )
    assert len(large) > len(trace.steps) * 32


def test_partly_overlapping_events_stand_on_rows_of_their_own(shared: Callable[[str], Path], tmp_path: Path) -> None:
    opened = open_trace(shared("cases/09-overlapping-kernels-one-stream/trace.json"))
    out = tmp_path / "out.trace.json"
    write_chrome(out, opened.trace, opened.basis)
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for e in events_of(out):
        if e["ph"] == "X":
            rows.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    assert len(rows) == 2
    for spans in rows.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_the_command_writes_each_format_and_refuses_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, _ = made()
    source = tmp_path / "made.tscope.h5"
    save_trace(source, trace)

    def export(name: str, *options: str) -> int:
        return run(["export", str(source), "-o", str(tmp_path / name), *options])

    assert export("a.csv") == 0
    header, *rows = (tmp_path / "a.csv").read_text().splitlines()
    assert header.startswith("step,")
    assert len(rows) == 3
    assert export("layers.csv", "--table", "layers") == 0
    assert "gap_ns" in (tmp_path / "layers.csv").read_text().splitlines()[0]
    assert export("a.json") == 0
    document = json.loads((tmp_path / "a.json").read_text())
    assert set(document) == {"info", "steps", "layers", "events", "collectives", "requests"}
    assert len(document["events"]["rows"]) == len(trace.events)
    assert export("one.json", "--table", "steps") == 0
    assert set(json.loads((tmp_path / "one.json").read_text())) == {"steps"}
    assert export("a.trace.json") == 0
    assert json.loads((tmp_path / "a.trace.json").read_text())["schemaVersion"] == 1
    capsys.readouterr()
    assert export("a.pdf") == 2
    assert export("b.trace.json", "--table", "steps") == 2
    assert run(["export", str(source), "-o", str(tmp_path / "none" / "a.trace.json")]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 6
    assert not [p for p in tmp_path.iterdir() if p.name.endswith(".part")]


@pytest.mark.parametrize("file", [file for file, _ in RECORDED])
def test_an_export_comes_back_with_layers_bytes_and_arguments(
    shared: Callable[[str], Path], tmp_path: Path, file: str
) -> None:
    opened = open_trace(shared(file), ImportOptions(bandwidth="5.3TB/s"))
    out = tmp_path / "out.trace.json"
    write_chrome(out, opened.trace, opened.basis)
    assert content(open_trace(out).trace) == content(opened.trace)


def test_a_synthesised_run_comes_back_as_what_it_was(tmp_path: Path) -> None:
    trace, basis = made()
    out = tmp_path / "out.trace.json"
    write_chrome(out, trace, basis)
    again = open_trace(out).trace
    assert content(again) == content(trace)
    assert [t for t in again.tracks if t.kind is not TrackKind.COUNTER] == [
        t for t in trace.tracks if t.kind is not TrackKind.COUNTER
    ]
    assert again.steps.kind.tolist() == trace.steps.kind.tolist()


def content(trace: Trace) -> Counter[tuple[Any, ...]]:
    """Everything that is said of each event, in no order."""
    e, work = trace.events, trace.work
    amounts = np.stack([getattr(work, f.name) for f in fields(WorkTable)], axis=1)[e.work].tolist()
    kept = EventFlag.WARM_UP | EventFlag.UNFINISHED | EventFlag.ALLOCATED_KV | EventFlag.ZERO_LENGTH
    return Counter(
        (trace.names[n], start, took, category, op, layer, step, flags, tuple(amount))
        for n, start, took, category, op, layer, step, flags, amount in zip(
            e.name.tolist(), (e.start + trace.meta.base_ns).tolist(), e.duration.tolist(), e.category.tolist(),
            e.op.tolist(), e.layer.tolist(), e.step.tolist(), (e.flags & kept).tolist(), amounts, strict=True,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    "damage",
    [
        {"export": 99},
        {"tracks": "none"},
        {"steps": {}},
        {"steps": {"kind": [77]}},
        {"labels": ["one", "too many"]},
    ],
)
def test_a_header_that_cannot_be_is_not_believed(tmp_path: Path, damage: dict[str, Any]) -> None:
    trace, basis = made("ideal")
    out = tmp_path / "out.trace.json"
    write_chrome(out, trace, basis)
    document = json.loads(out.read_text())
    document["tracescope"] |= damage
    out.write_text(json.dumps(document))
    again = open_trace(out).trace
    assert not any(i.rule == "own export" for i in again.meta.report.inferred)
    assert len(again.events)
