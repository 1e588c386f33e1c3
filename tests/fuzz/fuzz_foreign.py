"""Read mutated traces of foreign formats in child processes and count crashes, hangs and everything uncaught.

    python -m tests.fuzz.fuzz_foreign --count 50000 --seed 1 --keep found/

A mutation is refused with one TraceError, or read with every element accounted for; anything else is a finding, and its
input is kept. Exit code 1 with any finding.
"""

import argparse
import json
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import fuzz_native
from tests.fuzz.fuzz_native import FINDINGS, Seed, Target
from tests.kit.perfetto import begin, end, trace
from tests.kit.protobuf import Fields
from tests.kit.rocprof import document, everything, kernel, process
from tracescope.core.errors import TraceError
from tracescope.io.importer import Importer
from tracescope.io.perfetto.reader import PERFETTO
from tracescope.io.rocprof.reader import ROCPROF


def perfetto_seeds() -> list[Seed]:
    """Traces with every kind of packet that is read: slices, interned texts, clocks, counters, stages, packed ones."""
    interned: Fields = {
        1: {1: 1, 2: "kernel"},
        2: {1: 1, 2: "gemm"},
        3: {1: 1, 2: "Input Dims"},
        24: [{1: 1, 2: "Queue"}, {1: 2, 2: "Stage", 4: 2}],
        29: {1: 1, 2: "text"},
        1000: {1: 1, 2: "_Z1k", 3: "k()", 4: "sm_80"},
        1001: {1: 1, 2: "registers"},
    }
    nested: Fields = {10: "d", 11: [{10: "k", 12: [{4: 1}, {5: 0.5}]}, {10: "t", 17: 1}]}
    event: Fields = {9: 1, 11: 2, 3: 1, 10: 1, 4: [{1: 1, 6: "[[1, 2], [3]]"}, nested], 47: [5, 6]}
    every = trace(
        {10: 1, 6: {1: [{1: 6, 2: 1000}, {1: 3, 2: 400}, {1: 1, 2: 10**18}, {1: 64, 2: 5, 4: 1000, 3: 1}], 2: 6}},
        {10: 1, 13: 1, 59: {58: 64, 11: {11: 2}}, 12: interned},
        {10: 1, 60: {1: 2, 2: "COMPUTE GPU 1", 5: 3}},
        {10: 1, 60: {1: 3, 4: {1: 10, 2: 11, 5: "main"}}},
        {10: 1, 60: {1: 4, 8: {3: 3, 4: 2, 5: 1}}},
        {8: 1, 10: 1, 11: event},
        {8: 9, 10: 1, 11: {9: 2, 11: 2}},
        {8: 1500, 58: 6, 10: 1, 11: {9: 4, 11: 4, 30: -3}},
        {8: 1600, 58: 3, 10: 1, 11: {9: 3, 11: 3, 23: "launch", 3000: {1: [1, 2]}}},
        {8: 1700, 58: 6, 10: 1, 53: {1: 1, 2: 50, 13: 1, 14: 2, 19: 1, 21: {1: {1: 8}, 2: {1: 9}, 3: {1: 1, 4: 3}}}},
        {8: 1800, 58: 6, 10: 1, 11: {6: {2: ord("X"), 3: 4}, 11: 3, 23: "old"}},
    )
    plain = trace(
        *(packet for i in range(60) for packet in (begin(10 * i, i % 3, f"n{i % 7}"), end(10 * i + 5, i % 3)))
    )
    return [_seed("every", every), _seed("plain", plain), _seed("packed", trace({50: zlib.compress(every)}))]


def rocprof_seeds() -> list[Seed]:
    """A file with every kind of record, and one of many kernels."""
    many = document(process(kernel_dispatch=[kernel(10 * i, 10 * i + 7, 1 + i % 2, i) for i in range(1, 40)]))
    texts = {"every": json.dumps(everything()), "many": json.dumps(many), "spread": json.dumps(everything(), indent=1)}
    return [_seed(name, text.encode()) for name, text in texts.items()]


def _seed(name: str, data: bytes) -> Seed:
    return Seed(name, data, tuple(at for at, byte in enumerate(data) if byte), ())


@dataclass(frozen=True)
class Kind:
    """One format: its reader, its seeds and the suffix of its files."""

    importer: Importer
    seeds: Callable[[], list[Seed]]
    suffix: str

    def outcome(self, path: Path) -> str:
        """What reading the file at ``path`` comes to."""
        try:
            raw = self.importer.read(path)
        except TraceError as error:
            return "refused" if 1 <= len(error.lines()) <= 3 else "uncaught"
        except BaseException:
            return "uncaught"
        return "read" if raw.seen == raw.imported + sum(raw.dropped.values()) else "uncaught"


KINDS = {
    "perfetto": Kind(PERFETTO, perfetto_seeds, ".pftrace"),
    "rocprof": Kind(ROCPROF, rocprof_seeds, ".json"),
}


def run(kind: str, count: int, base: int, folder: Path, keep: Path | None = None) -> Counter[str]:
    """Read ``count`` mutations; returns how many were read, refused, crashed, hung or uncaught. Findings are kept."""
    target = Target(fuzz_native.mutated, KINDS[kind].outcome, KINDS[kind].suffix)
    return fuzz_native.run(KINDS[kind].seeds(), count, base, folder, keep, target=target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; prints one line of counts for each format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="mutations of each format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the inputs of findings")
    options = parser.parse_args(arguments)
    findings = 0
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as name:
            totals = run(kind, options.count, options.seed, Path(name), options.keep)
        print(f"{kind}: {options.count} mutations, {dict(sorted(totals.items()))}", flush=True)
        findings += sum(totals[outcome] for outcome in FINDINGS)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
