"""Who launched a device event: correlation to the runtime call, and the operator that was running around that call."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracescope.core.columns import I64, Bool
from tracescope.core.raw import RawTrace
from tracescope.recognise.tracks.track_plan import TrackPlan, TrackRole, merged_rank


@dataclass(frozen=True, eq=False)
class Launches:
    """``call``: row of the runtime call that launched each event, -1 where none is recorded; int64[events].

    ``moment``: when it was launched, ns as the file counts; where no launch is recorded its own start.
    """

    call: I64
    moment: I64

    @property
    def recorded(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which events have a recorded launch; bool[events]."""
        return self.call >= 0


LAUNCH: Final = re.compile(r"^(hip|cu|cuda|musa)\w*launch|^urEnqueueKernelLaunch|^zeCommandListAppendLaunch", re.I)
"""Calls that start work on a device; copies are none, for a program may copy without computing there."""


def launches_without_a_device(raw: RawTrace, plan: TrackPlan) -> int:
    """How many calls launched kernels in a recording that has no device event at all: its device was not recorded."""
    if (plan.place == TrackRole.DEVICE).any():
        return 0
    is_launch = np.array([bool(LAUNCH.match(name)) for name in raw.names] or [False])
    return int((plan.at(TrackRole.HOST) & is_launch[raw.events.name]).sum())


def find_launches(raw: RawTrace, plan: TrackPlan) -> Launches:
    """Join device events to host calls by correlation; of several calls with one correlation the earliest launched."""
    events = raw.events
    call = np.full(len(events), -1, np.int64)
    hosts = np.flatnonzero((events.correlation >= 0) & plan.at(TrackRole.HOST))
    devices = np.flatnonzero((events.correlation >= 0) & plan.at(TrackRole.DEVICE))
    if len(hosts) and len(devices):
        key = _launch_keys(raw, hosts, devices)
        hosts = hosts[np.lexsort((events.start[hosts], key[hosts]))]
        ids, first = np.unique(key[hosts], return_index=True)
        found = np.searchsorted(ids, key[devices])
        found[found == len(ids)] = 0
        hit = ids[found] == key[devices]
        call[devices[hit]] = hosts[first[found[hit]]]
    moment = np.where(call >= 0, events.start[call], events.start)
    return Launches(call, moment)


def _launch_keys(raw: RawTrace, hosts: I64, devices: I64) -> I64:
    """What a call and what it launched share: the correlation, among the processes of one rank; int64[events]."""
    events = raw.events
    ranks = [merged_rank(track) for track in raw.tracks]
    if max(ranks, default=-1) < 0:
        return events.correlation
    used = np.concatenate([hosts, devices])
    _, dense = np.unique(events.correlation[used], return_inverse=True)
    key = np.full(len(events), -1, np.int64)
    key[used] = dense.reshape(-1) * (max(ranks) + 2) + np.array(ranks)[events.track[used]] + 1
    return key


def enclosing(raw: RawTrace, inner: I64, outer: I64) -> I64:
    """For each row of ``inner`` the row of ``outer`` on the same source thread that contains its start, -1 for none.

    ``outer`` must not nest within one thread.
    """
    result = np.full(len(inner), -1, np.int64)
    if not len(inner) or not len(outer):
        return result
    e = raw.events
    outer = outer[np.lexsort((e.start[outer], e.track[outer]))]
    # One search for all threads: (thread, start) becomes the rank among the outer starts of that thread.
    track_low = np.searchsorted(e.track[outer], np.arange(len(raw.tracks) + 1))
    for track in np.unique(e.track[inner]).tolist():
        low, high = track_low[track], track_low[track + 1]
        if low == high:
            continue
        mine = np.flatnonzero(e.track[inner] == track)
        at = np.searchsorted(e.start[outer[low:high]], e.start[inner[mine]], side="right") - 1
        candidate = outer[low + np.maximum(at, 0)]
        inside = (at >= 0) & (e.start[inner[mine]] < e.start[candidate] + np.maximum(e.duration[candidate], 1))
        result[mine[inside]] = candidate[inside]
    return result


def outermost(raw: RawTrace, order: I64) -> Bool:
    """Which of ``order`` (sorted by thread, start, -duration) lie in none of the others; bool."""
    e = raw.events
    start, end, track = e.start[order], e.start[order] + e.duration[order], e.track[order].astype(np.int64)
    result = np.ones(len(order), bool)
    for t in np.unique(track).tolist():
        mine = np.flatnonzero(track == t)
        reach = np.maximum.accumulate(end[mine])
        result[mine[1:]] = start[mine[1:]] >= reach[:-1]
    return result
