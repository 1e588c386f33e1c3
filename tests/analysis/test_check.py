"""Impossible numbers are found, and possible ones are not."""

from dataclasses import replace

import pytest

from tests.kit.traces import BASIS, MACHINE, SECOND_STREAM, STREAM, Ev, St, make_trace
from tracescope.analysis.check import CheckResult, check
from tracescope.analysis.findings import ERROR, INFO, WARNING, Finding
from tracescope.core.category import Category, EventFlag
from tracescope.core.report import ImportReport, Inference
from tracescope.core.trace import Dependencies, Trace
from tracescope.models import load_model

WEIGHTS = Category.WEIGHT_READ


def found(result: CheckResult) -> dict[str, Finding]:
    return {f.rule: f for f in result.findings}


def gemm(start: int, duration: int, count: int, **more: object) -> Ev:
    return Ev(start, duration, category=WEIGHTS, weight_read=count, **more)


def test_a_sound_trace_has_no_findings() -> None:
    result = check(make_trace([gemm(0, 50, 40), gemm(50, 50, 40)], [St(0, 100)]), BASIS)
    assert result.ok
    assert result.findings == ()


def test_an_event_faster_than_its_bytes_allow_is_an_error() -> None:
    result = check(make_trace([gemm(0, 90, 40), gemm(90, 10, 40)], [St(0, 100)]), BASIS)
    finding = found(result)["event_below_floor"]
    assert (finding.severity, finding.count, finding.example_event) == (ERROR, 1, 1)
    assert not result.ok
    assert "took 10 ns, its bytes need 40 ns" in finding.text


@pytest.mark.parametrize(("resolution", "ok"), [(1, False), (1000, True)])
def test_the_clock_of_the_source_sets_the_tolerance(resolution: int, ok: bool) -> None:
    trace = make_trace([gemm(0, 9_000, 9_900), gemm(9_000, 9_000, 10)], [St(0, 18_000)], resolution_ns=resolution)
    assert check(trace, BASIS).ok is ok


def test_one_nanosecond_of_rounding_is_allowed() -> None:
    assert check(make_trace([gemm(0, 39, 40), gemm(39, 50, 40)], [St(0, 89)]), BASIS).ok
    assert not check(make_trace([gemm(0, 38, 40), gemm(38, 50, 40)], [St(0, 88)]), BASIS).ok


def test_within_the_last_level_cache_it_is_information() -> None:
    trace = make_trace([gemm(0, 10, 40)], [St(0, 10)])
    basis = replace(BASIS, hardware=replace(MACHINE, llc_bytes=40))
    result = check(trace, basis)
    assert result.ok
    assert {f.severity for f in result.findings} == {INFO}
    assert set(found(result)) == {"event_below_floor", "step_below_floor"}
    assert "cache-resident" in found(result)["event_below_floor"].text
    assert not check(trace, replace(BASIS, hardware=replace(MACHINE, llc_bytes=39))).ok


def test_a_step_faster_than_its_bytes_allow_is_an_error_even_where_each_event_is_not() -> None:
    events = [gemm(0, 50, 40), gemm(0, 50, 40, track=1)]
    finding = found(check(make_trace(events, [St(0, 50)], (STREAM, SECOND_STREAM)), BASIS))["step_below_floor"]
    assert (finding.severity, finding.count) == (ERROR, 1)
    assert "80 ns" in finding.text


def test_overlap_of_compute_with_memory_may_beat_the_serial_floor() -> None:
    events = [gemm(0, 50, 40), Ev(0, 50, track=1, category=Category.COMPUTE, flops=40_000)]
    result = check(make_trace(events, [St(0, 50)], (STREAM, SECOND_STREAM)), BASIS)
    assert result.ok
    assert found(result)["step_below_op_floor"].severity == WARNING


def test_long_idle_unfinished_events_and_strays_are_warnings() -> None:
    events = [
        gemm(0, 50, 40), gemm(20, 60, 40), gemm(300, 20, 10, step=1), gemm(500, 9, 1, step=1,
        flags=int(EventFlag.UNFINISHED)),
    ]  # fmt: skip
    result = check(make_trace(events, [St(0, 70), St(290, 400), St(600, 10)]), BASIS)
    rules = found(result)
    assert rules["mostly_idle"].count == 2
    assert rules["unfinished"].example_event is not None
    assert rules["outside_step"].severity == INFO
    assert rules["empty_step"].count == 1
    assert rules["steps_overlap"].count == 1


@pytest.mark.parametrize(("rule", "severity"), [("layers by attention", ERROR), ("layers by period", WARNING)])
def test_another_depth_than_the_models_is_another_model(rule: str, severity: str) -> None:
    report = ImportReport(4, 4, inferred=(Inference("layers", rule, 0.9),))
    model = load_model("llama-3-8b")

    def mismatch(*depths: int) -> Finding | None:
        events = [gemm(s * 9, 9, 4, step=s, layer=depth - 1) for s, depth in enumerate(depths)]
        steps = [St(s * 9, 9) for s in range(len(depths))]
        return found(check(make_trace(events, steps, report=report, model=model), BASIS)).get("model_mismatch")

    finding = mismatch(36, 36, 32)
    assert finding is not None
    assert (finding.severity, finding.count, finding.example_event) == (severity, 2, 0)
    assert "36 layers" in finding.text
    assert "has 32" in finding.text
    assert mismatch(32, 32, 7) is None, "a step that the recording cuts is no other model"


def test_what_the_import_left_out_is_said() -> None:
    report = ImportReport(10, 8, {"no_duration": 2}, {}, 4_096, (), 40)
    rules = found(check(make_trace([gemm(0, 50, 40)], [St(0, 50)], report=report), BASIS))
    assert rules["dropped"].count == 2
    assert "no_duration 2" in rules["dropped"].text
    assert "byte 4,096" in rules["truncated"].text
    assert "40 ns of 50 ns" in rules["unclassified"].text


def test_import_counters_that_do_not_add_up_are_an_error() -> None:
    report = ImportReport(8, 8)
    object.__setattr__(report, "seen", 9)
    assert (
        found(check(make_trace([gemm(0, 50, 40)], [St(0, 50)], report=report), BASIS))["import_count"].severity == ERROR
    )


def test_an_event_that_does_not_wait_for_its_input_is_found() -> None:
    trace = make_trace([gemm(0, 50, 40), gemm(40, 50, 40)], [St(0, 90)])
    edges = Dependencies(source=[0], target=[1], kind=[0], recorded=[False])
    finding = found(check(replace(trace, dependencies=edges), BASIS))["starts_too_early"]
    assert (finding.severity, finding.example_event) == (WARNING, 1)


def test_a_trace_without_steps_or_a_basis_can_be_checked() -> None:
    trace: Trace = make_trace([gemm(0, 50, 40, step=-1)], [])
    assert check(trace, replace(BASIS, bandwidth_bytes_per_s=None)).ok
