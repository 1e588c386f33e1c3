"""Whole decode steps that somebody measured, and what the calibrated profile predicts for them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.dtypes import weight_dtype
from tracescope.floor.pricing import ops_total_s
from tracescope.floor.step_ops import counted_ops
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.calibrated import NO_HOST, vllm_host
from tracescope.synth.calibration import (
    POOLED,
    Calibration,
    HostFit,
    StepError,
    calibrated_by,
    calibration,
    fit_host,
    fit_kernels,
    measured,
    records,
)
from tracescope.synth.step_times import StepTimes
from tracescope.synth.timing import CALIBRATED


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A decode step that somebody measured on whole machines; ``served``: by an engine whose host takes its share."""

    title: str
    model: ModelSpec
    basis: Basis
    workload: Workload
    measured_ns: float
    served: bool
    source: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """A measured step beside its floor and what the calibrated profile says, ns."""

    step: MeasuredStep
    floor_ns: float
    device_ns: float
    host_ns: float

    @property
    def predicted_ns(self) -> float:
        """The device's time and the host's."""
        return self.device_ns + self.host_ns

    @property
    def error(self) -> float:
        """Relative error, negative where the prediction is too short."""
        return self.predicted_ns / self.step.measured_ns - 1


def predict(step: MeasuredStep) -> Prediction:
    """The mean step of the calibrated profile, through the same function as a simulation of requests."""
    workload = step.workload
    times = StepTimes(step.model, step.basis, replace(workload, batch=1, context=0), CALIBRATED, NO_HOST)
    read = [workload.batch * tokens for tokens in times.tokens_read(workload.context)]
    host = float(vllm_host().ns(np.array([workload.batch]))[0]) if step.served else 0.0
    floor = ops_total_s(step.model, workload, step.basis)
    return Prediction(step, (floor or 0.0) * 1e9, times.step_ns(workload.batch, read), host)


def held_out_steps() -> list[MeasuredStep]:
    """The whole steps that ship beside the kernels and that no fit uses: a compiled loop without a server."""
    found = []
    for row in records("steps"):
        quantized = None if row["weights"] == "bf16" else row["weights"]
        model = load_model(row["model"], weights=quantized, lm_head=quantized)
        basis = make_basis(load_hardware(row["machine"]), None, weight_dtype(model.weights).compute)
        title = f"{row['title']} {row['weights']}, {row['ranks']} × {row['machine']}"
        workload = Workload(row["batch"], row["context"], tensor_parallel=row["ranks"])
        source = measured()["sources"][row["source"]]
        found.append(MeasuredStep(title, model, basis, workload, 1e9 / row["tokens_per_s"], False, source))
    return found


def mean_error(predictions: Iterable[Prediction]) -> float:
    """Mean absolute relative error."""
    return float(np.mean([abs(p.error) for p in predictions]))


def refit_host(steps: Iterable[MeasuredStep], source: str) -> HostFit:
    """The host's term from served steps."""
    found = [predict(step) for step in steps]
    return fit_host(
        [p.step.workload.batch for p in found],
        [p.device_ns for p in found],
        [p.step.measured_ns for p in found],
        source,
    )


def left_out(steps: list[MeasuredStep], *, by: str) -> list[Prediction]:
    """Each step predicted without the rows of its model, or of its machine: of kernels and, served, of whole steps.

    ``by`` is ``model`` or ``machine``. Without served steps of others the host's term is the one that ships.
    """
    found = []
    for name in dict.fromkeys(_group(step, by) for step in steps):
        mine = [step for step in steps if _group(step, by) == name]
        others = [step for step in steps if step.served and _group(step, by) != name]
        fits = fit_kernels(partial(_is_of, step=mine[0], by=by))
        with calibrated_by(Calibration(fits, calibration().host)):
            host = refit_host(others, calibration().host.source) if others else calibration().host
        with calibrated_by(Calibration(fits, host)):
            found += [predict(step) for step in mine]
    return found


def _group(step: MeasuredStep, by: str) -> str:
    if by == "model":
        return step.model.name
    return step.basis.hardware.name if step.basis.hardware else ""


def _is_of(row: dict[str, object], *, step: MeasuredStep, by: str) -> bool:
    """Whether a row of kernels is of the machine or the model of ``step``.

    Engines' own tables name no model: of a model are the matrices that have the size of one of its own.
    """
    if by == "machine":
        return row["machine"] == _group(step, by)
    named = str(row["from"]).lower().removeprefix("meta-").removesuffix("-hf")
    return named == step.model.name or row.get("weight_bytes") in _matrices(step.model)


@lru_cache(maxsize=64)
def _matrices(model: ModelSpec) -> frozenset[int]:
    """Bytes of each matrix of a model in 16 bit, as single kernels were measured."""
    plain = replace(model, weights="bf16", lm_head="bf16")
    return frozenset(op.weight_read for op, _ in counted_ops(plain, Workload())) - {0}


def step_errors(steps: list[MeasuredStep]) -> tuple[StepError, ...]:
    """The errors of what is really predicted, of steps with a serving host and without one."""
    found = []
    for served in (True, False):
        mine = [step for step in steps if step.served is served]
        by_model = left_out(mine, by="model")
        for machine in dict.fromkeys(_group(step, "machine") for step in mine):
            found.append(_error(served, machine, [p for p in by_model if _group(p.step, "machine") == machine]))
        if mine:
            found.append(_error(served, POOLED, left_out(mine, by="machine")))
    return tuple(found)


def _error(served: bool, machine: str, predictions: list[Prediction]) -> StepError:
    off = [abs(p.error) for p in predictions]
    return StepError(served, machine, len(off), round(float(np.mean(off)), 4), round(max(off), 4))
