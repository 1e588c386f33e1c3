"""Read mutated SQLite exports of Nsight Systems in child processes and count crashes, hangs and everything uncaught.

    python -m tests.fuzz.fuzz_sqlite --count 50000 --seed 1 --keep found/

A mutation is refused with one TraceError, or read with every row accounted for; a child that dies, exceeds the
deadline, lets another exception out or needs more memory than allowed is a finding, and its input is kept. Exit code 1
with any finding.
"""

import argparse
import random
import sqlite3
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz import fuzz_native
from tests.fuzz.fuzz_native import FINDINGS, Seed, Target
from tests.kit.nsys import CUDA, build, everything, kernel
from tracescope.core.errors import TraceError
from tracescope.io.nsys.reader import NSYS


def own_seeds(folder: Path) -> list[Seed]:
    """Five small exports: every table, many kernels, hardly anything, another page size, and hostile values."""
    many = {**everything(), f"{CUDA}KERNEL": [kernel(10 * i, 10 * i + 7, correlationId=i) for i in range(400)]}
    odd_values = [{**kernel(i, i + 1), "shortName": v} for i, v in enumerate((None, 1 << 62, -5, "x", b"\0" * 40, 2.5))]
    paths = [
        build(folder / "all.sqlite", everything()),
        build(folder / "many.sqlite", many),
        build(folder / "few.sqlite", {f"{CUDA}KERNEL": [kernel(0, 10)]}, strings=False),
        build(folder / "pages.sqlite", many),
        build(folder / "odd.sqlite", {**everything(), f"{CUDA}KERNEL": odd_values}),
    ]
    connection = sqlite3.connect(paths[3])
    connection.execute("PRAGMA page_size = 512")
    connection.execute("VACUUM")
    connection.close()
    return [_seed(path) for path in paths]


def _seed(path: Path) -> Seed:
    data = path.read_bytes()
    return Seed(path.name, data, tuple(at for at, byte in enumerate(data) if byte), ())


def mutated(seeds: Sequence[Seed], number: int, base: int) -> tuple[Seed, bytes]:
    """Mutation ``number`` of a run; half of them spare the pages' structure so that damage reaches the reader."""
    rng = random.Random(base * 1_000_003 + number)
    if rng.random() < 0.5:
        return fuzz_native.mutated(seeds, number, base)
    seed = rng.choice(seeds)
    data = bytearray(seed.data)
    page = struct.unpack(">H", data[16:18])[0]
    for _ in range(rng.choice((1, 1, 2, 4))):
        # The cells lie at the end of a page: what stands there is records, and in page 1 the schema's text.
        first = rng.randrange(len(data) // page) * page
        at = first + page - 1 - int(rng.random() ** 2 * (page // 2))
        data[at] = rng.choice((0, 1, 8, 9, 0x7F, 0xFF, rng.randrange(256), data[at] ^ 1 << rng.randrange(8)))
    return seed, bytes(data)


def outcome(path: Path) -> str:
    """What reading the file at ``path`` comes to."""
    try:
        raw = NSYS.read(path)
    except TraceError as error:
        return "refused" if 1 <= len(error.lines()) <= 3 else "uncaught"
    except BaseException:
        return "uncaught"
    return "read" if raw.seen == raw.imported + sum(raw.dropped.values()) else "uncaught"


SQLITE = Target(mutated, outcome, ".sqlite")


def run(seeds: Sequence[Seed], count: int, base: int, folder: Path, keep: Path | None = None) -> Counter[str]:
    """Read ``count`` mutations; returns how many were read, refused, crashed, hung or uncaught. Findings are kept."""
    return fuzz_native.run(seeds, count, base, folder, keep, target=SQLITE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; prints one line of counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the inputs of findings")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        totals = run(own_seeds(Path(name)), options.count, options.seed, Path(name), options.keep)
    print(f"sqlite: {options.count} mutations, {dict(sorted(totals.items()))}", flush=True)
    return 1 if sum(totals[kind] for kind in FINDINGS) else 0


if __name__ == "__main__":
    sys.exit(main())
