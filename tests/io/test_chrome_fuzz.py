"""Random damage to small traces: every file reads with all accounted for, or is refused in one sentence."""

import gzip
import os
import random
from pathlib import Path

import pytest

from tests.kit.raw import read_text
from tracescope.core.errors import TraceError

SEEDS = [
    b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}], "traceEvents": [\n'
    + b",\n".join(
        b'  {"ph": "X", "cat": "kernel", "name": "k%d<float>(int*)", "pid": 0, "tid": 7, "ts": %d.%03d, "dur": 2.5,'
        b' "args": {"External id": %d, "correlation": %d, "grid": [1, 2, 3], "Input Dims": [[1, 2], []]}}'
        % (i, 1000 + 3 * i, i, i, i)
        for i in range(12)
    )
    + b'\n], "baseTimeNanoseconds": 1751410836000000000}\n',
    b'[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"E","pid":1,"tid":1,"ts":"4"},{"ph":"s","id":1,"ts":1},'
    b'{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}},{"ph":"b","id":"0x1","cat":"c","ts":2},{}',
]
PIECES = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"nan", b"-inf", b"\xff", b"\0", b"1e999", b"null", b"},{"]


def damaged(rng: random.Random) -> bytes:
    """One of the seeds with one to six random edits, sometimes zipped and damaged again."""
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randint(1, 6)):
        at, span = rng.randrange(len(data)), rng.randint(1, 40)
        kind = rng.randrange(5)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + span]
        elif kind == 2:
            data[at:at] = rng.choice(PIECES)
        elif kind == 3:
            data[at:at] = data[rng.randrange(len(data)) :][:span]
        else:
            data[at : at + 1] = rng.choice(PIECES)
    if rng.random() < 0.2:
        data = bytearray(gzip.compress(bytes(data)))
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        del data[rng.randrange(len(data) // 2, len(data) + 1) :]
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_read_or_are_refused(tmp_path: Path, seed: int) -> None:
    """TRACESCOPE_FUZZ multiplies the number of files (100 a seed)."""
    rng = random.Random(seed)
    refused = []
    files = 100 * int(os.environ.get("TRACESCOPE_FUZZ", "1"))
    for _ in range(files):
        try:
            read_text(tmp_path, damaged(rng))
        except TraceError as error:
            refused.append(error)
    assert all(len(error.lines()) <= 3 for error in refused)
    assert len(refused) < 0.8 * files
