"""Open mutated native and foreign HDF5 files in child processes and count crashes, hangs and everything uncaught.

    python -m tests.fuzz.fuzz_native --count 50000 --seed 1 --keep found/

A mutation is refused with one TraceError or read; a child that dies, exceeds the deadline, lets another exception out
or needs more memory than allowed is a finding, and its input is kept. Exit code 1 with any finding.
"""

import argparse
import faulthandler
import os
import random
import resource
import select
import signal
import struct
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.kit.native import empty_trace, full_trace, some_pyramid
from tracescope.core.errors import TraceError
from tracescope.io import native, save
from tracescope.io.gate import h5py, inspect
from tracescope.io.native_chunks import fletcher32

DEADLINE_S = 10.0
MEMORY = 3 << 30
FINDINGS = ("crash", "hang", "uncaught")


@dataclass(frozen=True)
class Seed:
    """A whole file to mutate: its bytes, where its non-zero bytes are, and where its chunks are (own files only)."""

    name: str
    data: bytes
    busy: tuple[int, ...]
    chunks: tuple[tuple[int, int], ...]


def own_seeds(folder: Path) -> list[Seed]:
    """Files of ours: with every table and a pyramid, and without anything."""
    full, empty = folder / "full.tscope.h5", folder / "empty.tscope.h5"
    save.write(full, full_trace(300), some_pyramid())
    save.write(empty, empty_trace())
    return [_seed(full, own=True), _seed(empty, own=True)]


def foreign_seeds(folder: Path) -> list[Seed]:
    """Files that are not ours, and one that claims to be, all with variable-length strings."""
    seeds = []
    for name, marker in (("foreign.h5", {}), ("claims.h5", {"format": "tracescope", "version": 1})):
        path = folder / name
        with h5py.File(path, "w") as file:
            file.attrs["title"] = "variable length"
            for key, value in marker.items():
                file.attrs[key] = value
            file.create_dataset("names", data=["a", "bb" * 40, "c"], dtype=h5py.string_dtype())
            file.create_dataset("start_ns", data=np.arange(5000), chunks=(1000,), compression="gzip")
            file.create_group("g").create_dataset("x", data=np.zeros(3, "i4,f8"))
            file["soft"] = h5py.SoftLink("/names")
        seeds.append(_seed(path, own=False))
    return seeds


def _seed(path: Path, *, own: bool) -> Seed:
    data = path.read_bytes()
    busy = tuple(np.flatnonzero(np.frombuffer(data, np.uint8)).tolist())
    columns = inspect(path).columns.values() if own else ()
    return Seed(path.name, data, busy, tuple((c.at, c.size) for column in columns for c in column.chunks))


# --- mutations ---

Mutation = Callable[[random.Random, bytearray, Seed], None]
_EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def _place(rng: random.Random, data: bytearray, seed: Seed) -> int:
    return rng.choice(seed.busy) % len(data) if rng.random() < 0.8 else rng.randrange(len(data))


def flip(rng: random.Random, data: bytearray, seed: Seed) -> None:
    data[_place(rng, data, seed)] ^= 1 << rng.randrange(8)


def randomise(rng: random.Random, data: bytearray, seed: Seed) -> None:
    data[_place(rng, data, seed)] = rng.randrange(256)


def edge_number(rng: random.Random, data: bytearray, seed: Seed) -> None:
    at, width = _place(rng, data, seed), rng.choice((1, 2, 4, 8))
    number = struct.pack("<Q", rng.choice(_EDGES))[:width]
    data[at : at + width] = number[: len(data) - at]


def blank(rng: random.Random, data: bytearray, seed: Seed) -> None:
    at, length = _place(rng, data, seed), rng.randrange(1, 256)
    data[at : at + length] = bytes(len(data[at : at + length]))


def copy_block(rng: random.Random, data: bytearray, seed: Seed) -> None:
    source, target, length = _place(rng, data, seed), _place(rng, data, seed), rng.choice((8, 16, 40, 512))
    block = data[source : source + length][: len(data) - target]
    data[target : target + len(block)] = block


def cut(rng: random.Random, data: bytearray, seed: Seed) -> None:
    del data[rng.randrange(len(data)) :]


def grow(rng: random.Random, data: bytearray, seed: Seed) -> None:
    data += rng.randbytes(rng.randrange(1, 2000))


def chunk_with_right_checksum(rng: random.Random, data: bytearray, seed: Seed) -> None:
    """Damage the compressed bytes of a chunk and repair its checksum, so that the decompressor meets them."""
    if not seed.chunks:
        return flip(rng, data, seed)
    at, size = rng.choice(seed.chunks)
    for _ in range(rng.randrange(1, 4)):
        data[at + rng.randrange(size - 4)] = rng.randrange(256)
    data[at + size - 4 : at + size] = fletcher32(bytes(data[at : at + size - 4])).to_bytes(4, "little")
    return None


MUTATIONS: tuple[Mutation, ...] = (flip, randomise, edge_number, blank, copy_block, chunk_with_right_checksum)
LAST: tuple[Mutation, ...] = (cut, grow)


def mutated(seeds: Sequence[Seed], number: int, base: int) -> tuple[Seed, bytes]:
    """Mutation ``number`` of a run: the same for the same seeds and ``base``."""
    rng = random.Random(base * 1_000_003 + number)
    seed = rng.choice(seeds)
    data = bytearray(seed.data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        rng.choice(MUTATIONS)(rng, data, seed)
    if rng.random() < 0.05:
        rng.choice(LAST)(rng, data, seed)
    return seed, bytes(data)


# --- children ---

Mutate = Callable[[Sequence[Seed], int, int], tuple[Seed, bytes]]


def _outcome(path: Path) -> str:
    """``read_changed``: it opened, and only the SHA-256 of the columns tells that it is not what was saved."""
    opened = False
    try:
        native.read(path)
        opened = True
        native.verify_checksum(path)
    except TraceError as error:
        if not 1 <= len(error.lines()) <= 2:
            return "uncaught"
        return "read_changed" if opened else "refused"
    except BaseException:
        return "uncaught"
    return "read"


@dataclass(frozen=True)
class Target:
    """What a run does: how inputs are made, what opening one comes to, and how the files are called."""

    mutate: Mutate = mutated
    judge: Callable[[Path], str] = _outcome
    suffix: str = ".h5"


NATIVE = Target()


def _child(seeds: Sequence[Seed], numbers: range, base: int, folder: Path, *, pipe: int, target: Target) -> None:
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path = folder / f"mutated.tscope{target.suffix}"
    for number in numbers:
        path.write_bytes(target.mutate(seeds, number, base)[1])
        os.write(pipe, f"{target.judge(path)}\n".encode())


def run(
    seeds: Sequence[Seed], count: int, base: int, folder: Path, keep: Path | None = None, *, target: Target = NATIVE
) -> Counter[str]:
    """Open ``count`` mutations; returns how many were read, refused, crashed, hung or uncaught. Findings are kept."""
    totals: Counter[str] = Counter()
    done = 0
    while done < count:
        for outcome in _one_child(seeds, range(done, count), base, folder, target):
            totals[outcome] += 1
            if outcome in FINDINGS and keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                name = f"{outcome}_{base}_{done}{target.suffix}"
                (keep / name).write_bytes(target.mutate(seeds, done, base)[1])
            done += 1
    return totals


def _one_child(seeds: Sequence[Seed], numbers: range, base: int, folder: Path, target: Target) -> list[str]:
    """Outcomes of one child, up to and including the mutation that ended it, if one did."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numerical libraries keep threads; the child needs none
        child = os.fork()
    if child == 0:
        os.close(read_end)
        status = 1
        try:
            _child(seeds, numbers, base, folder, pipe=write_end, target=target)
            status = 0
        finally:
            os._exit(status)
    os.close(write_end)
    outcomes: list[str] = []
    text = b""
    hung = False
    while True:
        if not select.select([read_end], [], [], DEADLINE_S)[0]:
            hung = True
            os.kill(child, signal.SIGKILL)
            break
        data = os.read(read_end, 65_536)
        if not data:
            break
        text += data
        *lines, text = text.split(b"\n")
        outcomes += [line.decode() for line in lines]
    os.close(read_end)
    status = os.waitpid(child, 0)[1]
    if hung:
        outcomes.append("hang")
    elif status != 0 and len(outcomes) < len(numbers):
        outcomes.append("crash")
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; prints one line of counts for own and for foreign files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="mutations of our own files")
    parser.add_argument("--foreign", type=int, default=2000, help="mutations of foreign files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the inputs of findings")
    options = parser.parse_args(arguments)
    findings = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, make, count in (("own", own_seeds, options.count), ("foreign", foreign_seeds, options.foreign)):
            totals = run(make(folder), count, options.seed, folder, options.keep)
            print(f"{title}: {count} mutations, {dict(sorted(totals.items()))}", flush=True)
            findings += sum(totals[kind] for kind in FINDINGS)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
