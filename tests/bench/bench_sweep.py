"""A sweep of 64 batches × 64 contexts: bytes, floors, capacity, energy, what binds and every frontier.

``pytest tests/bench/bench_sweep.py -s`` (or ``python -m tests.bench sweep``) prints the table. The goal of 100 ms is
for a dense model; mixtures of experts and models with windows have more kinds of layers.
"""

import statistics
import time

from tracescope.core.hardware import Basis
from tracescope.core.model import ModelSpec, Workload
from tracescope.floor.step_floor import step_floor
from tracescope.floor.sweep import sweep
from tracescope.models import load_hardware, load_model, make_basis

BATCHES = [1 + 4 * i for i in range(64)]
CONTEXTS = [512 * i for i in range(64)]
MODELS = ("llama-3-8b", "gemma-2-9b", "mixtral-8x7b", "gpt-oss-20b", "deepseek-v3")
GOAL_MS = 100
REPEAT = 9


def sweep_ms(model: ModelSpec, basis: Basis) -> tuple[float, float, float]:
    """Median and fastest time of some sweeps with a deadline, and the median on the CPU alone, in ms."""
    took, worked = [], []
    for _ in range(REPEAT):
        began, cpu = time.perf_counter(), time.process_time()
        sweep(model, Workload(), basis, BATCHES, CONTEXTS, deadline_s=0.05)
        took.append(1e3 * (time.perf_counter() - began))
        worked.append(1e3 * (time.process_time() - cpu))
    return statistics.median(took), min(took), statistics.median(worked)


def one_by_one_ms(model: ModelSpec, basis: Basis) -> float:
    """The same number of single steps, from a few of them, in ms."""
    began = time.perf_counter()
    for batch in BATCHES[:4]:
        step_floor(model, Workload(batch, 512), basis)
    return 1e3 * (time.perf_counter() - began) / 4 * len(BATCHES) * len(CONTEXTS)


def measure() -> dict[str, float]:
    """Print the table; the median of each model in ms."""
    basis = make_basis(load_hardware("h100-sxm"))
    print(f"\n{'64 × 64 cells':16}{'median ms':>11}{'fastest ms':>12}{'CPU ms':>9}{'cell by cell ms':>17}")
    found = {}
    for name in MODELS:
        model = load_model(name)
        median, fastest, worked = sweep_ms(model, basis)
        found[name] = median
        print(f"{name:16}{median:11.1f}{fastest:12.1f}{worked:9.1f}{one_by_one_ms(model, basis):17.0f}")
    return found


def test_a_dense_model_takes_at_most_the_goal() -> None:
    assert measure()["llama-3-8b"] <= GOAL_MS


def main() -> None:
    """For ``python -m tests.bench``."""
    measure()


if __name__ == "__main__":
    main()
