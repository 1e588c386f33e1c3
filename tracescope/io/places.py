"""What a track is by the names of its process and thread, where a recorder says it there and nowhere else.

XLA (JAX, on TPUs and GPUs) draws one process a device, with rows of its work and rows derived from it that show the
same time again. Ascend profiles call the process of an NPU's streams ``Ascend Hardware``, and summarise it in others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

XLA_DEVICE: Final = re.compile(r"/device:(?P<kind>[A-Za-z]\w*):(?P<number>\d{1,4})(?P<core>.*)", re.DOTALL)
XLA_WORK: Final = frozenset({"XLA Ops", "Sparse Core Ops"})
XLA_STREAM: Final = "Stream #"
XLA_STEPS: Final = "Steps"

NPU: Final = "Ascend Hardware"
NPU_SUMMARIES: Final = frozenset({"Overlap Analysis", "Communication", "HCCL", "Communication(HCCL)"})
"""Processes that draw what the streams of an NPU did once more."""


class Role(IntEnum):
    """What the events of a track are."""

    UNSAID = 0
    WORK = 1
    """Whatever has no other word is work of a device."""
    SUMMARY = 2
    """They show again what others did."""
    STEPS = 3
    """Each of them is one step, on the device's time."""


@dataclass(frozen=True, slots=True)
class Place:
    """The role of a track; ``device`` is -1 where its names number none, ``name`` what the device is called.

    ``rank``: of several devices that run steps of their own each is one, else -1.
    """

    role: Role = Role.UNSAID
    device: int = -1
    name: str = ""
    rank: int = -1


NOWHERE: Final = Place()


def places_of(labels: Sequence[tuple[str, str, str]]) -> list[Place]:
    """The place of each track, given as (pid, name of the process, name of the thread)."""
    streamed = {pid for pid, _, thread in labels if thread.startswith(XLA_STREAM)}
    rows = {pid for pid, _, thread in labels if thread in XLA_WORK}
    npus = list(dict.fromkeys(pid for pid, process, _ in labels if process.startswith(NPU)))
    stepping = {pid for pid, process, thread in labels if thread == XLA_STEPS and XLA_DEVICE.match(process)}
    found = []
    for pid, process, thread in labels:
        xla = XLA_DEVICE.match(process)
        if xla:
            told = pid in streamed or pid in rows
            works = thread.startswith(XLA_STREAM) if pid in streamed else thread in XLA_WORK
            role = Role.WORK if works or not told else Role.STEPS if thread == XLA_STEPS else Role.SUMMARY
            number = int(xla["number"])
            rank = number if len(stepping) > 1 else -1
            found.append(Place(role, number, f"{xla['kind']} {xla['core']}".strip(), rank))
        elif pid in npus:
            found.append(Place(Role.WORK, npus.index(pid), "Ascend NPU"))
        elif npus and process in NPU_SUMMARIES:
            found.append(Place(Role.SUMMARY))
        else:
            found.append(NOWHERE)
    return found
