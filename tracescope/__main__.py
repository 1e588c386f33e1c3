"""``python -m tracescope`` and the console script: an interruption is quiet from the first import on."""

import contextlib
import os
import signal
import sys
from types import FrameType

EXIT_INTERRUPTED = 130


class Interrupted(BaseException):
    """A signal asked to end; not KeyboardInterrupt, for which click prints an empty line."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted


def main() -> None:
    """Run the command line; SIGINT and SIGTERM end it with exit code 130 and without a word."""
    try:
        with contextlib.suppress(ValueError):  # not in the main thread: whoever runs us there handles signals
            signal.signal(signal.SIGINT, _stop)
            signal.signal(signal.SIGTERM, _stop)
        from tracescope.cli.app import run

        code = run(sys.argv[1:])
    except (Interrupted, KeyboardInterrupt):
        # Threads of an import or of a reader may still run; waiting for them would print what they think of it.
        os._exit(EXIT_INTERRUPTED)
    if code == EXIT_INTERRUPTED:
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
