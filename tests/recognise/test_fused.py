"""Fused kernels: their category is the role that needs most time, and both kinds of bytes are theirs."""

import numpy as np
import pytest

from tests.kit.recordings import EMBED, GEMM, NORM, Recording
from tracescope.core.category import Category, Op
from tracescope.core.hardware import Basis
from tracescope.core.work_table import WorkTable
from tracescope.models import load_model
from tracescope.recognise.recognise import recognise
from tracescope.recognise.work.fused import dominant_categories

W, K, A, C, X = (
    Category.WEIGHT_READ,
    Category.KV_READ,
    Category.KV_APPEND,
    Category.COMPUTE,
    Category.COMMUNICATION,
)
BASIS = Basis(bandwidth_bytes_per_s=1000, peak_flops_per_s=1000, link_bytes_per_s=100)


@pytest.mark.parametrize(
    ("own", "also", "amounts", "basis", "expected"),
    [
        (K, A, {"kv_read": 10, "kv_append": 5}, BASIS, K),
        (K, A, {"kv_read": 5, "kv_append": 10}, BASIS, A),
        (A, K, {"kv_read": 7, "kv_append": 7}, BASIS, K),  # a tie: the order is W K A C X S
        (A, C, {"kv_append": 5, "flops": 50}, BASIS, C),
        (X, C, {"link": 1, "flops": 9}, BASIS, X),  # the slow link
        (X, C, {"link": -1, "flops": 0}, BASIS, X),  # nothing known: as its name says
        (K, A, {"kv_read": 5, "kv_append": 10}, None, K),
        (K, K, {"kv_read": 5, "kv_append": 10}, BASIS, K),  # not fused
    ],
)
def test_the_role_with_the_largest_floor_is_the_category(
    own: Category, also: Category, amounts: dict[str, int], basis: Basis | None, expected: Category
) -> None:
    names = [n for n in WorkTable.__dataclass_fields__ if n != "bytes_from"]
    table = WorkTable.of(**{n: np.array([-1, amounts.get(n, 0)]) for n in names}, bytes_from=np.zeros(2, np.uint8))
    found = dominant_categories(
        np.array([own], np.uint8), np.array([also.role], np.uint16), np.array([1], np.uint32), table, basis
    )
    assert Category(int(found[0])) is expected


MMHA = "void mmha::masked_multihead_attention_kernel<unsigned short, 128>"


def fused_recording() -> Recording:
    recording = Recording()
    recording.add(
        "execute_5_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk400sqsq4sqsk400)", "user_annotation", 0, 1000
    )
    recording.launch(10, [EMBED, *[NORM, GEMM, MMHA, GEMM, NORM, GEMM, GEMM] * 2, NORM, GEMM])
    return recording


def test_attention_that_appends_carries_what_it_reads_and_what_it_appends() -> None:
    model = load_model("llama-3-8b")
    trace = recognise(fused_recording().raw(), model=model, basis=BASIS)
    e = trace.events
    attention = np.flatnonzero(e.op == Op.ATTENTION)
    assert len(attention) == 2
    work = e.work[attention]
    assert trace.work.kv_read[work].tolist() == [400 * 4096] * 2
    assert trace.work.kv_append[work].tolist() == [4 * 4096] * 2
    assert all(int(r) & A.role and int(r) & K.role for r in e.roles[attention])
    assert set(e.category[attention].tolist()) == {K}


def test_without_a_model_its_append_is_unknown() -> None:
    trace = recognise(fused_recording().raw(), basis=BASIS)
    work = trace.events.work[trace.events.op == Op.ATTENTION]
    assert trace.work.kv_append[work].tolist() == [-1, -1]
