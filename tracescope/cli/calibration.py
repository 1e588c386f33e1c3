"""``tracescope presets calibration``: what the calibrated profile is fitted to, and what it predicts for the rest."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click
import numpy as np

from tracescope.analysis.table import Column, Table
from tracescope.cli.measured_steps import Prediction, held_out_steps, left_out, mean_error, predict
from tracescope.cli.output import emit_table
from tracescope.synth.calibration import POOLED, SMALL, Fit, StepError, calibration, measured


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
    steps = held_out_steps()
    predictions = [predict(step) for step in steps]
    by_model = left_out(steps, by="model")
    return {
        **fits_document(),
        "held_out": [prediction_row(p) for p in predictions],
        "held_out_mean_error": mean_error(predictions),
        "model_left_out": [prediction_row(p) for p in by_model],
        "model_left_out_mean_error": mean_error(by_model),
        "step_errors": [asdict(error) for error in calibration().errors],
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
    predictions = left_out(held_out_steps(), by="model")
    print_fits()
    click.echo(
        "\nPredicted against measured, each model's own rows left out of the fits (a compiled loop: no serving host)"
    )
    emit_table(predictions_table(predictions))
    click.echo(f"mean absolute error {mean_error(predictions):.1%}")
    click.echo("\nErrors of predicted steps: each model left out; pooled: each machine left out")
    emit_table(errors_table(calibration().errors))
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


def errors_table(errors: Iterable[StepError]) -> Table:
    """One row a machine and kind of step."""
    rows = list(errors)
    return Table(
        (
            Column("host", ["vllm" if e.served else "none" for e in rows], "host"),
            Column("machine", ["others" if e.machine == POOLED else e.machine for e in rows], "machine"),
            Column("rows", [e.rows for e in rows], "steps"),
            Column("error", [f"{e.error:.1%}" for e in rows], "mean error"),
            Column("worst", [f"{e.worst:.1%}" for e in rows], "worst"),
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
