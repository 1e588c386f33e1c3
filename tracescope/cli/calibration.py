"""``tracescope presets calibration``: what the calibrated profile is fitted to, and what it predicts for the rest."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import click
import numpy as np

from tracescope.analysis.table import Column, Table
from tracescope.cli.output import emit_table
from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.dtypes import weight_dtype
from tracescope.floor.pricing import ops_total_s
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.calibrated import host_ns
from tracescope.synth.calibration import SMALL, Fit, calibration, measured, records
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
    times = StepTimes(step.model, step.basis, replace(workload, batch=1, context=0), CALIBRATED)
    read = [workload.batch * tokens for tokens in times.tokens_read(workload.context)]
    host = float(host_ns(np.array([workload.batch]))[0])
    device = times.step_ns(workload.batch, read) - host
    floor = ops_total_s(step.model, workload, step.basis)
    return Prediction(step, (floor or 0.0) * 1e9, device, host if step.served else 0.0)


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


def fits_document() -> dict[str, Any]:
    """The fits with their errors, the host's term, and the sources."""
    table = calibration()
    return {
        "fits": [asdict(fit) for fit in table.fits],
        "host": asdict(table.host),
        "sources": sorted(measured()["sources"].values()),
    }


def calibration_document() -> dict[str, Any]:
    """The same, and the predictions of what was held out."""
    predictions = [predict(step) for step in held_out_steps()]
    return {
        **fits_document(),
        "held_out": [prediction_row(p) for p in predictions],
        "held_out_mean_error": mean_error(predictions),
    }


def prediction_row(found: Prediction) -> dict[str, Any]:
    """One prediction as JSON."""
    return {
        "step": found.step.title,
        "batch": found.step.workload.batch,
        "context": found.step.workload.context,
        "floor_ns": round(found.floor_ns),
        "device_ns": round(found.device_ns),
        "host_ns": round(found.host_ns),
        "predicted_ns": round(found.predicted_ns),
        "measured_ns": round(found.step.measured_ns),
        "error": found.error,
        "source": found.step.source,
    }


def print_fits() -> None:
    """The fits with their errors, and the host's term."""
    table = calibration()
    click.echo(
        "Calibrated profile, fitted to public measurements of single kernels: fixed + bytes ÷ (reach × bandwidth)"
    )
    emit_table(fits_table(table.fits))
    host = table.host
    click.echo(
        f"host of a serving engine: {host.step_ns / 1e3:,.1f} µs a step + {host.request_ns / 1e3:,.1f} µs a request; "
        f"{host.rows} rows, mean error of a step {host.error:.1%}, worst {host.worst:.1%}"
    )


def print_calibration() -> None:
    """The fits, what they predict for steps that they have not seen, and where everything is from."""
    predictions = [predict(step) for step in held_out_steps()]
    print_fits()
    click.echo("\nPredicted against measured, steps that no fit used (a compiled loop: no serving host in them)")
    emit_table(predictions_table(predictions))
    click.echo(f"mean absolute error {mean_error(predictions):.1%}")
    click.echo("\nSources")
    for source in (*sorted(measured()["sources"].values()), f"host: {calibration().host.source}"):
        click.echo(f"  {source}")


def fits_table(fits: Iterable[Fit]) -> Table:
    """One row a fit; reaches are empty for kernels of which only a fixed time is known."""
    rows = list(fits)
    small = np.array([fit.kind in SMALL for fit in rows])
    products = np.array([fit.kind == "products" for fit in rows])
    return Table(
        (
            Column("kind", [fit.kind for fit in rows], "kernel"),
            Column("machine", [fit.machine for fit in rows], "machine"),
            Column("fixed_ns", [f"{fit.fixed_ns / 1e3:.2f}" for fit in rows], "fixed", "µs"),
            Column("reach", np.array([fit.reach for fit in rows]), "reach", known=~small),
            Column("compute_reach", np.array([fit.compute_reach for fit in rows]), "of peak FLOPS", known=products),
            Column("rows", [fit.rows for fit in rows], "rows"),
            Column("error", [f"{fit.error:.1%}" for fit in rows], "mean error"),
            Column("worst", [f"{fit.worst:.1%}" for fit in rows], "worst"),
        )
    )


def predictions_table(predictions: Iterable[Prediction]) -> Table:
    """One row a measured step, times in ms."""
    rows = list(predictions)

    def ms(values: Iterable[float]) -> list[str]:
        return [f"{value / 1e6:.2f}" for value in values]

    return Table(
        (
            Column("step", [p.step.title for p in rows], "step"),
            Column("batch", [p.step.workload.batch for p in rows], "batch"),
            Column("context", [p.step.workload.context for p in rows], "context"),
            Column("floor_ns", ms(p.floor_ns for p in rows), "floor", "ms"),
            Column("predicted_ns", ms(p.predicted_ns for p in rows), "predicted", "ms"),
            Column("measured_ns", ms(p.step.measured_ns for p in rows), "measured", "ms"),
            Column("error", [f"{p.error:+.1%}" for p in rows], "error"),
        )
    )
