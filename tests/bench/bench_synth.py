"""Time and peak memory of ``tracescope synth`` as a process, from start to the file on disk.

python -m tests.bench synth
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = ("--model", "llama-3-70b", "--hardware", "h200-sxm", "--weights", "fp8")
STEPS = (500, 1_000, 2_000, 4_000)
OPS = 806
GOAL_S = {1_000: 3.0}
DRAWN = ("--arrivals", "poisson:5", "--prompt", "lognormal:1500:1", "--output", "exponential:28", "--count", "9000")


def run(*options: str) -> tuple[float, float]:
    """Seconds, and the peak memory of the process in MB."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.tscope.h5"
        command = [sys.executable, "-m", "tracescope", "synth", *MODEL, *options, "-o", str(out)]
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        taken = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode or not out.exists():
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return taken, usage.ru_maxrss / 1000


def main() -> None:
    """Print one line a size."""
    taken, peak = run(*DRAWN, "--detail", "steps")
    print(f"9,000 served requests, one event a step: {taken:.2f} s, {peak:.0f} MB")
    for profile in ("ideal", "realistic"):
        for steps in STEPS:
            taken, peak = min(run("--batch", "8", "--context", "2048", "--steps", str(steps), "--profile", profile)
                              for _ in range(2))  # fmt: skip
            goal = f", goal {GOAL_S[steps]:.0f} s" if steps in GOAL_S else ""
            print(f"{profile:<10} {steps:>5,} steps {steps * OPS:>9,} events: {taken:.2f} s, {peak:.0f} MB{goal}")


if __name__ == "__main__":
    main()
