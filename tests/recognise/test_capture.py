"""A recording of a graph's capture gives its replay shapes, modules and layers; what does not fit changes nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.kit.recordings import EMBED, GEMM, NORM, Recording, decode_kernels
from tracescope.core.category import BytesFrom, Op
from tracescope.core.raw import RawTrace
from tracescope.core.trace import Trace
from tracescope.recognise.recognise import recognise

DIMS = {0: (64, 96), 1: (64, 64), 2: (64, 256), 3: (128, 64)}
"""The four matrix products of a layer: inner dimension and columns."""
LAYERS = 3


def replay() -> RawTrace:
    recording = Recording()
    recording.add("execute_context_0(0)_generation_4(4)", "user_annotation", 0, 1000)
    recording.launch(10, decode_kernels(LAYERS))
    return recording.raw()


def capture(
    kernels: list[str], *, names: bool = True, label: str = "capture_4_FULL", operators: bool = True
) -> RawTrace:
    """One launch a kernel while a stream is captured, the matrix products under their operators."""
    recording = Recording()
    recording.add(label, "user_annotation", 0, 100_000)
    recording.add("hipStreamBeginCapture", "cuda_runtime", 5, 1)
    products, at = 0, 10
    for kernel in kernels:
        detail = {"kernel": kernel} if names else {"grid": [1, 1, 1]}
        if kernel == GEMM and operators:
            inner, columns = DIMS[products % 4] if products < 4 * LAYERS else (64, 1000)
            recording.operator("aten::mm", at, 8, [[4, inner], [inner, columns]], ["c10::BFloat16"] * 2)
            recording.add(f"nn.Module: Linear_{products}", "python_function", at - 1, 10)
            products += 1
        recording.add("hipLaunchKernel", "cuda_runtime", at + 1, 2, detail=detail)
        at += 20
    recording.add("hipStreamEndCapture", "cuda_runtime", at, 1)
    recording.add("hipLaunchKernel", "cuda_runtime", at + 10, 2, detail={"kernel": "outside"})
    return recording.raw()


def weights(trace: Trace) -> list[int]:
    e = trace.events
    order = np.flatnonzero(np.isin(e.op, (Op.QKV, Op.O, Op.GATE_UP, Op.DOWN, Op.LM_HEAD)))
    order = order[np.argsort(e.start[order])]
    return [int(n) for n in trace.work.weight_read[e.work[order]]]


EXPECTED = [a * b * 2 for a, b in DIMS.values()] * LAYERS + [64 * 1000 * 2]


def rules(trace: Trace) -> list[str]:
    return [i.rule for i in trace.meta.report.inferred]


@pytest.mark.parametrize("names", [True, False])
def test_launch_by_launch(names: bool) -> None:
    trace = recognise(replay(), capture=capture(decode_kernels(LAYERS), names=names))
    assert weights(trace) == EXPECTED
    assert "graph capture joined" in rules(trace)
    e = trace.events
    product = int(np.flatnonzero(e.op == Op.LM_HEAD)[0])
    assert trace.work.bytes_from[e.work[product]] == BytesFrom.SHAPE
    detail = json.loads(trace.details[e.detail[product]])
    assert detail["operator"] == "aten::mm"
    assert detail["module"] == f"Linear_{4 * LAYERS}"
    assert detail["Input Dims"] == [[4, 64], [64, 1000]]


def test_product_by_product_where_the_captured_launches_are_others() -> None:
    trace = recognise(replay(), capture=capture([EMBED, NORM, *decode_kernels(LAYERS)]))
    assert weights(trace) == EXPECTED
    assert any("matrix product by matrix product" in i.what for i in trace.meta.report.inferred)


def test_a_capture_of_something_else_changes_nothing_and_says_so() -> None:
    plain = recognise(replay())
    trace = recognise(replay(), capture=capture(decode_kernels(LAYERS + 2)))
    assert "graph capture does not fit" in rules(trace)
    assert (trace.events.work == plain.events.work).all()
    assert trace.details == plain.details


def test_other_kernels_at_the_same_places_are_no_fit() -> None:
    kernels = decode_kernels(LAYERS)
    trace = recognise(replay(), capture=capture([*kernels[::-1]], operators=False))
    assert "graph capture does not fit" in rules(trace)


def test_a_file_without_captured_launches_fits_nothing() -> None:
    empty = replace(capture([EMBED]), names=("nothing",) * 20)
    assert "graph capture does not fit" in rules(recognise(replay(), capture=empty))


def pieces(sizes: list[int], *, names: bool = True) -> RawTrace:
    """A capture of graphs of so many products each, one begin and end a graph; the k-th has k-th columns."""
    recording = Recording()
    recording.add("capture_4_PIECEWISE", "user_annotation", 0, 100_000)
    at = 10
    for piece, size in enumerate(sizes):
        recording.add("cudaStreamBeginCapture", "cuda_runtime", at, 1)
        for _ in range(size):
            at += 20
            recording.operator("aten::mm", at, 8, [[4, 64], [64, 16 * (piece + 1)]], ["c10::BFloat16"] * 2)
            recording.add("cudaLaunchKernel", "cuda_runtime", at + 1, 2, detail={"kernel": GEMM} if names else None)
        at += 20
        recording.add("cudaStreamEndCapture", "cuda_runtime", at, 1)
        # Between two graphs a kernel is launched that is in none of them.
        recording.add("cudaLaunchKernel", "cuda_runtime", at + 5, 2, detail={"kernel": "outside"})
        at += 20
    return recording.raw()


def replays(sizes: list[int], rounds: int = 2) -> RawTrace:
    recording = Recording()
    recording.add("execute_context_0(0)_generation_4(4)", "user_annotation", 0, 10_000)
    for k, size in enumerate(sizes * rounds):
        recording.launch(10 + 20 * k, [GEMM] * size)
    raw = recording.raw()
    return replace(raw, names=tuple("cudaGraphLaunch" if n == "cudaLaunchKernel" else n for n in raw.names))


@pytest.mark.parametrize("sizes", [[10, 10, 10], [3, 3, 3], [1, 5, 1]], ids=["alike", "few kernels", "one kernel"])
def test_pieces_join_in_the_order_in_which_they_were_captured(sizes: list[int]) -> None:
    trace = recognise(replays(sizes), capture=pieces(sizes))
    e = trace.events
    rows = np.flatnonzero(np.array(trace.names)[e.name] == GEMM)
    rows = rows[np.argsort(e.start[rows])]
    columns = [16 * (piece + 1) for piece, size in enumerate(sizes) for _ in range(size)] * 2
    assert trace.work.weight_read[e.work[rows]].tolist() == [64 * c * 2 for c in columns]
    [said] = [i.what for i in trace.meta.report.inferred if i.rule == "graph capture joined"]
    assert said.startswith(f"6 graph launches with shapes of {2 * sum(sizes)} matrix products")


def test_a_few_kernels_without_names_are_too_little_to_tell() -> None:
    trace = recognise(replays([1, 1]), capture=pieces([2, 3], names=False))
    assert "graph capture does not fit" in rules(trace)
