"""Reads sampled GPU metrics of an export: how busy memory and cores were, as the hardware counted."""

from collections.abc import Callable
from typing import Final

import numpy as np

from tracescope.core.raw import RawCounter
from tracescope.io.collector import SPAN_LIMIT_NS, Collector
from tracescope.io.database import MISSING, Database
from tracescope.io.nsys.schema import GPU_METRICS, Head

GPU_BITS: Final = 0xFF
"""The low bits of a ``typeId`` number the GPU that was sampled."""
MAX_COUNTERS: Final = 10_000


def read_metrics(
    database: Database, head: Head, collector: Collector, report: Callable[[int], None]
) -> tuple[RawCounter, ...]:
    """One counter for each metric of each GPU, by GPU and name. Names come from the file, else the metric's number.

    A sample without a time or a value is dropped and counted; so is all beyond MAX_COUNTERS counters.
    """
    table = database.table(GPU_METRICS)
    if table is None:
        return ()
    names = _names(database)
    codes: dict[tuple[int, int], int] = {}
    parts = []
    for rows in database.rows(table, ("timestamp", "typeId", "metricId"), numbers=("value",)):
        time = np.array([row[0] for row in rows], np.int64)
        value = np.array([row[3] for row in rows], np.float64)  # None becomes NaN
        which = [row[1:3] for row in rows]
        for key in which:
            if key not in codes and len(codes) < MAX_COUNTERS:
                codes[key] = len(codes)
        code = np.array([codes.get(key, -1) for key in which], np.int64)
        keep = (time > -SPAN_LIMIT_NS) & (time < SPAN_LIMIT_NS) & np.isfinite(value) & (code >= 0)
        collector.seen += len(rows)
        collector.imported += int(keep.sum())
        collector.drop("invalid_sample", int((~keep).sum()))
        parts.append((code[keep], time[keep], value[keep]))
        report(len(rows))
    if not parts:
        return ()
    code, time, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(codes) + 1))
    devices = [device.device for device in head.devices]
    counters = []
    for (kind, metric), at in codes.items():
        rows_of = order[bounds[at] : bounds[at + 1]]
        if len(rows_of):
            number = kind & GPU_BITS if kind != MISSING else 0
            # A file that describes one GPU means that one, whatever its number.
            gpu = devices[0] if len(devices) == 1 else number
            name = names.get((kind, metric)) or names.get((MISSING, metric)) or f"metric {metric}"
            counters.append(RawCounter(name, gpu, time[rows_of], value[rows_of]))
    return tuple(sorted(counters, key=lambda counter: (counter.device, counter.name)))


def _names(database: Database) -> dict[tuple[int, int], str]:
    """(typeId, metricId) to the metric's name; under MISSING a name that any type gives it."""
    table = database.table("TARGET_INFO_GPU_METRICS")
    found: dict[tuple[int, int], str] = {}
    for rows in database.rows(table, ("typeId", "metricId"), ("metricName",)) if table else ():
        for kind, metric, name in rows:
            if name:
                found[kind, metric] = name
                found.setdefault((MISSING, metric), name)
    return found
