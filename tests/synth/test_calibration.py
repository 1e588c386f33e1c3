"""The calibrated profile: the shipped table is the fit, predictions stand above the floor, held-out steps stay out."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tracescope.cli.app import run
from tracescope.cli.measured_steps import held_out_steps, left_out, mean_error, predict, step_errors
from tracescope.core.category import Op
from tracescope.core.hardware import Basis
from tracescope.core.model import Workload
from tracescope.models import hardware_presets, load_hardware, load_model, make_basis
from tracescope.synth.calibrated import KINDS, NO_HOST, HostOverhead, calibrated_law, calibration_notes, vllm_host
from tracescope.synth.calibration import (
    ALL_REDUCE,
    ATTENTION,
    POOLED,
    PRODUCTS,
    Rows,
    calibration,
    fit_host,
    fit_kernels,
    fit_line,
    fit_products,
    kernel_rows,
    measured,
    records,
)
from tracescope.synth.decode import synthesize
from tracescope.synth.demand import demand_of, exchanged_bytes
from tracescope.synth.latency import latency_of, step_latency
from tracescope.synth.plan import plan_steps
from tracescope.synth.prediction import Predictor
from tracescope.synth.step_times import StepTimes
from tracescope.synth.timing import CALIBRATED, KERNELS, expected_ns

ROOT = Path(__file__).resolve().parents[2]
LLAMA = load_model("llama-3-8b")


def basis_of(name: str) -> Basis:
    return make_basis(load_hardware(name))


@pytest.fixture(scope="module")
def fitter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fit_calibration", ROOT / "packaging" / "fit_calibration.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_shipped_table_is_the_fit() -> None:
    assert fit_kernels() == calibration().fits


def test_a_fit_finds_the_law_its_rows_were_made_with() -> None:
    memory = np.geomspace(1e3, 1e6, 12)
    compute = np.tile([0.0, 2e4, 4e5], 4)
    rows = Rows(("m",) * 12, memory, compute, 5000 + np.hypot(memory / 0.8, compute / 0.9))
    found = fit_products(PRODUCTS, "m", rows)
    assert (found.fixed_ns, found.reach, found.compute_reach, found.error) == (5000.0, 0.8, 0.9, 0.0)
    line = fit_line(ATTENTION, "m", Rows(("m",) * 12, memory, compute, 9000 + memory / 0.75))
    assert (line.fixed_ns, line.reach, line.error) == (9000.0, 0.75, 0.0)
    batch = np.array([8, 64, 256])
    host = fit_host(batch, [5e6, 6e6, 7e6], np.array([5e6, 6e6, 7e6]) + 4e5 + 3e4 * batch, "made")
    assert (host.step_ns, host.request_ns, host.error) == (4e5, 3e4, 0.0)


def test_the_rates_of_the_measurements_are_those_of_the_presets() -> None:
    presets = {spec.name: spec for spec in hardware_presets()}
    for name, rates in measured()["machines"].items():
        if name in presets:
            assert rates["bandwidth_bytes_per_s"] == presets[name].bandwidth_bytes_per_s
            assert rates["bf16_flops_per_s"] == presets[name].flops_per_s["bf16"]
            assert rates.get("link_bytes_per_s", presets[name].link_bytes_per_s) == presets[name].link_bytes_per_s


def test_every_measurement_names_its_source_and_is_slower_than_the_machine() -> None:
    for kind in ("products", "attention", "small", "all_reduce", "steps"):
        assert all(row["source"] in measured()["sources"] for row in records(kind))
    for kind, rows in kernel_rows().items():
        assert (rows.measured_ns > rows.memory_ns).all(), kind


def test_the_measurements_are_the_public_ones(shared: Callable[[str], Path]) -> None:
    rows = json.loads(shared("reference/measured.json").read_text())["rows"]
    gemm = sorted(row["us"] for row in rows if row["kind"] == "kernel_profile_gemm")
    projections = sorted(
        ms * 1e3 for row in rows if row["kind"] == "kernel_profile_projections" for ms in row["ms"].values()
    )
    assert sorted(row["us"] for row in records("products")) == pytest.approx(sorted([*gemm, *projections]))
    attention = [row for row in rows if row["kind"] == "kernel_profile_decode_attention" and not row["suspect"]]
    assert sorted(row["us"] for row in records("attention")) == pytest.approx(
        sorted(row["ms"] * 1e3 for row in attention)
    )


def test_every_op_has_a_law() -> None:
    assert set(KINDS) == set(KERNELS) - {Op.SAMPLE, Op.LAUNCH}


@pytest.mark.parametrize("hardware", ["a100-80gb-sxm", "h100-sxm", "mi300x", "lesson-1tbs"])
@pytest.mark.parametrize("name", ["llama-3-8b", "gemma-2-9b", "mixtral-8x7b", "deepseek-v3"])
def test_every_op_and_step_is_at_or_above_its_floor(name: str, hardware: str) -> None:
    model, basis, workload = load_model(name), basis_of(hardware), Workload(8, 3000)
    trace = synthesize(model, basis, workload, steps=3, profile=CALIBRATED, seed=5)
    plan = plan_steps(model, basis, workload, 3)
    floor = plan.floor_ns[plan.work].sum(axis=1)
    assert (trace.steps.duration >= floor).all()
    assert (trace.steps.duration > 1.05 * floor).all()
    times = StepTimes(model, basis, Workload(), CALIBRATED)
    for batch in (1, 64, 512):
        ideal = StepTimes(model, basis, Workload(), "ideal")
        for context in (0, 100, 100_000):
            read = [batch * n for n in times.tokens_read(context)]
            assert times.step_ns(batch, read) >= ideal.step_ns(batch, read)


def test_the_same_seed_gives_the_same_trace_and_its_mean_is_the_law() -> None:
    basis, workload = basis_of("h100-sxm"), Workload(16, 4096)
    first, again, other = (
        synthesize(LLAMA, basis, workload, steps=60, profile=CALIBRATED, seed=seed).steps.duration for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()
    times = StepTimes(LLAMA, basis, Workload(), CALIBRATED)
    expected = np.mean([times.step_ns(16, [16 * (4096 + i)]) for i in range(60)])
    assert first.mean() == pytest.approx(expected, rel=0.005)


def test_the_host_is_a_term_of_its_own() -> None:
    basis = basis_of("h100-sxm")
    trace = synthesize(LLAMA, basis, Workload(32, 100), steps=40, profile=CALIBRATED)
    launch = trace.events.duration[trace.events.op == Op.LAUNCH]
    host = vllm_host().ns(np.array([32]))[0]
    assert launch.mean() == pytest.approx(host, rel=0.05)
    assert host == calibration().host.step_ns + 32 * calibration().host.request_ns
    assert any("host" in note for note in trace.meta.notes)


def test_a_machine_without_rows_uses_all_of_them_and_says_so() -> None:
    table = calibration()
    assert table.fit(PRODUCTS, "mi300x") == table.fit(PRODUCTS, None) == table.fit(PRODUCTS, POOLED)
    assert table.fit(ATTENTION, "h200-sxm").machine == POOLED
    pooled, own = (calibration_notes(basis_of(name), vllm_host()) for name in ("mi300x", "h100-sxm"))
    assert any("from others: products, attention" in note for note in pooled)
    assert any("this machine: products, attention" in note for note in own)
    assert any("no host's share" in note for note in calibration_notes(basis_of("h100-sxm"), NO_HOST))


def test_a_sustained_rate_does_not_count_the_loss_twice() -> None:
    op = np.array([Op.DOWN], np.uint8)
    datasheet = basis_of("h100-sxm")
    sustained = make_basis(load_hardware("h100-sxm"), "sustained")
    ratio = (datasheet.bandwidth_bytes_per_s or 0) / (sustained.bandwidth_bytes_per_s or 1)
    slow, fast = (calibrated_law(op, basis, 0.0).memory[0] for basis in (datasheet, sustained))
    assert fast == pytest.approx(slow / ratio)


def test_held_out_steps_are_predicted_and_above_their_floor() -> None:
    found = [predict(step) for step in held_out_steps()]
    assert len(found) == 8
    assert all(p.predicted_ns >= p.floor_ns > 0 for p in found)
    assert all(p.host_ns == 0 for p in found)
    assert mean_error(found) <= 0.20


def test_the_host_is_fitted_to_steps_that_are_not_held_out(fitter: ModuleType, shared: Callable[[str], Path]) -> None:
    rows = json.loads(shared("reference/measured.json").read_text())["rows"]
    fitted, held_out = fitter.serving_steps(rows)
    assert fitter.refit_host(fitted, fitter.HOST_SOURCE) == calibration().host
    assert {step.title for step in held_out} <= {f"{name} bf16, 1 × h100-sxm" for name in (
        "Llama-3.1-8B-Instruct", "Qwen3-8B", "Qwen3-32B")}  # fmt: skip
    assert sorted(step.workload.batch for step in held_out) == [8, 16, 29, 64]
    predictions = [predict(step) for step in [*held_out_steps(), *held_out]]
    assert all(p.predicted_ns >= p.floor_ns for p in predictions)
    assert mean_error(predictions[8:]) <= 0.20
    assert mean_error(predictions) <= 0.20
    for row in rows:  # whatever the held-out steps say, the fit does not change
        if row["kind"] == "serving_steady_state" and row["hw"] == "1x H100" and row["batch"] <= 64:
            row["median_itl_ms"] *= 3
    assert fitter.refit_host(fitter.serving_steps(rows)[0], fitter.HOST_SOURCE) == calibration().host


def test_presets_shows_the_table_and_what_was_held_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["presets", "calibration"]) == 0
    page = capsys.readouterr().out
    for words in ("h100-sxm", "pooled", "mean absolute error", "microsoft/vidur", "Llama-2-70B int4-g32", "a request"):
        assert words in page
    assert run(["presets", "calibration", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["calibration"]
    assert len(found["fits"]) == len(calibration().fits)
    assert found["held_out_mean_error"] == pytest.approx(np.mean([abs(row["error"]) for row in found["held_out"]]))


def test_an_all_reduce_is_predicted_with_the_error_that_is_printed() -> None:
    """The rows go through the same code as the all-reduces of a synthesised step."""
    basis, rows = basis_of("h100-sxm"), records(ALL_REDUCE)
    ring = np.array([-(-2 * (row["ranks"] - 1) * row["message_bytes"] // row["ranks"]) for row in rows])
    message = np.array([row["message_bytes"] for row in rows])
    assert exchanged_bytes(ring, message) == pytest.approx(message * [row["ranks"] - 1 for row in rows], rel=1e-3)
    nothing = np.zeros(len(rows))
    sent = exchanged_bytes(ring, message)
    demand = demand_of(basis, nothing, nothing > 0, memory=nothing, flops=nothing, link=sent, activation=nothing)
    predicted = expected_ns(CALIBRATED, basis, np.full(len(rows), Op.ALL_REDUCE, np.uint8), demand)
    off = np.abs(predicted / 1e3 / [row["us"] for row in rows] - 1)
    fit = calibration().fit(ALL_REDUCE, "h100-sxm")
    assert off.mean() == pytest.approx(fit.error, abs=2e-3)
    assert off.max() == pytest.approx(fit.worst, abs=2e-3)
    assert fit.error < 0.06


def test_the_errors_of_steps_are_those_of_predictions_without_the_model(shared: Callable[[str], Path]) -> None:
    steps = held_out_steps()
    by_model = left_out(steps, by="model")
    stored = calibration().error_of("a100-80gb-sxm", served=False)
    assert stored is not None
    assert (stored.rows, stored.machine) == (8, "a100-80gb-sxm")
    assert mean_error(by_model) == pytest.approx(stored.error, abs=1e-3)
    assert step_errors(steps)[0].error == stored.error
    none_of_its_own = calibration().error_of("h200-sxm", served=True)
    assert none_of_its_own is not None
    assert none_of_its_own.machine == POOLED


def test_a_prediction_names_its_host_and_its_error() -> None:
    workload = Workload(16, 4096)
    by_host = {
        host.name: Predictor(LLAMA, basis_of("h100-sxm"), workload, host).at(16, 4096)
        for host in (vllm_host(), NO_HOST, HostOverhead("10.0 µs", 0.0, 10_000.0))
    }
    with_vllm, alone, given = by_host.values()
    assert with_vllm is not None
    assert alone is not None
    assert given is not None
    assert with_vllm.step_s - alone.step_s == pytest.approx(16 * vllm_host().request_ns / 1e9)
    assert given.step_s - alone.step_s == pytest.approx(16 * 10e-6)
    stored = calibration().error_of("h100-sxm", served=True)
    assert stored is not None
    assert (with_vllm.error_fraction, given.error_fraction) == (stored.error, None)
    elsewhere = Predictor(LLAMA, basis_of("mi300x"), workload, vllm_host()).at(16, 4096)
    assert elsewhere is not None
    assert (elsewhere.pooled, with_vllm.pooled, elsewhere.left_out) == (True, False, "machines")
    assert Predictor(LLAMA, make_basis(None, "1TB/s"), workload, vllm_host()).at(16, 4096) is None


@pytest.mark.parametrize("name", ["gpt-oss-20b", "deepseek-v3", "qwen3-next-80b-a3b", "gemma-3-27b"])
def test_no_error_is_claimed_for_a_kind_of_model_that_nobody_measured(name: str) -> None:
    found = Predictor(load_model(name), basis_of("h100-sxm"), Workload(), vllm_host()).at(4, 512)
    assert found is not None
    assert found.error_fraction is None


def test_latency_stands_beside_the_floor() -> None:
    found = step_latency(load_model("llama-3-70b"), Workload(16, 512, tensor_parallel=8), basis_of("h100-sxm"))
    assert found is not None
    assert found.count == 160
    assert found.seconds == pytest.approx(160 * calibration().fit(ALL_REDUCE, "h100-sxm").fixed_ns * 1e-9)
    assert found.words == (
        "160 × 2.8–3.5 µs (measured on H100 SXM, 2–8 ranks, 8 KiB) = + 0.45–0.56 ms (476.9 µs by the fitted law), "
        "not part of the floor"
    )
    assert step_latency(LLAMA, Workload(), basis_of("h100-sxm")) is None
    elsewhere = latency_of(3, basis_of("mi300x"))
    assert elsewhere is not None
    assert elsewhere.pooled
    assert "(not of this machine: measured on H100 SXM" in elsewhere.words
    assert latency_of(3, make_basis(None, "1TB/s")) is None


def test_all_reduces_of_a_synthesised_step_have_the_error_that_is_printed() -> None:
    """Llama-3-8B has messages of 8 KiB a request, the sizes of the rows; each with the gap that is before it."""
    off = []
    for row in records(ALL_REDUCE):
        workload = Workload(row["message_bytes"] // 8192, 64, tensor_parallel=row["ranks"])
        e = synthesize(LLAMA, basis_of("h100-sxm"), workload, steps=12, profile=CALIBRATED, seed=3).events
        order = np.argsort(e.start, kind="stable")
        at = np.flatnonzero(e.op[order] == Op.ALL_REDUCE)
        took = float((e.end[order][at] - e.end[order][at - 1]).mean())
        off.append(abs(took / 1e3 / row["us"] - 1))
    fit = calibration().fit(ALL_REDUCE, "h100-sxm")
    assert np.mean(off) == pytest.approx(fit.error, abs=0.002)
    assert max(off) == pytest.approx(fit.worst, abs=0.005)
