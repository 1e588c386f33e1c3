"""Kill a save at random moments and look at what is left: the old file to the byte, or the new one complete.

    python -m tests.fuzz.kill_save --count 500 --events 20000

Every second trial holds the old file open for reading in this process. After each kill a further save must succeed,
although the killed one may have left its ``.part``. Exit code 1 when a file was lost.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.kit.native import full_trace
from tracescope.core.trace import Trace
from tracescope.io import native, save

LOST = "lost"


def run(folder: Path, count: int, events: int, base: int) -> Counter[str]:
    """Kill ``count`` saves; returns how often the old file was there, the new one, or neither (``lost``)."""
    path = folder / "killed.tscope.h5"
    old, new = full_trace(events, seed=1), full_trace(events + events // 2, seed=2)
    old_bytes, new_bytes = bytes(save.compose(old)), bytes(save.compose(new))
    save.write(path, old)
    began = time.monotonic()
    os.waitpid(_start(path, new), 0)
    whole = time.monotonic() - began
    rng = random.Random(base)
    totals: Counter[str] = Counter()
    for trial in range(count):
        save.write(path, old)
        holder = path.open("rb") if trial % 2 else None
        child = _start(path, new)
        if trial % 4 < 2:
            time.sleep(rng.uniform(0, whole))
        else:  # most of a save is composing in memory: half of the kills come once something is on the disk
            _wait_for(path.with_name(path.name + ".part"), whole)
            time.sleep(rng.uniform(0, whole / 3))
        os.kill(child, signal.SIGKILL)
        ended = os.waitpid(child, 0)[1]
        found = path.read_bytes()
        totals["old" if found == old_bytes else "new" if found == new_bytes else LOST] += 1
        totals["killed" if os.WIFSIGNALED(ended) else "finished before the kill"] += 1
        totals["part left behind"] += path.with_name(path.name + ".part").exists()
        native.read(path)
        if holder is not None:
            if holder.read() != old_bytes:
                totals[LOST] += 1
            holder.close()
    save.write(path, old)
    if [p.name for p in folder.iterdir()] != [path.name]:
        totals[LOST] += 1
    return totals


def _start(path: Path, trace: Trace) -> int:
    """A child process that saves ``trace`` and exits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numerical libraries keep threads; no child needs them
        child = os.fork()
    if child == 0:
        status = 1
        try:
            save.write(path, trace)
            status = 0
        finally:
            os._exit(status)
    return child


def _wait_for(path: Path, patience_s: float) -> None:
    until = time.monotonic() + 2 * patience_s
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.0005)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; prints one line of counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        totals = run(Path(folder), options.count, options.events, options.seed)
    print(f"{options.count} kills: {dict(sorted(totals.items()))}")
    return 1 if totals[LOST] else 0


if __name__ == "__main__":
    sys.exit(main())
