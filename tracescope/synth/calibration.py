"""The calibrated profile: how long kernels take, fitted to public measurements of single kernels.

Three laws, each fitted by least squares of relative errors, machine by machine and over all of them together:

- matrix products: ``fixed + √((bytes / (reach · BW))² + (FLOP / (compute_reach · P))²)``
- decode attention and all-reduce: ``fixed + bytes / (reach · rate)``; the bytes of an all-reduce are its message for
  each of the other ranks
- norms, rope, activations, additions and the embedding: one time each, whatever the batch, as the rows say

``fixed`` is what a kernel takes however little it moves: launch, fill and drain. What the host of a serving engine adds
to a step, ``step + request · batch``, is a term of its own.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec
import numpy as np

from tracescope.core.hardware import Basis
from tracescope.floor.pricing import F64, compute_s, link_s, memory_s

POOLED: Final = "pooled"
"""The fit over all machines, for a machine that nobody measured."""

PRODUCTS, ATTENTION, ALL_REDUCE, HOST = "products", "attention", "all_reduce", "host"
SMALL: Final = ("norm", "rope", "act", "add", "embed")

_REACHES: Final = np.arange(50, 101) / 100
_COMPUTE_REACHES: Final = np.arange(30, 101, 2) / 100


@dataclass(frozen=True, slots=True)
class Fit:
    """One law for one kind of kernel on one machine; ``reach`` and ``compute_reach`` are shares of datasheet rates.

    ``rows`` measurements were fitted with a mean and a largest absolute relative error of ``error`` and ``worst``.
    ``reach`` is 0 where only the fixed time counts.
    """

    kind: str
    machine: str
    fixed_ns: float
    reach: float
    compute_reach: float
    rows: int
    error: float
    worst: float


@dataclass(frozen=True, slots=True)
class HostFit:
    """What a serving engine's host adds to a step, ns: ``step_ns + request_ns · batch``; errors are of whole steps."""

    step_ns: float
    request_ns: float
    rows: int
    error: float
    worst: float
    source: str


@dataclass(frozen=True, slots=True)
class StepError:
    """How far whole measured steps were off what was predicted of them: mean and largest absolute relative error.

    ``served``: by an engine whose host takes its share. On a ``machine`` of its own each model's steps were predicted
    without that model's rows; under ``pooled`` each machine's without that machine's.
    """

    served: bool
    machine: str
    rows: int
    error: float
    worst: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Every fit by kind and machine, the host's term, and the errors of whole steps."""

    fits: tuple[Fit, ...]
    host: HostFit
    errors: tuple[StepError, ...] = ()

    def measures(self, machine: str | None) -> bool:
        """Whether products of ``machine`` itself were measured, so that its steps are not predicted from others."""
        return any(fit.kind == PRODUCTS and fit.machine == machine for fit in self.fits)

    def error_of(self, machine: str | None, *, served: bool) -> StepError | None:
        """The error of steps on ``machine``; that of machines left out where none of its own steps was measured."""
        found = {e.machine: e for e in self.errors if e.served is served}
        own = found.get(machine or POOLED) if self.measures(machine) else None
        return own or found.get(POOLED)

    def fit(self, kind: str, machine: str | None) -> Fit:
        """The fit of ``kind`` on ``machine``, or the pooled one where that machine has no rows of it."""
        own = {f.machine: f for f in self.fits if f.kind == kind}
        return own.get(machine or POOLED, own[POOLED])


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Measurements of one kind: machines, then float64 arrays of one length, times in ns."""

    machine: tuple[str, ...]
    memory_ns: F64
    compute_ns: F64
    measured_ns: F64

    def of(self, machine: str) -> "Rows":
        """Those of one machine; of all for POOLED."""
        if machine == POOLED:
            return self
        chosen = np.array([m == machine for m in self.machine], bool)
        parts = (a[chosen] for a in (self.memory_ns, self.compute_ns, self.measured_ns))
        return Rows((machine,) * int(chosen.sum()), *parts)

    def __len__(self) -> int:
        return len(self.machine)


def _preset(name: str) -> bytes:
    return (files("tracescope") / "presets" / name).read_bytes()


@cache
def shipped() -> Calibration:
    """The table that ships: what :func:`fit_kernels` found, the host's term, and their errors."""
    return msgspec.json.decode(_preset("calibration.json"), type=Calibration)


_chosen: Final[ContextVar[Calibration | None]] = ContextVar("calibration", default=None)


def calibration() -> Calibration:
    """What the profile goes by: the table that ships, or inside :func:`calibrated_by` another one."""
    return _chosen.get() or shipped()


@contextmanager
def calibrated_by(found: Calibration) -> Iterator[None]:
    """Let the profile go by another table: one from which some measurements were left out."""
    before = _chosen.set(found)
    try:
        yield
    finally:
        _chosen.reset(before)


@cache
def measured() -> dict[str, Any]:
    """The public measurements: ``machines``, ``sources``, and a table of ``columns`` and ``rows`` a kind."""
    found: dict[str, Any] = msgspec.json.decode(_preset("measured_kernels.json"))
    return found


def records(kind: str) -> list[dict[str, Any]]:
    """The measurements of one kind, a dict each, by column name."""
    table = measured()[kind]
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def machine_bases() -> dict[str, Basis]:
    """What prices the rows of each machine: the datasheet rates that were written down with them."""
    return {
        name: Basis(
            bandwidth_bytes_per_s=row["bandwidth_bytes_per_s"],
            bandwidth_source="datasheet",
            peak_flops_per_s=row["bf16_flops_per_s"],
            link_bytes_per_s=row.get("link_bytes_per_s"),
        )
        for name, row in measured()["machines"].items()
    }


Left = Callable[[dict[str, Any]], bool]
"""Whether a measurement is left out of a fit."""


def kernel_rows(left_out: Left = lambda row: False) -> dict[str, Rows]:
    """The measurements that the fits use, by kind, with the times that datasheet rates alone would give."""

    def used(kind: str) -> list[dict[str, Any]]:
        return [row for row in records(kind) if not left_out(row)]

    found = {PRODUCTS: _rows(used(PRODUCTS), "weight_bytes", lambda r: r["batch"] * r["weight_bytes"])}
    found[ATTENTION] = _rows(used(ATTENTION), "kv_bytes", lambda r: 0)
    found[ALL_REDUCE] = _link_rows(used(ALL_REDUCE) or records(ALL_REDUCE))  # only one machine has any
    for kind in SMALL:
        found[kind] = _rows([r for r in used("small") if r["kind"] == kind], None, lambda r: 0)
    return found


def _rows(rows: list[dict[str, Any]], size: str | None, flops: Callable[[dict[str, Any]], int]) -> Rows:
    """FLOPs of a product in 16 bit: 2 · batch · elements, as many as ``batch`` times its bytes."""
    bases = machine_bases()
    memory = [memory_s(0 if size is None else r[size], bases[r["machine"]]) or 0.0 for r in rows]
    compute = [compute_s(flops(r), bases[r["machine"]]) or 0.0 for r in rows]
    us = np.array([r["us"] for r in rows], np.float64)
    return Rows(tuple(r["machine"] for r in rows), np.array(memory) * 1e9, np.array(compute) * 1e9, us * 1e3)


def _link_rows(rows: list[dict[str, Any]]) -> Rows:
    """All-reduces: one rank of t hands its message to the t − 1 others, at the link's datasheet rate."""
    bases = machine_bases()
    sent = [(r["ranks"] - 1) * r["message_bytes"] for r in rows]
    sending = [link_s(count, bases[r["machine"]]) or 0.0 for r, count in zip(rows, sent, strict=True)]
    us = np.array([r["us"] for r in rows], np.float64)
    return Rows(tuple(r["machine"] for r in rows), np.array(sending) * 1e9, np.zeros(len(rows)), us * 1e3)


def fit_kernels(left_out: Left = lambda row: False) -> tuple[Fit, ...]:
    """Fit every kind on every machine that has rows of it, and on all together. Deterministic; about a second."""
    found = []
    for kind, rows in kernel_rows(left_out).items():
        fit = fit_products if kind == PRODUCTS else fit_fixed if kind in SMALL else fit_line
        for machine in (*dict.fromkeys(rows.machine), POOLED):
            found.append(fit(kind, machine, rows.of(machine)))
    return tuple(found)


def fit_products(kind: str, machine: str, rows: Rows) -> Fit:
    """Every pair of reaches on a grid is tried; the fixed time of each is a least-squares solution."""
    tried = []
    for reach in _REACHES:
        for compute_reach in _COMPUTE_REACHES:
            moving = np.hypot(rows.memory_ns / reach, rows.compute_ns / compute_reach)
            fixed = max(0.0, _best_offset(moving, rows.measured_ns))
            squares = float((((fixed + moving) / rows.measured_ns - 1) ** 2).sum())
            tried.append((squares, fixed, float(reach), float(compute_reach), moving))
    _, fixed, reach, compute_reach, moving = min(tried, key=lambda t: t[:4])
    return _fit(kind, machine, rows, fixed + moving, (fixed, reach, compute_reach))


def _best_offset(moving: F64, measured_ns: F64) -> float:
    """The constant that, added to ``moving``, leaves the smallest squares of relative errors."""
    weight = 1 / measured_ns**2
    return float(((measured_ns - moving) * weight).sum() / weight.sum())


def fit_line(kind: str, machine: str, rows: Rows) -> Fit:
    """A fixed time and one over the reach, by least squares of relative errors."""
    columns = np.stack([np.ones(len(rows)), rows.memory_ns], axis=1) / rows.measured_ns[:, None]
    (fixed, slope), *_ = np.linalg.lstsq(columns, np.ones(len(rows)), rcond=None)
    fixed, slope = max(0.0, float(fixed)), float(slope)
    return _fit(kind, machine, rows, fixed + slope * rows.memory_ns, (fixed, 1 / slope, 1.0))


def fit_fixed(kind: str, machine: str, rows: Rows) -> Fit:
    """One time for all, the geometric mean."""
    fixed = float(np.exp(np.log(rows.measured_ns).mean()))
    return _fit(kind, machine, rows, np.full(len(rows), fixed), (fixed, 0.0, 0.0))


def _fit(kind: str, machine: str, rows: Rows, predicted: F64, law: tuple[float, float, float]) -> Fit:
    off = np.abs(predicted / rows.measured_ns - 1)
    fixed, reach, compute_reach = law
    error, worst = round(float(off.mean()), 4), round(float(off.max()), 4)
    return Fit(kind, machine, round(fixed, 1), round(reach, 4), round(compute_reach, 4), len(rows), error, worst)


def fit_host(batch: Iterable[float], device_ns: Iterable[float], measured_ns: Iterable[float], source: str) -> HostFit:
    """What is left of measured steps above the device's own time, as a line in the batch; neither part negative.

    Least squares of errors relative to the whole step.
    """
    requests, device, whole = (np.array(list(values), np.float64) for values in (batch, device_ns, measured_ns))
    columns = np.stack([np.ones(len(whole)), requests], axis=1) / whole[:, None]
    left = 1 - device / whole
    (step, request), *_ = np.linalg.lstsq(columns, left, rcond=None)
    if step < 0:
        line = columns[:, 1]
        step, request = 0.0, float(line @ left / (line @ line))
    step_ns, request_ns = round(float(step), 1), round(max(0.0, float(request)), 1)
    off = np.abs((device + step_ns + request_ns * requests) / whole - 1)
    return HostFit(step_ns, request_ns, len(whole), round(float(off.mean()), 4), round(float(off.max()), 4), source)


def encode(found: Calibration) -> bytes:
    """``found`` as the file that ships."""
    return msgspec.json.format(msgspec.json.encode(asdict(found)), indent=2) + b"\n"
