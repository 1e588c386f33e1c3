"""Fit the calibrated profile again and write presets/calibration.json.

    python packaging/fit_calibration.py MEASURED.json

The kernels come from presets/measured_kernels.json. MEASURED.json (``rows`` with ``kind`` serving_steady_state) holds
whole steps of a serving engine, which are cited and not shipped: the host's term is fitted to those that are not held
out, and the predictions for those that are get printed. Without the argument the host's term stays as it is.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from public_runs import MACHINES, MODELS

from tracescope.cli.calibration import predictions_table
from tracescope.cli.measured_steps import (
    MeasuredStep,
    Prediction,
    held_out_steps,
    left_out,
    mean_error,
    predict,
    refit_host,
    step_errors,
)
from tracescope.cli.output import emit_table
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.dtypes import weight_dtype
from tracescope.floor.step_ops import step_totals
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.calibration import Calibration, HostFit, calibrated_by, encode, fit_kernels, shipped

TABLE = Path(__file__).resolve().parents[1] / "tracescope" / "presets" / "calibration.json"

HELD_OUT_MACHINE, HELD_OUT_BATCH = "1x H100", 64
HOST_SOURCE = (
    "median inter-token latencies of vLLM in steady state, ml-energy/leaderboard @0cd52dab (cited, not shipped); "
    "steps of one H100 up to batch 64 are held out"
)


def serving_steps(rows: list[dict[str, Any]]) -> tuple[list[MeasuredStep], list[MeasuredStep]]:
    """Whole steps of a serving engine: those for the host's term, and those held out.

    The mean context is not in the rows: it is what their published floor implies, at the datasheet bandwidth.
    """
    fitted, held_out = [], []
    for row in rows:
        if row["kind"] != "serving_steady_state":
            continue
        count, _, name = row["hw"].partition("x ")
        model, batch, ranks = load_model(MODELS[row["model"]]), round(row["batch"]), int(count)
        basis = make_basis(load_hardware(MACHINES[name]), None, weight_dtype(model.weights).compute)
        context = implied_context(model, row, ranks, basis.bandwidth_bytes_per_s or 0)
        step = MeasuredStep(
            f"{row['model'].partition('/')[2]} {row['precision']}, {count} × {MACHINES[name]}",
            model,
            basis,
            Workload(batch, context, tensor_parallel=ranks),
            row["median_itl_ms"] * 1e6,
            served=True,
            source=row["source"],
        )
        last = row["hw"] == HELD_OUT_MACHINE and batch <= HELD_OUT_BATCH
        (held_out if last else fitted).append(step)
    return fitted, held_out


def implied_context(model: ModelSpec, row: dict[str, Any], ranks: int, bandwidth: int) -> int:
    """Tokens cached a request, from the row's memory floor in ms: (floor · BW − weights) / (batch · bytes a token)."""
    at = step_totals(model, Workload(1, 1000, tensor_parallel=ranks))
    moved = row["floor_ms"] * 1e-3 * bandwidth - at.weight_read
    return max(0, round(moved / (row["batch"] * at.kv_read / 1000)))


def main(arguments: list[str]) -> int:
    """Fit, write, and show what the fit predicts for what it did not see."""
    # The host's term is fitted to what the new kernels leave: they are written first.
    before = shipped() if TABLE.exists() else Calibration((), HostFit(0, 0, 0, 0, 0, ""))
    found = replace(before, fits=fit_kernels())
    held_out = held_out_steps()
    if arguments:
        rows = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))["rows"]
        fitted, served = serving_steps(rows)
        with calibrated_by(found):
            found = replace(found, host=refit_host(fitted, HOST_SOURCE))
            everything = [*fitted, *served, *held_out]
            found = replace(found, errors=step_errors(everything))
        with calibrated_by(found):
            show("fitted (host only)", [predict(step) for step in fitted])
            for by in ("model", "machine"):
                for whose in ([s for s in everything if s.served], held_out):
                    show(f"each {by} left out", left_out(whose, by=by))
        held_out += served
    TABLE.write_bytes(encode(found))
    with calibrated_by(found):
        show("held out", [predict(step) for step in held_out])
    return 0


def show(title: str, predictions: list[Prediction]) -> None:
    """A table and its mean error."""
    print(f"\n{title}")
    emit_table(predictions_table(predictions))
    print(f"mean absolute error {mean_error(predictions):.1%}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
