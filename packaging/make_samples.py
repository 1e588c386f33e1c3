"""Make sample_traces/ with the product itself: three synthesised decodes and one recorded on a CPU.

    python packaging/make_samples.py RECORDED.pt.trace.json.gz

RECORDED is a torch.profiler trace of a small decode on a CPU. Names of the machine, the user and folders are taken
out of it before it is imported, and the finished samples are searched for them.
"""

import gzip
import re
import sys
import tempfile
from pathlib import Path

from tracescope.cli.app import run
from tracescope.io.native import read

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_traces"
LARGEST_TOGETHER = 3_000_000
RECORDED_AS = "cpu_llama4_decode16.pt.trace.json"

SYNTHESISED = {
    "lesson-20gb_b1": "--model lesson-20gb --hardware lesson-1tbs --batch 1 --steps 8 --profile ideal",
    "lesson-20gb_b4": "--model lesson-20gb --hardware lesson-1tbs --batch 4 --steps 8 --profile ideal",
    "llama-3-8b_h100_b16_c4096": (
        "--model llama-3-8b --hardware h100-sxm --batch 16 --context 4096 --steps 128 --profile realistic --seed 1"
    ),
}
IMPORTED = "cpu_llama4_decode16"

_PRIVATE_KEY = re.compile(r'"(?:host_?name|user_?name|user|tw_job\w*)"\s*:\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_TRACE_NAME = re.compile(r'("traceName"\s*:\s*")((?:[^"\\]|\\.)*)(")')
_FOLDER = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.+-]+){2,}[\\/]")


def main(recorded: Path) -> int:
    """Make every sample; the exit code says whether they are all there, small and free of private names."""
    SAMPLES.mkdir(exist_ok=True)
    for name, options in SYNTHESISED.items():
        _product("synth", *options.split(), "-o", str(SAMPLES / f"{name}.tscope.h5"))
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder) / f"{RECORDED_AS}.gz"
        private = write_without_private_names(recorded, clean)
        _product("import", str(clean), "-o", str(SAMPLES / f"{IMPORTED}.tscope.h5"))
        private.add(folder)
    total = 0
    for path in sorted(SAMPLES.glob("*.tscope.h5")):
        total += path.stat().st_size
        print(f"{path.stat().st_size:>9,} B  {path.name}")
        for word in sorted(private):
            if holds(path, word):
                sys.exit(f"{path.name} still holds the private name {word!r}")
    print(f"{total:>9,} B  together")
    if total >= LARGEST_TOGETHER:
        sys.exit(f"the samples take {total:,} B, more than {LARGEST_TOGETHER:,}")
    return 0


def write_without_private_names(recorded: Path, clean: Path) -> set[str]:
    """Copy the trace text with machine, user and folder names taken out, numbers untouched; return what was removed."""
    text = gzip.decompress(recorded.read_bytes()).decode("utf-8")
    private = {match[1] for match in _PRIVATE_KEY.finditer(text)}
    text = _PRIVATE_KEY.sub(lambda m: m[0][: m.start(1) - m.start(0)] + '"', text)
    private |= {match[2] for match in _TRACE_NAME.finditer(text)}
    text = _TRACE_NAME.sub(rf"\g<1>{RECORDED_AS}\g<3>", text)
    private |= {match[0] for match in _FOLDER.finditer(text)}
    text = _FOLDER.sub("", text)
    clean.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
    return {word for word in private if word}


def holds(path: Path, word: str) -> bool:
    """Whether any text of a native file (names, details, tracks, everything about the trace) holds ``word``."""
    trace = read(path).trace
    texts = [*trace.names, *trace.details, *map(repr, trace.tracks), repr(trace.meta)]
    pattern = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])")
    return any(pattern.search(text) for text in texts)


def _product(*arguments: str) -> None:
    code = run(list(arguments))
    if code not in (0, 3):
        sys.exit(f"tracescope {' '.join(arguments)} ended with {code}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
