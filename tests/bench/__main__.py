"""Run the benchmarks: ``python -m tests.bench [NAME ...]``; each ``bench_NAME.py`` prints its own table."""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them, and return an exit code."""
    known = {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    sys.path.insert(0, str(HERE.parents[1] / "packaging"))
    for name in names or known:
        print(f"== {name}")
        importlib.import_module(f"{__package__}.{known[name].stem}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
