"""Layers by repetition, layers by markers of modules, and attention that alternates."""

import numpy as np
import pytest

from tests.kit.recordings import ACT, APPEND, ATTENTION, COMBINE, EMBED, GEMM, NORM, Recording, decode_kernels
from tracescope.core.trace import Trace
from tracescope.recognise.names.kernel_rules import Family
from tracescope.recognise.ops.layer_spans import module_layer, module_of
from tracescope.recognise.ops.repeats import find_period, period_layers
from tracescope.recognise.recognise import recognise

ODD = "kernel_cake_a1"
MARKER = "execute_context_0(0)_generation_4(4)"


def rules(trace: Trace) -> dict[str, str]:
    return {i.rule: i.what for i in trace.meta.report.inferred}


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([9, *[1, 2, 3] * 3, 8], (1, 3, 3)),
        ([*[1, 2, 3, 4] * 5, 9, 9], (0, 4, 5)),
        ([1, 1, 1, 1, 1, 1, 1, 1, 1, 1], None),  # equal values are no stretch
        ([1, 2, 3, 1, 2, 3], None),  # twice may be chance
        ([*[1, 2, 3] * 3, *range(100, 120)], None),  # covers too little
        ([], None),
    ],
)
def test_the_shortest_stretch(values: list[int], found: tuple[int, int, int] | None) -> None:
    assert find_period(np.array(values, np.int64)) == found


def test_layers_of_unknown_kernels_are_what_repeats() -> None:
    recording = Recording()
    recording.add(MARKER, "user_annotation", 0, 1000)
    recording.launch(10, [EMBED, *[NORM, GEMM, ODD, GEMM, NORM, GEMM, ACT, GEMM] * 5, NORM, GEMM])
    trace = recognise(recording.raw())
    assert rules(trace)["layers by period"] == "5 layers in 1 step"
    layers = np.bincount(trace.events.layer[trace.events.layer >= 0])
    assert layers.tolist() == [8] * 5
    norms = np.array([trace.names[n] == NORM for n in trace.events.name])
    first = [trace.events.start[trace.events.layer == layer].min() for layer in range(5)]
    assert set(first) <= set(trace.events.start[norms].tolist())


def test_what_only_some_layers_have_does_not_hide_the_repetition() -> None:
    plain: list[int] = [
        Family.NORM,
        Family.GEMM,
        Family.NONE,
        Family.GEMM,
        Family.ACT,
        Family.GEMM,
    ]
    reduced: list[int] = [*plain[:3], Family.ATTENTION_PART, *plain[3:]]
    layers = period_layers([Family.EMBED, *[*plain, *reduced] * 3])
    assert [high - low for low, high in layers] == [6, 7] * 3


def test_nothing_is_searched_in_steps_of_which_nobody_says_that_they_generate() -> None:
    recording = Recording()
    recording.add("ProfilerStep#3", "user_annotation", 0, 1000)
    recording.launch(10, [NORM, GEMM, ODD, GEMM, NORM, GEMM, ACT, GEMM] * 5)
    trace = recognise(recording.raw())
    assert len(trace.steps) == 1
    assert (trace.events.layer == -1).all()


@pytest.mark.parametrize(
    ("text", "module", "layer"),
    [
        ("{'Module': 'model.layers.7.self_attn.qkv_proj', 'TrainableParams': {'weight': [6144, 4096]}}",
         "model.layers.7.self_attn.qkv_proj", 7),
        ("{'Module': 'transformer.h.11.mlp', 'Inputs': [[4, 64]]}", "transformer.h.11.mlp", 11),
        ("{'Module': 'lm_head'}", "lm_head", -1),
        ("{'Module': 'model.layers.3.mlp', 'Inputs': [[4, 64", "model.layers.3.mlp", 3),  # cut short
        ("{'Other': 1}", "", -1),
        ("{'Module': 5}", "", -1),
        ("{'Module': __import__('os')}", "", -1),
        ("{" * 5000, "", -1),
    ],
)  # fmt: skip
def test_the_module_in_a_marker(text: str, module: str, layer: int) -> None:
    assert module_of(text) == module
    assert module_layer(module) == layer


def test_layers_by_markers_of_modules() -> None:
    recording = Recording()
    recording.add(MARKER, "nvtx", 0, 10_000)
    at = 10
    recording.launch(at, [EMBED])
    for layer in range(3):
        begin = at + 10
        recording.add(f"{{'Module': 'model.layers.{layer}', 'Inputs': [[4, 64]]}}", "nvtx", begin, 200)
        recording.add(f"{{'Module': 'model.layers.{layer}.self_attn'}}", "nvtx", begin + 5, 90)
        recording.launch(begin + 10, [NORM, GEMM, APPEND, ATTENTION, GEMM])
        recording.launch(begin + 120, [NORM, GEMM, ACT, GEMM])
        at = begin + 200
    recording.launch(at + 20, [NORM, GEMM])
    trace = recognise(recording.raw())
    assert rules(trace)["layers by markers of modules"] == "3 layers in 1 step"
    assert np.bincount(trace.events.layer[trace.events.layer >= 0]).tolist() == [9] * 3


WINDOWED, FULL = "kernel_unified_attention_2d", "kernel_unified_attention_3d"


def alternating(first: int, second: int) -> Trace:
    recording = Recording()
    recording.add(MARKER, "user_annotation", 0, 1000)
    recording.correlation = 1
    recording.add("cudaGraphLaunch", "cuda_runtime", 10, 5, correlation=1)

    def run(names: list[str]) -> None:
        for name in names:
            took = first if name == WINDOWED else second if name == FULL else 10
            recording.add(name, "kernel", recording.clock, took, 1, correlation=1)
            recording.clock += took + 1

    run([EMBED])
    for _ in range(3):
        run([NORM, GEMM, APPEND, WINDOWED, GEMM, NORM, GEMM, ACT, GEMM])
        run([NORM, GEMM, APPEND, FULL, COMBINE, GEMM, NORM, GEMM, ACT, GEMM])
    run([NORM, GEMM])
    return recognise(recording.raw())


def test_attention_that_alternates_is_said_with_which_is_windowed() -> None:
    what = rules(alternating(100, 400))["attention by period"]
    assert what.startswith("attention repeats after 2 layers: 3 windowed layers with kernel_unified_attention_2d")
    assert "3 full layers with kernel_unified_attention_3d (median 400 ns)" in what
    alike = rules(alternating(100, 110))["attention by period"]
    assert "windowed" not in alike


def test_attention_of_one_kind_does_not_alternate() -> None:
    recording = Recording()
    recording.add(MARKER, "user_annotation", 0, 1000)
    recording.launch(10, decode_kernels(6))
    assert "attention by period" not in rules(recognise(recording.raw()))
