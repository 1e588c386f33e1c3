"""Reading a generated Kineto file beside json.load and orjson.loads of the same file: time and peak memory.

``pytest tests/bench/bench_import.py -s`` (or ``python tests/bench/bench_import.py [MB]``) prints the table. Each
reading runs in a process of its own, whose memory and its children's is sampled while it runs.
"""

import gzip
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.kineto_tile import write_trace

READERS: Final = {
    "bare read": "import sys; data = open(sys.argv[1], 'rb').read()",
    "json.load": "import sys, json; json.load(open(sys.argv[1]))",
    "orjson.loads": "import sys, orjson; orjson.loads(open(sys.argv[1], 'rb').read())",
    "chrome reader": (
        "import sys; from pathlib import Path; from tracescope.io import reader_for\n"
        "path = Path(sys.argv[1]); raw = reader_for(path).read(path); print(raw.seen, raw.imported)"
    ),
}
IMPORT: Final = "tracescope import"


@dataclass(frozen=True)
class Run:
    """One reading: wall seconds, peak resident bytes of the process tree, and what it printed."""

    seconds: float
    peak_bytes: int
    output: str


def tree_bytes(pid: int) -> int:
    """Resident bytes of a process and all below it, now. Shared pages count in each process."""
    total, waiting = 0, [pid]
    while waiting:
        process = waiting.pop()
        try:
            status = Path(f"/proc/{process}/status").read_text()
            total += next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS")), 0)
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def measure(command: list[str]) -> Run:
    """Run ``command`` to its end, sampling its memory every 5 ms."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, tree_bytes(process.pid))
        time.sleep(0.005)
    seconds = time.perf_counter() - began
    output = process.stdout.read() if process.stdout else ""
    assert process.returncode in (0, 3), f"{command[:4]} ended with {process.returncode}"
    return Run(seconds, peak, output)


def compare(path: Path, folder: Path, *, repeat: int = 1) -> dict[str, Run]:
    """The fastest of ``repeat`` runs of each reading of ``path``."""
    zipped = folder / f"{path.name}.gz"
    with path.open("rb") as plain, gzip.open(zipped, "wb", compresslevel=1) as file:
        shutil.copyfileobj(plain, file, 1 << 20)
    commands = {name: [sys.executable, "-c", code, str(path)] for name, code in READERS.items()}
    commands["same, .json.gz"] = [sys.executable, "-c", READERS["chrome reader"], str(zipped)]
    if importlib.util.find_spec("tracescope.cli.import_") is not None:
        out = str(folder / "out.tscope.h5")
        commands[IMPORT] = [sys.executable, "-m", "tracescope", "import", str(path), "-o", out]
    return {
        name: min((measure(command) for _ in range(repeat)), key=lambda run: run.seconds)
        for name, command in commands.items()
    }


def table(path: Path, runs: dict[str, Run]) -> str:
    """The runs as text: seconds, MB/s, times json.load and orjson.loads, and peak memory over file size."""
    size = path.stat().st_size
    slow, fast = runs["json.load"].seconds, runs["orjson.loads"].seconds
    lines = [f"{'':16}{'s':>8}{'MB/s':>8}{'of json':>9}{'of orjson':>11}{'peak MB':>9}{'× file':>8}"]
    for name, run in runs.items():
        lines.append(
            f"{name:16}{run.seconds:8.2f}{size / 1e6 / run.seconds:8.0f}{run.seconds / slow:9.2f}"
            f"{run.seconds / fast:11.2f}{run.peak_bytes / 1e6:9.0f}{run.peak_bytes / size:8.2f}"
        )
    return f"{size / 1e6:.0f} MB Kineto JSON\n" + "\n".join(lines)


def bench(megabytes: int, folder: Path) -> tuple[Path, int, dict[str, Run]]:
    path = folder / f"kineto_{megabytes}.json"
    elements = write_trace(path, megabytes)
    runs = compare(path, folder)
    print("\n" + table(path, runs))
    return path, elements, runs


def test_reading_200_mb(tmp_path: Path) -> None:
    path, elements, runs = bench(200, tmp_path)
    seen, imported = map(int, runs["chrome reader"].output.split())
    assert seen == imported == elements
    assert runs["chrome reader"].seconds < runs["json.load"].seconds
    assert runs["chrome reader"].peak_bytes < 0.6 * path.stat().st_size


def test_reading_500_mb(tmp_path: Path) -> None:
    """Large enough for two processes: the goals of an import, the second process's memory included."""
    path, elements, runs = bench(500, tmp_path)
    assert runs["chrome reader"].output.split() == [str(elements)] * 2
    assert runs[IMPORT].peak_bytes < 0.5 * path.stat().st_size
    assert runs[IMPORT].seconds < 1.6 * runs["orjson.loads"].seconds
    assert runs["same, .json.gz"].seconds < 2.2 * runs["orjson.loads"].seconds


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        bench(int(sys.argv[1]) if len(sys.argv) > 1 else 200, Path(directory))
