"""The calibrated profile against whole steps that no fit has seen: predicted, measured, and the floor under both.

``pytest tests/bench/bench_calibration.py -s`` (or ``python -m tests.bench calibration``) prints the table. The steps of
a compiled loop ship with the product; those of a serving engine are cited, not shipped, and come from the shared
public measurements where these are present.
"""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

from tracescope.cli.calibration import predictions_table
from tracescope.cli.measured_steps import Prediction, held_out_steps, mean_error, predict
from tracescope.cli.output import emit_table

ROOT = Path(__file__).resolve().parents[2]
SERVED = ROOT.parent / "shared" / "reference" / "measured.json"
GOAL = 0.20


def fitter() -> ModuleType:
    """``packaging/fit_calibration.py``, which reads the steps of a serving engine."""
    spec = importlib.util.spec_from_file_location("fit_calibration", ROOT / "packaging" / "fit_calibration.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def held_out() -> dict[str, list[Prediction]]:
    """The predictions by where the steps were measured."""
    found = {"a compiled loop, no serving host": [predict(step) for step in held_out_steps()]}
    if SERVED.exists():
        _, steps = fitter().serving_steps(json.loads(SERVED.read_text(encoding="utf-8"))["rows"])
        found["a serving engine, host as its own term"] = [predict(step) for step in steps]
    return found


def measure() -> list[Prediction]:
    """Print the tables; all predictions."""
    groups = held_out()
    for title, predictions in groups.items():
        print(f"\n{title}")
        emit_table(predictions_table(predictions))
        print(f"mean absolute error {mean_error(predictions):.1%}")
    every = [p for predictions in groups.values() for p in predictions]
    print(f"\n{len(every)} steps held out: mean absolute error {mean_error(every):.1%}, goal {GOAL:.0%}")
    return every


def test_steps_that_no_fit_has_seen() -> None:
    predictions = measure()
    assert mean_error(predictions) <= GOAL
    assert all(p.predicted_ns >= p.floor_ns for p in predictions)


def main() -> None:
    """For ``python -m tests.bench``."""
    measure()


if __name__ == "__main__":
    main()
