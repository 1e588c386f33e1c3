"""The same collective on several ranks: how long each rank waited for the last to arrive, and how long it then took."""

import re
from dataclasses import dataclass

import numpy as np

from tracescope.core.category import Category, TrackKind
from tracescope.core.columns import I64
from tracescope.core.trace import Trace


@dataclass(frozen=True, eq=False)
class Collectives:
    """One row for each event of a matched collective, sorted by collective, then rank; all int64.

    ``collective`` numbers the collectives; ``wait`` ns until the last rank arrived, within the event; ``transfer`` the
    rest of it. ``unmatched``: events of collectives that other ranks ran another number of times, or not at all.
    """

    event: I64
    rank: I64
    collective: I64
    wait: I64
    transfer: I64
    end: I64
    unmatched: int

    def __len__(self) -> int:
        return len(self.event)

    def skews(self) -> list[tuple[int, int, int]]:
        """For each rank but the first: (rank, median of how much later its collectives end, number of them)."""
        ranks = np.unique(self.rank).tolist()
        if len(ranks) < 2:
            return []
        mine = self.rank == ranks[0]
        ends = dict(zip(self.collective[mine].tolist(), self.end[mine].tolist(), strict=True))
        found = []
        for rank in ranks[1:]:
            own = np.flatnonzero(self.rank == rank)
            pairs = zip(self.end[own].tolist(), self.collective[own].tolist(), strict=True)
            late = [end - ends[c] for end, c in pairs if c in ends]
            if late:
                found.append((rank, int(np.median(late)), len(late)))
        return found


def match_collectives(trace: Trace) -> Collectives:
    """Match the n-th collective of one name and process group on every rank that runs it.

    All ranks leave a collective together, so what they wait is the time to the last arrival. Where the clocks of the
    ranks are apart by some time, the wait is off by as much.
    """
    e = trace.events
    rank_of_track = np.array([t.rank for t in trace.tracks], np.int64)
    device = np.array([t.kind in (TrackKind.DEVICE_STREAM, TrackKind.ENGINE) for t in trace.tracks], bool)
    own = np.flatnonzero(e.category == Category.COMMUNICATION)
    track = trace.lanes.track[trace.event_lane[own]]
    own = own[device[track] & (rank_of_track[track] >= 0)]
    rank = rank_of_track[trace.lanes.track[trace.event_lane[own]]]
    groups = {d: _process_group(trace.details[d]) for d in np.unique(e.detail[own]).tolist()}
    numbers: dict[tuple[int, str], int] = {}
    key = np.array(
        [
            numbers.setdefault((n, groups[d]), len(numbers))
            for n, d in zip(e.name[own].tolist(), e.detail[own].tolist(), strict=True)
        ],
        np.int64,
    )
    order = np.lexsort((e.start[own], rank, key))
    own, rank, key = own[order], rank[order], key[order]
    ordinal = _ordinals(key, rank)
    matched = _matched(key, rank)
    unmatched = int((~matched).sum())
    own, rank, key, ordinal = own[matched], rank[matched], key[matched], ordinal[matched]
    _, collective = np.unique(key * (int(ordinal.max(initial=0)) + 1) + ordinal, return_inverse=True)
    collective = collective.reshape(-1).astype(np.int64)
    last = np.full(int(collective.max(initial=-1)) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last, collective, e.start[own])
    wait = np.clip(last[collective] - e.start[own], 0, e.duration[own])
    order = np.lexsort((rank, collective))
    return Collectives(
        event=own[order],
        rank=rank[order],
        collective=collective[order],
        wait=wait[order],
        transfer=(e.duration[own] - wait)[order],
        end=e.end[own][order],
        unmatched=unmatched,
    )


def _ordinals(key: I64, rank: I64) -> I64:
    """The place of each row among those of its key and rank; rows are sorted by both."""
    first = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (rank[1:] != rank[:-1]))[: len(key)])
    run = np.repeat(first, np.diff(np.append(first, len(key))))
    return np.arange(len(key)) - run


def _matched(key: I64, rank: I64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows whose key runs on at least two ranks, on each the same number of times; rows are sorted by both."""
    if not len(key):
        return np.zeros(0, bool)
    pair = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (rank[1:] != rank[:-1])))
    counts = np.diff(np.append(pair, len(key)))
    first = np.flatnonzero(np.append(True, key[pair][1:] != key[pair][:-1]))
    ranks = np.diff(np.append(first, len(pair)))
    same = np.minimum.reduceat(counts, first) == np.maximum.reduceat(counts, first)
    good = (ranks > 1) & same
    return np.repeat(np.repeat(good, ranks), counts)


_GROUP = re.compile(r'"Process Group Name":\s*("[^"]*"|[^,}]*)')


def _process_group(detail: str) -> str:
    found = _GROUP.search(detail)
    return found[1] if found else ""
