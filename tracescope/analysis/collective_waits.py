"""What each rank spends in collectives: waiting for the last rank to arrive, and the transfer itself."""

import numpy as np

from tracescope.analysis.table import Column, Table
from tracescope.core.collectives import match_collectives
from tracescope.core.trace import Trace


def collectives_table(trace: Trace) -> Table:
    """One row a rank that shares a collective with another; times are sums over the matched collectives, ns.

    Empty where the trace has one rank. The summary counts the collectives, and the events that matched no other
    rank's: their time is in neither column.
    """
    found = match_collectives(trace)
    ranks, of = np.unique(found.rank, return_inverse=True)
    of = of.reshape(-1)

    def total(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        sums = np.zeros(len(ranks), np.int64)
        np.add.at(sums, of, values)
        return sums

    wait, transfer = total(found.wait), total(found.transfer)
    last = np.zeros(len(ranks), np.int64)
    np.add.at(last, of[found.wait == 0], 1)
    return Table(
        (
            Column("rank", ranks, "rank"),
            Column("collectives", np.bincount(of, minlength=len(ranks)), "collectives"),
            Column("wait_ns", wait, "waiting", "ns"),
            Column("transfer_ns", transfer, "transfer", "ns"),
            Column("arrived_last", last, "arrived last"),
        ),
        {"collectives": int(found.collective.max(initial=-1)) + 1, "unmatched_events": found.unmatched},
    )
