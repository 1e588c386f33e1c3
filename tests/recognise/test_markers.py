"""What the step markers of each engine say."""

import pytest

from tracescope.core.category import StepKind
from tracescope.recognise.names.markers import Marker, read_marker

D, P, M = StepKind.DECODE, StepKind.PREFILL, StepKind.MIXED

SAID = [
    ("execute_context_0(0)_generation_32(32)", Marker("vLLM", D, 32, new_tokens=32, decodes=32)),
    ("execute_context_2(300)_generation_5(5)", Marker("vLLM", M, 7, new_tokens=305, decodes=5)),
    (
        "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)",
        Marker("vLLM", D, 32, -1, 32785, 32, context_includes_new=True, decodes=32),
    ),
    (
        "execute_40_context_1(sq38sk38sqsq1444sqsk1444)_generation_2(sq2sk4098sqsq2sqsk4098)",
        Marker("vLLM", M, 3, -1, 4098, 40, context_includes_new=True, decodes=2),
    ),
    ("execute_context_1(888_788544)_generation_0(0)", Marker("vLLM", P, 1, decodes=0)),
    ("step[DECODE bs=32]", Marker("SGLang", D, 32)),
    ("step[EXTEND bs=1 toks=512]", Marker("SGLang", P, 1, new_tokens=512)),
    ("step[DECODE bs=2 g_sq=2 g_sk=900]", Marker("SGLang", D, 2, -1, 900, -1, context_includes_new=True)),
    (
        "step[MIXED bs=3 toks=514 g_sq=2 g_sk=900 c_sq=512 c_sk=512]",
        Marker("SGLang", M, 3, -1, 900, 514, context_includes_new=True, decodes=2),
    ),
    ("step[VERIFY bs=4 forward_id=9]", Marker("SGLang", StepKind.VERIFY, 4)),
    ("decode[bs=64 tok=64 d=64]", Marker("ATOM", D, 64, new_tokens=64)),
    ("decode[bs=117/128 tok=117 d=117]", Marker("ATOM", D, 117, 128, new_tokens=117)),
    ("prefill[bs=2 tok=30 ctx=[10, 20]]", Marker("ATOM", P, 2, -1, 30, 30, context_includes_new=True)),
    ("[Executor] _forward_step 7: 0 ctx reqs, 12 gen reqs", Marker("TensorRT-LLM", D, 12, decodes=12)),
    ("[Executor] _forward_step: 1 ctx reqs, 3 gen reqs", Marker("TensorRT-LLM", M, 4, decodes=3)),
    ("decode_step#3 bs=2 ctx=15", Marker("decode_step", D, 2, -1, 30, 2)),
    ("prefill bs=2 toks=24", Marker("prefill", P, 2, -1, 0, 24)),
    ("ProfilerStep#12", Marker("ProfilerStep")),
]


@pytest.mark.parametrize(("text", "marker"), SAID, ids=[t[:30] for t, _ in SAID])
def test_a_marker_is_read_for_what_it_says(text: str, marker: Marker) -> None:
    assert read_marker(text) == marker


@pytest.mark.parametrize("text", ["sample", "capture_32_FULL", "aten::mm", "executed 3 steps", "step 4"])
def test_other_texts_are_no_markers(text: str) -> None:
    assert read_marker(text) is None
