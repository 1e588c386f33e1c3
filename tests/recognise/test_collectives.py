"""Bytes over the link from the message sizes that a profiler records."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.kit.recordings import Recording
from tracescope.core.category import BytesFrom, Category
from tracescope.core.hardware import Basis
from tracescope.load import open_trace
from tracescope.recognise.names.collective_bytes import read_collective
from tracescope.recognise.recognise import recognise


def recorded(name: str, sent: int, received: int, ranks: int | None = 4, dtype: str = "BFloat16") -> str:
    fields = {"Collective name": name, "In msg nelems": sent, "Out msg nelems": received, "dtype": dtype}
    return json.dumps(fields if ranks is None else fields | {"Group size": ranks})


@pytest.mark.parametrize(
    ("detail", "link"),
    [
        (recorded("allreduce", 1000, 1000), 2 * 3 * 1000 // 4 * 2),
        (recorded("all_reduce", 1000, 1000, ranks=2, dtype="Float"), 4000),
        (recorded("allgather", 250, 1000), 1500),
        (recorded("_allgather_base", 250, 1000), 1500),
        (recorded("reduce_scatter", 1000, 250), 1500),
        (recorded("all_to_all", 1000, 1000), 1500),
        (recorded("broadcast", 10, 10), 20),
        (recorded("send", 10, 10, ranks=None), 20),
        (recorded("allreduce", 1000, 1000, ranks=1), 0),
    ],
)
def test_a_message_says_what_one_rank_sends(detail: str, link: int) -> None:
    shape = read_collective(detail)
    assert shape is not None
    assert shape.link == link


@pytest.mark.parametrize(
    "detail",
    [
        "",
        "{}",
        recorded("allreduce", 10, 10, ranks=None),
        recorded("allreduce", 10, 10, dtype="Quaternion"),
        recorded("allreduce", -1, 10),
        '{"Collective name": 3}',
        '["Collective name"]',
    ],
)
def test_what_is_not_said_is_not_guessed(detail: str) -> None:
    assert read_collective(detail) is None


def test_the_link_bytes_reach_the_event() -> None:
    recording = Recording()
    recording.add(
        "ncclDevKernel_AllReduce_Sum_bf16", "kernel", 0, 10, 1, detail=json.loads(recorded("allreduce", 8, 8))
    )
    trace = recognise(recording.raw(), basis=Basis(bandwidth_bytes_per_s=10**9))
    work = int(trace.events.work[0])
    assert trace.work.link[work] == 2 * 3 * 8 // 4 * 2
    assert trace.work.bytes_from[work] == BytesFrom.SHAPE
    assert trace.work.weight_read[work] == trace.work.flops[work] == 0


def test_a_recording_with_messages_has_bytes_for_every_collective(shared: Callable[[str], Path]) -> None:
    trace = open_trace(shared("traces/kineto_hta/nccl_data.json.gz")).trace
    e = trace.events
    own = np.flatnonzero(e.category == Category.COMMUNICATION)
    assert len(own)
    assert (trace.work.link[e.work[own]] > 0).all()
    names = [trace.names[n] for n in e.name[own].tolist()]
    first = next(i for i, n in zip(own.tolist(), names, strict=True) if "6637568" in trace.details[e.detail[i]])
    assert trace.work.link[e.work[first]] == 6637568 * 4
